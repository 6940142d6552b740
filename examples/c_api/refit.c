/* Copyright 2026 The weight_sync Authors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A trainer in C: holds a tiny Qwen3 in tunix's layout, changes it step after step, and refits each
 * version into Hugging Face tensors in buckets of 4 KiB, as a transport would take them.
 *
 *   refit        prints a line for each version, and is 0 if every tensor arrived as it must
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weight_sync/c_api/weight_sync.h"

enum { kMaxArrays = 64, kBucketBytes = 4096, kVersions = 3 };

static const char kConfig[] =
    "{\"model_type\": \"qwen3\", \"hidden_size\": 64, \"num_hidden_layers\": 2,"
    " \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 16,"
    " \"intermediate_size\": 128, \"vocab_size\": 256, \"tie_word_embeddings\": false,"
    " \"dtype\": \"bfloat16\"}";

static char text[1024];
static ws_status status = {sizeof status, 0, text, sizeof text, 0};

/* Ends the program with what the library says. */
static void Must(int32_t code) {
  if (code == WS_OK) return;
  fprintf(stderr, "refit: error %d: %s\n", (int)code, text);
  exit(1);
}

/* The trainer's parameters. */
static int32_t count;
static ws_tensor parameters[kMaxArrays];
static unsigned char* values[kMaxArrays];
static int lent;

static void GiveBack(void* context) {
  (void)context;
  --lent;
}

static void DeclareParameters(ws_source* source) {
  ws_array arrays[kMaxArrays] = {{0}};
  count = ws_source_array_count(source);
  if (count > kMaxArrays) exit(1);
  for (int32_t i = 0; i < count; ++i) {
    parameters[i].struct_size = sizeof parameters[i];
    Must(ws_source_array(source, i, &parameters[i], &status));
    size_t bytes = 2;
    for (int32_t d = 0; d < parameters[i].rank; ++d) bytes *= (size_t)parameters[i].shape[d];
    values[i] = calloc(1, bytes);
    arrays[i].struct_size = sizeof arrays[i];
    arrays[i].name = parameters[i].name;
    arrays[i].dtype = "bfloat16";
    arrays[i].rank = parameters[i].rank;
    arrays[i].shape = parameters[i].shape;
  }
  Must(ws_source_declare(source, arrays, (size_t)count, &status));
  for (int32_t i = 0; i < count; ++i) { /* with their types and sizes now */
    Must(ws_source_array(source, i, &parameters[i], &status));
  }
}

static void BindParameters(ws_source* source, int64_t version) {
  ws_binding bindings[kMaxArrays] = {{0}};
  for (int32_t i = 0; i < count; ++i) {
    bindings[i].struct_size = sizeof bindings[i];
    bindings[i].name = parameters[i].name;
    bindings[i].data = values[i];
    bindings[i].dtype = parameters[i].dtype;
    bindings[i].rank = parameters[i].rank;
    bindings[i].shape = parameters[i].shape;
    bindings[i].release = GiveBack;
    ++lent;
  }
  Must(ws_source_bind(source, version, bindings, (size_t)count, &status));
}

static void OptimizerStep(ws_source* source) {
  ws_step* step;
  Must(ws_step_begin(source, &step, &status));
  for (int32_t i = 0; i < count; ++i) {
    for (int64_t b = 0; b < parameters[i].bytes; ++b) values[i][b] += (unsigned char)(b + i + 1);
  }
  ws_step_end(step);
}

/* The engine's table, with memory of its own for each tensor. */
static unsigned char** NewTable(const ws_source* source) {
  const int32_t tensors = ws_source_tensor_count(source);
  unsigned char** const table = calloc((size_t)tensors, sizeof *table);
  for (int32_t t = 0; t < tensors; ++t) {
    ws_tensor tensor = {sizeof tensor};
    Must(ws_source_tensor(source, t, &tensor, &status));
    table[t] = calloc(1, (size_t)tensor.bytes);
  }
  return table;
}

/* What the engine does with a bucket that arrives. */
static void Load(const ws_program* program, int32_t index, const unsigned char* slot,
                 unsigned char** table) {
  ws_bucket bucket = {sizeof bucket};
  Must(ws_program_bucket(program, index, &bucket, &status));
  for (int32_t p = 0; p < bucket.pieces; ++p) {
    ws_piece piece = {sizeof piece};
    Must(ws_program_piece(program, index, p, &piece, &status));
    memcpy(table[piece.tensor] + piece.tensor_offset, slot + piece.bucket_offset,
           (size_t)piece.bytes);
  }
}

/* How many tensors of the table are what the parameters say. */
static int CountRight(const ws_source* source, unsigned char** table) {
  int right = 0;
  for (int32_t t = 0; t < ws_source_tensor_count(source); ++t) {
    ws_tensor tensor = {sizeof tensor};
    char mine[WS_DIGEST_TEXT], theirs[WS_DIGEST_TEXT];
    Must(ws_source_tensor(source, t, &tensor, &status));
    Must(ws_source_digest(source, t, mine, &status));
    Must(ws_tensor_digest(&tensor, table[t], theirs, &status));
    right += strcmp(mine, theirs) == 0;
  }
  return right;
}

int main(void) {
  if (ws_abi_version() >> 16 != WS_ABI_MAJOR) return 1;
  ws_source_options options = {sizeof options};
  options.config_json = kConfig;
  options.layout = "tunix";
  ws_source* source;
  Must(ws_source_open(&options, &source, &status));
  DeclareParameters(source);

  ws_geometry geometry = {sizeof geometry, kBucketBytes, 64};
  ws_program* program;
  Must(ws_source_compile(source, &geometry, &program, &status));
  const int32_t buckets = ws_program_bucket_count(program);
  unsigned char** const table = NewTable(source);
  static unsigned char slot[kBucketBytes]; /* the only one: buckets come one after another */

  int wrong = 0;
  for (int64_t version = 1; version <= kVersions; ++version) {
    OptimizerStep(source);
    BindParameters(source, version);
    ws_refit* refit;
    Must(ws_refit_begin(program, version, 60.0, &refit, &status));
    for (int32_t b = 0; b < buckets; ++b) {
      Must(ws_refit_fill(refit, b, slot, sizeof slot, &status));
      Load(program, b, slot, table);
    }
    Must(ws_refit_unchanged(refit, &status));
    const int right = CountRight(source, table);
    ws_refit_end(refit); /* every parameter is given back */
    printf("version %d: %d buckets, %d of %d tensors verified, %d parameters lent\n", (int)version,
           (int)buckets, right, (int)ws_source_tensor_count(source), lent);
    wrong += right != ws_source_tensor_count(source) || lent != 0;
  }

  for (int32_t t = 0; t < ws_source_tensor_count(source); ++t) free(table[t]);
  free(table);
  for (int32_t i = 0; i < count; ++i) free(values[i]);
  ws_program_close(program);
  ws_source_close(source);
  return wrong;
}
