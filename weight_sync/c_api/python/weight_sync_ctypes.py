# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""libweight_sync.so from Python, by the standard library alone. weight_sync.h is the contract.

    source = Source("libweight_sync.so", layout="tunix", config="Qwen3-0.6B/config.json")
    source.declare(arrays)                      # a dict: path in the trainer's tree -> array
    tensors = source.refit(version, arrays)     # HF name -> Tensor, for torch.from_dlpack

Arrays are torch's tensors, parameters and DTensors, jax's, also over several devices, and whatever
has __dlpack__. None is copied, and refit() gives all back, also by an Error, so that jax can donate
them to the next step, which is made `with source.step():`. In a trainer of several processes each
passes job=dict(job=NAME, rank=R, size=N) to its Source, and rank 0 gets the tensors.
"""

import contextlib
import ctypes
from ctypes import POINTER, byref, c_double, c_size_t

I, L, S, P = ctypes.c_int32, ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p
D, _python, _libc = POINTER(L), ctypes.pythonapi, ctypes.CDLL(None)
_python.PyCapsule_GetPointer.restype = _libc.malloc.restype = P
_python.PyCapsule_New.restype = ctypes.py_object
_CAPSULE, _USED = S(b"dltensor_versioned"), S(b"used_dltensor_versioned")
Error, _FREE = type("Error", (RuntimeError,), {}), ctypes.cast(_libc.free, P)  # (code, text)


def _struct(**more):
    return type("S", (ctypes.Structure,), {"_fields_": [("struct_size", c_size_t), *more.items()]})


_Status = _struct(code=I, text=P, capacity=c_size_t, length=c_size_t)
_Options = _struct(config=S, config_json=S, layout=S, scanned=I, scan_axis=I, scan_period=L,
    target=S, manifest=S, checkpoint=S, snapshots=I, ranks=I, processes=P, job=P, copy_threads=I)
_Job = _struct(job=S, rank=I, size=I, endpoint=S, host=S, port=I)
_Info = _struct(name=S, dtype=S, rank=I, padded=I, shape=L * 8, bytes=L)
_Mesh = _struct(rank=I, names=POINTER(S), sizes=POINTER(I), ranks=POINTER(I))
_Sharding = _struct(mesh=POINTER(_Mesh), placements=POINTER(S), spec=POINTER(S))
_Array = _struct(name=S, dtype=S, rank=I, shape=D, strides=D, sharding=POINTER(_Sharding))
_Binding = _struct(name=S, mesh_rank=I, versioned=P, plain=P, memory=L * 8)
_Memory = _struct(data=P, dtype=S, rank=I, read_only=I, shape=D, strides=D, release=P, context=P)


def _make(struct, *values, **fields):
    fields = {n: v.encode() if isinstance(v, str) else v for n, v in fields.items()}
    return struct(ctypes.sizeof(struct), *values, **fields)


def _row(kind, items):
    return (kind * len(items))(*[str(i).encode() if kind is S else i for i in items])


def _shards(array):
    """How it is cut, if it is, and what of it is here: pairs of a rank in the mesh and an array."""
    if hasattr(array, "to_local"):  # DTensor
        mesh, names = array.device_mesh.mesh, array.device_mesh.mesh_dim_names
        names, ranks = names or range(mesh.ndim), mesh.flatten().tolist()
        cut = dict(placements=_row(S, array.placements))
        parts = [(array.device_mesh.get_rank(), array.to_local())]
    elif len(getattr(array, "addressable_shards", ())) > 1:  # jax, by a NamedSharding
        names, mesh = array.sharding.mesh.axis_names, array.sharding.mesh.devices
        ranks, spec = range(mesh.size), [*array.sharding.spec, *[None] * array.ndim][: array.ndim]
        cut = dict(spec=_row(S, [",".join(a) if isinstance(a, tuple) else a or "" for a in spec]))
        parts = [(list(mesh.flat).index(s.device), s.data) for s in array.addressable_shards]
    else:
        return None, [(0, array)]
    mesh = _make(_Mesh, mesh.ndim, _row(S, names), _row(I, mesh.shape), _row(I, ranks))
    return ctypes.pointer(_make(_Sharding, ctypes.pointer(mesh), **cut)), parts


class Tensor:  # in memory of its own, which __dlpack__ hands over, once
    def __init__(self, source, info):
        self.source, self.dtype, self.shape = source, info.dtype, info.shape[: info.rank]
        self.bytes, self.data = info.bytes, _libc.malloc(c_size_t(info.bytes or 1))

    __dlpack_device__ = lambda self: (1, 0)

    def __dlpack__(self, **_):
        data, self.data, shape = self.data, None, _row(L, self.shape)
        memory = _make(_Memory, data, self.dtype, len(shape), 0, shape, None, _FREE, data)
        return _python.PyCapsule_New(self.source.make("ws_lend", byref(memory)), _CAPSULE, None)

    def __del__(self):
        _libc.free(P(self.data))


class Source:
    def __init__(self, library, job=None, **options):
        self.so, self.handle, self.program = ctypes.CDLL(library), None, None
        assert self.so.ws_abi_version() >> 16 == 1, f"{library} has another ABI"
        met = job and self.make("ws_communicator_connect", byref(_make(_Job, **job)), c_double(600))
        self.handle = self.make("ws_source_open", byref(_make(_Options, job=met, **options)))
        self.so.ws_communicator_close(met)
        self.rank = job["rank"] if job else 0

    def call(self, function, *arguments):
        text = ctypes.create_string_buffer(4096)
        status = _make(_Status, 0, ctypes.addressof(text), len(text))
        if self.so[function](*arguments, byref(status)):
            raise Error(status.code, text.value.decode())

    def make(self, function, *arguments):
        self.call(function, *arguments, byref(made := P()))
        return made

    def declare(self, arrays):
        specs = (_Array * len(arrays))()
        for i, (path, array) in enumerate(arrays.items()):
            sharding, [(_, part), *_] = _shards(array)
            strides = _row(L, part.stride()) if hasattr(part, "stride") else None  # row-major
            specs[i] = _make(_Array, path.encode(), str(array.dtype).encode(), array.ndim,
                             _row(L, array.shape), strides, sharding)
        self.call("ws_source_declare", self.handle, specs, c_size_t(len(specs)))
        self.program = self.make("ws_source_compile", self.handle, None)

    def bind(self, version, arrays):
        parts = [(p.encode(), *part) for p, array in arrays.items() for part in _shards(array)[1]]
        ready = lambda a: getattr(a, "detach", getattr(a, "block_until_ready", lambda: a))()
        capsules = [ctypes.py_object(ready(a).__dlpack__(max_version=(1, 3))) for *_, a in parts]
        tensors = [_python.PyCapsule_GetPointer(capsule, _CAPSULE) for capsule in capsules]
        for capsule in capsules:
            _python.PyCapsule_SetName(capsule, _USED)  # the tensor is the library's from here on
        lent = _row(_Binding, [_make(_Binding, p, r, t) for (p, r, _), t in zip(parts, tensors)])
        self.call("ws_source_bind", self.handle, L(version), lent, c_size_t(len(lent)))

    def refit(self, version, arrays, timeout=60.0):
        tensors, refit, info = {}, None, _make(_Info)
        try:
            self.bind(version, arrays)
            if self.rank != 0:
                self.call("ws_refit_contribute", self.program, L(version), c_double(timeout))
                return tensors
            refit = self.make("ws_refit_begin", self.program, L(version), c_double(timeout))
            for i in range(self.so.ws_source_tensor_count(self.handle)):
                self.call("ws_source_tensor", self.handle, i, byref(info))
                tensor = tensors[info.name.decode()] = Tensor(self, info)
                self.call("ws_refit_fill", refit, i, P(tensor.data), L(tensor.bytes))
            self.call("ws_refit_unchanged", refit)
            return tensors
        finally:
            self.so.ws_refit_end(refit)
            self.so.ws_source_release(self.handle, None)  # where it did not begin

    def step(self):
        step = contextlib.ExitStack()
        step.callback(self.so.ws_step_end, self.make("ws_step_begin", self.handle))
        return step

    def __del__(self):
        self.so.ws_program_close(self.program)
        self.so.ws_source_close(self.handle)
