// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/safetensors_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "refit/checkpoint/file_error.h"
#include "refit/checkpoint/pending_file.h"
#include "refit/checkpoint/safetensors_file.h"
#include "refit/checkpoint/utf8.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {
namespace {

using Metadata = std::map<std::string, std::string>;

constexpr absl::string_view kSingleFile = "model.safetensors";
constexpr absl::string_view kIndexFile = "model.safetensors.index.json";
constexpr int64_t kChunkBytes = 1 << 20;

absl::Status CheckInput(absl::Span<const NamedTensor> tensors, const Metadata& metadata) {
  absl::flat_hash_set<absl::string_view> names;
  for (const NamedTensor& t : tensors) {
    if (!IsValidUtf8(t.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", t.name, "': its name is not UTF-8"));
    }
    if (t.name == "__metadata__") {
      return absl::InvalidArgumentError(
          "tensor '__metadata__': the format keeps this name for itself");
    }
    if (!names.insert(t.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", t.name, "': given twice"));
    }
  }
  for (const auto& [key, text] : metadata) {
    if (!IsValidUtf8(key) || !IsValidUtf8(text)) {
      return absl::InvalidArgumentError(absl::StrCat("metadata entry '", key, "' is not UTF-8"));
    }
  }
  return absl::OkStatus();
}

// Escapes what JSON must have escaped and nothing else, as the format's library does. The text is
// UTF-8, so dump() does not throw.
std::string Quoted(const std::string& text) { return nlohmann::json(text).dump(); }

// What a file will hold: its first bytes, then the tensors.
struct Plan {
  std::string head;  // the header's length and the header
  std::vector<const NamedTensor*> tensors;
};

absl::StatusOr<Plan> MakePlan(std::vector<const NamedTensor*> tensors, const Metadata& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor* a, const NamedTensor* b) {
    if (a->tensor.dtype() != b->tensor.dtype()) return a->tensor.dtype() > b->tensor.dtype();
    return a->name < b->name;
  });
  std::vector<std::string> entries;
  if (!metadata.empty()) {
    entries.push_back(absl::StrCat(
        "\"__metadata__\":{",
        absl::StrJoin(metadata, ",",
                      [](std::string* out, const std::pair<const std::string, std::string>& entry) {
                        absl::StrAppend(out, Quoted(entry.first), ":", Quoted(entry.second));
                      }),
        "}"));
  }
  int64_t offset = 0;
  for (const NamedTensor* t : tensors) {
    int64_t end;
    if (__builtin_add_overflow(offset, t->tensor.num_bytes(), &end)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", t->name, "': the tensors together have too many bytes"));
    }
    entries.push_back(absl::StrCat(Quoted(t->name), ":{\"dtype\":\"", t->tensor.dtype(),
                                   "\",\"shape\":[", absl::StrJoin(t->tensor.shape().dims(), ","),
                                   "],\"data_offsets\":[", offset, ",", end, "]}"));
    offset = end;
  }
  std::string header = absl::StrCat("{", absl::StrJoin(entries, ","), "}");
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > static_cast<size_t>(kMaxSafetensorsHeaderBytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the names of ", tensors.size(), " tensors make a header of ", header.size(),
                     " bytes; the format's limit is ", kMaxSafetensorsHeaderBytes));
  }
  std::string length;
  for (int i = 0; i < 8; ++i) length.push_back(static_cast<char>(header.size() >> (8 * i) & 0xff));
  return Plan{absl::StrCat(length, header), std::move(tensors)};
}

