// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/convert.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weight_sync::refit {

absl::StatusOr<Conversion> ConversionBetween(DType from, DType to) {
  if (from == to) return Conversion::kNone;
  if (from == DType::kF32 && to == DType::kBF16) return Conversion::kF32ToBF16;
  if (from == DType::kBF16 && to == DType::kF32) return Conversion::kBF16ToF32;
  return absl::InvalidArgumentError(
      absl::StrCat("cannot refit ", from, " to ", to, " without changing values"));
}

}  // namespace weight_sync::refit
