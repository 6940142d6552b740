#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prints gcovr's JSON summary as a table: one line a folder, and one for all."""

import collections
import json
import os
import sys


def percent(covered, total):
    return f"{100 * covered / total:5.1f} %" if total else "      -"


def table(summary):
    """The table's lines."""
    folders = collections.defaultdict(collections.Counter)
    for file in summary["files"]:
        for name in (os.path.dirname(file["filename"]), "total"):
            for key in ("line_covered", "line_total", "branch_covered", "branch_total"):
                folders[name][key] += file[key]
    total = folders.pop("total", collections.Counter())
    width = max(map(len, [*folders, "folder"]))
    lines = [f"{'folder':<{width}}  {'lines':>7}  {'of':>6}  {'branches':>8}  {'of':>6}"]
    for name, count in [*sorted(folders.items()), ("total", total)]:
        lines.append(
            f"{name:<{width}}  {percent(count['line_covered'], count['line_total'])}"
            f"  {count['line_total']:>6}"
            f"   {percent(count['branch_covered'], count['branch_total'])}"
            f"  {count['branch_total']:>6}"
        )
    return lines


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        print("\n".join(table(json.load(file))))


if __name__ == "__main__":
    main()
