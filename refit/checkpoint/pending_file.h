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
//   WS_ASSIGN_OR_RETURN(PendingFile file, PendingFile::Create("model.safetensors"));
//   WS_RETURN_IF_ERROR(file.Append(bytes));
//   WS_RETURN_IF_ERROR(file.Close());
//   return file.Publish();

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_PENDING_FILE_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_PENDING_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weight_sync::refit {

class PendingFile {
 public:
  // `path` is the name to publish; an existing file stays as it is until then. Its permissions are
  // those that the umask leaves of 0666.
  static absl::StatusOr<PendingFile> Create(const std::string& path);

  // The whole of a small file, closed: only Publish() is left to do.
  static absl::StatusOr<PendingFile> OfText(const std::string& path, absl::string_view text);

  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile();

  const std::string& path() const { return path_; }

  absl::Status Append(absl::Span<const std::byte> bytes);
  absl::Status AppendText(absl::string_view text);

  // Instead of Append: makes the file this long (over 0) and maps it, zeros, to be written in any
  // order until Close(). The space is allocated here, so that a full disk is an error and not a
  // SIGBUS later.
  absl::StatusOr<absl::Span<std::byte>> Map(size_t size);

  // No more bytes: fsync and close. What Map() gave is gone.
  absl::Status Close();

  // After Close(): gives the file its name and makes that last.
  absl::Status Publish();

 private:
  PendingFile(std::string path, std::string temporary, int fd);

  void Unmap();

  std::string path_;
  std::string temporary_;  // empty once there is nothing to remove
  int fd_;                 // -1 once closed
  absl::Span<std::byte> mapped_;
};

// Publishes closed files in order, or none of them: none of their names may be there before.
absl::Status PublishAll(std::vector<PendingFile>& files);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_PENDING_FILE_H_