absl::Status AppendText(PendingFile& file, absl::string_view text) {
  return file.Append({reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

absl::Status AppendTensor(PendingFile& file, const TensorView& tensor) {
  if (tensor.is_contiguous()) {
    return file.Append({tensor.data(), static_cast<size_t>(tensor.num_bytes())});
  }
  const int64_t element_bytes = StorageElementBytes(tensor.dtype());
  const int64_t elements = tensor.num_bytes() / element_bytes;
  const int64_t step = kChunkBytes / element_bytes;
  std::vector<std::byte> chunk(kChunkBytes);
  for (int64_t begin = 0; begin < elements; begin += step) {
    const int64_t end = std::min(begin + step, elements);
    CopyElements(tensor, begin, end, chunk.data());
    const size_t bytes = static_cast<size_t>((end - begin) * element_bytes);
    if (absl::Status s = file.Append({chunk.data(), bytes}); !s.ok()) return s;
  }
  return absl::OkStatus();
}

// The complete file, not yet under its name.
absl::StatusOr<PendingFile> Prepare(const std::string& path, const Plan& plan) {
  absl::StatusOr<PendingFile> file = PendingFile::Create(path);
  if (!file.ok()) return file.status();
  if (absl::Status s = AppendText(*file, plan.head); !s.ok()) return s;
  for (const NamedTensor* t : plan.tensors) {
    if (absl::Status s = AppendTensor(*file, t->tensor); !s.ok()) return s;
  }
  if (absl::Status s = file->Close(); !s.ok()) return s;
  return file;
}

absl::StatusOr<PendingFile> PrepareText(const std::string& path, absl::string_view text) {
  absl::StatusOr<PendingFile> file = PendingFile::Create(path);
  if (!file.ok()) return file.status();
  if (absl::Status s = AppendText(*file, text); !s.ok()) return s;
  if (absl::Status s = file->Close(); !s.ok()) return s;
  return file;
}

absl::Status CheckHoldsNoCheckpoint(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator it(directory, error);
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (absl::EndsWith(name, ".safetensors") || name == kIndexFile) {
      return absl::FailedPreconditionError(
          absl::StrCat("directory '", directory, "' holds a checkpoint already ('", name, "')"));
    }
  }
  if (error) return FileError("read directory", directory, error.value());
  return absl::OkStatus();
}

// The tensors of each shard.
std::vector<std::vector<const NamedTensor*>> Distribute(absl::Span<const NamedTensor> tensors,
                                                        int64_t max_shard_bytes) {
  std::vector<std::vector<const NamedTensor*>> shards(1);
  int64_t room = max_shard_bytes;
  for (const NamedTensor& t : tensors) {
    if (t.tensor.num_bytes() > room && !shards.back().empty()) {
      shards.emplace_back();
      room = max_shard_bytes;
    }
    shards.back().push_back(&t);
    room -= t.tensor.num_bytes();
  }
  return shards;
}

// As Python's json.dumps(index, indent=2, sort_keys=True) and a newline.
std::string IndexText(const std::vector<std::vector<const NamedTensor*>>& shards,
                      const std::vector<std::string>& shard_names) {
  int64_t total_size = 0;
  nlohmann::json weight_map = nlohmann::json::object();
  for (size_t i = 0; i < shards.size(); ++i) {
    for (const NamedTensor* t : shards[i]) {
      weight_map[t->name] = shard_names[i];
      total_size += t->tensor.num_bytes();
    }
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total_size}}},
                                {"weight_map", std::move(weight_map)}};
  return absl::StrCat(index.dump(/*indent=*/2, /*indent_char=*/' ', /*ensure_ascii=*/true), "\n");
}

// Publishes all files in order, or none: the directory held none of these names before.
absl::Status PublishAll(std::vector<PendingFile>& files) {
  for (size_t i = 0; i < files.size(); ++i) {
    const absl::Status status = files[i].Publish();
    if (status.ok()) continue;
    for (size_t k = 0; k <= i; ++k) unlink(files[k].path().c_str());
    return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const Metadata& metadata) {
  if (absl::Status s = CheckInput(tensors, metadata); !s.ok()) return s;
  std::vector<const NamedTensor*> all;
  for (const NamedTensor& t : tensors) all.push_back(&t);
  const absl::StatusOr<Plan> plan = MakePlan(std::move(all), metadata);
  if (!plan.ok()) return plan.status();
  absl::StatusOr<PendingFile> file = Prepare(path, *plan);
  if (!file.ok()) return file.status();
  return file->Publish();
}

absl::Status WriteShardedSafetensors(const std::string& directory,
                                     absl::Span<const NamedTensor> tensors, int64_t max_shard_bytes,
                                     const Metadata& metadata) {
  if (max_shard_bytes <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_shard_bytes is ", max_shard_bytes, "; it must be over 0"));
  }
  if (absl::Status s = CheckInput(tensors, metadata); !s.ok()) return s;
  if (absl::Status s = CheckHoldsNoCheckpoint(directory); !s.ok()) return s;

  const std::vector<std::vector<const NamedTensor*>> shards = Distribute(tensors, max_shard_bytes);
  std::vector<std::string> names;
  std::vector<Plan> plans;
  for (size_t i = 0; i < shards.size(); ++i) {
    names.push_back(shards.size() == 1
                        ? std::string(kSingleFile)
                        : absl::StrFormat("model-%05d-of-%05d.safetensors", i + 1, shards.size()));
    absl::StatusOr<Plan> plan = MakePlan(shards[i], metadata);
    if (!plan.ok()) return plan.status();
    plans.push_back(*std::move(plan));
  }

  std::vector<PendingFile> files;
  for (size_t i = 0; i < shards.size(); ++i) {
    absl::StatusOr<PendingFile> file = Prepare(absl::StrCat(directory, "/", names[i]), plans[i]);
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
  }
  if (shards.size() > 1) {
    absl::StatusOr<PendingFile> index =
        PrepareText(absl::StrCat(directory, "/", kIndexFile), IndexText(shards, names));
    if (!index.ok()) return index.status();
    files.push_back(*std::move(index));
  }
  return PublishAll(files);
}

}  // namespace weight_sync::refit
