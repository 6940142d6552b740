# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""What MaxText makes of checkpoints, for maxtext_peer_test.

    maxtext_peer.py OUT DIRECTORY...

Each directory's checkpoint is converted by MaxText's own mapping, hooks and stacking, and saved to
files in the safetensors format under MaxText's names:

    OUT/NAME.unscanned
    OUT/NAME.scanned        layers stacked on axis 1
    OUT/NAME.scanned-at-0   on axis 0: models without experts, which MaxText always puts first
    OUT/NAME.padded         unscanned, with a vocabulary of 640: tied models, whose head the
                            conversion does not pad

MaxText takes the shapes of the arrays from its model, which needs many more packages than the
conversion. Here they are written down as the model's layers declare them (layers/attentions.py,
linears.py, moe.py, models/qwen3.py). That the conversion uses every name of the checkpoint is
asserted.
"""

import json
import os
import sys
import types

import jax
import jax.numpy as jnp
from maxtext.checkpoint_conversion.utils import param_mapping, tensor_handling
from safetensors import safe_open
from safetensors.flax import save_file

# MaxText's name of a model that has the same mapping.
MODELS = {
    "qwen2": "qwen2.5-1.5b",
    "qwen3": "qwen3-0.6b",
    "qwen3_moe": "qwen3-30b-a3b",
    "qwen3_next": "qwen3-next-80b-a3b",
}
CYCLE = 4  # layers of a block of Qwen3-Next
PADDED_VOCABULARY = 640


def layer_shapes(c):
    """The shape of one layer's (and one expert's) array, by what its name ends with."""
    hidden, heads, kv_heads = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"]
    dim = c.get("head_dim", hidden // heads)
    mlp = c["intermediate_size"]
    shapes = {
        "self_attention-query-kernel": (hidden, heads, dim),
        "self_attention-key-kernel": (hidden, kv_heads, dim),
        "self_attention-value-kernel": (hidden, kv_heads, dim),
        "self_attention-out-kernel": (heads, dim, hidden),
        "self_attention-query-bias": (heads, dim),
        "self_attention-key-bias": (kv_heads, dim),
        "self_attention-value-bias": (kv_heads, dim),
        "self_attention-query_norm-scale": (dim,),
        "self_attention-key_norm-scale": (dim,),
        "layer_norm-scale": (hidden,),
        "layernorm-scale": (hidden,),
        "decoder_norm-scale": (hidden,),
        "-mlp-wi_0-kernel": (hidden, mlp),
        "-mlp-wi_1-kernel": (hidden, mlp),
        "-mlp-wo-kernel": (mlp, hidden),
    }
    experts = c.get("num_experts", c.get("num_local_experts"))
    if experts:
        expert_mlp = c["moe_intermediate_size"]
        for block in ("moe_block", "routed_experts"):
            shapes[block + "-gate-kernel"] = (hidden, experts)
            shapes[block + "-wi_0"] = shapes[block + "-wi_1"] = (hidden, expert_mlp)
            shapes[block + "-wo"] = (expert_mlp, hidden)
    if c["model_type"] == "qwen3_next":
        shared = c["shared_expert_intermediate_size"]
        keys = c["linear_num_key_heads"] * c["linear_key_head_dim"]
        value_heads, value_dim = c["linear_num_value_heads"], c["linear_value_head_dim"]
        values = value_heads * value_dim
        shapes.update(
            {
                "attention-attention-query-kernel": (hidden, heads, 2 * dim),
                "attention-attention-key-kernel": (hidden, kv_heads, dim),
                "attention-attention-value-kernel": (hidden, kv_heads, dim),
                "attention-attention-out-kernel": (heads * dim, hidden),
                "attention-attention-query_norm-scale": (dim,),
                "attention-attention-key_norm-scale": (dim,),
                "in_proj_qkvz-kernel": (hidden, 2 * keys + 2 * values),
                "in_proj_ba-kernel": (hidden, 2 * value_heads),
                "conv1d-kernel": (c["linear_conv_kernel_dim"], 1, 2 * keys + values),
                "A_log": (value_heads,),
                "dt_bias": (value_heads,),
                "rms_norm-scale": (value_dim,),
                "out_proj-kernel": (values, hidden),
                "shared_expert-wi_0-kernel": (hidden, shared),
                "shared_expert-wi_1-kernel": (hidden, shared),
                "shared_expert-wo-kernel": (shared, hidden),
                "shared_expert_gate-kernel": (hidden, 1),
            }
        )
    return shapes


def flat(keys):
    return [name for key in keys for name in flat(key)] if isinstance(keys, list) else [keys]


def leaf_of(mt_key, keys, options, shapes, config, vocabulary):
    """The array that MaxText's model has under a name, as its type and shape."""
    if mt_key.endswith("token_embedder-embedding"):
        shape = (vocabulary, config["hidden_size"])
    elif mt_key.endswith("logits_dense-kernel"):
        shape = (config["hidden_size"], vocabulary)
    else:
        fitting = [suffix for suffix in shapes if mt_key.endswith(suffix)]
        (suffix,) = fitting  # one and no other
        shape = shapes[suffix]
    sizes = []  # of the stacked axes, outermost first
    level = keys
    while isinstance(level, list):
        sizes.append(len(level))
        level = level[0]
    of_experts = len(sizes) > 0 and ".experts." in flat(keys)[0]
    # Experts come first; layers, or blocks and the layers in them, at the scan axis.
    layers = sizes[1:] if of_experts else sizes
    axis = options.param_scan_axis - (1 if of_experts else 0)
    shape = shape[:axis] + tuple(layers) + shape[axis:] if layers else shape
    if of_experts:
        shape = (sizes[0],) + shape
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


