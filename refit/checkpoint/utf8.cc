// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/utf8.h"

#include <cstddef>
#include <cstdint>

namespace weight_sync::refit {

bool IsValidUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const uint8_t lead = static_cast<uint8_t>(text[i]);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    size_t length;
    uint32_t smallest;  // a smaller code point in this many bytes is an overlong form
    if ((lead & 0xe0) == 0xc0) {
      length = 2;
      smallest = 0x80;
    } else if ((lead & 0xf0) == 0xe0) {
      length = 3;
      smallest = 0x800;
    } else if ((lead & 0xf8) == 0xf0) {
      length = 4;
      smallest = 0x10000;
    } else {
      return false;
    }
    if (text.size() - i < length) return false;
    uint32_t code_point = lead & (0x7fu >> length);
    for (size_t k = 1; k < length; ++k) {
      const uint8_t next = static_cast<uint8_t>(text[i + k]);
      if ((next & 0xc0) != 0x80) return false;
      code_point = code_point << 6 | (next & 0x3fu);
    }
    const bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
    if (code_point < smallest || code_point > 0x10ffff || surrogate) return false;
    i += length;
  }
  return true;
}

}  // namespace weight_sync::refit
