// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// 128-bit digests (XXH3, https://xxhash.com) that both ends of a sync compare. They find what goes
// wrong by accident: lost, torn, swapped or flipped bytes. They are no defence against an attacker.
//
//   base::Digest128 whole = base::DigestOf(bytes, count);
//   base::Digester digester;             // the same value from pieces
//   digester.Add(bytes, count / 2);
//   digester.Add(bytes + count / 2, count - count / 2);
//   CHECK(digester.Finish() == whole);

#ifndef WEIGHT_SYNC_BASE_DIGEST_H_
#define WEIGHT_SYNC_BASE_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weight_sync::base {

struct Digest128 {
  uint64_t low = 0;
  uint64_t high = 0;

  std::string Hex() const;  // 32 digits, high half first
  static absl::StatusOr<Digest128> FromHex(absl::string_view hex);

  friend bool operator==(const Digest128& a, const Digest128& b) {
    return a.low == b.low && a.high == b.high;
  }
  friend bool operator!=(const Digest128& a, const Digest128& b) { return !(a == b); }
};

// Allocates nothing. Thread-safe.
Digest128 DigestOf(const void* data, size_t bytes);

// One stream; not thread-safe. Finish() may be called at any point and does not end the stream.
class Digester {
 public:
  Digester();
  Digester(const Digester&) = delete;
  Digester& operator=(const Digester&) = delete;
  ~Digester();

  void Reset();
  void Add(const void* data, size_t bytes);
  // Adds the length first, so that ("ab", "c") and ("a", "bc") differ.
  void AddSized(absl::string_view text);
  Digest128 Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weight_sync::base

#endif  // WEIGHT_SYNC_BASE_DIGEST_H_
