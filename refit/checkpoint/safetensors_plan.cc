// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/safetensors_plan.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "refit/checkpoint/file_error.h"
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

absl::StatusOr<FilePlan> Plan(std::vector<const NamedTensor*> tensors, const Metadata& metadata) {
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
  return FilePlan{std::string(kSingleFile), absl::StrCat(length, header), std::move(tensors),
                  offset};
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
std::string IndexText(absl::Span<const FilePlan> files) {
  int64_t total_size = 0;
  nlohmann::json weight_map = nlohmann::json::object();
  for (const FilePlan& file : files) {
    for (const NamedTensor* t : file.tensors) weight_map[t->name] = file.name;
    total_size += file.tensor_bytes;
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total_size}}},
                                {"weight_map", std::move(weight_map)}};
  return absl::StrCat(index.dump(/*indent=*/2, /*indent_char=*/' ', /*ensure_ascii=*/true), "\n");
}

}  // namespace

absl::StatusOr<FilePlan> PlanFile(absl::Span<const NamedTensor> tensors, const Metadata& metadata) {
  WS_RETURN_IF_ERROR(CheckInput(tensors, metadata));
  std::vector<const NamedTensor*> all;
  for (const NamedTensor& t : tensors) all.push_back(&t);
  return Plan(std::move(all), metadata);
}

absl::StatusOr<CheckpointPlan> PlanCheckpoint(absl::Span<const NamedTensor> tensors,
                                              int64_t max_shard_bytes, const Metadata& metadata) {
  if (max_shard_bytes <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_shard_bytes is ", max_shard_bytes, "; it must be over 0"));
  }
  WS_RETURN_IF_ERROR(CheckInput(tensors, metadata));
  CheckpointPlan plan;
  plan.index_name = kIndexFile;
  for (std::vector<const NamedTensor*>& shard : Distribute(tensors, max_shard_bytes)) {
    WS_ASSIGN_OR_RETURN(FilePlan file, Plan(std::move(shard), metadata));
    plan.files.push_back(std::move(file));
  }
  const size_t files = plan.files.size();
  if (files == 1) return plan;
  for (size_t i = 0; i < files; ++i) {
    plan.files[i].name = absl::StrFormat("model-%05d-of-%05d.safetensors", i + 1, files);
  }
  plan.index = IndexText(plan.files);
  return plan;
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

}  // namespace weight_sync::refit
