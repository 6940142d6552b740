// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/generation.h"

namespace weight_sync {

absl::string_view MemoryTagName(MemoryTag tag) {
  return tag == MemoryTag::kWeights ? "weights" : "kv_cache";
}

}  // namespace weight_sync
