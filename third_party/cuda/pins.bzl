# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""The one table of the CUDA components that weight_sync is built with.

Each is a Python package (a wheel for Linux on x86-64) that NVIDIA publishes; none is part of this
repository or of what it builds: device code is compiled with them and headers are read from them.
Of each component:

  package, version, sha256   what pip is asked for, and the only bytes that it may answer with
  header_version             what its headers call themselves, where that is another number
  license, purpose           for people

smoke_tests/resolved_test.cc compares what a build uses with this table.
"""

CUDA_PINS = {
    "nvcc": {
        "package": "nvidia-cuda-nvcc",
        "version": "13.0.88",
        "sha256": "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
        "license": "NVIDIA CUDA Toolkit EULA",
        "purpose": "the compiler driver, ptxas, fatbinary, cudafe++",
    },
    "crt": {
        "package": "nvidia-cuda-crt",
        "version": "13.0.88",
        "sha256": "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4",
        "license": "NVIDIA CUDA Toolkit EULA",
        "purpose": "headers that the compiler includes by itself",
    },
    "nvvm": {
        "package": "nvidia-nvvm",
        "version": "13.0.88",
        "sha256": "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0",
        "license": "NVIDIA CUDA Toolkit EULA",
        "purpose": "the compiler's device part and libdevice",
    },
    "cudart": {
        "package": "nvidia-cuda-runtime",
        "version": "13.0.96",
        "sha256": "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
        "license": "NVIDIA CUDA Toolkit EULA",
        "purpose": "cuda.h and the headers of device code; its library is never linked",
    },
    "cccl": {
        "package": "nvidia-cuda-cccl",
        "version": "13.0.85",
        "header_version": "3.0.1",
        "sha256": "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649",
        "license": "Apache-2.0 with LLVM exception and others",
        "purpose": "libcu++ and CUB, for device code",
    },
    "nccl": {
        "package": "nvidia-nccl-cu13",
        "version": "2.28.9",
        "sha256": "e4553a30f34195f3fa1da02a6da3d6337d28f2003943aa0a3d247bbc25fefc42",
        "license": "BSD-3-Clause",
        "purpose": "nccl.h; tests load its library, products load the engine's at run time",
    },
}
