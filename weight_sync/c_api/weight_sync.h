/* Copyright 2026 The weight_sync Authors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * libweight_sync.so: a trainer's parameters, in the layout and the memory that they have, refitted
 * into Hugging Face tensors in the caller's memory, from any language. Plain C (C99, C++), no
 * Python.
 *
 *   open     a model's config.json and a layout become a source: which arrays the trainer must
 *            have, and which tensors come out
 *   declare  what the trainer's arrays are: names, shapes, types, shards. Once
 *   compile  for buckets of a size. Once
 *   bind     where the arrays of a version are, before each refit. Nothing is compiled again. They
 *            are borrowed: each is given back exactly once, whatever fails
 *   refit    begin, fill each bucket, ask whether it is unchanged, end: gives all arrays back
 *   step     opened around everything that writes the arrays, by the trainer
 *
 * Codes and text. A function that can fail returns a code, WS_OK (0) or another of ws_code, and if
 * `status` is not NULL writes the code and a text there, which names the setting, array, file or
 * bucket. Other out-parameters are written only on WS_OK. No exception comes out.
 *
 * Growth. A struct begins with struct_size, which the caller sets to sizeof of it; what a smaller
 * one lacks is as zero, and zero is the default of every field. New functions and fields come at
 * the end and raise the minor version; a field that this library does not know and that is not zero
 * is refused (WS_UNIMPLEMENTED). Anything else raises the major version and the name of the
 * symbols' version.
 *
 * Threads. One thread at a time uses a source, its programs and its refit. Steps may begin and end
 * on any thread at any time. Different sources, and all other functions, are independent.
 *
 * Memory. Strings and arrays that are passed in are copied, except the memory of the parameters.
 * Strings that come out belong to the source and live until it is closed. Handles may be closed in
 * any order; closing NULL does nothing.
 *
 *   char text[1024];
 *   ws_status status = {sizeof status, 0, text, sizeof text, 0};
 *   ws_source_options options = {sizeof options};
 *   options.config_path = "/models/Qwen3-0.6B/config.json";
 *   options.layout = "hf-fused";
 *   ws_source* source;
 *   if (ws_source_open(&options, &source, &status) != WS_OK) return Fail(text);
 *   if (ws_source_declare(source, arrays, count, &status) != WS_OK) return Fail(text);
 *
 *   ws_geometry geometry = {sizeof geometry, 1 << 20, 64};
 *   ws_program* program;
 *   if (ws_source_compile(source, &geometry, &program, &status) != WS_OK) return Fail(text);
 *
 *   for (int64_t version = 1;; ++version) {
 *     if (ws_source_bind(source, version, bindings, count, &status) != WS_OK) return Fail(text);
 *     ws_refit* refit;
 *     if (ws_refit_begin(program, version, 60.0, &refit, &status) != WS_OK) return Fail(text);
 *     for (int32_t b = 0; b < ws_program_bucket_count(program); ++b) {
 *       if (ws_refit_fill(refit, b, slot, sizeof slot, &status) != WS_OK) return Fail(text);
 *       Send(slot);
 *     }
 *     if (ws_refit_unchanged(refit, &status) == WS_OK) Publish(version);
 *     ws_refit_end(refit);                                   // every array is given back
 *
 *     ws_step* step;
 *     if (ws_step_begin(source, &step, &status) != WS_OK) return Fail(text);
 *     OptimizerStep();
 *     ws_step_end(step);
 *   }
 *
 * A whole program is examples/c_api/refit.c; from Python, python/weight_sync_ctypes.py. */

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_C_API_WEIGHT_SYNC_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_C_API_WEIGHT_SYNC_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WS_API __attribute__((visibility("default")))
#else
#define WS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WS_ABI_MAJOR 1
#define WS_ABI_MINOR 1
#define WS_MAX_RANK 8

/* Of dlpack.h (https://github.com/dmlc/dlpack): not needed to compile this, nor in its way. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

typedef struct ws_communicator ws_communicator; /* how the processes of a trainer meet */
typedef struct ws_source ws_source;             /* parameters, seen as Hugging Face tensors */
typedef struct ws_program ws_program;           /* how its buckets are filled */
typedef struct ws_refit ws_refit;               /* one refit, from begin to end */
typedef struct ws_step ws_step;                 /* one optimizer step */

