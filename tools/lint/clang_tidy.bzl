# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""clang-tidy as an aspect: one action a source file, cached like a compilation.

    bazel build //... --aspects=//tools/lint:clang_tidy.bzl%clang_tidy \\
        --output_groups=clang_tidy --define=clang_tidy=/path/of/clang-tidy

An action's output is what clang-tidy found, and finding something is no failure of the action: so
findings are cached too, and one run sees them all. tools/lint/run reads them. The program is named
by its path, in which its version is a folder; all else that a result depends on is a declared input.
"""

# Own headers are checked in the files that include them. Those of dependencies are in external/.
_HEADERS = "^(\\./)?(base|refit|weight_sync|fakes|tools|benchmarks|third_party)/"

# clang-tidy exits with 1 when it finds something and when it cannot work.
_SCRIPT = """
"$1" "${@:3}" >"$2" 2>"$2.stderr" || grep -q ': error: ' "$2" || { cat "$2" "$2.stderr"; exit 1; }
"""

def _flags(ctx, target):
    context = target[CcInfo].compilation_context
    flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts
    flags = flags + getattr(ctx.rule.attr, "copts", [])

    # Warnings are the compiler's business, and gcc's have other names than clang's.
    flags = [flag for flag in flags if not flag.startswith("-W")]
    defines = context.defines.to_list() + context.local_defines.to_list()
    flags += ["-D" + define for define in defines]

    # What is not the workspace's own is a system header to clang-tidy, which then passes over it.
    for folder in context.quote_includes.to_list():
        external = folder.startswith("external/") or "/external/" in folder
        flags += ["-isystem" if external else "-iquote", folder]
    for folder in context.includes.to_list() + context.system_includes.to_list():
        flags += ["-isystem", folder]
    return flags

def _clang_tidy_impl(target, ctx):
    if ctx.label.workspace_name or CcInfo not in target or not hasattr(ctx.rule.files, "srcs"):
        return []
    outputs = []
    for source in ctx.rule.files.srcs:
        if source.extension != "cc":
            continue
        name = "{}.{}.clang_tidy".format(ctx.label.name, source.basename)
        output = ctx.actions.declare_file(name)
        ctx.actions.run_shell(
            inputs = depset(
                [source, ctx.file._config],
                transitive = [target[CcInfo].compilation_context.headers],
            ),
            outputs = [output],
            command = _SCRIPT,
            arguments = [
                ctx.var["clang_tidy"],
                output.path,
                "--config-file=" + ctx.file._config.path,
                "--header-filter=" + _HEADERS,
                "--quiet",
                source.path,
                "--",
            ] + _flags(ctx, target),
            mnemonic = "ClangTidy",
            progress_message = "clang-tidy {}".format(source.short_path),
        )
        outputs.append(output)
    return [OutputGroupInfo(clang_tidy = depset(outputs))]

clang_tidy = aspect(
    implementation = _clang_tidy_impl,
    attrs = {
        "_config": attr.label(default = "//:.clang-tidy", allow_single_file = True),
    },
    fragments = ["cpp"],
)
