#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of fetch_archives.py and of the table that it reads."""

import hashlib
import os
import pathlib
import re
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import fetch_archives  # noqa: E402  (found through the line above)


class TableTest(unittest.TestCase):
    def setUp(self):
        self.table = fetch_archives.load_table(os.path.join(HERE, "archives.bzl"))
        self.sources = [s for archive in self.table.values() for s in archive["sources"]]

    def test_every_archive_says_what_it_is(self):
        for name, archive in self.table.items():
            for field in ("title", "version", "license", "purpose"):
                self.assertTrue(archive[field], f"{name}: {field}")

    def test_every_archive_has_upstreams_bytes_and_a_packaged_copy(self):
        for name, archive in self.table.items():
            self.assertTrue(any(s["url"] for s in archive["sources"]), name)
            self.assertTrue(any(s["debian"] for s in archive["sources"]), name)

    def test_files_have_names_of_their_own_and_pins(self):
        names = [source["file"] for source in self.sources]
        self.assertEqual(len(set(names)), len(names))
        for source in self.sources:
            self.assertRegex(source["sha256"], re.compile("^[0-9a-f]{64}$"))


class FetchTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        self.cache = self.folder / "cache"
        self.cache.mkdir()
        self.upstream = self.folder / "upstream.tar.gz"
        self.upstream.write_bytes(b"the pinned bytes")
        self.source = {
            "file": "dep-1.tar.gz",
            "sha256": hashlib.sha256(b"the pinned bytes").hexdigest(),
            "url": self.upstream.as_uri(),
            "debian": None,
        }
        self.archive = {"title": "dep", "version": "1", "sources": [self.source]}

    def fetch_missing(self):
        return fetch_archives.fill(str(self.cache), {"dep": self.archive}, lambda: None)

    def cached_names(self):
        return sorted(path.name for path in self.cache.iterdir() if path.name != ".lock")

    def test_fetches_what_is_missing(self):
        self.assertTrue(self.fetch_missing())
        self.assertEqual((self.cache / "dep-1.tar.gz").read_bytes(), b"the pinned bytes")
        self.assertEqual(self.cached_names(), ["dep-1.tar.gz"])

    def test_needs_no_source_once_cached(self):
        self.assertTrue(self.fetch_missing())
        self.upstream.unlink()
        self.assertTrue(self.fetch_missing())

    def test_replaces_a_damaged_file(self):
        (self.cache / "dep-1.tar.gz").write_bytes(b"the pinned byteS")
        self.assertTrue(self.fetch_missing())
        self.assertEqual((self.cache / "dep-1.tar.gz").read_bytes(), b"the pinned bytes")

    def test_refuses_other_bytes_and_leaves_nothing(self):
        self.upstream.write_bytes(b"other bytes")
        self.assertFalse(self.fetch_missing())
        self.assertEqual(self.cached_names(), [])

    def test_tries_the_next_source_when_one_fails(self):
        self.archive["sources"].insert(
            0, dict(self.source, file="gone-1.tar.gz", url=(self.folder / "gone").as_uri())
        )
        self.assertTrue(self.fetch_missing())
        self.assertEqual(self.cached_names(), ["dep-1.tar.gz"])


if __name__ == "__main__":
    unittest.main()
