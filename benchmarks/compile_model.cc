// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/compile_model.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "refit/maps/qwen3_moe.h"
#include "refit/maps/qwen3_next.h"
#include "refit/refit_info.h"
#include "refit/tensor/dtype.h"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::benchmarks {
namespace {

using refit::testing::Elements;

// A safetensors file of these tensors, in bfloat16, that takes no room: all but its header is a hole.
absl::StatusOr<refit::Checkpoint> Hole(const std::vector<Elements>& tensors) {
  std::vector<std::string> entries;
  int64_t end = 0;
  for (const Elements& tensor : tensors) {
    const int64_t begin = std::exchange(end, end + 2 * tensor.size());
    entries.push_back(absl::StrCat("\"", tensor.name, R"(":{"dtype":"BF16","shape":[)",
                                   absl::StrJoin(tensor.shape, ","), R"(],"data_offsets":[)", begin,
                                   ",", end, "]}"));
  }
  std::string header = absl::StrCat("{", absl::StrJoin(entries, ","), "}");
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string start(sizeof(uint64_t), '\0');
  const uint64_t size = header.size();
  std::memcpy(start.data(), &size, sizeof(size));
  start += header;

  const base::UniqueFd file(::memfd_create("hole.safetensors", MFD_CLOEXEC));
  if (!file.valid() ||
      ::write(file.get(), start.data(), start.size()) != static_cast<ssize_t>(start.size()) ||
      ::ftruncate(file.get(), static_cast<off_t>(start.size()) + end) != 0) {
    return absl::ErrnoToStatus(errno, "a file that is a hole");
  }
  return refit::Checkpoint::Open(absl::StrCat("/proc/self/fd/", file.get()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompileModel>> CompileModel::Qwen3Moe() {
  return Create(refit::Qwen3MoeFamily(), "Qwen3-30B-A3B", {"tunix"});
}

absl::StatusOr<std::unique_ptr<CompileModel>> CompileModel::Qwen3Next() {
  return Create(refit::Qwen3NextFamily(), "Qwen3-Next-80B-A3B, MTP",
                {"maxtext", /*scanned=*/true, /*scan_axis=*/1, /*scan_period=*/4});
}

absl::StatusOr<std::unique_ptr<CompileModel>> CompileModel::Create(const refit::Family& family,
                                                                   const std::string& published,
                                                                   refit::LayoutOptions layout) {
  refit::testing::ModelSpec spec;
  for (refit::testing::ModelSpec& model : refit::testing::PublishedModels()) {
    if (model.name == published) spec = std::move(model);
  }
  WS_ASSIGN_OR_RETURN(refit::ModelConfig config,
                      refit::ParseModelConfig(refit::testing::HubConfigJson(spec)));
  std::unique_ptr<CompileModel> model(
      new CompileModel(family, std::move(config), std::move(layout)));
  if (spec.mtp) {
    std::vector<refit::TensorSpec> tensors;
    std::vector<Elements> passed;
    for (const Elements& tensor : refit::testing::HfShapes(spec)) {
      WS_ASSIGN_OR_RETURN(const refit::Shape shape, refit::Shape::Create(tensor.shape));
      tensors.push_back({tensor.name, shape, refit::DType::kBF16});
      if (tensor.passes_through) passed.push_back(tensor);
    }
    WS_ASSIGN_OR_RETURN(refit::RefitInfo info, refit::RefitInfo::Create(std::move(tensors)));
    model->manifest_.emplace(std::move(info));
    WS_ASSIGN_OR_RETURN(model->source_, Hole(passed));
  }
  WS_ASSIGN_OR_RETURN(const refit::WeightMap map, model->BuildMap());
  for (const refit::WeightMap::TrainerTensor& tensor : map.trainer()) {
    model->arrays_.push_back({tensor.name, refit::DType::kBF16, tensor.shape, {}});
  }
  return model;
}

absl::StatusOr<refit::WeightMap> CompileModel::BuildMap() const {
  return refit::WeightMap::Build(family_, config_, layout_,
                                 {"", manifest_.has_value() ? &*manifest_ : nullptr});
}

absl::StatusOr<std::unique_ptr<refit::MapSource>> CompileModel::CreateSource(
    refit::WeightMap map) const {
  return refit::MapSource::CreateUnbound(std::move(map), arrays_,
                                         source_.has_value() ? &*source_ : nullptr, &gate_);
}

}  // namespace weight_sync::benchmarks
