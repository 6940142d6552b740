# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""Repositories that Debian's Bazel 4.2.3 loads but does not come with.

rules_cc and rules_java re-export the native rules under the paths that newer Bazels use too, so that
BUILD files read alike everywhere. remote_coverage_tools only has to exist.
"""

def _reexport(rules):
    return "".join(["{0} = native.{0}\n".format(rule) for rule in rules])

_CC_RULES = [
    "cc_binary",
    "cc_import",
    "cc_library",
    "cc_proto_library",
    "cc_test",
    "cc_toolchain",
    "cc_toolchain_suite",
    "fdo_prefetch_hints",
    "fdo_profile",
    "objc_library",
]

# Symbols that are no rules: newer rules_cc has each in a file of its own.
_CC_SYMBOLS = {
    "CcInfo": "cc_info",
    "cc_common": "cc_common",
}

_JAVA_RULES = [
    "java_binary",
    "java_import",
    "java_library",
    "java_package_configuration",
    "java_plugin",
    "java_proto_library",
    "java_runtime",
    "java_test",
    "java_toolchain",
]

def _rules_cc_impl(ctx):
    ctx.file("BUILD.bazel")
    ctx.file("cc/BUILD.bazel")
    ctx.file("cc/defs.bzl", _reexport(_CC_RULES))
    for rule in _CC_RULES:
        ctx.file("cc/{}.bzl".format(rule), _reexport([rule]))

    # Two files a symbol, because in one file a name cannot be given the value that it already has.
    ctx.file("cc/common/BUILD.bazel")
    for symbol, file in _CC_SYMBOLS.items():
        ctx.file("cc/common/native_{}.bzl".format(file), "native_{0} = {0}\n".format(symbol))
        ctx.file(
            "cc/common/{}.bzl".format(file),
            "load(\":native_{0}.bzl\", \"native_{1}\")\n\n{1} = native_{1}\n".format(file, symbol),
        )

rules_cc_shim = repository_rule(implementation = _rules_cc_impl)

def _rules_java_impl(ctx):
    ctx.file("BUILD.bazel")
    ctx.file("java/BUILD.bazel")
    ctx.file("java/defs.bzl", _reexport(_JAVA_RULES))

rules_java_shim = repository_rule(implementation = _rules_java_impl)

def _remote_coverage_tools_impl(ctx):
    ctx.file("BUILD.bazel", """\
package(default_visibility = ["//visibility:public"])

[filegroup(name = name) for name in ["coverage_report_generator", "lcov_merger"]]
""")

remote_coverage_tools_shim = repository_rule(implementation = _remote_coverage_tools_impl)
