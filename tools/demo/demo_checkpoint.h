// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The checkpoint that the demo syncs: one that it makes, or any safetensors checkpoint.

#ifndef WEIGHT_SYNC_TOOLS_DEMO_DEMO_CHECKPOINT_H_
#define WEIGHT_SYNC_TOOLS_DEMO_DEMO_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fakes/parameters.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/refit_info.h"

namespace weight_sync::demo {

// What MakeCheckpoint writes, in a person's words.
inline constexpr char kMadeCheckpoint[] =
    "Qwen3-0.6B's tensors with 9 layers and a vocabulary of 8,192";

// Writes a sharded checkpoint of 300 MB with Qwen3-0.6B's names and shapes, 9 layers and a
// vocabulary of 8,192, tied embeddings, BF16, into an existing, empty directory. Every tensor is
// different; equal seeds give equal bytes. ResourceExhausted, with numbers, when the disk has too
// little room, before anything is written.
absl::Status MakeCheckpoint(const std::string& directory, uint64_t seed);

// Names, shapes and dtypes in the checkpoint's order.
absl::StatusOr<refit::RefitInfo> InfoOf(const refit::Checkpoint& checkpoint);

// A copy of all tensors in memory.
absl::StatusOr<fakes::Parameters> LoadParameters(const refit::Checkpoint& checkpoint);

}  // namespace weight_sync::demo

#endif  // WEIGHT_SYNC_TOOLS_DEMO_DEMO_CHECKPOINT_H_
