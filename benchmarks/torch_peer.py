# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""torch doing what a row of //benchmarks:refit does, for torch_peer.h.

Says its version, then reads lines from standard input and answers each with one line. A line is the
name of an operation below and its sizes; the answer is the seconds that one repetition took. What an
operation works on is made when it is asked for first, and stays. Each is written in the forms that
torch offers, into memory that it has already; the fastest counts.
"""

import sys
import time

import torch

BF16 = torch.bfloat16


def copy(count):
    src, dst = torch.ones(count, dtype=BF16), torch.zeros(count, dtype=BF16)
    return [lambda: dst.copy_(src)]


def transpose(rows, columns):
    src, dst = torch.ones(rows, columns, dtype=BF16), torch.zeros(columns, rows, dtype=BF16)
    by_columns = dst.t()
    return [lambda: dst.copy_(src.t()), lambda: by_columns.copy_(src)]


def experts(experts, rows, columns):
    src, dst = torch.ones(experts, rows, columns, dtype=BF16), torch.zeros(experts, columns, rows, dtype=BF16)

    def one_by_one():
        for e in range(experts):
            dst[e].copy_(src[e].t())

    return [lambda: dst.copy_(src.transpose(1, 2)), one_by_one]


def gate_up(experts, rows, columns):
    gate, up = torch.ones(experts, rows, columns, dtype=BF16), torch.ones(experts, rows, columns, dtype=BF16)
    dst = torch.zeros(experts, 2 * rows, columns, dtype=BF16)

    def slices():
        dst[:, :rows].copy_(gate)
        dst[:, rows:].copy_(up)

    return [slices, lambda: torch.cat([gate, up], dim=1, out=dst)]


def stack(experts, rows, columns):
    sources = [torch.ones(rows, columns, dtype=BF16) for _ in range(2 * experts)]
    dst = torch.zeros(2 * experts, rows, columns, dtype=BF16)

    def one_by_one():
        for to, source in zip(dst, sources):
            to.copy_(source)

    return [one_by_one, lambda: torch.stack(sources, out=dst)]


def narrow(count):
    src, dst = torch.ones(count, dtype=torch.float32), torch.zeros(count, dtype=BF16)
    return [lambda: dst.copy_(src)]


def boxes(rows, columns):
    sources = [torch.ones(rows // 2, columns // 2, dtype=BF16) for _ in range(4)]
    dst = torch.zeros(rows, columns, dtype=BF16)
    targets = [box for half in dst.chunk(2) for box in half.chunk(2, dim=1)]

    def one_by_one():
        for to, source in zip(targets, sources):
            to.copy_(source)

    return [one_by_one, lambda: torch._foreach_copy_(targets, sources)]


def tiny(count, size):
    src, dst = torch.ones(count, size // 2, dtype=BF16), torch.zeros(count, size // 2, dtype=BF16)
    sources, targets = list(src), list(dst)

    def one_by_one():
        for to, source in zip(targets, sources):
            to.copy_(source)

    return [lambda: torch._foreach_copy_(targets, sources), one_by_one]


OPERATIONS = {f.__name__: f for f in [copy, transpose, experts, gate_up, stack, narrow, boxes, tiny]}


@torch.no_grad()
def main():
    torch.set_num_threads(1)
    print(torch.__version__, flush=True)
    prepared = {}
    for line in sys.stdin:
        if line not in prepared:
            name, *sizes = line.split()
            prepared[line] = OPERATIONS[name](*map(int, sizes))
            for form in prepared[line]:
                form()
        best = float("inf")
        for form in prepared[line]:
            start = time.perf_counter()
            form()
            best = min(best, time.perf_counter() - start)
        print(best, flush=True)


main()
