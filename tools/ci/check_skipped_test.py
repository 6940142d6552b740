#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of check_skipped.py."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_skipped  # noqa: E402  (found through the line above)


def event(label, **payload):
    return {"id": {"targetCompleted": {"label": label}}, **payload}


# As Bazel 4.2 writes them.
BUILT = event("//a:lib", completed={"success": True})
FAILED = event("//a:broken", aborted={"reason": "ANALYSIS_FAILURE"})
SKIPPED = event("//a:gpu_test", aborted={"reason": "SKIPPED"})
STARTED = {"id": {"started": {}}, "started": {"command": "test"}}


class CheckSkippedTest(unittest.TestCase):
    def test_accepts_exactly_what_is_expected(self):
        events = [STARTED, BUILT, FAILED, SKIPPED]
        self.assertEqual(check_skipped.differences(events, {"//a:gpu_test"}), [])
        self.assertEqual(check_skipped.differences([BUILT], set()), [])

    def test_refuses_a_target_that_was_lost(self):
        self.assertEqual(
            check_skipped.differences([BUILT, SKIPPED], set()),
            ["//a:gpu_test was skipped, and is not expected to be"],
        )

    def test_refuses_a_target_that_was_built_or_is_gone(self):
        self.assertEqual(
            check_skipped.differences([BUILT, SKIPPED], {"//a:gpu_test", "//a:lib", "//a:gone"}),
            [
                "//a:gone was not skipped, and is expected to be",
                "//a:lib was not skipped, and is expected to be",
            ],
        )

    def test_refuses_a_build_that_met_no_target(self):
        self.assertEqual(len(check_skipped.differences([STARTED], set())), 1)

    def test_reads_a_list_with_comments(self):
        self.assertEqual(
            check_skipped.expected_labels(["# a\n", "\n", "//a:b  # why\n", "//a:c\n"]),
            {"//a:b", "//a:c"},
        )

    def test_the_command_tells_by_its_exit_code(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        events = folder / "events.json"
        events.write_text("\n".join(map(json.dumps, [STARTED, BUILT, SKIPPED])), encoding="utf-8")
        expected = folder / "expected.txt"
        expected.write_text("//a:gpu_test\n", encoding="utf-8")

        def run(*arguments):
            command = [sys.executable, check_skipped.__file__, *arguments]
            return subprocess.run(command, check=False, capture_output=True, text=True)

        self.assertEqual(run("--expected", expected, events).returncode, 0)
        refused = run(events)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("//a:gpu_test was skipped", refused.stderr)
        self.assertNotEqual(run(folder / "no such file").returncode, 0)


if __name__ == "__main__":
    unittest.main()
