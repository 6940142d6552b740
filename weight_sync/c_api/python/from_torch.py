# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
import torch.distributed as dist
from weight_sync_ctypes import Source  # weight_sync/c_api/python

options = dict(layout="hf-fused", config=model_dir + "/config.json", checkpoint=model_dir)
job = dict(job="job-7", rank=dist.get_rank(), size=dist.get_world_size())
source = Source("./libweight_sync.so", job=job, **options)
arrays = model.state_dict(keep_vars=True)  # of fully_shard: DTensors; or plain parameters
source.declare(arrays)  # once: names, shapes, types, placements
tensors = source.refit(version, arrays)  # on rank 0: HF name -> tensor, for torch.from_dlpack
with source.step():
    optimizer.step()
