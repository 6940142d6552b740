// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// MappedFile: a whole regular file, mapped read-only. The bytes stay where they are when the object
// moves, and go when it is destroyed.
//
// The file must not become shorter while it is mapped: touching a page past the new end raises
// SIGBUS. Replace files by rename, as WriteSafetensors() does; the mapping then keeps the old
// bytes.
//
// Errors: InvalidArgument when there is no regular, readable file; ResourceExhausted without memory
// or descriptors. Thread-safety: as a const object's.

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_MAPPED_FILE_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_MAPPED_FILE_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weight_sync::refit {

class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  absl::Span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(absl::Span<const std::byte> bytes) : bytes_(bytes) {}

  absl::Span<const std::byte> bytes_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_MAPPED_FILE_H_
