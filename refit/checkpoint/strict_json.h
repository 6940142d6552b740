// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// JSON of checkpoints, read with no leniency: what two readers could understand differently is an
// error. Refused beyond bad syntax: bytes that are not UTF-8, a byte order mark, a raw NUL, a key
// that an object holds twice, and more than 127 levels of nesting (the limit of the safetensors
// library's parser).
//
// Example:
//
//   absl::StatusOr<nlohmann::json> header = ParseStrictJson(text);
//   if (!header.ok()) return header.status();   // "key 'a.weight' appears twice"

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_STRICT_JSON_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_STRICT_JSON_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace weight_sync::refit {

// InvalidArgument says what is wrong, without the file's name: the caller knows it.
absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_STRICT_JSON_H_
