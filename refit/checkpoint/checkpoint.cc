// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "refit/checkpoint/file_error.h"
#include "refit/checkpoint/mapped_file.h"
#include "refit/checkpoint/strict_json.h"

namespace weight_sync::refit {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kSingleFile = "model.safetensors";
constexpr absl::string_view kIndexFile = "model.safetensors.index.json";

bool IsPlainFileName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." && !absl::StrContains(name, '/') &&
         !absl::StrContains(name, '\0');
}

// The index's weight_map: the shard of every tensor.
absl::StatusOr<std::map<std::string, std::string>> ReadWeightMap(const std::string& path) {
  const absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<nlohmann::json> index = ParseStrictJson(
      absl::string_view(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()));
  if (!index.ok()) return BadFile(path, index.status().message());
  if (!index->is_object() || !index->contains("weight_map") ||
      !(*index)["weight_map"].is_object()) {
    return BadFile(path, "has no weight_map object");
  }
  std::map<std::string, std::string> weight_map;
  for (const auto& [name, shard] : (*index)["weight_map"].items()) {
    if (!shard.is_string()) {
      return BadFile(path, absl::StrCat("tensor '", name, "': its shard is not a string"));
    }
    const std::string& shard_name = shard.get_ref<const std::string&>();
    if (!IsPlainFileName(shard_name)) {
      return BadFile(path, absl::StrCat("tensor '", name, "': its shard '", shard_name,
                                        "' is not a plain file name"));
    }
    weight_map.emplace(name, shard_name);
  }
  return weight_map;
}

// The file or the index that stands for a directory.
absl::StatusOr<std::string> ChooseFile(const std::string& directory) {
  std::error_code error;
  for (const absl::string_view name : {kSingleFile, kIndexFile}) {
    std::string path = absl::StrCat(directory, "/", name);
    if (fs::exists(path, error)) return path;
    if (error) return FileError("stat", path, error.value());
  }
  std::vector<std::string> found;
  fs::directory_iterator it(directory, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (absl::EndsWith(name, ".safetensors")) found.push_back(name);
  }
  if (error) return FileError("read directory", directory, error.value());
  if (found.size() == 1) return absl::StrCat(directory, "/", found.front());
  std::sort(found.begin(), found.end());
  return absl::InvalidArgumentError(absl::StrCat(
      "directory '", directory, "' holds neither ", kSingleFile, " nor ", kIndexFile, ", and ",
      found.empty() ? "no *.safetensors file"
                    : absl::StrCat("several *.safetensors files: ", absl::StrJoin(found, ", "))));
}

}  // namespace

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& path) {
  std::string file = path;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    absl::StatusOr<std::string> chosen = ChooseFile(path);
    if (!chosen.ok()) return chosen.status();
    file = *std::move(chosen);
  }
  if (absl::EndsWith(file, ".index.json")) return OpenIndex(file);
  return OpenFiles({file});
}

absl::StatusOr<Checkpoint> Checkpoint::OpenIndex(const std::string& path) {
  const absl::StatusOr<std::map<std::string, std::string>> weight_map = ReadWeightMap(path);
  if (!weight_map.ok()) return weight_map.status();

  // A tensor that maps to each shard, to name one when the shard is not there.
  std::map<std::string, std::string> shards;
  for (const auto& [name, shard] : *weight_map) shards.emplace(shard, name);
  const fs::path directory = fs::path(path).parent_path();
  std::vector<std::string> paths;
  for (const auto& [shard, name] : shards) {
    paths.push_back((directory / shard).string());
    std::error_code error;
    if (!fs::exists(paths.back(), error)) {
      return BadFile(path, absl::StrCat("tensor '", name, "': its shard '", shard, "' is missing"));
    }
  }

  absl::StatusOr<Checkpoint> checkpoint = OpenFiles(paths);
  if (!checkpoint.ok()) return checkpoint.status();
  for (const SafetensorsFile& shard : checkpoint->shards_) {
    const std::string shard_name = fs::path(shard.path()).filename().string();
    for (const NamedTensor& t : shard.tensors()) {
      const auto mapped = weight_map->find(t.name);
      if (mapped == weight_map->end()) {
        return BadFile(path, absl::StrCat("tensor '", t.name, "': is in shard '", shard_name,
                                          "' but not in the index"));
      }
      if (mapped->second != shard_name) {
        return BadFile(path, absl::StrCat("tensor '", t.name, "': is in shard '", shard_name,
                                          "' but the index maps it to '", mapped->second, "'"));
      }
    }
  }
  for (const auto& [name, shard] : *weight_map) {
    if (checkpoint->Find(name) == nullptr) {
      return BadFile(path, absl::StrCat("tensor '", name, "': is not in its shard '", shard, "'"));
    }
  }
  return checkpoint;
}

absl::StatusOr<Checkpoint> Checkpoint::OpenFiles(const std::vector<std::string>& paths) {
  Checkpoint checkpoint;
  std::vector<size_t> shard_of;  // for each tensor
  for (const std::string& path : paths) {
    absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
    if (!file.ok()) return file.status();
    for (const NamedTensor& t : file->tensors()) {
      const auto [it, inserted] = checkpoint.by_name_.emplace(t.name, checkpoint.tensors_.size());
      if (!inserted) {
        return BadFile(path, absl::StrCat("tensor '", t.name, "': is also in '",
                                          paths[shard_of[it->second]], "'"));
      }
      checkpoint.tensors_.push_back(t);
      checkpoint.total_bytes_ += t.tensor.num_bytes();
      shard_of.push_back(checkpoint.shards_.size());
    }
    checkpoint.shards_.push_back(*std::move(file));
  }
  return checkpoint;
}

absl::StatusOr<Checkpoint> Checkpoint::OfTensors(std::vector<NamedTensor> tensors) {
  Checkpoint checkpoint;
  for (const NamedTensor& t : tensors) {
    if (!checkpoint.by_name_.emplace(t.name, checkpoint.by_name_.size()).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", t.name, "': given twice"));
    }
    checkpoint.total_bytes_ += t.tensor.num_bytes();
  }
  checkpoint.tensors_ = std::move(tensors);
  return checkpoint;
}

const NamedTensor* Checkpoint::Find(absl::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

}  // namespace weight_sync::refit
