# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""cuda_library: CUDA kernels as bytes of a C++ library.

    cuda_library(
        name = "copy_kernels",
        src = "copy_kernels.cu",
        hdrs = ["copy_arguments.h"],
        function = "weight_sync::refit::CopyKernelsFatbin",
    )

compiles copy_kernels.cu for the GPUs listed below and makes a C++ library whose one header,
copy_kernels.h, declares

    namespace weight_sync::refit {
    absl::Span<const std::byte> CopyKernelsFatbin();
    }

The bytes are a fat binary ("fatbin"), 64-byte aligned and there for the life of the program. They are
what the driver's module_load_data takes (refit/device/cuda_api.h); a kernel that is declared
`extern "C" __global__` is then found by its plain name. Nothing is linked against CUDA: the program
starts on a machine without a driver.

One .cu file is one module: a function or variable of the device cannot be used across two of them, so
what they share goes into headers. Those may come from cc_library targets in `deps`, which the C++ that
launches the kernels then includes too.

Without a CUDA toolkit the library, and with it all that depends on it, is incompatible
(cuda_repository.bzl).
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//:copts.bzl", "WEIGHT_SYNC_COPTS")

# Machine code for A100 (8.0) and H100 and H200 (9.0), and PTX, which the driver compiles for newer ones.
_GPUS = [
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=[sm_90,compute_90]",
]

# $1 is the host compiler, $2 names the target; the rest is nvcc's command line.
_COMPILE = """\
host_compiler=$1 target=$2
shift 2
if ! error=$("$host_compiler" -x c++ -std=c++17 -E - 2>&1 >/dev/null <<<'#include <cstddef>'); then
  echo "$target: nvcc needs a C++ compiler, and $host_compiler does not work as one" \\
    "(Debian: apt-get install g++):" >&2
  echo "$error" >&2
  exit 1
fi
exec "$@" -ccbin "$host_compiler"
"""

def _cuda_fatbin_impl(ctx):
    host_compiler = find_cpp_toolchain(ctx).compiler_executable
    compilation = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    root = ctx.label.workspace_root
    includes = depset(
        [root or ".", ctx.bin_dir.path + "/" + root],
        transitive = [compilation.includes, compilation.quote_includes],
    )
    nvcc_arguments = ctx.actions.args()
    nvcc_arguments.add(ctx.file._nvcc)
    nvcc_arguments.add_all([
        "-fatbin",
        "-x=cu",
        "-std=c++17",
        "-Werror=all-warnings",
        # Intermediate files lie beside the output. In /tmp, which sandboxes share, their names, made
        # of process numbers, may be those of another one's.
        "-objtemp",
    ] + _GPUS)
    nvcc_arguments.add_all(includes, format_each = "-I%s", uniquify = True)
    nvcc_arguments.add_all(compilation.system_includes, before_each = "-isystem")
    nvcc_arguments.add_all(compilation.defines, format_each = "-D%s")
    nvcc_arguments.add("-o", ctx.outputs.fatbin)
    nvcc_arguments.add(ctx.file.src)
    ctx.actions.run_shell(
        inputs = depset(
            [ctx.file.src] + ctx.files.hdrs,
            transitive = [compilation.headers, depset(ctx.files._toolkit)],
        ),
        outputs = [ctx.outputs.fatbin],
        command = _COMPILE,
        arguments = [host_compiler, str(ctx.label), nvcc_arguments],
        mnemonic = "CudaCompile",
        progress_message = "Compiling {} for GPUs".format(ctx.file.src.short_path),
        use_default_shell_env = True,
    )

_cuda_fatbin = rule(
    implementation = _cuda_fatbin_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "fatbin": attr.output(mandatory = True),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "src": attr.label(allow_single_file = [".cu"], mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_nvcc": attr.label(allow_single_file = True, default = "//third_party/cuda:nvcc"),
        "_toolkit": attr.label(default = "//third_party/cuda:toolkit"),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

_HEADER = """\
// Written by cuda_library, {label}.

#ifndef {guard}
#define {guard}

#include <cstddef>

#include "absl/types/span.h"

namespace {namespace} {{

// The kernels of {source}.
absl::Span<const std::byte> {function}();

}}  // namespace {namespace}

#endif  // {guard}
"""

_SOURCE = """\
// Written by cuda_library, {label}.

#include "{header}"

asm(R"(
.section .rodata
.balign 64
.local {symbol}
{symbol}:
.incbin "{fatbin}"
.local {symbol}_end
{symbol}_end:
.previous
)");

extern "C" const std::byte {symbol}[];
extern "C" const std::byte {symbol}_end[];

namespace {namespace} {{

absl::Span<const std::byte> {function}() {{
  return absl::MakeConstSpan({symbol}, {symbol}_end);
}}

}}  // namespace {namespace}
"""

def _identifier(text):
    return "".join([c if c.isalnum() else "_" for c in text.elems()])

def _embedding_impl(ctx):
    namespace, _, function = ctx.attr.function.rpartition("::")
    if not namespace:
        fail("function is '{}'; it takes a name with its namespace".format(ctx.attr.function))
    header = "/".join([part for part in [ctx.label.package, ctx.outputs.header.basename] if part])
    words = {
        "fatbin": ctx.file.fatbin.path,
        "function": function,
        "guard": _identifier(header).upper() + "_",
        "header": header,
        "label": str(ctx.label),
        "namespace": namespace,
        "source": ctx.attr.source_name,
        "symbol": "fatbin_of_" + _identifier(ctx.attr.function),
    }
    ctx.actions.write(ctx.outputs.header, _HEADER.format(**words))
    ctx.actions.write(ctx.outputs.source, _SOURCE.format(**words))

_embedding = rule(
    implementation = _embedding_impl,
    attrs = {
        "fatbin": attr.label(allow_single_file = True, mandatory = True),
        "function": attr.string(mandatory = True),
        "header": attr.output(mandatory = True),
        "source": attr.output(mandatory = True),
        "source_name": attr.string(mandatory = True),
    },
)

def cuda_library(name, src, function, hdrs = [], deps = [], testonly = False, visibility = None):
    """Compiles a .cu file and embeds it into a C++ library; see the top of this file.

    Args:
      name: of the C++ library. Its header is name.h, the fat binary is the file name.fatbin.
      src: the .cu file.
      function: the C++ function that returns the bytes, with its namespace.
      hdrs: headers that only src includes.
      deps: C++ libraries whose headers src includes.
      testonly: as everywhere.
      visibility: of the C++ library.
    """
    _cuda_fatbin(
        name = name + "_fatbin",
        testonly = testonly,
        src = src,
        hdrs = hdrs,
        fatbin = name + ".fatbin",
        tags = ["manual"],
        visibility = ["//visibility:private"],
        deps = deps,
    )
    _embedding(
        name = name + "_embedding",
        testonly = testonly,
        fatbin = name + ".fatbin",
        function = function,
        header = name + ".h",
        source = name + ".cc",
        source_name = src,
        tags = ["manual"],
        visibility = ["//visibility:private"],
    )
    cc_library(
        name = name,
        testonly = testonly,
        srcs = [name + ".cc"],
        hdrs = [name + ".h"],
        copts = WEIGHT_SYNC_COPTS,
        textual_hdrs = [name + ".fatbin"],
        visibility = visibility,
        deps = ["@com_google_absl//absl/types:span"],
    )
