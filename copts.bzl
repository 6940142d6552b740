# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""Compiler options of the project's own code. Dependencies choose theirs."""

WEIGHT_SYNC_COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wcast-qual",
    "-Wformat=2",
    "-Wnon-virtual-dtor",
    "-Wpointer-arith",
    "-Wvla",
    # gcc 12 sees overlapping copies in std::string's operator+ where there are none (gcc bug 105651).
    "-Wno-restrict",
]
