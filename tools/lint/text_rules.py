# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules that a file's own text keeps or breaks, each a function from (path, text) to findings.

  license          a source file opens with the project's copyright and license lines
  header-guard     a header's guard is its path
  host-name        only hosts that are named below: packages come from package clients, by name
  nvidia-include   CUDA's and NCCL's headers are for device code; the rest declares the ABI itself
"""

import os
import re

from finding import Finding

COPYRIGHT = re.compile(r"Copyright 20\d\d The weight_sync Authors\.$")
SPDX = "SPDX-License-Identifier: Apache-2.0"
SOURCE_SUFFIXES = (".bzl", ".cc", ".cu", ".cuh", ".h", ".py", ".sh", ".BUILD")
SOURCE_NAMES = ("BUILD.bazel", "MODULE.bazel", "WORKSPACE", ".bazelrc")

# Where upstream publishes, and where specifications are kept. A new one is a decision: add it here.
ALLOWED_HOSTS = {
    "github.com",
    "www.apache.org",
    "xxhash.com",
    "zguide.zeromq.org",
}
HOST_NAME = re.compile(
    r"(?<![\w.@-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:cn|com|dev|io|net|org)(?![\w-]|\.\w)",
    re.IGNORECASE,
)
# Names that no one can own, for examples (RFC 2606).
EXAMPLE_HOST = re.compile(r"(?:^|\.)example\.(?:com|net|org)$")

CPP_SUFFIXES = (".cc", ".h")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
# By the names of what the toolkit's and NCCL's include folders hold. Workspace paths such as
# "refit/device/cuda_api.h" start with a folder of the project and match none.
NVIDIA_HEADER = re.compile(
    r"""(?: cuda[\w+-]*\.(?:h|hpp) | cuda/.* | cub/.* | thrust/.* | crt/.* | cooperative_groups.*
      | nccl[\w-]*\.h | nvml\.h | nvrtc\.h | nvJitLink\.h | nvToolsExt\w*\.h | nvtx3/.* | nv/.*
      | cu(?:blas|dnn|fft|file|rand|solver|sparse)\w*\.h | fatbinary\w*\.h | mma\.h | sm_\w+\.h
      | (?:device|driver|library|vector|builtin|surface|texture)_types\.h | vector_functions\.h
      | device_launch_parameters\.h | channel_descriptor\.h | math_constants\.h )$""",
    re.VERBOSE,
)
NVIDIA_EXEMPT = ("refit/device/cuda_abi_test.cc", "third_party/cuda/")


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def check_license(path, text):
    is_source = path.endswith(SOURCE_SUFFIXES) or os.path.basename(path) in SOURCE_NAMES
    if not is_source and not text.startswith("#!"):
        return []
    lines = text.splitlines()[:4]
    for first, second in zip(lines, lines[1:]):
        if COPYRIGHT.search(first) and second.endswith(SPDX):
            return []
    fix = f"open the file with 'Copyright YEAR The weight_sync Authors.' and '{SPDX}', as others do"
    return [Finding(path, 1, "license", fix)]


def check_header_guard(path, text):
    # Folders in examples are workspaces of their own.
    if not path.endswith((".h", ".cuh")) or path.startswith("examples/"):
        return []
    guard = "WEIGHT_SYNC_" + re.sub(r"\W", "_", path).upper() + "_"
    directives = [line.strip() for line in text.splitlines() if line.lstrip().startswith("#")]
    if directives[:2] == [f"#ifndef {guard}", f"#define {guard}"]:
        return []
    return [Finding(path, 1, "header-guard", f"guard the header with {guard}")]


def check_host_names(path, text):
    findings = []
    for match in HOST_NAME.finditer(text):
        host = match.group().lower()
        if host not in ALLOWED_HOSTS and not EXAMPLE_HOST.search(host):
            fix = (
                f"'{host}' is no host that the project refers to. Fetch packages by name, through"
                " their clients; a new upstream goes into ALLOWED_HOSTS of tools/lint/text_rules.py"
            )
            findings.append(Finding(path, line_of(text, match.start()), "host-name", fix))
    return findings


def check_nvidia_includes(path, text):
    if not path.endswith(CPP_SUFFIXES) or path.startswith(NVIDIA_EXEMPT):
        return []
    return [
        Finding(
            path,
            line_of(text, match.start(1)),
            "nvidia-include",
            f"{match.group(1)} is NVIDIA's, for .cu and .cuh files only: it ties this file to a"
            " toolkit and a driver; use the declarations in refit/device",
        )
        for match in INCLUDE.finditer(text)
        if NVIDIA_HEADER.match(match.group(1))
    ]


RULES = (check_license, check_header_guard, check_host_names, check_nvidia_includes)


def check_text(path, text):
    return [finding for rule in RULES for finding in rule(path, text)]


def check_files(root, paths):
    findings = []
    for path in paths:
        with open(os.path.join(root, path), "rb") as file:
            content = file.read()
        if b"\0" not in content:  # else it is no text
            findings += check_text(path, content.decode("utf-8", errors="replace"))
    return findings
