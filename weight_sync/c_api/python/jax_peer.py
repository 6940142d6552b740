# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Live tunix models and jax arrays through the C ABI, for live_arrays_peer_test.

No file is in between.
"""

import ctypes
import gc
import json
import os
import unittest

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy
import peer_checks
import torch
import tunix_peer
import weight_sync_ctypes as ws
from flax import nnx

jax.config.update("jax_enable_x64", True)

# What jax and torch both hand out by DLPack on a CPU and this library takes, with its name for it.
DTYPES = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
}
# What both hand out and this one refuses: no parameter is complex.
COMPLEX = ["complex64", "complex128"]
# What jax does not hand out, or torch does not take. (Integers of one bit jax hands out as bool.)
OTHERS = (
    "int2 int4 uint2 uint4 float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3"
    " float8_e4m3b11fnuz"
).split()

# Of which tunix loads every name.
FAMILIES = (
    "llama llama_tied qwen2 qwen2_tied qwen3 qwen3_tied qwen3_moe gemma4_multimodal"
    " gemma4_moe_multimodal"
).split()


def state_of(family):
    """The state of the model that tunix's own loader makes."""
    model, _ = tunix_peer.load(peer_checks.directory_of(family), "optimized")
    return nnx.state(model)


def tree_of(family):
    leaves = state_of(family).flat_state()
    return {".".join(map(str, path)): leaf.get_value() for path, leaf in leaves}


def pointers_of(arrays):
    return {(path, 0): array.unsafe_buffer_pointer() for path, array in arrays.items()}


def refitted(source, version, arrays):
    return {
        name: torch.from_dlpack(tensor) for name, tensor in source.refit(version, arrays).items()
    }


