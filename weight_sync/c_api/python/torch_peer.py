# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Live torch parameters through the C ABI, for live_arrays_peer_test. No file is in between."""

import contextlib
import ctypes
import os
import tempfile
import unittest

import peer_checks
import torch
import torch.distributed as dist
import transformers
import weight_sync_ctypes as ws
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def model_of(family):
    architecture = peer_checks.config_of(family)["architectures"][0]
    return getattr(transformers, architecture).from_pretrained(
        peer_checks.directory_of(family), dtype="auto"
    )


def parameters_of(family):
    """The parameters themselves, and the buffers that are saved with them."""
    return model_of(family).state_dict(keep_vars=True)


def refitted(source, version, arrays):
    return {
        name: torch.from_dlpack(tensor) for name, tensor in source.refit(version, arrays).items()
    }


USED_PLAIN = ws.S(b"used_dltensor")


class UnversionedSource(ws.Source):
    """Binds what __dlpack__ gives to those who ask for no version."""

    def bind(self, version, arrays):
        get = ctypes.pythonapi.PyCapsule_GetPointer
        export = lambda array: ctypes.py_object(array.detach().__dlpack__())
        capsules = {path.encode(): export(array) for path, array in arrays.items()}
        bindings = (ws._Binding * len(capsules))()
        for i, (path, capsule) in enumerate(capsules.items()):
            bindings[i] = ws._make(ws._Binding, path, plain=get(capsule, ws.S(b"dltensor")))
            ctypes.pythonapi.PyCapsule_SetName(capsule, USED_PLAIN)
        count = ctypes.c_size_t(len(bindings))
        self.call("ws_source_bind", self.handle, ctypes.c_int64(version), bindings, count)


@contextlib.contextmanager
def process_group(folder, rank, size):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size
    )
    try:
        yield
    finally:
        dist.destroy_process_group()


class TorchPeer(unittest.TestCase):
    def test_live_parameters_of_every_family_become_the_published_file(self):
        families = sorted(os.listdir(peer_checks.CHECKPOINTS))
        self.assertGreater(len(families), 10)
        for family in families:
            with self.subTest(family):
                arrays = parameters_of(family)
                self.assertTrue(any(isinstance(a, torch.nn.Parameter) for a in arrays.values()))
                source = peer_checks.open_source(family, "hf-fused")
                source.declare(arrays)
                tensors = refitted(source, 1, arrays)
                # In without a copy.
                self.assertEqual(source.pointers, {(p, 0): a.data_ptr() for p, a in arrays.items()})
                self.assertEqual(
                    peer_checks.differences(tensors, peer_checks.published(family)), []
                )

    def test_two_exchanged_arrays_are_seen(self):
        arrays = parameters_of("qwen3")
        prefix = "model.layers.0.self_attn."
        k, v = prefix + "k_proj.weight", prefix + "v_proj.weight"
        arrays[k], arrays[v] = arrays[v], arrays[k]
        source = peer_checks.open_source("qwen3", "hf")
        source.declare(arrays)
        tensors = refitted(source, 1, arrays)
        self.assertEqual(peer_checks.differences(tensors, peer_checks.published("qwen3")), [k, v])

    def test_each_version_is_what_the_parameters_are_then(self):
        arrays = parameters_of("qwen3_moe")
        source = peer_checks.open_source("qwen3_moe", "hf-fused")
        source.declare(arrays)
        for version in range(3):
            tensors = refitted(source, version, arrays)
            experts = arrays["model.layers.1.mlp.experts.down_proj"]
            for e in range(4):
                ours = tensors[f"model.layers.1.mlp.experts.{e}.down_proj.weight"]
                self.assertTrue(torch.equal(ours, experts[e]))
            with source.step(), torch.no_grad():
                experts.mul_(-2)

    def test_tensors_without_a_version_are_taken_as_well(self):
        arrays = parameters_of("qwen2")
        source = peer_checks.open_source("qwen2", "hf", UnversionedSource)
        source.declare(arrays)
        tensors = refitted(source, 1, arrays)
        self.assertEqual(peer_checks.differences(tensors, peer_checks.published("qwen2")), [])

    def test_arrays_that_lie_otherwise_are_read_as_they_lie(self):
        arrays = parameters_of("llama")
        turned = lambda a: a.detach().t().contiguous().t() if a.ndim == 2 else a
        lying = {path: turned(array) for path, array in arrays.items()}
        self.assertEqual(lying["lm_head.weight"].stride(), (1, 512))
        source = peer_checks.open_source("llama", "hf")
        source.declare(lying)
        tensors = refitted(source, 1, lying)
        self.assertEqual(source.pointers, {(p, 0): a.data_ptr() for p, a in lying.items()})
        self.assertEqual(peer_checks.differences(tensors, peer_checks.published("llama")), [])
        with self.assertRaisesRegex(ws.Error, "embed_tokens"):  # other strides than declared
            source.refit(2, arrays)

    def test_a_step_that_overlaps_fails_the_refit(self):
        arrays = parameters_of("qwen3")
        source = peer_checks.open_source("qwen3", "hf", peer_checks.InterruptedSource)
        source.declare(arrays)
        with self.assertRaises(ws.Error) as raised:
            source.refit(1, arrays)
        self.assertEqual(raised.exception.args[0], peer_checks.ABORTED)

    def test_masters_in_float32_are_rounded_once_also_of_numpy(self):
        masters = {p: a.detach().float() for p, a in parameters_of("qwen3").items()}
        for arrays in masters, {path: array.numpy() for path, array in masters.items()}:
            source = peer_checks.open_source("qwen3", "hf")
            source.declare(arrays)
            tensors = refitted(source, 1, arrays)
            self.assertEqual(peer_checks.differences(tensors, peer_checks.published("qwen3")), [])

    def test_a_model_that_is_another_is_refused_by_name(self):
        arrays = parameters_of("qwen3")
        source = peer_checks.open_source("qwen2", "hf")
        with self.assertRaisesRegex(ws.Error, "q_norm.weight") as raised:
            source.declare(arrays)
        self.assertEqual(raised.exception.args[0], peer_checks.INVALID_ARGUMENT)

    def test_dtensors_of_a_mesh_of_one_are_whole(self):
        with tempfile.TemporaryDirectory() as folder, process_group(folder, rank=0, size=1):
            mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
            placed = lambda a: distribute_tensor(a.detach(), mesh, (Replicate(), Shard(0)))
            arrays = {
                path: torch.nn.Parameter(placed(array))
                for path, array in parameters_of("qwen3").items()
            }
            source = peer_checks.open_source("qwen3", "hf")
            source.declare(arrays)
            tensors = refitted(source, 1, arrays)
            local = {(p, 0): array.to_local().data_ptr() for p, array in arrays.items()}
            self.assertEqual(source.pointers, local)
            self.assertEqual(peer_checks.differences(tensors, peer_checks.published("qwen3")), [])


if __name__ == "__main__":
    peer_checks.main()
