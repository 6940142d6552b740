#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of refuse_symbols.py, on small objects that the assembler and the linker make here."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import refuse_symbols  # noqa: E402  (found through the line above)

FINE = ".globl main\nmain:\n"


class RefuseSymbolsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))

    def assemble(self, source, name="object.o"):
        path = self.folder / name
        subprocess.run(["as", "-o", path, "-"], input=source.encode(), check=True)
        return str(path)

    def link(self, *arguments, name="library.so"):
        path = self.folder / name
        subprocess.run(["ld", "-shared", "-o", path, *arguments], check=True)
        return str(path)

    def faults(self, path):
        return [fault.replace(path, "X") for fault in refuse_symbols.faults(path)]

    def test_accepts_what_has_none(self):
        # curl's names begin with "cu" too; a C++ name that contains one of NVIDIA's is not theirs.
        source = FINE + "call curl_easy_init\n_ZN4refit8cudaInitEv:\ncudgel:\nmy_ncclSend:\n"
        self.assertEqual(self.faults(self.assemble(source)), [])

    def test_refuses_an_undefined_symbol(self):
        for symbol in ("cuInit", "cudaMalloc", "ncclAllReduce", "__cudaRegisterFatBinary"):
            self.assertEqual(
                self.faults(self.assemble(FINE + f"call {symbol}\n")), [f"X needs {symbol}"]
            )

    def test_refuses_a_weak_undefined_symbol(self):
        source = FINE + ".weak cuInit\ncall cuInit\n"
        self.assertEqual(self.faults(self.assemble(source)), ["X needs cuInit"])

    def test_refuses_a_defined_symbol_also_a_local_one(self):
        self.assertEqual(
            self.faults(self.assemble(FINE + ".globl cudaMalloc\ncudaMalloc:\nncclSend:\n")),
            ["X defines cudaMalloc", "X defines ncclSend"],
        )

    def test_refuses_a_symbol_that_only_the_dynamic_table_has(self):
        library = self.link(self.assemble(FINE + "call cuInit\n"))
        subprocess.run(["strip", "--strip-symbol=cuInit", "--keep-symbol=main", library], check=True)
        self.assertNotIn("cuInit", [name for name, _ in refuse_symbols.symbols(library)])
        self.assertEqual(self.faults(library), ["X needs cuInit"])

    def test_refuses_a_library_that_is_needed_without_a_symbol(self):
        stub = self.link("-soname=libcuda.so.1", self.assemble(FINE), name="stub.so")
        binary = self.link("--no-as-needed", self.assemble(FINE), stub, name="binary.so")
        self.assertEqual(self.faults(binary), ["X is linked with libcuda.so.1"])

    def test_refuses_a_stripped_binary(self):
        library = self.link(self.assemble(FINE))
        subprocess.run(["strip", library], check=True)
        self.assertEqual(
            self.faults(library),
            ["X has no symbol table (stripped?): what it is linked with cannot be told"],
        )

    def test_fails_for_a_file_that_is_no_binary(self):
        path = self.folder / "text"
        path.write_text("cuInit", encoding="utf-8")
        with self.assertRaises(subprocess.CalledProcessError):
            refuse_symbols.faults(str(path))

    def test_the_command_fails_when_one_of_its_binaries_is_refused(self):
        good = self.assemble(FINE, "good.o")
        bad = self.assemble(FINE + "call cuInit\n", "bad.o")
        command = [sys.executable, refuse_symbols.__file__]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.assertEqual(subprocess.run([*command, good], check=False, **quiet).returncode, 0)
        self.assertEqual(subprocess.run([*command, good, bad], check=False, **quiet).returncode, 1)
        self.assertEqual(subprocess.run(command, check=False, **quiet).returncode, 1)


if __name__ == "__main__":
    unittest.main()
