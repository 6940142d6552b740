# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""What this project needs of a CUDA toolkit, and the BUILD file laid over one."""

# Relative to the toolkit's root. Every release of the toolkit since 12.0 keeps them there.
_PIECES = [
    "bin/cudafe++",
    "bin/fatbinary",
    "bin/nvcc",
    "bin/nvcc.profile",
    "bin/ptxas",
    "include/cuda.h",
    "include/cuda_runtime.h",
    "nvvm/bin/cicc",
    "nvvm/libdevice/libdevice.10.bc",
]

def missing_pieces(ctx, root):
    """Those of the needed files that the toolkit in folder `root` lacks, as relative paths."""
    return [piece for piece in _PIECES if not ctx.path("{}/{}".format(root, piece)).exists]

# The targets that @weight_sync_cuda has in every configuration, apart from the two constraints.
TOOLKIT = struct(library = "headers", files = ["nvcc", "resolved", "toolkit"])
NCCL = struct(library = "nccl_headers", files = ["libnccl"])

_TOOLKIT_BUILD = """\
# Written by third_party/cuda/toolkit.bzl.

load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(["{root}/include/**"]),
    includes = [
        "{root}/include",
        "{root}/include/cccl",
    ],
)

filegroup(
    name = "nvcc",
    srcs = ["{root}/bin/nvcc"],
)

# What nvcc opens while it compiles.
filegroup(
    name = "toolkit",
    srcs = glob([
        "{root}/bin/bin2c",
        "{root}/bin/crt/**",
        "{root}/bin/cudafe++",
        "{root}/bin/fatbinary",
        "{root}/bin/nvcc",
        "{root}/bin/nvcc.profile",
        "{root}/bin/nvlink",
        "{root}/bin/ptxas",
        "{root}/include/**",
        "{root}/nvvm/**",
    ]),
)

filegroup(
    name = "resolved",
    srcs = ["resolved.json"],
)
"""

_NCCL_BUILD = """
cc_library(
    name = "nccl_headers",
    hdrs = glob(["{include}/nccl*.h", "{include}/nccl_device/**"]),
    includes = ["{include}"],
    deps = [":headers"],
)

filegroup(
    name = "libnccl",
    srcs = ["{library}"],
)
"""

def toolkit_build_file(root):
    return _TOOLKIT_BUILD.format(root = root)

def nccl_build_file(include, library):
    return _NCCL_BUILD.format(include = include, library = library)
