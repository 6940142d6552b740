# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""torch doing what //benchmarks:gather does, for torch_peer.h: torch_gather_peer.py CORE

Four ranks on gloo, a process each: rank 0, this one, on that core (-1: on any), the others on the
rest. Says torch's version, then reads lines from standard input, each the name of an operation below
and its sizes, and answers with the seconds that one repetition took on rank 0: between two barriers
of all ranks, but for what rank 0 does alone. What an operation works on is made when it is asked for
first, its result is compared with what it must be, and it stays.
"""

import ctypes
import datetime
import logging
import multiprocessing
import os
import signal
import socket
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor

RANKS = 4
BF16 = torch.bfloat16
HOST = "127.0.0.1"
PR_SET_PDEATHSIG = 1
# Also of a rank that waits while other things are measured.
TIMEOUT = datetime.timedelta(minutes=10)


class Holder(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)


def shapes(layers, hidden, intermediate):
    return layers * [(intermediate, hidden), (hidden, intermediate)]


def whole(number, shape):
    generator = torch.Generator().manual_seed(number)
    return torch.randint(-(2**15), 2**15, shape, dtype=torch.int16, generator=generator).view(BF16)


def sharded(layers, hidden, intermediate):
    """FSDP2 over tensor parallelism, by columns and by rows in turn."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    tensors = []
    for number, shape in enumerate(shapes(layers, hidden, intermediate)):
        by_tp = distribute_tensor(whole(number, shape), mesh["tp"], [Shard(number % 2)], src_data_rank=None)
        tensors.append(fully_shard(Holder(by_tp), mesh=mesh["dp"]).weight)
    return tensors


def check(number, tensor):
    if not torch.equal(tensor.view(torch.int16), whole(number, tensor.shape).view(torch.int16)):
        raise RuntimeError(f"tensor {number} came with other bytes")


def copy(count):
    """On rank 0 alone."""
    if dist.get_rank() != 0:
        return lambda: None
    src, dst = torch.ones(count, dtype=BF16), torch.zeros(count, dtype=BF16)
    return lambda: dst.copy_(src)


def full_tensor(*sizes):
    """On all ranks: torch has no other way to make a DTensor whole."""
    tensors = sharded(*sizes)
    for number, tensor in enumerate(tensors):
        check(number, tensor.full_tensor())

    def run():
        for tensor in tensors:
            tensor.full_tensor()

    return run


def gather(*sizes):
    """The shards to rank 0 alone, which puts them in their places."""
    local = [tensor.to_local() for tensor in sharded(*sizes)]
    if dist.get_rank() != 0:

        def send():
            for shard in local:
                dist.gather(shard)

        send()
        return send
    fulls = [torch.zeros(shape, dtype=BF16) for shape in shapes(*sizes)]
    places = []  # by tensor and rank
    for number, full in enumerate(fulls):
        if number % 2 == 0:  # [tp, dp, rows, columns]
            boxes = full.view(2, 2, full.shape[0] // 4, full.shape[1])
            places.append([boxes[tp, dp] for dp in (0, 1) for tp in (0, 1)])
        else:  # [dp, rows, tp, columns]
            boxes = full.view(2, full.shape[0] // 2, 2, full.shape[1] // 2)
            places.append([boxes[dp, :, tp] for dp in (0, 1) for tp in (0, 1)])
    received = {shard.shape: [torch.zeros_like(shard) for _ in range(RANKS)] for shard in local}

    def run():
        for shard, to in zip(local, places):
            dist.gather(shard, received[shard.shape])
            torch._foreach_copy_(to, received[shard.shape])

    run()
    for number, full in enumerate(fulls):
        check(number, full)
    return run


OPERATIONS = {f.__name__: f for f in [copy, full_tensor, gather]}


@torch.no_grad()
def serve(rank, core, port, listener, answers):
    if core >= 0:
        rest = os.sched_getaffinity(0) - {core}
        os.sched_setaffinity(0, {core} if rank == 0 or not rest else rest)
    torch.set_num_threads(1)
    options = {} if listener is None else {"master_listen_fd": listener.detach()}
    store = dist.TCPStore(HOST, port, RANKS, rank == 0, timeout=TIMEOUT, **options)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS, timeout=TIMEOUT)
    if rank == 0:
        print(torch.__version__, file=answers, flush=True)
    prepared = {}
    while True:
        asked = [sys.stdin.readline() if rank == 0 else None]
        dist.broadcast_object_list(asked)
        line = asked[0]
        if not line:
            break
        if line not in prepared:
            name, *sizes = line.split()
            prepared[line] = OPERATIONS[name](*map(int, sizes))
        together = not line.startswith("copy ")
        if together:
            dist.barrier()
        start = time.perf_counter()
        prepared[line]()
        if together:
            dist.barrier()
        seconds = time.perf_counter() - start
        if rank == 0:
            print(seconds, file=answers, flush=True)
    dist.destroy_process_group()


def serve_other(rank, core, port):
    # However rank 0 ends, this ends.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    serve(rank, core, port, None, None)


def main():
    # gloo says on standard output who is connected.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    # How it redistributes could be better, it warns; it is what FSDP2 over column parallelism gives.
    logging.getLogger("torch.distributed.tensor").setLevel(logging.ERROR)
    core = int(sys.argv[1])
    listener = socket.create_server((HOST, 0))
    port = listener.getsockname()[1]
    # Forked: torch is imported once.
    fork = multiprocessing.get_context("fork")
    for rank in range(1, RANKS):
        fork.Process(target=serve_other, args=(rank, core, port), daemon=True).start()
    serve(0, core, port, listener, answers)


main()
