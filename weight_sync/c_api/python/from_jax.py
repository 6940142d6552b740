# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
from flax import nnx
from weight_sync_ctypes import Source  # weight_sync/c_api/python

options = dict(layout="tunix", config=model_dir + "/config.json", checkpoint=model_dir)
source = Source("./libweight_sync.so", **options)
state = nnx.state(model).flat_state()
arrays = {".".join(map(str, path)): leaf.get_value() for path, leaf in state}
source.declare(arrays)  # once: names, shapes, types, shardings
tensors = source.refit(version, arrays)  # HF name -> tensor, for torch.from_dlpack or jax.dlpack
with source.step():  # nothing of `arrays` is held any more: it is donated
    arrays = train_step(arrays)
