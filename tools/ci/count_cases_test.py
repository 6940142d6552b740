#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of count_cases.py."""

import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import count_cases  # noqa: E402  (found through the line above)

# As GoogleTest 1.16 writes it.
GTEST_XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" disabled="1" errors="0" time="0." name="AllTests">
  <testsuite name="Ring" tests="4" failures="1" disabled="1" skipped="1" errors="0">
    <testcase name="Wraps" status="run" result="completed" classname="Ring" />
    <testcase name="Cuts" status="run" result="completed" classname="Ring">
      <failure message="Expected equality" type=""><![CDATA[ring_test.cc:1]]></failure>
    </testcase>
    <testcase name="NeedsTwoCores" status="run" result="skipped" classname="Ring">
      <skipped message="one core"><![CDATA[one core]]></skipped>
    </testcase>
    <testcase name="DISABLED_Slow" status="notrun" result="suppressed" classname="Ring" />
  </testsuite>
</testsuites>
"""

# As Bazel writes it for a test that does not write its own.
SHELL_XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="lint" tests="1" failures="0" errors="{errors}">
    <testcase name="lint" status="run" duration="1" time="1">{error}</testcase>
  </testsuite>
</testsuites>
"""
SHELL_PASSED = SHELL_XML.format(errors=0, error="")
SHELL_FAILED = SHELL_XML.format(errors=1, error='<error message="exited with error code 1"></error>')


def configured(label):
    return {"id": {"targetConfigured": {"label": label}}, "configured": {"testSize": "SMALL"}}


def completed(label, **payload):
    return {"id": {"targetCompleted": {"label": label}}, **payload}


class CountCasesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        self.written = 0

    def result(self, label, status, xml, shard=1, attempt=1):
        outputs = []
        if xml is not None:
            self.written += 1
            path = self.folder / f"a folder {self.written}" / "test.xml"
            path.parent.mkdir()
            path.write_text(xml, encoding="utf-8")
            outputs = [{"name": "test.xml", "uri": path.as_uri()}]
        key = {"label": label, "run": 1, "shard": shard, "attempt": attempt}
        payload = {"status": status, "testActionOutput": outputs}
        return {"id": {"testResult": key}, "testResult": payload}

    def assert_counts(self, events, expected, exit_code=0, failures=None):
        counts = count_cases.count_events(events, exit_code)
        self.assertEqual((counts.passed, counts.failed, counts.skipped), expected)
        if failures is not None:
            self.assertEqual(counts.failures, failures)

    def test_counts_cases_and_not_targets(self):
        self.assert_counts(
            [self.result("//a:ring_test", "FAILED", GTEST_XML)],
            (1, 1, 2),
            exit_code=3,
            failures=["//a:ring_test: Ring.Cuts"],
        )

    def test_counts_a_shell_test_as_one_case(self):
        self.assert_counts([self.result("//a:lint", "PASSED", SHELL_PASSED)], (1, 0, 0))
        self.assert_counts([self.result("//a:lint", "FAILED", SHELL_FAILED)], (0, 1, 0), 3)

    def test_adds_up_shards_and_takes_the_last_attempt(self):
        self.assert_counts(
            [
                self.result("//a:t", "PASSED", SHELL_PASSED, shard=1),
                self.result("//a:t", "FAILED", SHELL_FAILED, shard=2, attempt=1),
                self.result("//a:t", "PASSED", SHELL_PASSED, shard=2, attempt=2),
            ],
            (2, 0, 0),
        )

    def test_a_test_without_a_readable_xml_has_failed(self):
        self.assert_counts([self.result("//a:t", "TIMEOUT", None)], (0, 1, 0), 3)
        self.assert_counts([self.result("//a:t", "PASSED", None)], (0, 1, 0))
        self.assert_counts([self.result("//a:t", "PASSED", "<testsuites")], (0, 1, 0))

    def test_a_test_without_a_case_has_failed(self):
        self.assert_counts([self.result("//a:t", "PASSED", "<testsuites/>")], (0, 1, 0))

    def test_a_test_that_fails_after_its_last_case_has_failed(self):
        self.assert_counts([self.result("//a:t", "FAILED", SHELL_PASSED)], (1, 1, 0), 3)

    def test_a_target_that_is_not_built_has_failed(self):
        self.assert_counts(
            [
                configured("//a:t"),
                completed("//a:t", completed={"failureDetail": {}}),
                completed("//a:u", aborted={"reason": "ANALYSIS_FAILURE"}),
                completed("//a:lib", completed={"success": True}),
            ],
            (0, 2, 0),
            exit_code=1,
            failures=["//a:t: not built", "//a:u: not built"],
        )

    def test_a_test_that_is_incompatible_with_the_platform_does_not_count(self):
        self.assert_counts(
            [configured("//a:gpu_test"), completed("//a:gpu_test", aborted={"reason": "SKIPPED"})],
            (0, 0, 0),
        )

    def test_a_test_that_was_filtered_out_does_not_count(self):
        self.assert_counts(
            [configured("//a:peer"), completed("//a:peer", completed={"success": True})], (0, 0, 0)
        )

    def test_an_unexplained_exit_code_is_a_failure(self):
        self.assert_counts([], (0, 1, 0), exit_code=37, failures=["Bazel exited with 37"])


if __name__ == "__main__":
    unittest.main()
