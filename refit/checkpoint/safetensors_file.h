// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// SafetensorsFile: one file of the safetensors format, mapped read-only and checked from end to end
// when it is opened. The format is described by https://github.com/huggingface/safetensors: eight
// bytes with the header's length (little-endian), the header (JSON), the tensors' bytes.
//
// What that library accepts is accepted, and what it refuses is refused, with these exceptions:
//   - a name that the header holds twice is an error (the library keeps one of the two), and so is
//     any other key that an object holds twice;
//   - a tensor's entry must be an object (the library also takes an array of its fields' values);
//   - at most 8 dimensions, and element counts that fit int64_t.
// Fields of a tensor's entry that the format does not know are ignored, as the library does.
// Tensors need not be aligned to their element's size: read them with memcpy, as CopyElements()
// does.
//
// The file must not become shorter while it is open, or reading it raises SIGBUS; replace files by
// rename. All views are valid while the SafetensorsFile (or what it was moved to) lives.
//
// Errors: InvalidArgument names the file, the tensor and what is wrong with it.
// Thread-safety: as a const object's.
//
// Example:
//
//   absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open("model.safetensors");
//   if (!file.ok()) return file.status();
//   for (const NamedTensor& t : file->tensors()) {
//     std::cout << t.name << " " << SafetensorsName(t.tensor.dtype()) << " " << t.tensor.shape();
//   }

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_SAFETENSORS_FILE_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_SAFETENSORS_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "refit/checkpoint/mapped_file.h"
#include "refit/checkpoint/named_tensor.h"

namespace weight_sync::refit {

// Bytes of the longest header that the format's library reads or writes.
inline constexpr int64_t kMaxSafetensorsHeaderBytes = 100'000'000;

class SafetensorsFile {
 public:
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::string& path() const { return path_; }

  // In the order of their bytes in the file; tensors without bytes stand before one that begins at
  // the same place, and among each other by name. All are contiguous.
  const std::vector<NamedTensor>& tensors() const { return tensors_; }

  // The "__metadata__" of the header; empty when there is none.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  SafetensorsFile(std::string path, MappedFile file, std::vector<NamedTensor> tensors,
                  std::map<std::string, std::string> metadata)
      : path_(std::move(path)),
        file_(std::move(file)),
        tensors_(std::move(tensors)),
        metadata_(std::move(metadata)) {}

  std::string path_;
  MappedFile file_;
  std::vector<NamedTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_SAFETENSORS_FILE_H_
