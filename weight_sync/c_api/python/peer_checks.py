# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""What torch_peer.py, sharded_torch_peer.py and jax_peer.py share.

    python X_peer.py LIBRARY CHECKPOINTS      runs the cases of X_peer.py

LIBRARY is libweight_sync.so, CHECKPOINTS a directory with a tiny checkpoint of every family.
"""

import ctypes
import json
import os
import sys
import unittest

import torch
import weight_sync_ctypes as ws
from safetensors import safe_open

LIBRARY, CHECKPOINTS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, UNIMPLEMENTED = 3, 9, 10, 12


class Source(ws.Source):
    """Remembers where the arrays are that the library was last given, by path and mesh rank."""

    def call(self, function, *arguments):
        if function == "ws_source_bind":
            # dl_tensor.data and byte_offset of DLManagedTensorVersioned.
            at = lambda pointer, offset: ctypes.c_uint64.from_address(pointer + offset).value
            self.pointers = {
                (b.name.decode(), b.mesh_rank): at(b.versioned, 32) + at(b.versioned, 72)
                for b in arguments[2]
            }
        super().call(function, *arguments)


class InterruptedSource(Source):
    """A trainer whose step begins before a refit is asked whether it is unchanged."""

    def call(self, function, *arguments):
        if function == "ws_refit_unchanged":
            with self.step():
                pass
        super().call(function, *arguments)


def directory_of(family):
    return os.path.join(CHECKPOINTS, family)


def config_of(family):
    with open(os.path.join(directory_of(family), "config.json")) as file:
        return json.load(file)


def published(family):
    """The checkpoint's tensors as the safetensors library reads them."""
    tensors = {}
    for entry in sorted(os.listdir(directory_of(family))):
        if entry.endswith(".safetensors"):
            with safe_open(os.path.join(directory_of(family), entry), "pt") as file:
                tensors.update({name: file.get_tensor(name) for name in file.keys()})
    return tensors


def open_source(family, layout, kind=Source, **more):
    directory = directory_of(family)
    config = directory + "/config.json"
    return kind(LIBRARY, layout=layout, config=config, checkpoint=directory, **more)


def differences(ours, theirs):
    """The names whose tensors are not the same bytes of one type and shape."""
    same = lambda a, b: (
        a.dtype == b.dtype
        and a.shape == b.shape
        and torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
    )
    return [
        name
        for name in sorted(ours.keys() | theirs.keys())
        if name not in ours or name not in theirs or not same(ours[name], theirs[name])
    ]


def run_example(name, **given):
    """Runs an example word for word; returns the names that it has then."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    here = os.getcwd()
    os.chdir(os.path.dirname(LIBRARY))
    try:
        with open(path) as file:
            exec(compile(file.read(), path, "exec"), given)
    finally:
        os.chdir(here)
    return given


def main():
    unittest.main(argv=sys.argv[:1], verbosity=2)
