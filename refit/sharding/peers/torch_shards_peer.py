# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shards arange() tensors by torch's own FSDP2 and DTensor over processes on gloo, and writes what each
rank holds: torch_shards_peer.py OUT, a folder for one JSON file a rank and world."""

import json
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


class Holder(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)


def whole(shape):
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


def by_fsdp(shape, mesh):
    return fully_shard(Holder(whole(shape)), mesh=mesh).weight


def by_fsdp_over_tp(shape, mesh, tp_dim):
    holder = Holder(distribute_tensor(whole(shape), mesh["tp"], [Shard(tp_dim)]))
    return fully_shard(holder, mesh=mesh["dp"]).weight


def cases(size):
    """Name, tensor as this rank holds it."""
    if size == 4:
        line = init_device_mesh("cpu", (4,), mesh_dim_names=("dp",))
        for rows in (10, 5, 2, 1, 16):
            yield f"fsdp {rows}", by_fsdp((rows, 3), line)
        square = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replica", "dp"))
        for rows in (7, 1):
            yield f"hsdp {rows}", by_fsdp((rows, 3), square)
        for placements in ([Shard(0), Replicate()], [Shard(0), Shard(2)], [Shard(1), Shard(0)]):
            yield f"experts {placements}", distribute_tensor(whole((6, 4, 5)), square, placements)
        yield "replicated", distribute_tensor(whole((3, 2)), square, [Replicate(), Replicate()])
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    for rows in range(1, 14):
        yield f"columns {rows} over {size // 2}", by_fsdp_over_tp((rows, 3), mesh, 0)
    yield f"rows over {size // 2}", by_fsdp_over_tp((7, 5), mesh, 1)


def run(rank, size, folder):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store{size}", rank=rank, world_size=size
    )
    held = []
    for name, tensor in cases(size):
        full = tensor.full_tensor()
        held.append(
            {
                "name": name,
                "shape": list(tensor.shape),
                "mesh": dict(zip(tensor.device_mesh.mesh_dim_names, tensor.device_mesh.shape)),
                "placements": [str(placement) for placement in tensor.placements],
                "local": tensor.to_local().flatten().int().tolist(),
                "full": full.flatten().int().tolist(),
            }
        )
    with open(os.path.join(folder, f"{size}.{rank}.json"), "w", encoding="utf-8") as file:
        json.dump(held, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    for world in (4, 6):
        # Forked: torch is imported once.
        mp.start_processes(run, args=(world, sys.argv[1]), nprocs=world, start_method="fork")