def convert(directory, scanned, scan_axis=1, vocabulary=None):
    """MaxText's arrays by their names."""
    with open(os.path.join(directory, "config.json")) as file:
        config = json.load(file)
    tensors = {}
    for entry in sorted(os.listdir(directory)):
        if entry.endswith(".safetensors"):
            with safe_open(os.path.join(directory, entry), "flax") as file:
                tensors.update({name: file.get_tensor(name) for name in file.keys()})

    options = types.SimpleNamespace(
        scan_layers=scanned, param_scan_axis=scan_axis, inhomogeneous_layer_cycle_interval=CYCLE
    )
    model = MODELS[config["model_type"]]
    mapping = param_mapping.PARAM_MAPPING[model](config, options, scan_layers=scanned)
    hooks = param_mapping.HOOK_FNS[model](config, options, scan_layers=scanned, saving_to_hf=False)
    shapes = layer_shapes(config)
    unused, arrays = set(tensors), {}
    for mt_key, keys in mapping.items():
        present = [name in tensors for name in flat(keys)]
        if not any(present):
            continue  # the model has none: the mapping is for biased and normed ones alike
        assert all(present), f"{mt_key}: some of {keys} are missing"
        unused -= set(flat(keys))
        leaf = leaf_of(mt_key, keys, options, shapes, config, vocabulary or config["vocab_size"])
        arrays[mt_key] = jnp.asarray(
            tensor_handling.get_hf_loading_function(
                keys, tensors.__getitem__, hooks.get(mt_key), leaf, options, mt_key
            )()
        )
        assert arrays[mt_key].dtype == leaf.dtype, f"{mt_key} became {arrays[mt_key].dtype}"
        assert arrays[mt_key].shape == leaf.shape, f"{mt_key}: {arrays[mt_key].shape}, {leaf.shape}"
    if unused:
        sys.exit(f"MaxText did not use {len(unused)} names, among them {min(unused)}")
    return arrays, config


def main(out, directories):
    for directory in directories:
        path = os.path.join(out, os.path.basename(directory))
        arrays, config = convert(directory, scanned=False)
        save_file(arrays, path + ".unscanned")
        save_file(convert(directory, scanned=True)[0], path + ".scanned")
        if config["model_type"] in ("qwen2", "qwen3"):
            save_file(convert(directory, True, scan_axis=0)[0], path + ".scanned-at-0")
        if config["tie_word_embeddings"]:
            padded = convert(directory, False, vocabulary=PADDED_VOCABULARY)[0]
            save_file(padded, path + ".padded")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
