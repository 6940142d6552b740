#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of formatting.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import formatting  # noqa: E402  (found through the line above)

# As clang-format 19 writes it.
CLANG_FORMAT = """\
base/a.cc:7:12: error: code should be clang-formatted [-Wclang-format-violations]
    7 | int  a;
      |    ^
base/a.cc:9:1: error: code should be clang-formatted [-Wclang-format-violations]
base/b.h:2:1: error: code should be clang-formatted [-Wclang-format-violations]
"""

# As buildifier 8.2.1 writes it, shortened.
BUILDIFIER = """\
{"success":false,"files":[
{"filename":"a/BUILD.bazel","formatted":false,"valid":true,"warnings":[
{"start":{"line":4,"column":1},"category":"load","message":"Loaded symbol \\"c\\" is unused.\\nTo disable"}]},
{"filename":"b/BUILD.bazel","formatted":true,"valid":true,"warnings":null},
{"filename":"c.bzl","formatted":false,"valid":false,"warnings":[]}]}
"""


class FormattingTest(unittest.TestCase):
    def test_each_unformatted_cpp_file_is_one_finding_at_its_first_line(self):
        found = formatting.clang_format_findings(CLANG_FORMAT)
        self.assertEqual([(f.path, f.line) for f in found], [("base/a.cc", 7), ("base/b.h", 2)])
        self.assertIn("tools/lint/run --fix", found[0].text)

    def test_formatted_files_are_no_finding(self):
        self.assertEqual(formatting.clang_format_findings(""), [])

    def test_buildifiers_format_warnings_and_syntax_errors_are_findings(self):
        self.assertEqual(
            [str(finding) for finding in formatting.buildifier_findings(BUILDIFIER)],
            [
                "a/BUILD.bazel: [buildifier] is not formatted: tools/lint/run --fix",
                'a/BUILD.bazel:4: [buildifier] Loaded symbol "c" is unused. (load)',
                "c.bzl: [buildifier] is no valid Starlark",
            ],
        )

    def test_files_are_chosen_by_their_names(self):
        paths = [
            "a.cc",
            "a.cu",
            "a.cuh",
            "a.h",
            "a.py",
            "BUILD.bazel",
            "a/BUILD",
            "x.bzl",
            "third_party/x/x.BUILD",
            "WORKSPACE",
            "examples/e/MODULE.bazel",
            "README.md",
        ]
        self.assertEqual(formatting.cpp_files(paths), paths[:4])
        self.assertEqual(formatting.bazel_files(paths), paths[5:11])

    def test_a_program_that_does_not_do_its_work_is_an_error(self):
        for check in (formatting.check_clang_format, formatting.check_buildifier):
            with self.assertRaises(RuntimeError):
                check("/bin/false", "/", ["a.cc", "BUILD.bazel"])


if __name__ == "__main__":
    unittest.main()
