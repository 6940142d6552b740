# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Formatting by clang-format and buildifier, and what buildifier warns of."""

import json
import os
import re
import subprocess

from finding import Finding

CPP_SUFFIXES = (".cc", ".cu", ".cuh", ".h")
BAZEL_SUFFIXES = (".BUILD", ".bzl")
BAZEL_NAMES = (
    "BUILD",
    "BUILD.bazel",
    "MODULE.bazel",
    "WORKSPACE",
    "WORKSPACE.bazel",
    "WORKSPACE.bzlmod",
)

# These want loads that Bazel 4 cannot resolve: sh_test from @rules_shell, which does not exist for
# it, and the providers of C++, which are built in, from files that its rules_cc does not have.
WARNINGS = "-native-sh-test,-native-cc-common,-native-cc-info"

FIX = "tools/lint/run --fix"


def cpp_files(paths):
    return [path for path in paths if path.endswith(CPP_SUFFIXES)]


def bazel_files(paths):
    return [
        path
        for path in paths
        if path.endswith(BAZEL_SUFFIXES) or os.path.basename(path) in BAZEL_NAMES
    ]


def clang_format_findings(output):
    """One finding a file, at the first line that is not as clang-format would have it."""
    first = {}
    for match in re.finditer(r"^(.+?):(\d+):\d+: error: .*clang-format", output, re.MULTILINE):
        first.setdefault(match.group(1), int(match.group(2)))
    return [
        Finding(path, line, "clang-format", f"is not formatted: {FIX}")
        for path, line in first.items()
    ]


def buildifier_findings(output):
    findings = []
    for file in json.loads(output)["files"]:
        if not file["valid"]:
            findings.append(Finding(file["filename"], 0, "buildifier", "is no valid Starlark"))
        elif not file["formatted"]:
            findings.append(Finding(file["filename"], 0, "buildifier", f"is not formatted: {FIX}"))
        for warning in file["warnings"] or []:
            text = f"{warning['message'].splitlines()[0]} ({warning['category']})"
            findings.append(Finding(file["filename"], warning["start"]["line"], "buildifier", text))
    return findings


def check_clang_format(program, root, paths):
    paths = cpp_files(paths)
    if not paths:
        return []
    command = [program, "--dry-run", "-Werror", *paths]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    findings = clang_format_findings(done.stderr)
    if done.returncode != 0 and not findings:
        raise RuntimeError(f"clang-format failed: {done.stderr}")
    return findings


def check_buildifier(program, root, paths):
    paths = bazel_files(paths)
    if not paths:
        return []
    command = [program, "-mode=check", "-lint=warn", f"-warnings={WARNINGS}"]
    command += ["-format=json", *paths]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    try:
        return buildifier_findings(done.stdout)
    except (ValueError, KeyError) as error:
        raise RuntimeError(f"buildifier failed: {done.stdout}{done.stderr}") from error


def fix(clang_format, buildifier, root, paths):
    subprocess.run([clang_format, "-i", *cpp_files(paths)], cwd=root, check=True)
    command = [buildifier, "-mode=fix", "-lint=fix", f"-warnings={WARNINGS}"]
    # What it cannot fix is left to the check.
    subprocess.run([*command, *bazel_files(paths)], cwd=root, capture_output=True, check=False)
