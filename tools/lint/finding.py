# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a check of tools/lint reports."""

from typing import NamedTuple


class Finding(NamedTuple):
    path: str  # from the workspace root
    line: int  # 0: the file as a whole
    rule: str
    text: str  # what is wrong, and what to do

    def __str__(self):
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: [{self.rule}] {self.text}"
