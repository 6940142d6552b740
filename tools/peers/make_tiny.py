# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes tiny checkpoints of every model family, in the layout that transformers publishes.

    tools/peers/make_tiny --family FAMILY --seed N [--max-shard-size SIZE] OUT
    tools/peers/make_tiny --family all --seed N OUT      # each family in a folder of its name
    tools/peers/make_tiny --list
    tools/peers/make_tiny --check DIRECTORY...

transformers builds the model and saves it; in between every tensor is given values of its own,
which depend on the seed and the tensor's name only (a tied head and embedding are one tensor). A
fresh model would hide mistakes: all its norms are equal, and so are its biases and scales, so that
two of them could be exchanged unseen. The scales are such that every tensor tells in what the model
answers. The same seed gives the same bytes.

SIZE is as in save_pretrained ("100KB"): a model larger than that becomes several files, and an
index. --check, which is also done after writing, fails when two tensors of a checkpoint have equal
bytes; an output head that is tied to the embedding may equal it.

A tokenizer of one token a word ("t0" to "t511") is written too: servers want one to start.
"""

import argparse
import collections
import hashlib
import json
import os
import sys

import torch
import transformers
from safetensors import safe_open
from tokenizers import Tokenizer, models, pre_tokenizers

VOCABULARY = 512
BASE = dict(
    vocab_size=VOCABULARY,
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=32,  # the smallest that vLLM's attention on a CPU takes
    max_position_embeddings=256,
    tie_word_embeddings=False,
    dtype="bfloat16",
)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)
# Two sliding layers, then one that sees everything, whose heads are wider.
GEMMA4 = dict(
    BASE,
    num_hidden_layers=6,
    layer_types=(["sliding_attention"] * 2 + ["full_attention"]) * 2,
    sliding_window=64,
    global_head_dim=128,  # not hidden_size, by which tunix tells axes apart
    tie_word_embeddings=True,
    hidden_size_per_layer_input=0,
    num_kv_shared_layers=0,
)
# As E2B: per-layer embeddings; the last layers use the keys and values of earlier ones, and have an
# MLP of twice the width.
GEMMA4_DENSE = dict(
    GEMMA4,
    hidden_size_per_layer_input=32,
    vocab_size_per_layer_input=VOCABULARY,
    num_kv_shared_layers=3,
    use_double_wide_mlp=True,
)
# As 26B-A4B: experts beside a dense MLP; the full-attention layers use their keys as values.
GEMMA4_MOE = dict(
    GEMMA4,
    enable_moe_block=True,
    num_experts=4,
    top_k_experts=2,
    moe_intermediate_size=32,
    attention_k_eq_v=True,
    num_global_key_value_heads=1,
)


def causal(config_class, **arguments):
    return lambda: transformers.AutoModelForCausalLM.from_config(config_class(**arguments))


def qwen3_next(num_hidden_layers):
    return causal(
        transformers.Qwen3NextConfig,
        **dict(BASE, num_hidden_layers=num_hidden_layers),
        **EXPERTS,
        shared_expert_intermediate_size=32,
        # vLLM's linear attention on a CPU takes no smaller heads.
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        linear_num_key_heads=1,
        linear_num_value_heads=2,
    )


def multimodal_gemma4(text):
    """The class that the published Gemma 4 checkpoints are of, without its towers."""

    def build():
        config = transformers.Gemma4Config(
            text_config=transformers.Gemma4TextConfig(**text),
            vision_config=None,
            audio_config=None,
            tie_word_embeddings=text["tie_word_embeddings"],
            dtype=text["dtype"],
        )
        return transformers.Gemma4ForConditionalGeneration(config)

    return build


TIED = dict(BASE, tie_word_embeddings=True)
FAMILIES = {
    "llama": causal(transformers.LlamaConfig, **BASE),
    "llama_tied": causal(transformers.LlamaConfig, **TIED),
    "qwen2": causal(transformers.Qwen2Config, **BASE),
    "qwen2_tied": causal(transformers.Qwen2Config, **TIED),
    "qwen3": causal(transformers.Qwen3Config, **BASE),
    "qwen3_tied": causal(transformers.Qwen3Config, **TIED),
    "qwen3_moe": causal(transformers.Qwen3MoeConfig, **BASE, **EXPERTS),
    "qwen3_next": qwen3_next(num_hidden_layers=4),
    # Trainers that stack layers stack blocks of four.
    "qwen3_next_two_blocks": qwen3_next(num_hidden_layers=8),
    "gemma4": causal(transformers.Gemma4TextConfig, **GEMMA4_DENSE),
    "gemma4_moe": causal(transformers.Gemma4TextConfig, **GEMMA4_MOE),
    "gemma4_multimodal": multimodal_gemma4(GEMMA4_DENSE),
    "gemma4_moe_multimodal": multimodal_gemma4(GEMMA4_MOE),
}


def add_shared_layers_keys(model, state):
    """Adds what the published multimodal checkpoints hold and the model does not: k_proj, v_proj
    and k_norm of the layers that share another layer's keys and values."""
    text = model.config.text_config
    shared = range(text.num_hidden_layers - text.num_kv_shared_layers, text.num_hidden_layers)
    for layer in shared:
        source = text.layer_types.index(text.layer_types[layer])
        for name in ("k_proj.weight", "v_proj.weight", "k_norm.weight"):
            prefix = "model.language_model.layers.{}.self_attn." + name
            state[prefix.format(layer)] = state[prefix.format(source)].clone()


