#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of lint.py."""

import contextlib
import io
import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lint  # noqa: E402  (found through the line above)
from finding import Finding  # noqa: E402


def fails():
    raise RuntimeError("clang-tidy cannot be installed")


def verdict(checks):
    """What the command prints and exits with when it has these checks."""
    printed = io.StringIO()
    with (
        contextlib.redirect_stdout(printed),
        mock.patch.object(lint, "list_files", return_value=[]),
        mock.patch.object(lint, "checks", return_value=checks),
        mock.patch.object(sys, "argv", ["run"]),
    ):
        return lint.main(), printed.getvalue()


class VerdictTest(unittest.TestCase):
    def test_nothing_found_is_success(self):
        status, printed = verdict({"a": lambda: [], "b": lambda: []})
        self.assertEqual(status, 0)
        self.assertTrue(printed.endswith("lint: no violation\n"), printed)

    def test_everything_is_checked_and_listed_at_the_end(self):
        first, second = Finding("a.cc", 3, "one", "x"), Finding("b.cc", 0, "two", "y")
        status, printed = verdict({"a": lambda: [first], "b": lambda: [], "c": lambda: [second]})
        self.assertEqual(status, 1)
        ending = "lint: 2 violations\n  a.cc:3: [one] x\n  b.cc: [two] y\n"
        self.assertTrue(printed.endswith(ending), printed)

    def test_a_check_that_cannot_be_made_is_a_violation_and_the_rest_go_on(self):
        second = Finding("b.cc", 0, "two", "y")
        status, printed = verdict({"a": fails, "b": lambda: [second]})
        self.assertEqual(status, 1)
        self.assertIn("[a] this check could not be made: clang-tidy cannot be installed", printed)
        self.assertIn("b.cc: [two] y", printed)


if __name__ == "__main__":
    unittest.main()
