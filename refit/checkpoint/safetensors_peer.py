# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the Python safetensors library makes of files, for safetensors_peer_test.cc.

dump FILE OUT        the tensors of FILE as the library reads them: OUT.json lists name, dtype,
                     shape and bytes of each, OUT.bin has their bytes in that order
rewrite FILE OUT     the tensors of FILE, read and written to OUT by the library
save OUT             tensors of every numpy type, written by the library's numpy functions
check-views FILE     FILE holds "w" and views of it under the expressions that numpy has for them
format-index IN OUT  the JSON file IN as Hugging Face's libraries format an index
verdicts IN OUT      IN lists files; OUT gets "accepted" or "refused" for each
"""

import ctypes
import json
import sys

import numpy as np
import safetensors
import safetensors.numpy

# The library's writer takes types by these names. It has none for the F6 types.
WRITABLE = {
    "BOOL": "bool",
    "F4": "float4_e2m1fn_x2",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}

NUMPY_TYPES = """bool int8 uint8 int16 uint16 int32 uint32 int64 uint64
                 float16 float32 float64 complex64""".split()


def read(path):
    """The tensors of a file: a list of (name, {dtype, shape, data})."""
    with open(path, "rb") as f:
        return safetensors.deserialize(f.read())


def dump(path, out):
    entries = []
    with open(out + ".bin", "wb") as f:
        for name, tensor in read(path):
            f.write(tensor["data"])
            entries.append(
                {
                    "name": name,
                    "dtype": tensor["dtype"],
                    "shape": tensor["shape"],
                    "bytes": len(tensor["data"]),
                }
            )
    with open(out + ".json", "w") as f:
        json.dump(entries, f)


def rewrite(path, out):
    buffers = []  # keeps what the writer has addresses of
    specs = {}
    for name, tensor in read(path):
        shape = list(tensor["shape"])
        if tensor["dtype"] == "F4":
            shape[-1] //= 2  # the writer counts bytes in the last dimension, and doubles it
        buffer = ctypes.create_string_buffer(bytes(tensor["data"]), max(1, len(tensor["data"])))
        buffers.append(buffer)
        specs[name] = safetensors.TensorSpec(
            dtype=WRITABLE[tensor["dtype"]],
            shape=shape,
            data_ptr=ctypes.addressof(buffer),
            data_len=len(tensor["data"]),
        )
    with safetensors.safe_open(path, framework="np") as f:
        metadata = f.metadata()
    safetensors.serialize_file(specs, out, metadata=metadata)


def save(out):
    tensors = {}
    for i, dtype in enumerate(NUMPY_TYPES):
        for shape in [(), (3,), (2, 0, 5, 1), (4, 1, 7)]:
            values = np.arange(np.prod(shape, dtype=int)) * 37 + i
            tensors[f"layers.{i}.重み.{len(shape)}\n"] = values.reshape(shape).astype(dtype)
    safetensors.numpy.save_file(tensors, out, metadata={"format": "pt"})


def check_views(path):
    tensors = safetensors.numpy.load_file(path)
    w = tensors["w"]
    for expression, tensor in tensors.items():
        expected = eval(expression, {"w": w, "np": np})
        assert tensor.dtype == expected.dtype, expression
        assert np.array_equal(tensor, expected), expression


def format_index(path, out):
    with open(path) as f:
        index = json.load(f)
    with open(out, "w") as f:
        f.write(json.dumps(index, indent=2, sort_keys=True) + "\n")


def verdicts(list_path, out):
    with open(list_path) as f:
        paths = f.read().splitlines()
    with open(out, "w") as f:
        for path in paths:
            try:
                with safetensors.safe_open(path, framework="np"):
                    f.write("accepted\n")
            except safetensors.SafetensorError:
                f.write("refused\n")


if __name__ == "__main__":
    commands = {
        "dump": dump,
        "rewrite": rewrite,
        "save": save,
        "check-views": check_views,
        "format-index": format_index,
        "verdicts": verdicts,
    }
    commands[sys.argv[1]](*sys.argv[2:])
