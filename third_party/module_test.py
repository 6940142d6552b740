#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""MODULE.bazel names the archives of archives.bzl, in the same versions unless it says why not.

A module "1.2.bcr.3" is upstream's 1.2 with the registry's BUILD files. The line "# Differs: WHY" above
a bazel_dep excuses another version; "Not here: NAME: WHY" excuses an archive that is no module.
"""

import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import fetch_archives  # noqa: E402  (found through the line above)

DEPENDENCY = re.compile(r"(?P<above>(?:^#.*\n)*)^bazel_dep\((?P<arguments>[^)]*)\)", re.MULTILINE)
ARGUMENT = re.compile(r'(\w+)\s*=\s*"([^"]*)"')
NOT_HERE = re.compile(r"^Not here: (\w+): \S", re.MULTILINE)
# Modules that stand for no archive: Bazel 4.2.3 gets the first from third_party/shims.
NO_ARCHIVE = {"rules_cc"}


def drift(module, archives):
    """What is wrong, a line each, with the text of a MODULE.bazel beside this table."""
    wrong = []
    seen = set()
    for dependency in DEPENDENCY.finditer(module):
        arguments = dict(ARGUMENT.findall(dependency["arguments"]))
        name, version = arguments["name"], arguments["version"]
        repository = arguments.get("repo_name", name)
        if repository in NO_ARCHIVE:
            continue
        seen.add(repository)
        if repository not in archives:
            wrong.append(f"{name}: no archive is called {repository}")
            continue
        pinned = archives[repository]["version"]
        excused = re.search(r"^# Differs: \S", dependency["above"], re.MULTILINE)
        same = re.sub(r"\.bcr\.\d+$", "", version) == pinned
        if not same and not excused:
            wrong.append(f"{name}: {version}, but {pinned} in archives.bzl, and nothing says why")
        if same and excused:
            wrong.append(f"{name}: {version} is said to differ and does not")
    not_here = set(NOT_HERE.findall(module))
    for repository in sorted(archives):
        if (repository in seen) == (repository in not_here):
            wrong.append(f"{repository}: must be a module or be excused, not both")
    return wrong


class ModuleTest(unittest.TestCase):
    def test_the_module_and_the_archives_agree(self):
        with open(os.path.join(HERE, "..", "MODULE.bazel"), encoding="utf-8") as file:
            module = file.read()
        archives = fetch_archives.load_table(os.path.join(HERE, "archives.bzl"))
        self.assertEqual(drift(module, archives), [])
        self.assertEqual(module.count("bazel_dep(name"), len(DEPENDENCY.findall(module)))


class DriftTest(unittest.TestCase):
    ARCHIVES = {"our_zlib": {"version": "1.3"}}
    SAME = 'bazel_dep(name = "zlib", version = "1.3.bcr.2", repo_name = "our_zlib")\n'
    OTHER = 'bazel_dep(name = "zlib", version = "1.3.1", repo_name = "our_zlib")\n'

    def assert_drift(self, module, expected):
        found = drift(module, self.ARCHIVES)
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_the_registrys_revisions_of_a_version_are_that_version(self):
        self.assertEqual(drift(self.SAME, self.ARCHIVES), [])

    def test_another_version_needs_a_reason(self):
        self.assert_drift(self.OTHER, "zlib: 1.3.1, but 1.3 in archives.bzl")
        self.assert_drift("# Differs: \n" + self.OTHER, "zlib: 1.3.1, but 1.3 in archives.bzl")
        self.assert_drift("# Differs: x\n\n" + self.OTHER, "zlib: 1.3.1, but 1.3 in archives.bzl")
        self.assertEqual(drift("# Differs: 1.3 is gone.\n" + self.OTHER, self.ARCHIVES), [])

    def test_a_reason_goes_when_the_versions_agree_again(self):
        self.assert_drift("# Differs: 1.3 is gone.\n" + self.SAME, "does not")

    def test_an_archive_is_a_module_or_excused(self):
        self.assert_drift("", "our_zlib: must be a module or be excused")
        self.assertEqual(drift("Not here: our_zlib: Bazel has it.\n", self.ARCHIVES), [])
        self.assert_drift(self.SAME + "Not here: our_zlib: Bazel has it.\n", "not both")

    def test_a_module_is_an_archive(self):
        unknown = 'bazel_dep(name = "re2", version = "1")\n'
        self.assert_drift(self.SAME + unknown, "re2: no archive is called re2")


if __name__ == "__main__":
    unittest.main()