def values(name, fresh, seed, attempt):
    """New values for the tensor `name`, which a fresh model gives the values `fresh`."""
    digest = hashlib.sha256(f"{seed}/{attempt}/{name}".encode()).digest()
    random = torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)
    if name.endswith(".A_log"):  # the logarithm of a decay
        return torch.empty(fresh.shape).uniform_(1, 16, generator=random).log()
    noise = torch.randn(fresh.shape, generator=random)
    if fresh.numel() > 0 and bool((fresh == fresh.flatten()[0]).all()):
        # A norm, a scale, a bias: around what it was.
        return fresh.flatten()[0].float() + 0.1 * noise
    return noise / fresh.shape[-1] ** 0.5


@torch.no_grad()
def refill(state, seed):
    """Gives every tensor of the state dictionary values of its own, in place."""
    seen, storages = set(), set()
    for name in sorted(state):
        tensor = state[name]
        if tensor.data_ptr() in storages:  # tied to one that was filled
            continue
        storages.add(tensor.data_ptr())
        fresh = tensor.clone()
        for attempt in range(100):  # one scalar of few bits is easily drawn twice
            tensor.copy_(values(name, fresh, seed, attempt))
            key = digest_of(tensor)
            if key not in seen:
                seen.add(key)
                break
        else:
            raise SystemExit(f"make_tiny: found no values for {name} that no other tensor has")


def digest_of(tensor):
    return hashlib.sha256(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()).digest()


def write_tokenizer(out):
    words = {f"t{i}": i for i in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="t0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="t0", bos_token="t1", eos_token="t2", pad_token="t3"
    ).save_pretrained(out)


def check(directory):
    """Returns what is wrong with the checkpoint, or None."""
    with open(os.path.join(directory, "config.json")) as file:
        tied = json.load(file).get("tie_word_embeddings", False)
    names = collections.defaultdict(list)
    for entry in sorted(os.listdir(directory)):
        if entry.endswith(".safetensors"):
            with safe_open(os.path.join(directory, entry), "pt") as file:
                for name in file.keys():
                    names[digest_of(file.get_tensor(name))].append(name)
    if not names:
        return "it holds no tensors"
    for equal in names.values():
        kinds = sorted(name.rsplit(".", 2)[-2] for name in equal)
        if len(equal) > 1 and not (tied and kinds == ["embed_tokens", "lm_head"]):
            return "these tensors have equal bytes: " + ", ".join(sorted(equal))
    return None


def write(family, seed, max_shard_size, out):
    torch.manual_seed(seed)
    model = FAMILIES[family]().to(torch.bfloat16).eval()
    state = model.state_dict()
    if family == "gemma4_multimodal":
        add_shared_layers_keys(model, state)
    refill(state, seed)
    model.save_pretrained(out, state_dict=state, max_shard_size=max_shard_size)
    write_tokenizer(out)


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    parser = argparse.ArgumentParser(
        prog="make_tiny",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--list", action="store_true", help="print the families' names")
    parser.add_argument("--check", action="store_true", help="check checkpoints that exist")
    parser.add_argument("--family", choices=[*FAMILIES, "all"])
    parser.add_argument("--seed", type=int)
    parser.add_argument("--max-shard-size", default="5GB")
    parser.add_argument("directory", nargs="*")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(FAMILIES))
        return
    directories = arguments.directory
    if not arguments.check:
        if arguments.family is None or arguments.seed is None or len(directories) != 1:
            parser.error("give --family, --seed and one directory; or --list, or --check")
        out = directories[0]
        if os.path.isdir(out) and os.listdir(out):
            parser.error(f"{out} is not empty")
        families = {arguments.family: out}
        if arguments.family == "all":
            families = {family: os.path.join(out, family) for family in FAMILIES}
        for family, directory in families.items():
            write(family, arguments.seed, arguments.max_shard_size, directory)
        directories = families.values()
    for directory in directories:
        if problem := check(directory):
            sys.exit(f"make_tiny: {directory}: {problem}")


if __name__ == "__main__":
    main()