/* Each means one thing; the values are those of gRPC's status codes. */
typedef enum ws_code {
  WS_OK = 0,
  WS_INVALID_ARGUMENT = 3,    /* the caller's mistake */
  WS_DEADLINE_EXCEEDED = 4,   /* a wait did not end in time */
  WS_NOT_FOUND = 5,           /* a file or a name that is not there */
  WS_RESOURCE_EXHAUSTED = 8,  /* memory */
  WS_FAILED_PRECONDITION = 9, /* not now: something else must come first */
  WS_ABORTED = 10,            /* the parameters changed meanwhile, or another rank failed */
  WS_UNIMPLEMENTED = 12,      /* not supported */
  WS_INTERNAL = 13,           /* a fault of this library */
  WS_UNAVAILABLE = 14,        /* another rank is lost */
  WS_DATA_LOSS = 15           /* bytes are not what they must be */
} ws_code;

typedef struct ws_status {
  size_t struct_size;
  int32_t code;         /* written: of ws_code */
  char* text;           /* the caller's memory, or NULL: the error, cut to fit, with a closing 0 */
  size_t text_capacity; /* bytes of it */
  size_t text_length;   /* written: bytes of the whole error, without the closing 0 */
} ws_status;

/* (major << 16) | minor of the library: the major must be WS_ABI_MAJOR, the minor at least what the
 * caller uses. */
WS_API uint32_t ws_abi_version(void);

/* ---- Trainers of several processes -------------------------------------------------------------
 *
 * Parameters that are sharded over several processes are refitted by all of them together. Each
 * process makes the same source with a communicator of its own, declares and compiles the same, and
 * binds its own shards. Then process 0 refits, and the others call ws_refit_contribute. (What lies on
 * a mesh of some of the processes, whole on each such mesh, is declared as each process has it, like
 * torch's parameters that tensor parallelism leaves alone; process 0's mesh gives it.) An error, a
 * step or a death on one of them fails the refit on all, and the text says which; so a process that
 * could not bind calls ws_refit_begin or ws_refit_contribute all the same. No tensor is whole on
 * the way. */

typedef struct ws_communicator_options {
  size_t struct_size;
  const char* job; /* the same on all processes, and no other job's */
  int32_t rank;
  int32_t size;
  /* All on one machine: the path of a unix socket in a folder of this user alone. NULL: one that
   * the job's name gives. */
  const char* endpoint;
  /* Or on several machines: where process 0 listens, by TCP without encryption or secret. Give it
   * an address of a private network. */
  const char* host;
  int32_t port;
} ws_communicator_options;

/* Returns when all have come; WS_DEADLINE_EXCEEDED names those that are missing. */
WS_API int32_t ws_communicator_connect(const ws_communicator_options* options,
                                       double timeout_seconds, ws_communicator** communicator,
                                       ws_status* status);
/* Sources that have it go on. */
WS_API void ws_communicator_close(ws_communicator* communicator);

/* ---- Sources --------------------------------------------------------------------------------- */

typedef struct ws_source_options {
  size_t struct_size;
  /* The model's config.json: its path, or its text. */
  const char* config_path;
  const char* config_json;
  /* How the trainer lays its parameters out: "hf", "hf-fused" (transformers in memory: stacked
   * experts), "tunix" or "maxtext". */
  const char* layout;
  /* 1: layers are stacked (MaxText's scan_layers), on this axis, 0 or 1 (param_scan_axis), and
   * repeat after so many layers (0: after one). */
  int32_t scanned;
  int32_t scan_axis;
  int64_t scan_period;
  /* The form that the engine takes: "hf", the published one, or "hf-fused". NULL: the manifest's,
   * else "hf". */
  const char* target;
  /* What the published checkpoint holds, as ws_source_info_json writes it. */
  const char* manifest_json;
  /* The published checkpoint, a file or a directory: the manifest, if there is no manifest_json,
   * and where tensors come from that no trainer holds. */
  const char* checkpoint;
  /* 1: a refit's begin copies the arrays, for the price of their size in memory, and gives them
   * back. The refit reads the copy; steps neither fail it nor wait for it. */
  int32_t snapshots;
  /* The process that has each of so many mesh ranks. NULL: with a communicator each rank is a
   * process, without one all are of this process. */
  int32_t mesh_ranks;
  const int32_t* process_of_rank;
  /* NULL: this process has all there is. */
  const ws_communicator* communicator;
  /* Since 1.1: how many threads copy a bucket together, the caller's among them; 0: the caller's
   * alone. More pay where cores are idle and buckets are of megabytes. */
  int32_t copy_threads;
} ws_source_options;

WS_API int32_t ws_source_open(const ws_source_options* options, ws_source** source,
                              ws_status* status);
/* Gives back what is bound, unless a refit is open, which then does it at its end. */
WS_API void ws_source_close(ws_source* source);

/* A tensor or an array: what it is, not where. */
typedef struct ws_tensor {
  size_t struct_size;
  const char* name;
  const char* dtype; /* "BF16"; NULL for an array before it is declared */
  int32_t rank;
  int32_t padded;             /* of an array: bit d is set where dimension d may be longer */
  int64_t shape[WS_MAX_RANK]; /* zeros behind the rank */
  int64_t bytes;              /* 0 where the type is not known */
} ws_tensor;

