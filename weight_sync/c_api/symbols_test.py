#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""libweight_sync.so exports the functions of weight_sync.h and nothing else, and needs glibc only."""

import re
import subprocess
import sys
import unittest

LIBRARY, HEADER = sys.argv[1:3]
with open(HEADER) as header:
    HEADER_TEXT = header.read()
# glibc's; libm and libpthread are parts of it.
MAY_NEED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class SymbolsTest(unittest.TestCase):
    def test_exports_what_the_header_declares(self):
        declared = set(re.findall(r"^WS_API [\w ]+\**(ws_\w+)\(", HEADER_TEXT, re.MULTILINE))
        self.assertGreater(len(declared), 20)
        rows = run("nm", "--dynamic", "--defined-only", "--format=posix", LIBRARY).splitlines()
        exported = {row.split()[0]: row.split()[1] for row in rows}
        self.assertEqual(exported.pop("WEIGHT_SYNC_1.0"), "A")  # the version node itself
        self.assertEqual(set(exported), {name + "@@WEIGHT_SYNC_1.0" for name in declared})
        self.assertEqual(set(exported.values()), {"T"})

    def test_needs_glibc_only(self):
        rows = run("nm", "--dynamic", "--undefined-only", "--format=posix", LIBRARY).splitlines()
        needed = [row.split()[0] for row in rows if row.split()[1] == "U"]  # not the weak ones
        self.assertGreater(len(needed), 10)
        self.assertEqual([name for name in needed if "@GLIBC_" not in name], [])
        libraries = set(re.findall(r"NEEDED +(\S+)", run("objdump", "-p", LIBRARY)))
        self.assertIn("libc.so.6", libraries)
        self.assertEqual(libraries - MAY_NEED, set())

    def test_loads_with_every_symbol_resolved(self):
        # In a process that has none of the libraries a C++ program has.
        program = (
            "import ctypes, os; library = ctypes.CDLL(os.path.abspath(%r), os.RTLD_NOW);"
            "print(library.ws_abi_version())" % LIBRARY
        )
        major, minor = (
            int(re.search(rf"^#define WS_ABI_{part} (\d+)$", HEADER_TEXT, re.MULTILINE)[1])
            for part in ("MAJOR", "MINOR")
        )
        self.assertEqual(run(sys.executable, "-c", program).strip(), str(major << 16 | minor))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
