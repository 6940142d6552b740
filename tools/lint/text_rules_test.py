#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of text_rules.py."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import text_rules  # noqa: E402  (found through the line above)

LICENSE = """// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
"""
HEADER = LICENSE + "//\n// A comment.\n\n#ifndef {0}\n#define {0}\n\n#endif  // {0}\n"


def rules_broken(path, text):
    return [finding.rule for finding in text_rules.check_text(path, text)]


def include(name):
    return f"{LICENSE}\n#include {name}\n"


class LicenseTest(unittest.TestCase):
    def test_a_source_file_with_both_lines_passes(self):
        self.assertEqual(rules_broken("base/a.cc", LICENSE), [])

    def test_a_script_may_have_them_below_its_interpreter(self):
        text = "#!/bin/sh\n" + LICENSE.replace("//", "#")
        self.assertEqual(rules_broken("tools/run", text), [])

    def test_every_kind_of_source_needs_them(self):
        for path in ("a.cc", "a.cu", "a.py", "a/BUILD.bazel", "a.bzl", "third_party/a/a.BUILD"):
            self.assertEqual(rules_broken(path, "x\n"), ["license"], path)
        self.assertEqual(rules_broken("tools/run", "#!/bin/sh\nls\n"), ["license"])

    def test_both_lines_are_needed_and_at_the_top(self):
        first, second = LICENSE.splitlines()
        self.assertEqual(rules_broken("a.cc", first), ["license"])
        self.assertEqual(rules_broken("a.cc", second), ["license"])
        self.assertEqual(rules_broken("a.cc", "\n" * 9 + LICENSE), ["license"])
        self.assertEqual(rules_broken("a.cc", LICENSE.replace("Apache", "MIT")), ["license"])

    def test_data_and_prose_need_none(self):
        for path in ("README.md", ".bazelignore", "a/requirements.txt"):
            self.assertEqual(rules_broken(path, "x\n"), [], path)


class HeaderGuardTest(unittest.TestCase):
    def test_the_guard_is_the_path(self):
        text = HEADER.format("WEIGHT_SYNC_BASE_UNIQUE_FD_H_")
        self.assertEqual(rules_broken("base/unique_fd.h", text), [])

    def test_another_guard_is_refused_and_the_right_one_is_named(self):
        text = HEADER.format("WEIGHT_SYNC_BASE_FD_H_")
        (finding,) = text_rules.check_text("base/unique_fd.h", text)
        self.assertEqual(finding.rule, "header-guard")
        self.assertIn("WEIGHT_SYNC_BASE_UNIQUE_FD_H_", finding.text)

    def test_no_guard_is_refused(self):
        self.assertEqual(rules_broken("base/a.h", LICENSE), ["header-guard"])
        self.assertEqual(rules_broken("base/a.cuh", LICENSE + "#pragma once\n"), ["header-guard"])

    def test_code_before_the_guard_is_refused(self):
        text = HEADER.format("WEIGHT_SYNC_BASE_A_H_")
        self.assertEqual(rules_broken("base/a.h", "#include <vector>\n" + text), ["header-guard"])


class HostNameTest(unittest.TestCase):
    # Put together here, since this file is checked as well.
    registry = "packages." + "somewhere." + "org"

    def test_upstreams_are_allowed(self):
        self.assertEqual(rules_broken("a.md", "See https://github.com/google/googletest."), [])

    def test_another_host_is_refused_with_its_line(self):
        for text in (f"https://{self.registry}/simple", f"pip -i {self.registry}", self.registry):
            (finding,) = text_rules.check_text("a.md", f"first\nsecond {text}\n")
            self.assertEqual((finding.rule, finding.line), ("host-name", 2), text)
            self.assertIn(self.registry, finding.text)

    def test_a_host_below_an_allowed_one_is_another(self):
        self.assertEqual(rules_broken("a.md", "raw." + "github.com/x"), ["host-name"])

    def test_examples_and_loopback_are_no_hosts(self):
        text = "trainer.example.com, example.org, http://127.0.0.1:80, ipc://socket, localhost"
        self.assertEqual(rules_broken("a.md", text), [])

    def test_code_is_not_taken_for_hosts(self):
        text = "std::io, self.net.devices, file.network, a.commit(), options.internal"
        self.assertEqual(rules_broken("a.md", text), [])


class NvidiaIncludeTest(unittest.TestCase):
    def test_toolkit_headers_are_refused_in_host_code(self):
        for header in (
            "<cuda.h>",
            '"cuda.h"',
            "<cuda_runtime.h>",
            "<cuda_runtime_api.h>",
            "<cuda_fp16.hpp>",
            "<cudaTypedefs.h>",
            "<cuda/std/span>",
            "<nccl.h>",
            "<cub/cub.cuh>",
            "<thrust/sort.h>",
            "<cooperative_groups.h>",
            "<cublas_v2.h>",
            "<driver_types.h>",
        ):
            broken = rules_broken("refit/a.cc", include(header))
            self.assertEqual(broken, ["nvidia-include"], header)

    def test_it_is_found_behind_an_ifdef_and_with_spaces(self):
        text = LICENSE + "#ifdef X\n#  include  <cuda.h>\n#endif\n"
        (finding,) = text_rules.check_text("refit/a.cc", text)
        self.assertEqual((finding.rule, finding.line), ("nvidia-include", 4))

    def test_headers_of_the_project_are_no_toolkit_headers(self):
        for header in ('"refit/device/cuda_api.h"', '"refit/device/cuda_abi.h"', '"base/digest.h"'):
            self.assertEqual(rules_broken("refit/a.cc", include(header)), [], header)

    def test_device_code_and_the_abi_test_may_include_them(self):
        for path in (
            "refit/layout/copy.cu",
            "refit/device/cuda_abi_test.cc",
            "third_party/cuda/first.cc",
        ):
            self.assertEqual(rules_broken(path, include("<cuda.h>")), [], path)

    def test_their_neighbours_may_not(self):
        for path in ("refit/device/cuda_abi.cc", "refit/device/cuda_abi_test2.cc"):
            self.assertEqual(rules_broken(path, include("<cuda.h>")), ["nvidia-include"], path)


class FilesTest(unittest.TestCase):
    def test_files_are_read_and_binary_ones_passed_over(self):
        with tempfile.TemporaryDirectory() as root:
            with open(os.path.join(root, "a.cc"), "w", encoding="utf-8") as file:
                file.write("int a;\n")
            with open(os.path.join(root, "b.cc"), "wb") as file:
                file.write(b"\0\xff")
            found = text_rules.check_files(root, ["a.cc", "b.cc"])
        self.assertEqual([(f.path, f.rule) for f in found], [("a.cc", "license")])


if __name__ == "__main__":
    unittest.main()
