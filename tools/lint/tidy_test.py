#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of tidy.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tidy  # noqa: E402  (found through the line above)

# As clang-tidy 22 writes it in Bazel's sandbox.
REPORT = """\
/c/sandbox/linux-sandbox/3/execroot/weight_sync/base/fd_test.cc:47:16: error: 'from' used after it \
was moved [bugprone-use-after-move,-warnings-as-errors]
   47 |   EXPECT_FALSE(from.valid());
      |                ^
/c/sandbox/linux-sandbox/3/execroot/weight_sync/base/fd_test.cc:46:15: note: move occurred here
   46 |   UniqueFd to(std::move(from));
      |               ^
./weight_sync/link.h:9:1: error: unknown type \
'(lambda at /c/execroot/weight_sync/base/a.h:1:2)' [clang-diagnostic-error]
"""

# As Bazel 4.2.3 writes it, shortened.
EVENTS = """\
{"id":{"started":{}},"started":{"uuid":"x"}}
{"id":{"namedSet":{"id":"0"}},"namedSetOfFiles":{"files":[\
{"name":"base/a.a.cc.clang_tidy","uri":"file:///c/bin/base/a.a.cc.clang_tidy"},\
{"name":"base/liba.a","uri":"file:///c/bin/base/liba.a"}]}}
{"id":{"namedSet":{"id":"1"}},"namedSetOfFiles":{"fileSets":[{"id":"0"}]}}
{"id":{"namedSet":{"id":"2"}},"namedSetOfFiles":{"files":[\
{"name":"base/b c.b.cc.clang_tidy","uri":"file:///c/bin/base/b%20c.b.cc.clang_tidy"}]}}
"""


class TidyTest(unittest.TestCase):
    def test_findings_are_read_with_workspace_paths_and_without_notes(self):
        self.assertEqual(
            [str(finding) for finding in tidy.findings_in(REPORT)],
            [
                "base/fd_test.cc:47: [clang-tidy] 'from' used after it was moved"
                " (bugprone-use-after-move)",
                "weight_sync/link.h:9: [clang-tidy] unknown type '(lambda at base/a.h:1:2)'"
                " (clang-diagnostic-error)",
            ],
        )

    def test_a_clean_report_has_none(self):
        self.assertEqual(tidy.findings_in(""), [])

    def test_the_aspects_outputs_are_found_in_the_build_events(self):
        self.assertEqual(
            tidy.reports_named_by(EVENTS.splitlines()),
            ["/c/bin/base/a.a.cc.clang_tidy", "/c/bin/base/b c.b.cc.clang_tidy"],
        )


if __name__ == "__main__":
    unittest.main()