/* What the engine gets, in order. */
WS_API int32_t ws_source_tensor_count(const ws_source* source);
WS_API int32_t ws_source_tensor(const ws_source* source, int32_t index, ws_tensor* tensor,
                                ws_status* status);

/* What the trainer must have. */
WS_API int32_t ws_source_array_count(const ws_source* source);
WS_API int32_t ws_source_array(const ws_source* source, int32_t index, ws_tensor* array,
                               ws_status* status);

/* The tensors as JSON: {"model.norm.weight": [[1024], "BF16"], ...}. Writes at most `capacity`
 * bytes to `text`, the last a 0, and to `length` the bytes of the whole without that 0: call it
 * with capacity 0 to learn how much it takes. */
WS_API int32_t ws_source_info_json(const ws_source* source, char* text, size_t capacity,
                                   size_t* length, ws_status* status);

/* ---- Arrays ---------------------------------------------------------------------------------- */

/* Ranks in dimensions, as torch's DeviceMesh or jax's Mesh. */
typedef struct ws_mesh {
  size_t struct_size;
  int32_t rank;             /* how many dimensions */
  const char* const* names; /* one each */
  const int32_t* sizes;     /* one each */
  const int32_t* ranks;     /* row-major, one for each place; NULL: 0, 1, 2, ... */
} ws_mesh;

/* Which part of an array each rank holds: one of the two. */
typedef struct ws_sharding {
  size_t struct_size;
  const ws_mesh* mesh;
  /* One a mesh dimension, as torch's str() or repr() of them: "R", "S(0)", "_S(0, 2)",
   * "Shard(dim=0)". */
  const char* const* placements;
  /* jax's, one a dimension of the array: names of mesh dimensions, the major one first, with commas
   * between; NULL or "": it is not cut. */
  const char* const* partition_spec;
} ws_sharding;

/* An array by its name in the layout, or by its path in the trainer's tree with any of . / - [ ]
 * and quotes between the parts, with or without a last part "value": "layers.0.attn.q_proj.w",
 * "layers/0/attn/q_proj/w", "['layers'][0]['attn']['q_proj']['w'].value". */
typedef struct ws_array {
  size_t struct_size;
  const char* name;
  const char* dtype; /* "BF16", "bfloat16", "torch.bfloat16" */
  int32_t rank;
  const int64_t* shape; /* of the whole array, also where it is sharded */
  /* In elements; NULL: row-major, as shards must be, and all arrays of a source with shards. */
  const int64_t* strides;
  const ws_sharding* sharding; /* NULL: it is whole; where there are several processes, on each */
} ws_array;

/* All arrays, in any order. WS_INVALID_ARGUMENT lists what is missing, unknown, given twice, or of
 * another shape. */
WS_API int32_t ws_source_declare(ws_source* source, const ws_array* arrays, size_t count,
                                 ws_status* status);

/* Where an array is, or one shard of it: a loan, until it is given back. */
typedef struct ws_binding {
  size_t struct_size;
  const char* name;
  int32_t mesh_rank; /* of a sharded array: whose shard this is */
  /* One of these, which is given back by its own deleter (whoever made it must not call it), */
  struct DLManagedTensorVersioned* dlpack;
  struct DLManagedTensor* dlpack_unversioned;
  /* or memory, which is given back by calling release(context), unless that is NULL. */
  void (*release)(void* context);
  void* context;
  const void* data;
  int64_t byte_offset; /* from data to the first element */
  const char* dtype;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides; /* in elements; NULL: row-major */
} ws_binding;

/* All arrays of this version, in any order, as they were declared; of sharded ones, what this
 * process holds. Whatever was bound before is given back first. Where it fails, everything is given
 * back, also what it was called with, and nothing is bound; except that it takes nothing if
 * struct_size is too small. Arrays are given back on the thread of the call that does it. */
WS_API int32_t ws_source_bind(ws_source* source, int64_t version, const ws_binding* bindings,
                              size_t count, ws_status* status);

/* Gives back what is bound. WS_FAILED_PRECONDITION while a refit is open. */
WS_API int32_t ws_source_release(ws_source* source, ws_status* status);

/* ---- Refits ---------------------------------------------------------------------------------- */

typedef struct ws_geometry {
  size_t struct_size;
  int64_t
      bucket_bytes;  /* a multiple of the alignment; tensors follow one another, and are cut where a
                           bucket is full */
  int64_t alignment; /* a power of two of at least 8; 0: 64 */
} ws_geometry;

/* After ws_source_declare; of the arrays it needs no byte. With geometry NULL each tensor is whole
 * in a bucket of its own, bucket i being tensor i. */
