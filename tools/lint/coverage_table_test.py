#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of coverage_table.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import coverage_table  # noqa: E402  (found through the line above)


def file(name, line_covered, line_total, branch_covered, branch_total):
    return {
        "filename": name,
        "line_covered": line_covered,
        "line_total": line_total,
        "branch_covered": branch_covered,
        "branch_total": branch_total,
    }


class CoverageTableTest(unittest.TestCase):
    def test_files_are_added_up_by_folder_and_in_all(self):
        files = [
            file("refit/b.cc", 30, 40, 1, 4),
            file("base/a.cc", 9, 10, 0, 0),
            file("refit/a.cc", 10, 10, 3, 4),
        ]
        self.assertEqual(
            coverage_table.table({"files": files}),
            [
                "folder    lines      of  branches      of",
                "base     90.0 %      10         -       0",
                "refit    80.0 %      50    50.0 %       8",
                "total    81.7 %      60    50.0 %       8",
            ],
        )

    def test_nothing_at_all_is_a_table_too(self):
        self.assertEqual(len(coverage_table.table({"files": []})), 2)


if __name__ == "__main__":
    unittest.main()
