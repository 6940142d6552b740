# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads what a CUDA fat binary is for. NVIDIA does not document the format.

What is known of it (the same from CUDA 11 to 13): a header (magic number 0xBA55ED50, 16-bit version,
16-bit size of the header, 64-bit size of what follows), then entries. An entry has a 16-bit kind (1 PTX,
2 ELF), a 16-bit version, a 32-bit size of its own header, a 64-bit size of its payload and, at byte 28,
the 32-bit number of its architecture (90 for compute_90 and sm_90). The payload may be compressed; that
of an ELF entry that is not repeats the architecture in its own header, where ptxas put it.
"""

import struct

MAGIC = 0xBA55ED50
KINDS = {1: "ptx", 2: "sass"}
EM_CUDA = 190  # elf.h


def architecture_of_elf(elf):
    """The number of the architecture that a cubin of ELF ABI 7 or newer is for, from its e_flags."""
    machine = struct.unpack_from("<H", elf, 18)[0]
    if machine != EM_CUDA:
        raise ValueError(f"an ELF file for machine {machine}, which is no GPU")
    return struct.unpack_from("<I", elf, 48)[0] >> 8 & 0xFF


def entries(data):
    """The entries of the fat binary `data`, a list of (kind, architecture), in order."""
    magic, _, header_size, size = struct.unpack_from("<IHHQ", data, 0)
    if magic != MAGIC:
        raise ValueError(f"no fat binary: it begins with {magic:#x}")
    if header_size + size != len(data):
        raise ValueError(f"a fat binary of {header_size + size} bytes in a file of {len(data)}")
    found = []
    offset = header_size
    while offset < len(data):
        kind, _, header_size, size = struct.unpack_from("<HHIQ", data, offset)
        architecture = struct.unpack_from("<I", data, offset + 28)[0]
        payload = data[offset + header_size : offset + header_size + size]
        if len(payload) != size:
            raise ValueError(f"the entry at {offset} ends behind the file")
        if kind == 2 and payload.startswith(b"\x7fELF"):
            inside = architecture_of_elf(payload)
            if inside != architecture:
                raise ValueError(f"an entry for {architecture} has machine code for {inside}")
        found.append((KINDS[kind], architecture))
        offset += header_size + size
    return found
