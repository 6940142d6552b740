# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""torch's DTensors over processes on gloo through the C ABI, for live_arrays_peer_test.

Rank 0's tensors are compared with torch's own full_tensor().
"""

import contextlib
import functools
import json
import math
import os
import socket
import tempfile
import time
import unittest
from typing import Callable, NamedTuple

import peer_checks
import torch
import torch.multiprocessing as mp
import transformers
import weight_sync_ctypes as ws
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch_peer import model_of, process_group, refitted

# ---- Models: sizes that no number of ranks divides, and smaller than that ----

LLAMA = dict(model_type="llama", dtype="bfloat16", num_hidden_layers=1)
LLAMA.update(num_attention_heads=1, num_key_value_heads=1, head_dim=1)
LLAMA.update(vocab_size=10, intermediate_size=5, hidden_size=2)
# torch's full_tensor() fails where FSDP2 shards what has no columns on a rank of TP.
LLAMA_FOR_TP = dict(LLAMA, head_dim=3)
EXPERTS = dict(LLAMA, model_type="qwen3_moe", num_experts=5, moe_intermediate_size=3)

EMBEDDING, NORM = "model.embed_tokens.weight", "model.norm.weight"
QUERY = "model.layers.0.self_attn.q_proj.weight"
GATE = "model.layers.0.mlp.gate_proj.weight"
GATE_UP = "model.layers.0.mlp.experts.gate_up_proj"
DOWN = "model.layers.0.mlp.experts.down_proj"


def tiny(config):
    """A model that is the same on all ranks, and no two of whose elements have the same bits."""
    model_config = transformers.AutoConfig.for_model(**config)
    model = transformers.AutoModelForCausalLM.from_config(model_config)
    torch.manual_seed(5)
    bits, used = (torch.randperm(1 << 16) - (1 << 15)).short().view(torch.bfloat16), 0
    for parameter in model.parameters():
        parameter.data = bits[used : used + parameter.numel()].reshape(parameter.shape).clone()
        used += parameter.numel()
    assert used < len(bits)
    return model


def published(full):
    """What the hub names them: experts one by one, gate and up apart."""
    tensors = {}
    for name, tensor in full.items():
        if ".experts." not in name:
            tensors[name] = tensor
            continue
        for e, expert in enumerate(tensor):
            layer, last = name.split("experts.")
            parts = ("gate_proj", "up_proj") if last == "gate_up_proj" else (last,)
            for part, matrix in zip(parts, expert.chunk(len(parts))):
                tensors[f"{layer}experts.{e}.{part}.weight"] = matrix
    return tensors


# ---- How torch shards them ----


def by_fsdp(model, mesh):
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model.state_dict(keep_vars=True)


def by_fsdp_over_tp(model, mesh, norms=True):
    """Norms that are not in the plan, torch has on mesh["dp"]: on one for each rank of tp."""
    layer, columns, rows, norm = (
        "model.layers.*.",
        ColwiseParallel,
        RowwiseParallel,
        SequenceParallel,
    )
    plan = {"model.embed_tokens": rows(input_layouts=Replicate()), "lm_head": columns()}
    if norms:
        plan["model.norm"] = norm()
        plan.update({layer + n: norm() for n in ("input_layernorm", "post_attention_layernorm")})
    plan.update({layer + f"self_attn.{n}_proj": columns() for n in ("q", "k", "v")})
    plan.update({layer + f"mlp.{n}_proj": columns() for n in ("gate", "up")})
    plan.update({layer + n: rows() for n in ("self_attn.o_proj", "mlp.down_proj")})
    parallelize_module(model, mesh["tp"], plan)
    return by_fsdp(model, mesh["dp"])


def experts_by(*placements):
    def place(model, mesh):
        whole = [Replicate()] * mesh.ndim
        return {
            name: distribute_tensor(array, mesh, placements if ".experts." in name else whole)
            for name, array in model.state_dict().items()
        }

    return place


class Scheme(NamedTuple):
    config: dict
    mesh: dict
    place: Callable
    placements: set  # all that torch comes to
    rows: dict  # of some parameters on each rank; the first one's are changed, one by one
    replicas: bool = False  # so that a change on one rank alone need not be seen


by_fsdp_over_tp_but_norms = functools.partial(by_fsdp_over_tp, norms=False)

SQUARE, DP_TP = {"a": 2, "b": 2}, {"_S(0, 2), S(0)", "S(0), S(1)", "S(0), R"}
DP_TP_BUT_NORMS = {"_S(0, 2), S(0)", "S(0), S(1)", "S(0)"}
SCHEMES = {
    "fsdp": Scheme(
        LLAMA,
        {"dp": 4},
        by_fsdp,
        {"S(0)"},
        {EMBEDDING: [3, 3, 3, 1], GATE: [2, 2, 1, 0], NORM: [1, 1, 0, 0], QUERY: [1, 0, 0, 0]},
    ),
    "hsdp": Scheme(
        LLAMA,
        {"replica": 2, "dp": 2},
        by_fsdp,
        {"R, S(0)"},
        {GATE: [3, 2, 3, 2], QUERY: [1, 0, 1, 0]},
        replicas=True,
    ),
    "fsdp over tp": Scheme(
        LLAMA_FOR_TP,
        {"dp": 2, "tp": 2},
        by_fsdp_over_tp,
        DP_TP,
        {EMBEDDING: [3, 3, 2, 2], GATE: [2, 1, 1, 1], QUERY: [1, 1, 1, 0]},
    ),
    "fsdp over tp that divides nothing": Scheme(
        dict(LLAMA_FOR_TP, vocab_size=7),
        {"dp": 3, "tp": 2},
        by_fsdp_over_tp,
        DP_TP,
        {EMBEDDING: [2, 1, 2, 1, 0, 1], QUERY: [1, 1, 1, 0, 0, 0], NORM: [1, 1, 1, 1, 0, 0]},
    ),
    "fsdp over tp but norms": Scheme(
        LLAMA_FOR_TP,
        {"dp": 2, "tp": 2},
        by_fsdp_over_tp_but_norms,
        DP_TP_BUT_NORMS,
        {EMBEDDING: [3, 3, 2, 2], NORM: [1, 1, 1, 1]},
    ),
    "fsdp over tp but norms, that divides nothing": Scheme(
        dict(LLAMA_FOR_TP, vocab_size=7),
        {"dp": 3, "tp": 2},
        by_fsdp_over_tp_but_norms,
        DP_TP_BUT_NORMS,
        {EMBEDDING: [2, 1, 2, 1, 0, 1], NORM: [1, 1, 1, 1, 0, 0]},
    ),
    "experts": Scheme(
        EXPERTS, {"ep": 4}, experts_by(Shard(0)), {"S(0)", "R"}, {GATE_UP: [2, 2, 1, 0]}
    ),
    "experts, replicated": Scheme(
        EXPERTS,
        SQUARE,
        experts_by(Shard(0), Replicate()),
        {"S(0), R", "R, R"},
        {GATE_UP: [3, 3, 2, 2]},
        replicas=True,
    ),
    "experts, their last axis": Scheme(
        EXPERTS,
        SQUARE,
        experts_by(Shard(0), Shard(2)),
        {"S(0), S(2)", "R, R"},
        {GATE_UP: [3, 3, 2, 2]},
    ),
    "experts, another axis first": Scheme(
        EXPERTS,
        SQUARE,
        experts_by(Shard(1), Shard(0)),
        {"S(1), S(0)", "R, R"},
        {DOWN: [3, 2, 3, 2]},
    ),
    "replicated": Scheme(
        EXPERTS,
        SQUARE,
        experts_by(Replicate(), Replicate()),
        {"R, R"},
        {GATE_UP: [5, 5, 5, 5]},
        replicas=True,
    ),
}

# ---- What the ranks do: each function is one process, `job` names a meeting ----


def placed(scheme, config):
    names, sizes = zip(*scheme.mesh.items())
    return scheme.place(tiny(config), init_device_mesh("cpu", sizes, mesh_dim_names=names))


def whole(arrays):
    return published({name: array.detach().full_tensor() for name, array in arrays.items()})


def source_of(config, job):
    text = json.dumps(config)
    return peer_checks.Source(peer_checks.LIBRARY, layout="hf-fused", config_json=text, job=job)


def refit_schemes(rank, size, job, names):
    return {name: refit_scheme(rank, size, job(name), SCHEMES[name]) for name in names}


def refit_scheme(rank, size, job, scheme):
    arrays, original = placed(scheme, scheme.config), tiny(scheme.config).state_dict()
    theirs = whole(arrays)
    source = source_of(scheme.config, job)
    source.declare(arrays)

    def differences(version):
        tensors = refitted(source, version, arrays)
        return peer_checks.differences(tensors, theirs) if rank == 0 else len(tensors)

    result = {"differences": differences(1)}
    result["torch"] = peer_checks.differences(theirs, published(original))
    local = {name: array.to_local().detach() for name, array in arrays.items()}
    here = {(name, rank): part.data_ptr() for name, part in local.items()}
    result["in place"] = source.pointers == here
    result["placements"] = {", ".join(map(str, array.placements)) for array in arrays.values()}
    result["rows"] = {name: len(local[name]) for name in scheme.rows}
    changing = local[next(iter(scheme.rows))].view(torch.int16).view(-1)[:1]
    result["changes"] = []
    for changed in range(0 if scheme.replicas else size):
        if rank == changed:
            changing ^= 1
        result["changes"].append(differences(2 + changed))
        if rank == changed:
            changing ^= 1
    return result


def refit_as_if_fsdp_came_first(rank, size, job, vocab_size):
    """Declares the embedding, whose placements are strided, with plain ones."""
    scheme = SCHEMES["fsdp over tp"]
    config = dict(scheme.config, vocab_size=vocab_size)
    arrays = placed(scheme, config)
    theirs, strided = whole(arrays), arrays[EMBEDDING]
    assert str(strided.placements[0]) == "_S(0, 2)"
    arrays[EMBEDDING] = DTensor.from_local(
        strided.to_local().detach(),
        strided.device_mesh,
        [Shard(0), Shard(0)],
        shape=strided.shape,
        stride=strided.stride(),
    )
    source = source_of(config, job("plain"))
    source.declare(arrays)
    try:
        tensors = refitted(source, 1, arrays)
    except ws.Error as error:
        return error.args
    return peer_checks.differences(tensors, theirs) if rank == 0 else len(tensors)


def refit_checkpoints(rank, size, job):
    """A trainer of models of the checkpoints' sizes, each transformer layer sharded by itself."""
    result = {}
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("dp",))
    for family in ("qwen3", "qwen3_moe"):
        arrays = by_fsdp(model_of(family), mesh)
        assert all(isinstance(array, DTensor) for array in arrays.values())
        source = peer_checks.open_source(family, "hf-fused", job=job(family))
        source.declare(arrays)
        tensors = refitted(source, 1, arrays)
        theirs = peer_checks.published(family)
        result[family] = peer_checks.differences(tensors, theirs) if tensors else "none"
        with source.step() if rank == 2 else contextlib.nullcontext():
            try:
                source.refit(2, arrays)
            except ws.Error as error:
                result[family + " step"] = error.args
    model = model_of("llama")
    by_fsdp(model, mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    directory = peer_checks.directory_of("llama")
    given = dict(model=model, model_dir=directory, version=1, optimizer=optimizer)
    tensors = peer_checks.run_example("from_torch.py", **given)["tensors"]
    tensors = {name: torch.from_dlpack(tensor) for name, tensor in tensors.items()}
    theirs = peer_checks.published("llama")
    result["example"] = peer_checks.differences(tensors, theirs) if tensors else "none"
    return result


# ---- Cases ----


def start_rank(rank, size, folder, place, work, arguments):
    job = lambda name: dict(job=f"{folder} {name}", rank=rank, size=size, **place)
    with process_group(folder, rank, size):
        result = work(rank, size, job, *arguments)
    torch.save(result, os.path.join(folder, f"result{rank}"))


def on_ranks(size, work, *arguments, **place):
    """What it returns on each of so many processes, which are forked: torch is imported once."""
    with tempfile.TemporaryDirectory() as folder:
        given, deadline = (size, folder, place, work, arguments), time.monotonic() + 120
        ranks = mp.start_processes(start_rank, given, size, join=False, start_method="fork")
        while not ranks.join(deadline - time.monotonic()):
            if time.monotonic() >= deadline:
                for process in ranks.processes:
                    process.kill()
                raise TimeoutError(f"{work.__name__} on {size} ranks")
        return [torch.load(os.path.join(folder, f"result{rank}")) for rank in range(size)]


@contextlib.contextmanager
def reserved_port():
    """A port of 127.0.0.1 that is given to nobody else, and where rank 0 can listen."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


class ShardedTorchPeer(unittest.TestCase):
    def check_all_schemes(self, **place):
        checked = 0
        for world in (4, 6):
            names = [n for n, s in SCHEMES.items() if math.prod(s.mesh.values()) == world]
            ranks = on_ranks(world, refit_schemes, names, **place)
            for name in names:
                with self.subTest(name, **place):
                    self.check_scheme(SCHEMES[name], [results[name] for results in ranks])
                    checked += 1
        self.assertEqual(checked, len(SCHEMES))

    def check_scheme(self, scheme, ranks):
        each = lambda key: [result[key] for result in ranks]
        nothing = [0] * (len(ranks) - 1)
        self.assertEqual(each("differences"), [[], *nothing])
        self.assertEqual(each("torch"), [[]] * len(ranks))
        self.assertEqual(each("in place"), [True] * len(ranks))
        # What the scheme is there for.
        self.assertEqual(each("placements"), [scheme.placements] * len(ranks))
        for name, rows in scheme.rows.items():
            self.assertEqual([result["rows"][name] for result in ranks], rows, name)
        # One element that changes on one rank is seen, in one tensor.
        changes = [len(names) for names in ranks[0]["changes"]]
        first = next(iter(scheme.rows.values()))
        self.assertEqual(changes, [] if scheme.replicas else [min(rows, 1) for rows in first])

    def test_every_placement_becomes_the_full_tensors(self):
        self.check_all_schemes()

    def test_every_placement_becomes_the_full_tensors_over_tcp(self):
        with reserved_port() as port:
            self.check_all_schemes(host="127.0.0.1", port=port)

    def test_strided_shards_that_are_told_as_plain_ones_are_seen(self):
        # Shards of the same sizes either way: other bytes.
        results = on_ranks(4, refit_as_if_fsdp_came_first, 8)
        self.assertEqual(results, [[EMBEDDING], 0, 0, 0])
        # Of others: 3, 3, 2, 2 rows where 3, 2, 3, 2 were told.
        results = on_ranks(4, refit_as_if_fsdp_came_first, 10)
        for rank in (1, 2):
            self.assertEqual(results[rank][0], peer_checks.INVALID_ARGUMENT)
            self.assertIn(EMBEDDING, results[rank][1])

    def test_fsdp2_shards_become_the_published_file(self):
        results = on_ranks(4, refit_checkpoints)
        self.assertEqual([result["example"] for result in results], [[], "none", "none", "none"])
        for family in ("qwen3", "qwen3_moe"):
            self.assertEqual([result[family] for result in results], [[], "none", "none", "none"])
            # A step on rank 2 fails it on all.
            answers = [result[family + " step"] for result in results]
            self.assertEqual([code for code, _ in answers], [peer_checks.ABORTED] * 4)
            self.assertIn("rank 2", answers[0][1])


if __name__ == "__main__":
    torch.set_num_threads(1)
    tiny(LLAMA)  # what that imports, the ranks need not
    peer_checks.main()
