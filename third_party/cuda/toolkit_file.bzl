# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""One file of the CUDA toolkit under a path of this workspace.

A test can write that path into its BUILD file whichever toolkit there is, and also where there is none
and the test is skipped: $(rootpath) of an alias would be an error then.
"""

def _toolkit_file_impl(ctx):
    ctx.actions.symlink(output = ctx.outputs.out, target_file = ctx.file.src)

toolkit_file = rule(
    implementation = _toolkit_file_impl,
    attrs = {
        "out": attr.output(mandatory = True),
        "src": attr.label(allow_single_file = True, mandatory = True),
    },
)