WS_API int32_t ws_source_compile(ws_source* source, const ws_geometry* geometry,
                                 ws_program** program, ws_status* status);
WS_API void ws_program_close(ws_program* program);

typedef struct ws_bucket {
  size_t struct_size;
  int64_t bytes;
  int32_t pieces;
} ws_bucket;

/* Bytes of a tensor, in row-major order without gaps, and where they are in the bucket. */
typedef struct ws_piece {
  size_t struct_size;
  int32_t tensor; /* index for ws_source_tensor */
  int64_t tensor_offset;
  int64_t bucket_offset;
  int64_t bytes;
} ws_piece;

WS_API int32_t ws_program_bucket_count(const ws_program* program);
WS_API int32_t ws_program_bucket(const ws_program* program, int32_t index, ws_bucket* bucket,
                                 ws_status* status);
WS_API int32_t ws_program_piece(const ws_program* program, int32_t bucket, int32_t index,
                                ws_piece* piece, ws_status* status);

/* One at a time for a source. WS_ABORTED while a step is open, WS_FAILED_PRECONDITION unless arrays
 * of this version are bound; they stay bound then. Whatever the refit waits for ends within
 * `timeout_seconds`. */
WS_API int32_t ws_refit_begin(ws_program* program, int64_t version, double timeout_seconds,
                              ws_refit** refit, ws_status* status);

/* Writes the bucket's pieces to `memory`, which has room for `bytes`; what lies between them keeps
 * what it held. Buckets are filled in order, 0 first. */
WS_API int32_t ws_refit_fill(ws_refit* refit, int32_t bucket, void* memory, int64_t bytes,
                             ws_status* status);

/* WS_ABORTED if a step began since the refit did: what was filled may be of two versions, and must
 * not be used. Ask it after the last fill and before anything is published. */
WS_API int32_t ws_refit_unchanged(ws_refit* refit, ws_status* status);

/* Gives all arrays back. */
WS_API void ws_refit_end(ws_refit* refit);

/* What a process other than 0 does instead of all of these: its part of the refit that process 0
 * makes of this version. Returns when that asks whether it is unchanged, with the same answer, or
 * has failed. Gives all arrays back, also where it fails. */
WS_API int32_t ws_refit_contribute(ws_program* program, int64_t version, double timeout_seconds,
                                   ws_status* status);

/* ---- Steps ----------------------------------------------------------------------------------- */

/* At once. A refit that is open fails, and the next one carries the new weights. */
WS_API int32_t ws_step_begin(ws_source* source, ws_step** step, ws_status* status);
/* When no refit is open, and so fails none; WS_DEADLINE_EXCEEDED if that takes longer. */
WS_API int32_t ws_step_begin_after_refits(ws_source* source, double timeout_seconds, ws_step** step,
                                          ws_status* status);
WS_API void ws_step_end(ws_step* step);

/* ---- Verification ---------------------------------------------------------------------------- */

#define WS_DIGEST_TEXT 33 /* 32 hexadecimal digits and a 0 */

/* The digest of a tensor of the arrays that are bound, by a path that shares nothing with filling.
 * Of sharded ones on process 0 and while a refit is open. */
WS_API int32_t ws_source_digest(const ws_source* source, int32_t tensor,
                                char digest[WS_DIGEST_TEXT], ws_status* status);
/* The same of a tensor that arrived: its name, type and shape, and its row-major bytes. */
WS_API int32_t ws_tensor_digest(const ws_tensor* tensor, const void* data,
                                char digest[WS_DIGEST_TEXT], ws_status* status);

/* ---- Tensors for others ---------------------------------------------------------------------- */

typedef struct ws_memory {
  size_t struct_size;
  void* data;
  const char* dtype;
  int32_t rank;
  int32_t read_only; /* 1: the consumer may not write */
  const int64_t* shape;
  const int64_t* strides; /* in elements; NULL: row-major */
  void (*release)(
      void* context); /* NULL, or called once: when the consumer is done, on any thread; or
                                     at once if lending fails */
  void* context;
} ws_memory;

/* Memory as a DLPack tensor, for a consumer that then owns it. */
WS_API int32_t ws_lend(const ws_memory* memory, struct DLManagedTensorVersioned** tensor,
                       ws_status* status);
/* For consumers that know no versions. Memory that may not be written is refused: it cannot say
 * so. */
WS_API int32_t ws_lend_unversioned(const ws_memory* memory, struct DLManagedTensor** tensor,
                                   ws_status* status);

#ifdef __cplusplus
}
#endif

#endif /* WEIGHT_SYNC_WEIGHT_SYNC_C_API_WEIGHT_SYNC_H_ */
