#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fills the local archive cache with one source of every archive in third_party/archives.bzl.

A source counts only if its bytes have the pinned sha256, which is computed on every run: a damaged
file is fetched again. Debian's packaged source archives come through the machine's own apt client
(its mirror, its proxy settings); upstream's releases over HTTPS. Two runs at once are safe.
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import urllib.request

APT_HELPER = "/usr/lib/apt/apt-helper"
UPSTREAM_TIMEOUT_S = 30


def say(text):
    print(f"bazelw: {text}", file=sys.stderr, flush=True)


def load_table(path):
    """The table as a dict: the file is Starlark and, being plain data, also Python."""
    namespace = {}
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), namespace)
    return namespace["ARCHIVES"]


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def is_good(cache, source):
    path = os.path.join(cache, source["file"])
    return os.path.exists(path) and sha256_of(path) == source["sha256"]


def debian_mirror():
    """The base URI of the Debian mirror in this machine's apt sources, or None."""
    if not os.path.exists(APT_HELPER):
        return None
    # Other people's repositories, too, are often called after Debian and its suites; few have "main".
    listing = subprocess.run(
        [
            "apt-get",
            "indextargets",
            "--format",
            "$(REPO_URI) $(RELEASE)",
            "Created-By: Packages",
            "Component: main",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    # A suite such as bookworm, not bookworm-updates or bookworm-security: those are kept elsewhere.
    uris = [line.split()[0] for line in listing.stdout.splitlines() if "-" not in line.split()[-1]]
    for uri in uris:
        if uri.startswith("mirror+file:"):
            with open(uri[len("mirror+file:") :].rstrip("/"), encoding="utf-8") as file:
                uri = file.readline().split()[0]
        if "debian" in uri:
            return uri.rstrip("/")
    return None


def fetch_packaged(uri, path):
    """Downloads with apt's own downloader. Returns an error text, or None."""
    done = subprocess.run(
        [APT_HELPER, "-o", "APT::Sandbox::User=root", "download-file", uri, path],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"apt-helper exited with {done.returncode}"


def fetch_upstream(url, path):
    """Downloads over HTTPS. Returns an error text, or None."""
    try:
        with urllib.request.urlopen(url, timeout=UPSTREAM_TIMEOUT_S) as reply:
            with open(path, "wb") as file:
                shutil.copyfileobj(reply, file)
    except OSError as error:
        return str(error)
    return None


def attempts(archive, mirror):
    """Pairs (source, uri, how to fetch it), the nearest first."""
    if mirror:
        for source in archive["sources"]:
            if source["debian"]:
                yield source, f"{mirror}/{source['debian']}", fetch_packaged
    for source in archive["sources"]:
        if source["url"]:
            yield source, source["url"], fetch_upstream


def fetch(cache, archive, mirror):
    """Puts one good source of `archive` into the cache. Returns whether it could."""
    title = f"{archive['title']} {archive['version']}"
    failures = []
    for source, uri, fetch_with in attempts(archive, mirror):
        path = os.path.join(cache, source["file"])
        partial = f"{path}.{os.getpid()}.partial"
        try:
            error = fetch_with(uri, partial)
            if error is None and sha256_of(partial) != source["sha256"]:
                error = f"sha256 is {sha256_of(partial)}, pinned is {source['sha256']}"
            if error is None:
                os.replace(partial, path)
                say(f"fetched {title} ({source['file']})")
                return True
            failures.append(f"  {uri}: {error}")
        finally:
            if os.path.exists(partial):
                os.remove(partial)
    say(f"cannot fetch {title}:")
    for failure in failures:
        say(failure)
    for source in archive["sources"]:
        say(f"  or put {source['file']} (sha256 {source['sha256']}) into {cache}")
    return False


def missing_archives(cache, table):
    return {
        name: archive
        for name, archive in table.items()
        if not any(is_good(cache, source) for source in archive["sources"])
    }


def remove_damaged(cache, archive):
    for source in archive["sources"]:
        path = os.path.join(cache, source["file"])
        if os.path.exists(path):
            say(f"{path} is damaged (its sha256 is not the pinned one): fetching it again")
            os.remove(path)


def fill(cache, table, find_mirror):
    """Fetches whatever `cache` has no good source of. Returns whether nothing is missing now."""
    if not missing_archives(cache, table):
        return True
    with open(os.path.join(cache, ".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = missing_archives(cache, table)  # again: another run may have fetched them
        mirror = find_mirror()
        good = True
        for archive in missing.values():
            remove_damaged(cache, archive)
            good = fetch(cache, archive, mirror) and good
        return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", required=True, help="third_party/archives.bzl")
    parser.add_argument("--cache", required=True, help="the folder to fill")
    args = parser.parse_args()
    os.makedirs(args.cache, exist_ok=True)
    return 0 if fill(args.cache, load_table(args.table), debian_mirror) else 1


if __name__ == "__main__":
    sys.exit(main())
