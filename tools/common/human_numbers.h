// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Numbers as people read them.

#ifndef WEIGHT_SYNC_TOOLS_COMMON_HUMAN_NUMBERS_H_
#define WEIGHT_SYNC_TOOLS_COMMON_HUMAN_NUMBERS_H_

#include <cstdint>
#include <string>

namespace weight_sync::tools {

// "299.9 MB".
std::string HumanBytes(int64_t bytes);
// "1,234,567".
std::string WithCommas(int64_t number);
// Bytes a second as GB/s: "3.14".
std::string HumanRate(double bytes_per_second);

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_COMMON_HUMAN_NUMBERS_H_
