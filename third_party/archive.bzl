# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""A repository unpacked from the first of its sources that is at hand.

`tools/bazelw` fills the local archive cache before Bazel starts. Without it (a consumer's own
Bazel) upstream's archive is downloaded.
"""

load(":archives.bzl", "ARCHIVES")

def _cache_dir(ctx):
    """The folder that fetch_archives.py fills."""
    env = ctx.os.environ
    cache_home = env.get("XDG_CACHE_HOME", "")
    if not cache_home:
        cache_home = env.get("HOME", "") + "/.cache"
    return cache_home + "/weight_sync/archives"

def _unpack(ctx, source, url):
    return ctx.download_and_extract(
        url = url,
        sha256 = source["sha256"],
        stripPrefix = source["strip_prefix"],
        type = "tar.xz" if source["file"].endswith(".xz") else "tar.gz",
        allow_fail = True,
    ).success

def _packed_source_impl(ctx):
    archive = ARCHIVES[ctx.attr.archive]
    cache_dir = _cache_dir(ctx)
    unpacked = False
    for source in archive["sources"]:
        path = cache_dir + "/" + source["file"]
        if not unpacked and ctx.path(path).exists:
            unpacked = _unpack(ctx, source, "file://" + path)
    for source in archive["sources"]:
        if not unpacked and source["url"]:
            unpacked = _unpack(ctx, source, source["url"])
    if not unpacked:
        fail("no source archive of {} {}: run tools/bazelw, or put one of these into {}:\n{}".format(
            archive["title"],
            archive["version"],
            cache_dir,
            "\n".join(["  {}, sha256 {}".format(s["file"], s["sha256"]) for s in archive["sources"]]),
        ))
    if ctx.attr.patch:
        ctx.patch(ctx.attr.patch, strip = 1)
    if ctx.attr.build_file:
        ctx.file("BUILD.bazel", ctx.read(ctx.attr.build_file))

packed_source = repository_rule(
    implementation = _packed_source_impl,
    attrs = {
        "archive": attr.string(mandatory = True, doc = "A key of ARCHIVES."),
        "build_file": attr.label(allow_single_file = True),
        "patch": attr.label(allow_single_file = True),
    },
    environ = ["HOME", "XDG_CACHE_HOME"],
)
