// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/all_families.h"

#include "absl/log/check.h"
#include "refit/maps/dense.h"
#include "refit/maps/gemma4.h"
#include "refit/maps/qwen3_moe.h"
#include "refit/maps/qwen3_next.h"

namespace weight_sync::refit {

FamilyRegistry AllFamilies() {
  FamilyRegistry registry;
  for (const Family* family :
       {&DenseFamily(), &Qwen3MoeFamily(), &Qwen3NextFamily(), &Gemma4Family()}) {
    CHECK_OK(registry.Add(family));
  }
  return registry;
}

}  // namespace weight_sync::refit
