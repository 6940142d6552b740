#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Refuses binaries that are linked with CUDA or NCCL: refuse_symbols.py BINARY...

Both are loaded at run time, so that a binary starts on a machine without them and uses the libraries
of the engine beside it. A binary that defines or needs one of their symbols, in its dynamic or its
static symbol table, or that names one of their libraries as needed, does not. One without a static
symbol table is refused too: it cannot be told what is in it.
"""

import re
import subprocess
import sys

REFUSED_SYMBOL = re.compile(r"__cuda|cuda|cu[A-Z]|nccl")
REFUSED_LIBRARY = re.compile(r"lib(cuda|cudart|nccl)\.so")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(binary, *options):
    """What nm lists of `binary`: pairs (name, nm's letter for its type)."""
    rows = [line.split() for line in run("nm", "--format=posix", *options, binary).splitlines()]
    return [(row[0].split("@")[0], row[1]) for row in rows if len(row) >= 2]


def needed_libraries(binary):
    lines = run("objdump", "-p", binary).splitlines()
    return [line.split()[1] for line in lines if line.split()[:1] == ["NEEDED"]]


def faults(binary):
    """Why `binary` is refused, one sentence each."""
    static = symbols(binary)
    if not static:
        return [f"{binary} has no symbol table (stripped?): what it is linked with cannot be told"]
    refused = {pair for pair in static + symbols(binary, "-D") if REFUSED_SYMBOL.match(pair[0])}
    found = [
        f"{binary} {'needs' if kind in 'Uwv' else 'defines'} {name}"
        for name, kind in sorted(refused)
    ]
    found += [
        f"{binary} is linked with {library}"
        for library in needed_libraries(binary)
        if REFUSED_LIBRARY.match(library)
    ]
    return found


def main():
    binaries = sys.argv[1:]
    if not binaries:
        sys.exit(__doc__)
    found = [fault for binary in binaries for fault in faults(binary)]
    for fault in found:
        print(fault, file=sys.stderr)
    print(f"{len(binaries)} binaries, {len(found)} faults")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
