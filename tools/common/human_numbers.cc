// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/common/human_numbers.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weight_sync::tools {

std::string HumanBytes(int64_t bytes) {
  const struct {
    int64_t unit;
    const char* name;
  } kUnits[] = {{1'000'000'000, "GB"}, {1'000'000, "MB"}, {1000, "kB"}};
  for (const auto& [unit, name] : kUnits) {
    if (bytes >= unit) {
      return absl::StrFormat("%.1f %s", static_cast<double>(bytes) / static_cast<double>(unit),
                             name);
    }
  }
  return absl::StrCat(bytes, " bytes");
}

std::string WithCommas(int64_t number) {
  std::string text = absl::StrCat(number);
  for (int64_t at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

std::string HumanRate(double bytes_per_second) {
  return absl::StrFormat("%.2f", bytes_per_second / 1e9);
}

}  // namespace weight_sync::tools
