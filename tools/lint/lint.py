# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs every check of tools/lint and ends with a verdict; tools/lint/run is its command."""

import argparse
import os
import subprocess
import sys
import time

import dependencies
import formatting
import text_rules
import tidy
from finding import Finding

HERE = os.path.dirname(os.path.abspath(__file__))


def list_files(root):
    """Every file that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    paths = sorted(set(done.stdout.split("\0")) - {""})
    return [path for path in paths if os.path.isfile(os.path.join(root, path))]


def install(name):
    """The path of a program that checks. A program that cannot be had is a failure, not a skip."""
    done = subprocess.run(
        [os.path.join(HERE, "setup"), name], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{name} cannot be installed (see above)")
    return done.stdout.strip()


def bazel_query(root):
    def query(expression):
        command = ["tools/bazelw", "query", "--noshow_progress", "--order_output=full", expression]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"bazel query failed: {expression}\n{done.stderr}")
        return done.stdout.split()

    return query


def checks(root, paths):
    return {
        "text": lambda: text_rules.check_files(root, paths),
        "clang-format": lambda: formatting.check_clang_format(install("clang-format"), root, paths),
        "buildifier": lambda: formatting.check_buildifier(install("buildifier"), root, paths),
        "dependencies": lambda: dependencies.check_dependencies(bazel_query(root), paths),
        "clang-tidy": lambda: tidy.check_clang_tidy(install("clang-tidy"), root),
    }


def run(checks_by_name):
    """Runs the checks, all of them, and returns what they found."""
    findings = []
    for name, check in checks_by_name.items():
        start = time.monotonic()
        try:
            found = check()
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            found = [Finding("tools/lint", 0, name, f"this check could not be made: {error}")]
        seconds = time.monotonic() - start
        print(f"lint: {name:<12} {seconds:6.1f} s  {len(found)} found", flush=True)
        findings += found
    return findings


def main():
    parser = argparse.ArgumentParser(prog="tools/lint/run", description=__doc__)
    parser.add_argument("--fix", action="store_true", help="format all files first")
    parser.add_argument("--only", metavar="CHECK", action="append", help="run this check only")
    arguments = parser.parse_args()

    root = os.path.dirname(os.path.dirname(HERE))
    paths = list_files(root)
    chosen = checks(root, paths)
    if arguments.only:
        unknown = set(arguments.only) - set(chosen)
        if unknown:
            parser.error(f"no check {', '.join(sorted(unknown))}; there are: {', '.join(chosen)}")
        chosen = {name: check for name, check in chosen.items() if name in arguments.only}
    if arguments.fix:
        formatting.fix(install("clang-format"), install("buildifier"), root, paths)

    findings = run(chosen)
    if not findings:
        print("lint: no violation")
        return 0
    print(f"lint: {len(findings)} violations")
    for finding in findings:
        print(f"  {finding}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
