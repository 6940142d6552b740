# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""Compiler options of the project's own code. Dependencies choose theirs.

-Wno-error, so that a workspace that depends on this one and makes warnings errors does not stumble
over what its compiler thinks of ours. Here they are errors: .bazelrc says so, after these.
"""

WEIGHT_SYNC_COPTS = [
    "-Wall",
    "-Wextra",
    "-Wno-error",
    "-Wcast-qual",
    "-Wformat=2",
    "-Wnon-virtual-dtor",
    "-Wpointer-arith",
    "-Wvla",
    # gcc 12 sees overlapping copies in std::string's operator+ where there are none (gcc bug 105651).
    "-Wno-restrict",
]
