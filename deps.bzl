# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""The repositories that weight_sync needs.

A workspace that depends on weight_sync calls `weight_sync_dependencies()` after it has defined the
repositories for which it wants another version: a repository that already exists is left alone.
"""

load("//third_party:archive.bzl", "packed_source")
load("//third_party:archives.bzl", "ARCHIVES")
load("//third_party/cuda:cuda_repository.bzl", "cuda_repository")
load("//third_party/cuda:cuda_wheels.bzl", "cuda_wheels_repository")
load("//third_party/shims:shims.bzl", "remote_coverage_tools_shim", "rules_cc_shim", "rules_java_shim")

def _maybe(rule, name, **kwargs):
    if not native.existing_rule(name):
        rule(name = name, **kwargs)

def weight_sync_dependencies():
    """Defines every repository that the caller's workspace has not defined yet."""

    # Debian's Bazel loads these three in its own tools, and its packages of them do not load there.
    _maybe(rules_cc_shim, name = "rules_cc")
    _maybe(rules_java_shim, name = "rules_java")
    _maybe(remote_coverage_tools_shim, name = "remote_coverage_tools")

    for name, archive in ARCHIVES.items():
        _maybe(
            packed_source,
            name = name,
            archive = name,
            build_file = Label(archive["build_file"]) if archive["build_file"] else None,
            patch = Label(archive["patch"]) if archive["patch"] else None,
        )

    # The toolkit that the build uses (none, unless it is asked for), and the pinned one.
    _maybe(cuda_repository, name = "weight_sync_cuda")
    _maybe(cuda_wheels_repository, name = "weight_sync_cuda_wheels")