def tiny(dtype, hidden_size=8, vocab_size=16):
    """A source whose tensors are all of this type, and the shapes of its arrays."""
    config = json.dumps(
        dict(
            model_type="qwen3", hidden_size=hidden_size, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=1, head_dim=4, intermediate_size=12, vocab_size=vocab_size,
            tie_word_embeddings=False, dtype="bfloat16",
        )
    )  # fmt: skip
    options = dict(layout="hf", config_json=config)
    source, shapes, info = ws.Source(peer_checks.LIBRARY, **options), {}, ws._make(ws._Info)
    for i in range(source.so.ws_source_array_count(source.handle)):
        source.call("ws_source_array", source.handle, i, ctypes.byref(info))
        shapes[info.name.decode()] = tuple(info.shape[: info.rank])
    manifest = json.dumps({name: [shape, dtype] for name, shape in shapes.items()})
    return ws.Source(peer_checks.LIBRARY, manifest=manifest, **options), shapes


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class JaxPeer(unittest.TestCase):
    def check_live_model(self, family, spell):
        arrays = {spell(path): array for path, array in tree_of(family).items()}
        source = peer_checks.open_source(family, "tunix")
        source.declare(arrays)
        tensors = refitted(source, 1, arrays)
        self.assertEqual(source.pointers, pointers_of(arrays))  # in without a copy
        self.assertEqual(peer_checks.differences(tensors, peer_checks.published(family)), [])

    def test_live_tunix_models_become_the_published_file(self):
        for family in FAMILIES:
            with self.subTest(family):
                self.check_live_model(family, lambda path: path)

    def test_paths_may_be_written_in_any_way(self):
        self.check_live_model("qwen3", lambda path: path.replace(".", "/") + "/value")
        leaves = jax.tree_util.tree_leaves_with_path(nnx.to_pure_dict(state_of("qwen3")))
        arrays = {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
        self.assertIn("['layers'][0]['attn']['q_proj']['w']", arrays)
        source = peer_checks.open_source("qwen3", "tunix")
        source.declare(arrays)
        tensors = refitted(source, 1, arrays)
        self.assertEqual(peer_checks.differences(tensors, peer_checks.published("qwen3")), [])

    def test_arrays_over_several_devices_become_the_published_file(self):
        mesh = jax.sharding.Mesh(numpy.array(jax.devices()).reshape(2, 2), ("x", "y"))
        P = jax.sharding.PartitionSpec
        # By the number of dimensions: both, one and none of the mesh's, and replicas.
        specs = {1: P(), 2: P("x", "y"), 3: P(None, ("y", "x")), 4: P("y")}
        for family in ("qwen3", "qwen3_moe", "gemma4_moe_multimodal"):
            with self.subTest(family):
                arrays, pointers = {}, {}
                for path, array in tree_of(family).items():
                    divides = all(size % 4 == 0 for size in array.shape)
                    spec = specs[array.ndim] if divides else P()
                    sharding = jax.sharding.NamedSharding(mesh, spec)
                    arrays[path] = jax.device_put(array, sharding)
                    for shard in arrays[path].addressable_shards:
                        at = shard.data.unsafe_buffer_pointer()
                        pointers[path, shard.device.id] = at
                source = peer_checks.open_source(family, "tunix")
                source.declare(arrays)
                tensors = refitted(source, 1, arrays)
                self.assertEqual(source.pointers, pointers)
                self.assertEqual(
                    peer_checks.differences(tensors, peer_checks.published(family)), []
                )

    def test_the_example_runs_as_it_is_written(self):
        model, _ = tunix_peer.load(peer_checks.directory_of("qwen3"), "optimized")
        step = jax.jit(lambda tree: {p: a * 2 for p, a in tree.items()}, donate_argnums=0)
        names = peer_checks.run_example(
            "from_jax.py",
            model=model,
            model_dir=peer_checks.directory_of("qwen3"),
            version=1,
            train_step=step,
        )
        tensors = {name: torch.from_dlpack(t) for name, t in names["tensors"].items()}
        self.assertEqual(peer_checks.differences(tensors, peer_checks.published("qwen3")), [])
        refitted(names["source"], 2, names["arrays"])

    def test_two_exchanged_arrays_are_seen(self):
        arrays = tree_of("qwen3")
        gate, up = "layers.1.mlp.gate_proj.kernel", "layers.1.mlp.up_proj.kernel"
        arrays[gate], arrays[up] = arrays[up], arrays[gate]
        source = peer_checks.open_source("qwen3", "tunix")
        source.declare(arrays)
        tensors = refitted(source, 1, arrays)
        self.assertEqual(
            peer_checks.differences(tensors, peer_checks.published("qwen3")),
            ["model.layers.1.mlp.gate_proj.weight", "model.layers.1.mlp.up_proj.weight"],
        )

    def test_a_step_that_overlaps_fails_the_refit(self):
        arrays = tree_of("qwen3")
        source = peer_checks.open_source("qwen3", "tunix", peer_checks.InterruptedSource)
        source.declare(arrays)
        with self.assertRaises(ws.Error) as raised:
            source.refit(1, arrays)
        self.assertEqual(raised.exception.args[0], peer_checks.ABORTED)

    def test_every_type_goes_from_jax_to_torch_and_back(self):
        random = numpy.random.default_rng(7)
        for name, ours_is in DTYPES.items():
            with self.subTest(name):
                source, shapes = tiny(ours_is)
                arrays, dtype = {}, jnp.dtype(name)
                for path, shape in shapes.items():
                    count = int(numpy.prod(shape)) * dtype.itemsize
                    values = random.integers(0, 2 if name == "bool" else 256, count, numpy.uint8)
                    arrays[path] = jnp.asarray(values.view(dtype).reshape(shape))
                source.declare(arrays)
                to_torch, to_jax = refitted(source, 1, arrays), source.refit(2, arrays)
                self.assertEqual(to_torch.keys(), arrays.keys())
                for path, array in arrays.items():
                    ours, theirs = to_torch[path], torch.from_dlpack(array)
                    self.assertEqual(str(ours.dtype), f"torch.{name}")
                    self.assertEqual(ours.shape, theirs.shape)
                    self.assertTrue(torch.equal(ours.view(torch.uint8), theirs.view(torch.uint8)))
                    back = jax.dlpack.from_dlpack(to_jax[path])
                    self.assertEqual(back.dtype, dtype)
                    self.assertEqual(numpy.asarray(back).tobytes(), numpy.asarray(array).tobytes())

    def test_complex_arrays_are_refused(self):
        source, shapes = tiny("C64")
        arrays = {path: jnp.zeros(shape, "complex64") for path, shape in shapes.items()}
        source.declare(arrays)
        with self.assertRaisesRegex(ws.Error, "kDLComplex, 64 bits") as raised:
            source.refit(1, arrays)
        self.assertEqual(raised.exception.args[0], peer_checks.UNIMPLEMENTED)

    def test_the_list_of_types_is_complete(self):
        for name in [*DTYPES, *COMPLEX]:
            torch.from_dlpack(jnp.zeros((4,), name))
        for name in OTHERS:
            with self.subTest(name), self.assertRaises(Exception):
                torch.from_dlpack(jnp.zeros((4,), name))
        scalars = [value for value in vars(jnp).values() if isinstance(value, type(jnp.float32))]
        known = {str(jnp.dtype(scalar)) for scalar in scalars} - {"int1", "uint1"}
        self.assertEqual(known, {*DTYPES, *COMPLEX, *OTHERS})

    def test_a_donated_step_reuses_the_arrays_once_they_are_given_back(self):
        source, shapes = tiny("BF16", hidden_size=512, vocab_size=1 << 16)
        total = 2 * sum(int(numpy.prod(shape)) for shape in shapes.values())
        self.assertGreater(total, 128 << 20)
        jitted = jax.jit(lambda tree: {p: a * 1.5 for p, a in tree.items()}, donate_argnums=0)

        def step(arrays):
            with source.step():
                return jax.block_until_ready(jitted(arrays))

        arrays = {path: jnp.ones(shape, jnp.bfloat16) for path, shape in shapes.items()}
        source.declare(arrays)
        arrays = step(step(arrays))
        gc.collect()
        start = resident_bytes()

        def grown():
            return (resident_bytes() - start) / total

        # No collection of garbage between: what is given back is given back.
        gc.disable()
        self.addCleanup(gc.enable)
        before = pointers_of(arrays)
        for version in range(3):
            source.refit(version, arrays)
            arrays = step(arrays)
            self.assertEqual(pointers_of(arrays), before)
            self.assertLess(grown(), 0.25)

        # Also where the refit fails.
        with self.assertRaises(ws.Error):
            source.refit(3, {**arrays, "lm_head.weight": arrays["model.norm.weight"]})
        arrays = step(arrays)
        self.assertEqual(pointers_of(arrays), before)
        self.assertLess(grown(), 0.25)

        # A negative control: while they are held, jax takes as much memory again.
        source.bind(4, arrays)
        arrays = step(arrays)
        moved = [path for (path, _), at in pointers_of(arrays).items() if at != before[path, 0]]
        self.assertEqual(moved, list(arrays))
        self.assertGreater(grown(), 0.75)
        source.call("ws_source_release", source.handle)
        before, arrays = pointers_of(arrays), step(arrays)
        self.assertEqual(pointers_of(arrays), before)
        self.assertLess(grown(), 0.25)


if __name__ == "__main__":
    peer_checks.main()
