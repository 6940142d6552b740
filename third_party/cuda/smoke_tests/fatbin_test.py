#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests what cuda_library's compiler action makes: fatbin_test.py FATBIN THE_SAME_BUILT_AGAIN."""

import os
import struct
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fatbin  # noqa: E402  (found through the line above)


def read(path):
    with open(path, "rb") as file:
        return file.read()


class FatbinTest(unittest.TestCase):
    def test_has_machine_code_for_each_gpu_and_ptx_for_newer_ones(self):
        self.assertEqual(
            sorted(fatbin.entries(BUILT)), [("ptx", 90), ("sass", 80), ("sass", 90)]
        )

    def test_machine_code_is_that_of_its_gpu(self):
        # ptxas writes its command line into what it makes.
        self.assertIn(b"-arch sm_80 ", BUILT)
        self.assertIn(b"-arch sm_90 ", BUILT)

    def test_is_the_same_when_it_is_built_again(self):
        self.assertTrue(BUILT == BUILT_AGAIN, "two builds of one .cu file differ")


class ReaderTest(unittest.TestCase):
    """fatbin.py refuses what it cannot vouch for."""

    def test_refuses_what_is_no_fat_binary(self):
        with self.assertRaisesRegex(ValueError, "no fat binary"):
            fatbin.entries(b"\x7fELF" + BUILT[4:])

    def test_refuses_a_cut_one(self):
        with self.assertRaisesRegex(ValueError, "in a file of"):
            fatbin.entries(BUILT[:-8])

    def test_refuses_an_architecture_that_the_machine_code_is_not_for(self):
        kind, architecture = struct.unpack_from("<H26xI", BUILT, 16)
        self.assertEqual((kind, architecture), (2, 80))
        changed = bytearray(BUILT)
        struct.pack_into("<I", changed, 16 + 28, 90)
        with self.assertRaisesRegex(ValueError, "an entry for 90 has machine code for 80"):
            fatbin.entries(bytes(changed))

    def test_sees_that_an_entry_is_missing(self):
        size = struct.unpack_from("<IQ", BUILT, 16 + 4)
        rest = BUILT[16 + sum(size) :]
        self.assertEqual(
            fatbin.entries(struct.pack("<IHHQ", fatbin.MAGIC, 1, 16, len(rest)) + rest),
            [("sass", 90), ("ptx", 90)],
        )


if __name__ == "__main__":
    BUILT, BUILT_AGAIN = (read(path) for path in sys.argv[1:])
    unittest.main(argv=sys.argv[:1])
