// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/digest.h"

#include <cstdint>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/log/check.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#define XXH_STATIC_LINKING_ONLY  // the state by value
#include "xxh_x86dispatch.h"     // after xxhash.h: picks the widest vector unit at run time
#include "xxhash.h"

namespace weight_sync::base {

struct Digester::State {
  XXH3_state_t xxh3;
};

std::string Digest128::Hex() const { return absl::StrFormat("%016x%016x", high, low); }

absl::StatusOr<Digest128> Digest128::FromHex(absl::string_view hex) {
  Digest128 digest;
  // SimpleHexAtoi alone would also take blanks, a sign and "0x".
  if (hex.size() != 32 || !absl::c_all_of(hex, absl::ascii_isxdigit) ||
      !absl::SimpleHexAtoi(hex.substr(0, 16), &digest.high) ||
      !absl::SimpleHexAtoi(hex.substr(16), &digest.low)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", hex, "' is not a digest of 32 hexadecimal digits"));
  }
  return digest;
}

Digest128 DigestOf(const void* data, size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return {hash.low64, hash.high64};
}

Digester::Digester() : state_(new State) { Reset(); }
Digester::~Digester() = default;

void Digester::Reset() { CHECK_EQ(XXH3_128bits_reset(&state_->xxh3), XXH_OK); }

void Digester::Add(const void* data, size_t bytes) {
  CHECK_EQ(XXH3_128bits_update(&state_->xxh3, data, bytes), XXH_OK);
}

void Digester::AddSized(absl::string_view text) {
  const uint64_t size = text.size();
  Add(&size, sizeof(size));
  Add(text.data(), text.size());
}

Digest128 Digester::Finish() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  return {hash.low64, hash.high64};
}

}  // namespace weight_sync::base
