# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""What other libraries say of tiny checkpoints, for make_tiny_peer_test.

    dump OUT DIRECTORY...      OUT.json, OUT.bin: names, types, shapes and bytes, by safetensors
    load DIRECTORY...          transformers loads each, uses all of its tensors and no others, and
                               answers with finite numbers; a line for each: its greedy tokens
    fresh DIRECTORY            a model as transformers initialises it, not refilled
"""

import glob
import json
import os
import sys

import torch
import transformers
from safetensors import safe_open


def dump(out, directories):
    checkpoints = {}
    with open(out + ".bin", "wb") as data:
        for directory in directories:
            entries = checkpoints[directory] = []
            for path in sorted(glob.glob(os.path.join(directory, "*.safetensors"))):
                with safe_open(path, "pt") as file:
                    for name in file.keys():
                        tensor = file.get_tensor(name).contiguous()
                        dtype = file.get_slice(name).get_dtype()
                        offset = data.tell()
                        data.write(tensor.view(-1).view(torch.uint8).numpy().tobytes())
                        entry = dict(name=name, dtype=dtype, shape=list(tensor.shape))
                        entries.append(dict(entry, begin=offset, end=data.tell()))
    with open(out + ".json", "w") as file:
        json.dump(checkpoints, file)


@torch.no_grad()
def load(directory):
    with open(os.path.join(directory, "config.json")) as file:
        architecture = json.load(file)["architectures"][0]
    model, info = getattr(transformers, architecture).from_pretrained(
        directory, output_loading_info=True
    )
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not info[kind], f"{directory}: {kind}: {info[kind]}"
    prompt = torch.tensor([[5, 6, 7, 8, 9]])
    assert model(prompt).logits.isfinite().all(), f"{directory}: logits are not finite"
    tokens = model.generate(prompt, max_new_tokens=12, min_new_tokens=12, do_sample=False)
    print(" ".join(map(str, tokens[0, 5:].tolist())))


def fresh(directory):
    config = transformers.Qwen3Config(
        vocab_size=512,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
    )
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(directory)


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    command, *arguments = sys.argv[1:]
    if command == "dump":
        dump(arguments[0], arguments[1:])
    elif command == "load":
        for argument in arguments:
            load(argument)
    elif command == "fresh":
        fresh(*arguments)
