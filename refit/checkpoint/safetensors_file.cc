// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/safetensors_file.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "refit/checkpoint/file_error.h"
#include "refit/checkpoint/strict_json.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {
namespace {

constexpr size_t kLengthBytes = 8;

// A tensor's entry in the header: bytes [begin, end) after the header.
struct Entry {
  std::string name;
  DType dtype;
  Shape shape;
  int64_t begin;
  int64_t end;
};

// The header's text, or what is wrong with its length.
absl::StatusOr<absl::string_view> HeaderText(absl::Span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "too short: ", file.size(), " bytes cannot hold the 8 of the header's length"));
  }
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | std::to_integer<uint64_t>(file[i]);
  if (length > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "header of ", length, " bytes is over the limit of ", kMaxSafetensorsHeaderBytes));
  }
  if (length > file.size() - kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat("header of ", length,
                                                   " bytes reaches past the end of the file of ",
                                                   file.size(), " bytes"));
  }
  return absl::string_view(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
}

absl::StatusOr<std::map<std::string, std::string>> ParseMetadata(const nlohmann::json& value) {
  std::map<std::string, std::string> metadata;
  if (value.is_null()) return metadata;
  if (!value.is_object()) return absl::InvalidArgumentError("__metadata__ is not an object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat("__metadata__ entry '", key, "' is not a string"));
    }
    metadata.emplace(key, text.get_ref<const std::string&>());
  }
  return metadata;
}

// A JSON array of whole numbers from 0 to 2^63 - 1.
absl::StatusOr<std::vector<int64_t>> ParseCounts(absl::string_view field,
                                                 const nlohmann::json& value) {
  if (!value.is_array()) return absl::InvalidArgumentError(absl::StrCat(field, " is not an array"));
  std::vector<int64_t> counts;
  for (const nlohmann::json& element : value) {
    if (!element.is_number_unsigned() ||
        element.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return absl::InvalidArgumentError(absl::StrCat(
          field, " ", value.dump(), " is not made of whole numbers from 0 to 2^63 - 1"));
    }
    counts.push_back(element.get<int64_t>());
  }
  return counts;
}

absl::StatusOr<Entry> ParseEntry(const std::string& name, const nlohmann::json& value) {
  if (!value.is_object()) return absl::InvalidArgumentError("its entry is not an object");
  for (const char* field : {"dtype", "shape", "data_offsets"}) {
    if (!value.contains(field)) {
      return absl::InvalidArgumentError(absl::StrCat("its entry has no ", field));
    }
  }
  Entry entry;
  entry.name = name;

  const nlohmann::json& dtype_name = value["dtype"];
  if (!dtype_name.is_string()) return absl::InvalidArgumentError("dtype is not a string");
  const absl::StatusOr<DType> dtype =
      ParseSafetensorsDType(dtype_name.get_ref<const std::string&>());
  if (!dtype.ok()) return dtype.status();
  entry.dtype = *dtype;

  const absl::StatusOr<std::vector<int64_t>> dims = ParseCounts("shape", value["shape"]);
  if (!dims.ok()) return dims.status();
  const absl::StatusOr<Shape> shape = Shape::Create(*dims);
  if (!shape.ok()) return shape.status();
  entry.shape = *shape;

  const absl::StatusOr<std::vector<int64_t>> offsets =
      ParseCounts("data_offsets", value["data_offsets"]);
  if (!offsets.ok()) return offsets.status();
  if (offsets->size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("data_offsets has ", offsets->size(), " numbers; expected begin and end"));
  }
  entry.begin = (*offsets)[0];
  entry.end = (*offsets)[1];
  if (entry.begin > entry.end) {
    return absl::InvalidArgumentError(
        absl::StrCat("data_offsets begin at ", entry.begin, ", after their end ", entry.end));
  }

  const absl::StatusOr<int64_t> bytes = ByteSize(entry.dtype, entry.shape);
  if (!bytes.ok()) return bytes.status();
  if (entry.end - entry.begin != *bytes) {
    return absl::InvalidArgumentError(absl::StrCat("data_offsets hold ", entry.end - entry.begin,
                                                   " bytes, but dtype ", entry.dtype, " and shape ",
                                                   entry.shape, " need ", *bytes));
  }
  return entry;
}

// The tensors must cover the bytes after the header, each byte once.
absl::Status CheckCoverage(absl::Span<const Entry> sorted, int64_t data_bytes) {
  int64_t covered = 0;
  absl::string_view previous;
  for (const Entry& entry : sorted) {
    if (entry.end > data_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", entry.name, "': data_offsets end at ", entry.end, ", past the ",
                       data_bytes, " bytes of data in the file"));
    }
    if (entry.begin < covered) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", entry.name, "': begins at byte ",
                                                     entry.begin, " and overlaps tensor '",
                                                     previous, "', which ends at ", covered));
    }
    if (entry.begin > covered) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", entry.name, "': begins at byte ",
                                                     entry.begin, " and leaves a hole after byte ",
                                                     covered));
    }
    covered = entry.end;
    previous = entry.name;
  }
  if (covered != data_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", data_bytes - covered, " trailing bytes after the last tensor"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();

  const absl::StatusOr<absl::string_view> text = HeaderText(file->bytes());
  if (!text.ok()) return BadFile(path, text.status().message());
  const absl::StatusOr<nlohmann::json> header = ParseStrictJson(*text);
  if (!header.ok()) return BadFile(path, absl::StrCat("header: ", header.status().message()));
  if (!header->is_object()) return BadFile(path, "header: not a JSON object");

  std::map<std::string, std::string> metadata;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header->items()) {
    if (name == "__metadata__") {
      absl::StatusOr<std::map<std::string, std::string>> parsed = ParseMetadata(value);
      if (!parsed.ok()) return BadFile(path, parsed.status().message());
      metadata = *std::move(parsed);
      continue;
    }
    absl::StatusOr<Entry> entry = ParseEntry(name, value);
    if (!entry.ok()) {
      return BadFile(path, absl::StrCat("tensor '", name, "': ", entry.status().message()));
    }
    entries.push_back(*std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });

  const absl::Span<const std::byte> data = file->bytes().subspan(kLengthBytes + text->size());
  const absl::Status coverage = CheckCoverage(entries, static_cast<int64_t>(data.size()));
  if (!coverage.ok()) return BadFile(path, coverage.message());

  std::vector<NamedTensor> tensors;
  tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    tensors.push_back({std::move(entry.name), TensorView::Contiguous(data.data() + entry.begin,
                                                                     entry.dtype, entry.shape)});
  }
  return SafetensorsFile(path, *std::move(file), std::move(tensors), std::move(metadata));
}

}  // namespace weight_sync::refit
