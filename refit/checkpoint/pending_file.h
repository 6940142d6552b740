// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// PendingFile: a file that appears under its name complete, or not at all. Bytes go to a temporary
// file in the same directory; Close() puts them on stable storage; Publish() renames the file. One
// that is destroyed before it was published is removed.
//
// Errors: as FileError() says. Thread-safety: one thread at a time.
//
// Example:
//
//   absl::StatusOr<PendingFile> file = PendingFile::Create("model.safetensors");
//   if (!file.ok()) return file.status();
//   if (absl::Status s = file->Append(bytes); !s.ok()) return s;
//   if (absl::Status s = file->Close(); !s.ok()) return s;
//   return file->Publish();

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_PENDING_FILE_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_PENDING_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weight_sync::refit {

class PendingFile {
 public:
  // `path` is the name to publish; an existing file stays as it is until then. Its permissions are
  // those that the umask leaves of 0666.
  static absl::StatusOr<PendingFile> Create(const std::string& path);

  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile();

  const std::string& path() const { return path_; }

  absl::Status Append(absl::Span<const std::byte> bytes);

  // No more bytes: fsync and close.
  absl::Status Close();

  // After Close(): gives the file its name and makes that last.
  absl::Status Publish();

 private:
  PendingFile(std::string path, std::string temporary, int fd);

  std::string path_;
  std::string temporary_;  // empty once there is nothing to remove
  int fd_;                 // -1 once closed
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_PENDING_FILE_H_
