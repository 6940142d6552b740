# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""What tunix makes of checkpoints, for tunix_peer_test.

    tunix_peer.py [--mode MODE] OUT DIRECTORY...

Each directory's model is loaded by tunix's own loader, and its parameters are saved to OUT/NAME, a
file in the safetensors format, under tunix's own paths, NAME being the directory's.

tunix leaves out names that it does not know, and in its mode "original" also arrays that no name
gives, without a word. So it is an error here if a name of the checkpoint was not used, or an array
has no values.
"""

import argparse
import json
import os
import sys

import jax
import jax.numpy as jnp
from flax import nnx
from safetensors import safe_open
from safetensors.flax import save_file
from tunix.models import safetensors_loader
from tunix.models.gemma4 import model as gemma4_model
from tunix.models.gemma4 import params_safetensors as gemma4_params
from tunix.models.llama3 import model as llama3_model
from tunix.models.llama3 import params as llama3_params
from tunix.models.qwen2 import model as qwen2_model
from tunix.models.qwen2 import params as qwen2_params
from tunix.models.qwen3 import model as qwen3_model
from tunix.models.qwen3 import params as qwen3_params
from tunix.utils import torch_utils


def decoder(config, tied):
    """What tunix's three dense models call alike."""
    return dict(
        num_layers=config["num_hidden_layers"],
        vocab_size=config["vocab_size"],
        embed_dim=config["hidden_size"],
        hidden_dim=config["intermediate_size"],
        num_heads=config["num_attention_heads"],
        head_dim=config.get("head_dim", config["hidden_size"] // config["num_attention_heads"]),
        num_kv_heads=config["num_key_value_heads"],
        rope_theta=10000,
        norm_eps=1e-6,
        **{tied: config["tie_word_embeddings"]},
    )


def llama3(config):
    return llama3_params, llama3_model.ModelConfig(**decoder(config, "weight_tying"))


def qwen2(config):
    return qwen2_params, qwen2_model.ModelConfig(**decoder(config, "use_tied_embedding"))


def qwen3(config):
    sizes = decoder(config, "use_tied_embedding")
    if config["model_type"] == "qwen3_moe":
        sizes.update(
            hidden_dim=config["moe_intermediate_size"],  # of an expert
            num_experts=config["num_local_experts"],
            num_experts_per_tok=config["num_experts_per_tok"],
        )
    return qwen3_params, qwen3_model.ModelConfig(**sizes)


def gemma4(config):
    full = next(iter(config["per_layer_config"].values()))  # a full-attention layer's own sizes
    kinds = gemma4_model.AttentionType
    moe = {}
    if config["enable_moe_block"]:
        moe = dict(
            enable_moe=True,
            num_experts=config["num_experts"],
            num_experts_per_tok=config["top_k_experts"],
            expert_dim=config["moe_intermediate_size"],
            moe_dense_hidden_dim=config["intermediate_size"],
        )
    return gemma4_params, gemma4_model.ModelConfig(
        num_layers=config["num_hidden_layers"],
        num_embed=config["vocab_size"],
        embed_dim=config["hidden_size"],
        hidden_dim=config["intermediate_size"],
        num_heads=config["num_attention_heads"],
        head_dim=config["head_dim"],
        num_kv_heads=config["num_key_value_heads"],
        sliding_window_size=config["sliding_window"],
        per_layer_input_dim=config["hidden_size_per_layer_input"],
        num_global_kv_heads=full.get("num_key_value_heads"),
        global_key_size=full["head_dim"],
        attention_pattern=tuple(
            kinds.GLOBAL if kind == "full_attention" else kinds.LOCAL_SLIDING
            for kind in config["layer_types"]
        ),
        frac_shared_layers=config["num_kv_shared_layers"] / config["num_hidden_layers"],
        k_eq_v_global=config["attention_k_eq_v"],
        override_kv_shared_ffw_hidden=(
            2 * config["intermediate_size"] if config["use_double_wide_mlp"] else None
        ),
        **moe,
    )


MODELS = {
    "llama": llama3,
    "qwen2": qwen2,
    "qwen3": qwen3,
    "qwen3_moe": qwen3,
    "gemma4_text": gemma4,
}


def published_names(directory):
    names = set()
    for entry in os.listdir(directory):
        if entry.endswith(".safetensors"):
            with safe_open(os.path.join(directory, entry), "numpy") as file:
                names.update(file.keys())
    return names


def load(directory, mode):
    """Returns tunix's model, and the names of the checkpoint that it has a place for."""
    with open(os.path.join(directory, "config.json")) as file:
        config = json.load(file)
    config = config.get("text_config", config)
    params, model_config = MODELS[config["model_type"]](config)

    used = set()
    original = torch_utils.torch_key_to_jax_key

    def recorded(mapping, name):
        found = original(mapping, name)  # ValueError: the name is left out
        used.add(name)
        return found

    # The loader's two modes know the function by two names.
    torch_utils.torch_key_to_jax_key = safetensors_loader.torch_key_to_jax_key = recorded
    try:
        model = params.create_model_from_safe_tensors(
            directory, model_config, dtype=jnp.bfloat16, mode=mode
        )
    finally:
        torch_utils.torch_key_to_jax_key = safetensors_loader.torch_key_to_jax_key = original
    return model, used


def save(directory, mode, out):
    """Saves tunix's tree. Returns what is wrong with it, or None."""
    model, used = load(directory, mode)
    tree = {}
    for path, leaf in nnx.state(model).flat_state():
        tree[".".join(map(str, path))] = leaf.get_value()
    abstract = [name for name, value in tree.items() if not isinstance(value, jax.Array)]
    if abstract:
        return f"{len(abstract)} arrays have no values, among them {min(abstract)}"
    unused = published_names(directory) - used
    if unused:
        return f"{len(unused)} names were not used, among them {min(unused)}"
    save_file(tree, out)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="optimized")  # tunix's default, or "original"
    parser.add_argument("out")
    parser.add_argument("directories", nargs="+")
    arguments = parser.parse_args()
    failed = False
    for directory in arguments.directories:
        name = os.path.basename(directory)
        if problem := save(directory, arguments.mode, os.path.join(arguments.out, name)):
            print(f"{name}: {problem}")
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
