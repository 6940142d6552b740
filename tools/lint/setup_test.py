#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of setup that need no network. self_test has the ones of what pip brings."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SETUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "setup")


class SetupTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.cache = pathlib.Path(scratch.name, "cache")
        self.programs = self.cache / "weight_sync" / "lint"
        self.bin = pathlib.Path(scratch.name, "bin")
        self.bin.mkdir()

    def replace_program(self, name, script):
        """Puts a shell script before the real program of that name."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def setup(self, *arguments):
        environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(self.cache),
        }
        return subprocess.run(
            [SETUP, *arguments], env=environment, capture_output=True, text=True, check=False
        )

    def test_a_program_that_is_there_is_used_again(self):
        folder = self.programs / "buildifier-8.2.1"
        folder.mkdir(parents=True)
        (folder / ".complete").touch()
        self.replace_program("npm", "exit 1")
        done = self.setup("buildifier")
        self.assertEqual(done.stdout, f"{folder}/buildifier\n", done.stderr)

    def test_an_unknown_program_is_refused_and_the_known_ones_are_named(self):
        done = self.setup("clang-fornat")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("'clang-fornat'; known: clang-format, clang-tidy", done.stderr)

    def test_a_full_disk_is_found_before_anything_is_fetched(self):
        self.replace_program("df", "printf 'head\\ndisk 9 8 1024 99%% /\\n'")
        self.replace_program("npm", "touch \"$0.was.run\"")
        done = self.setup("buildifier")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"buildifier needs 400 MB; {self.programs} has 1 MB free", done.stderr)
        self.assertFalse((self.bin / "npm.was.run").exists())

    def test_an_archive_of_other_bytes_is_refused_and_never_becomes_complete(self):
        # npm pack --loglevel=error --pack-destination FOLDER NAME
        self.replace_program("npm", 'echo other > "$4/bazel-buildifier-8.2.1.tgz"')
        for _ in range(2):
            done = self.setup("buildifier")
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stdout, "")
            self.assertIn("has other bytes than the pinned ones", done.stderr)

    def test_a_client_that_fails_is_named(self):
        self.replace_program("npm", "echo no route >&2; exit 1")
        done = self.setup("buildifier")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no route", done.stderr)
        self.assertIn("npm could not fetch @bazel/buildifier", done.stderr)


if __name__ == "__main__":
    unittest.main()
