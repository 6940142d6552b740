# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""@weight_sync_cuda: the CUDA toolkit that this build uses, or the reason why it uses none.

Two environment variables (of the shell, or --repo_env) decide:

  WEIGHT_SYNC_CUDA        off, the default: no toolkit, and nothing is downloaded
                          on (--config=cuda): the path below, else the pinned wheels, else an error
                          auto: the path below, else the pinned wheels, else no toolkit
  WEIGHT_SYNC_CUDA_PATH   the root of a toolkit that is already on this machine (the folder that has
                          bin, include and nvvm); NCCL is taken from there too, and where it has none
                          what needs NCCL is skipped. After a change of that folder:
                          tools/bazelw sync --only=weight_sync_cuda

Its targets have the same names either way. Without a toolkit whatever depends on them is
incompatible: Bazel skips it in `//...`, and when it is asked for by name refuses it with a
constraint whose name is the reason.
"""

load(":cuda_wheels.bzl", "fetch_wheels")
load(":toolkit.bzl", "NCCL", "TOOLKIT", "missing_pieces", "nccl_build_file", "toolkit_build_file")

_HEADER = """\
# Written by third_party/cuda/cuda_repository.bzl.

load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])
"""

_PRESENT = """
constraint_setting(
    name = "{name}_setting",
    default_constraint_value = ":{name}",
)

constraint_value(
    name = "{name}",
    constraint_setting = ":{name}_setting",
)
"""

# No platform has this value. Its name is what Bazel tells who asks for a target that needs it.
_ABSENT = """
constraint_setting(name = "{name}_setting")

constraint_value(
    name = "{reason}",
    constraint_setting = ":{name}_setting",
)

alias(
    name = "{name}",
    actual = "{reason}",
)
"""

_ABSENT_TARGETS = """
cc_library(
    name = "{library}",
    target_compatible_with = [":{constraint}"],
)

genrule(
    name = "{library}_files",
    outs = {files},
    cmd = "",
    target_compatible_with = [":{constraint}"],
)
"""

def _absent_targets(targets, constraint):
    return _ABSENT_TARGETS.format(
        constraint = constraint,
        files = targets.files,
        library = targets.library,
    )

def _say(text):
    """Prints one line, when the repository is fetched and in later builds of the same Bazel server."""

    # buildifier: disable=print
    print(text)

def _write_absent(ctx, reason):
    """No toolkit and no NCCL. `reason` becomes a target's name, in which Bazel allows no colon."""
    ctx.file("BUILD.bazel", "".join([
        _HEADER,
        _ABSENT.format(name = "cuda", reason = reason),
        _absent_targets(TOOLKIT, constraint = "cuda"),
        "\nalias(\n    name = \"nccl\",\n    actual = \":cuda\",\n)\n",
        _absent_targets(NCCL, constraint = "cuda"),
    ]))

def _find_nccl(ctx, root):
    """The path of libnccl.so.2 beside nccl.h in the toolkit in folder `root`, or None."""
    if not ctx.path(root + "/include/nccl.h").exists:
        return None
    for folder in ["lib64", "lib", "targets/x86_64-linux/lib", "lib/x86_64-linux-gnu"]:
        library = ctx.path("{}/{}/libnccl.so.2".format(root, folder))
        if library.exists:
            return library
    return None

def _write_path(ctx, root):
    """Lays targets over the toolkit in folder `root` of this machine."""
    if not root.startswith("/"):
        fail("WEIGHT_SYNC_CUDA_PATH is '{}'; it takes an absolute path".format(root))
    missing = missing_pieces(ctx, root)
    if missing:
        fail("\n\nthe CUDA toolkit of WEIGHT_SYNC_CUDA_PATH, {}, lacks {}\n".format(root, ", ".join(missing)))
    for folder in ["bin", "include", "nvvm"]:
        ctx.symlink("{}/{}".format(root, folder), "toolkit/" + folder)
    build_file = toolkit_build_file("toolkit") + _PRESENT.format(name = "cuda")

    nccl = _find_nccl(ctx, root)
    if nccl:
        ctx.symlink(nccl, "toolkit/libnccl.so.2")
        build_file += nccl_build_file(include = "toolkit/include", library = "toolkit/libnccl.so.2")
        build_file += _PRESENT.format(name = "nccl")
    else:
        _say(("{} (WEIGHT_SYNC_CUDA_PATH) has no include/nccl.h with a libnccl.so.2 in lib64 or lib, " +
              "so what needs NCCL is skipped").format(root))
        build_file += _ABSENT.format(name = "nccl", reason = "NCCL is not in WEIGHT_SYNC_CUDA_PATH")
        build_file += _absent_targets(NCCL, constraint = "nccl")

    ctx.file("resolved.json", struct(source = root, packages = {}).to_json())
    ctx.file("BUILD.bazel", build_file)

def _write_wheels(ctx):
    ctx.file("BUILD.bazel", "".join(
        [_HEADER, _PRESENT.format(name = "cuda"), _PRESENT.format(name = "nccl")] + [
            "\nalias(\n    name = \"{0}\",\n    actual = \"@weight_sync_cuda_wheels//:{0}\",\n)\n".format(target)
            for target in [TOOLKIT.library, NCCL.library] + TOOLKIT.files + NCCL.files
        ],
    ))

def _cuda_repository_impl(ctx):
    switch = ctx.os.environ.get("WEIGHT_SYNC_CUDA", "") or "off"
    path = ctx.os.environ.get("WEIGHT_SYNC_CUDA_PATH", "")
    if switch not in ["on", "off", "auto"]:
        fail("WEIGHT_SYNC_CUDA is '{}'; it takes on, off or auto".format(switch))
    if switch == "off":
        _say("CUDA is off, so what needs it is skipped; --config=cuda turns it on")
        _write_absent(ctx, "CUDA is off and --config=cuda turns it on")
    elif path:
        _write_path(ctx, path)
    elif switch == "on":
        _write_wheels(ctx)
    else:
        why_not = fetch_wheels(ctx)
        ctx.delete("wheels")
        if why_not:
            _say("what needs CUDA is skipped (WEIGHT_SYNC_CUDA=auto): " + why_not)
            _write_absent(ctx, "no CUDA toolkit (bazel sync --only=weight_sync_cuda says why)")
        else:
            _write_wheels(ctx)

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    environ = ["WEIGHT_SYNC_CUDA", "WEIGHT_SYNC_CUDA_PATH"],
    configure = True,
)
