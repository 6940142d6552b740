# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""What transformers makes of checkpoints and of config.json, for transformers_peer_test.

    transformers_peer.py state OUT DIRECTORY...
        loads each model, and saves its live state_dict() to the file OUT/NAME under its own names,
        NAME being the directory's; a tied head is saved beside its embedding
    transformers_peer.py config OUT DIRECTORY...
        reads each config.json, and writes it to OUT/NAME/config.json
"""

import json
import os
import sys

import transformers
from safetensors.torch import save_file


def state(directory, out):
    with open(os.path.join(directory, "config.json")) as file:
        architecture = json.load(file)["architectures"][0]
    model, info = getattr(transformers, architecture).from_pretrained(
        directory, dtype="auto", output_loading_info=True
    )
    # What it left out or made up would not be the checkpoint's.
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not info[kind], f"{directory}: {kind}: {info[kind]}"
    # Copies: the library refuses tensors that share memory.
    save_file({name: t.contiguous().clone() for name, t in model.state_dict().items()}, out)


def main(command, out, directories):
    for directory in directories:
        path = os.path.join(out, os.path.basename(directory))
        if command == "state":
            state(directory, path)
        elif command == "config":
            transformers.AutoConfig.from_pretrained(directory).save_pretrained(path)


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
