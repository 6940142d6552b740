#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of dependencies.py. That Bazel answers its queries as meant is what self_test shows."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import dependencies  # noqa: E402  (found through the line above)

PACKAGES = [
    "base",
    "fakes",
    "refit",
    "refit/tensor",
    "weight_sync",
    "weight_sync/engines/native",
    "weight_sync/ipc",
    "weight_sync/wire",
]


def rules_of(packages):
    return list(dependencies.rules(packages, {p: f"//{p}:a" for p in packages}))


def named(name, packages):
    return [check for check in rules_of(packages) if check.rule.name == name]


class RulesTest(unittest.TestCase):
    def test_a_single_transport_has_nothing_to_be_kept_apart_from(self):
        self.assertEqual(named("transports-apart", PACKAGES), [])

    def test_a_new_folder_of_weight_sync_is_a_transport_without_being_named(self):
        checks = named("transports-apart", PACKAGES + ["weight_sync/pigeon"])
        paths = [check for check in checks if isinstance(check, dependencies.NoPath)]
        self.assertEqual(
            [(check.end, "//weight_sync/ipc/" in check.start) for check in paths],
            [("(//weight_sync/pigeon/...:*)", True), ("(//weight_sync/ipc/...:*)", False)],
        )

    def test_engines_are_kept_from_each_other_and_from_every_transport(self):
        packages = PACKAGES + ["weight_sync/engines/vllm", "weight_sync/engines/vllm/plugin"]
        ends = [check.end for check in named("engines-and-transports-apart", packages)]
        self.assertEqual(
            ends,
            [
                "(//weight_sync/engines/vllm/...:* + //weight_sync/ipc/...:*)",
                "(//weight_sync/engines/native/...:* + //weight_sync/ipc/...:*)",
                "(//weight_sync/engines/native/...:* + //weight_sync/engines/vllm/...:*)",
            ],
        )

    def test_a_transports_targets_are_watched_from_the_other_folders_of_weight_sync(self):
        queries = [check.query for check in named("visibility-keeps-direction", PACKAGES)]
        (ipc,) = [query for query in queries if "//weight_sync/ipc/..." in query]
        self.assertIn("visible(//weight_sync/wire:a,", ipc)
        self.assertNotIn("visible(//weight_sync/ipc:a,", ipc)
        self.assertNotIn("visible(//weight_sync:a,", ipc)  # where the factory is

    def test_every_rule_has_a_reason(self):
        for check in rules_of(PACKAGES):
            self.assertGreater(len(check.rule.reason), 20, check.rule.name)


class FindingsTest(unittest.TestCase):
    rule = dependencies.Rule("apart", "the reason")

    def test_every_target_with_a_forbidden_edge_is_listed_with_its_path(self):
        answers = {
            "somepath(A, B)": ["//a:y", "//a:x", "//b:b"],
            "(A) intersect rdeps(A, B, 1)": ["//a:x", "//a/c:z"],
            "deps(//a:x, 1) intersect (B)": ["//b:b"],
            "deps(//a/c:z, 1) intersect (B)": ["//b:d", "//b:e"],
        }
        found = dependencies.check_no_path(answers.__getitem__, self.rule, "A", "B")
        self.assertEqual(
            [str(finding) for finding in found],
            [
                "a/BUILD.bazel: [apart] //a:x -> //b:b must not be: the reason",
                "a/c/BUILD.bazel: [apart] //a/c:z -> //b:d must not be: the reason",
            ],
        )

    def test_a_path_through_something_else_is_found_too(self):
        answers = {
            "somepath(A, B)": ["//a:x", "//other:o", "//b:b"],
            "(A) intersect rdeps(A, B, 1)": [],
        }
        (found,) = dependencies.check_no_path(answers.__getitem__, self.rule, "A", "B")
        self.assertIn("//a:x -> //other:o -> //b:b", found.text)

    def test_no_path_is_no_finding(self):
        self.assertEqual(dependencies.check_no_path(lambda _: [], self.rule, "A", "B"), [])

    def test_every_target_that_answers_a_query_is_listed(self):
        found = dependencies.check_no_target(
            lambda _: ["//:r", "//a:b"], self.rule, "Q", "is seen"
        )
        self.assertEqual(
            [str(finding) for finding in found],
            [
                "BUILD.bazel: [apart] //:r is seen: the reason",
                "a/BUILD.bazel: [apart] //a:b is seen: the reason",
            ],
        )

    def test_a_cpp_file_that_no_build_file_names_is_listed(self):
        def query(_):
            return ["//base:a.h", "//base:sub/b.cc", "//:c.h"]

        paths = ["base/a.h", "base/sub/b.cc", "c.h", "base/lost.h", "base/d.py", "examples/e.cc"]
        found = dependencies.check_has_target(query, paths)
        self.assertEqual([(f.path, f.rule) for f in found], [("base/lost.h", "file-has-target")])


if __name__ == "__main__":
    unittest.main()
