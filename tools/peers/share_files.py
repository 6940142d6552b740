# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps a large file once that several environments hold: torch and its libraries are gigabytes.

    share_files.py ENVIRONMENT OTHER...

A file of ENVIRONMENT of a mebibyte or more that an OTHER has at the same place below its
site-packages, with the same bytes, becomes a hard link to that one. Nothing is lost where links
cannot be made: the file stays what it is.
"""

import filecmp
import os
import sys

LARGE = 1 << 20


def large_files(environment):
    """Yields (path below site-packages, whole path) of the large files."""
    for folder, _, names in os.walk(os.path.join(environment, "lib")):
        below = folder.partition("/site-packages/")[2]
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path) and os.path.getsize(path) >= LARGE:
                yield os.path.join(below, name), path


def share(path, other):
    """Replaces `path` by a link to `other` if both have the same bytes; returns the bytes saved."""
    if os.path.samefile(path, other) or not filecmp.cmp(path, other, shallow=False):
        return 0
    size = os.path.getsize(path)
    temporary = path + ".link"
    os.link(other, temporary)
    os.replace(temporary, path)
    return size


def main(environment, others):
    saved = 0
    mine = dict(large_files(environment))
    for other in others:
        if not os.path.exists(os.path.join(other, ".complete")):
            continue
        for below, candidate in large_files(other):
            if below in mine:
                try:
                    saved += share(mine[below], candidate)
                except OSError:  # removed meanwhile, or another file system
                    pass
    print(f"share_files: {saved >> 20} MB are shared with other environments", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
