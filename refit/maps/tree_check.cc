// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/tree_check.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"
#include "refit/checkpoint/safetensors_writer.h"
#include "refit/maps/all_families.h"
#include "refit/maps/load_checkpoint.h"
#include "refit/maps/map_source.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/read_guard.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"
#include "refit/tensor_digest.h"
#include "refit/testing/family_trees.h"
#include "refit/testing/run_refit.h"

namespace weight_sync::refit::testing {
namespace {

constexpr std::byte kPoison{0xa5};

DType DTypeOf(Storage storage) { return storage == Storage::kBF16 ? DType::kBF16 : DType::kF32; }

Shape ShapeOf(const Elements& tensor) { return *Shape::Create(tensor.shape); }

// An array in memory, with its first dimension fastest if asked for.
class Array {
 public:
  Array(const Elements& tensor, Storage storage, bool column_major) {
    // Padding must not be read, so it holds what would show.
    bytes_ = Bytes(tensor, storage, kPoison);
    const DType dtype = DTypeOf(storage);
    const Shape shape = ShapeOf(tensor);
    if (!column_major) {
      view_ = TensorView::Contiguous(bytes_.data(), dtype, shape);
      return;
    }
    std::vector<int64_t> strides;
    int64_t stride = 1;
    for (const int64_t dim : tensor.shape) {
      strides.push_back(stride);
      stride *= dim;
    }
    const std::vector<std::byte> rows = bytes_;
    const size_t element = static_cast<size_t>(StorageElementBytes(dtype));
    for (int64_t n = 0; n < shape.num_elements(); ++n) {
      int64_t rest = n, at = 0;
      for (size_t dim = strides.size(); dim-- > 0;) {
        at += rest % tensor.shape[dim] * strides[dim];
        rest /= tensor.shape[dim];
      }
      std::memcpy(&bytes_[static_cast<size_t>(at) * element],
                  &rows[static_cast<size_t>(n) * element], element);
    }
    view_ = *TensorView::Strided(bytes_.data(), dtype, shape, strides);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  const TensorView& view() const { return view_; }

 private:
  std::vector<std::byte> bytes_;
  TensorView view_;
};

absl::Status Different(absl::string_view what, absl::string_view name, absl::string_view how = "") {
  return absl::DataLossError(absl::StrCat(what, " '", name, "' ", how));
}

}  // namespace

RefitInfo InfoOf(const std::vector<Elements>& tensors, DType dtype) {
  std::vector<TensorSpec> specs;
  for (const Elements& tensor : tensors) specs.push_back({tensor.name, ShapeOf(tensor), dtype});
  return *RefitInfo::Create(std::move(specs));
}

const Family& FamilyOf(const ModelSpec& model) {
  static const FamilyRegistry& registry = *new FamilyRegistry(AllFamilies());
  return **registry.Find(model.model_type);
}

absl::StatusOr<CheckedModel> CheckedModel::Write(const ModelSpec& model, const LayoutCase& c,
                                                 Storage stored) {
  static int files = 0;
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/tree_check_", ++files, ".safetensors");
  std::vector<std::vector<std::byte>> bytes;
  std::vector<NamedTensor> tensors;
  for (const Elements& tensor : c.hf) {
    bytes.push_back(Bytes(tensor, stored));
    tensors.push_back({tensor.name, TensorView::Contiguous(bytes.back().data(), DTypeOf(stored),
                                                           ShapeOf(tensor))});
  }
  WS_RETURN_IF_ERROR(WriteSafetensors(path, tensors));
  WS_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(path));
  ModelSpec spec = model;
  spec.dtype = stored == Storage::kBF16 ? "bfloat16" : "float32";
  WS_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(HubConfigJson(spec)));
  CheckedModel checked(c, stored, std::move(config),
                       std::make_shared<const Checkpoint>(std::move(checkpoint)));
  if (c.manifest) {
    WS_ASSIGN_OR_RETURN(checked.manifest_, Manifest::Record(*checked.checkpoint_));
  }
  return checked;
}

absl::StatusOr<WeightMap> CheckedModel::Build(const Family& family) const {
  return WeightMap::Build(family, config_, case_.layout, {case_.target, manifest()});
}

absl::Status CheckedModel::CheckShapes(const WeightMap& map) const {
  const ByName expected(case_.hf);
  if (map.hf().tensors().size() != case_.hf.size()) {
    return Different("HF tensors", absl::StrCat(map.hf().size()), absl::StrCat(case_.hf.size()));
  }
  for (int t = 0; t < map.hf().size(); ++t) {
    const TensorSpec& tensor = map.hf()[t];
    if (!expected.has(tensor.name)) return Different("unexpected HF tensor", tensor.name);
    const Elements& hf = expected(tensor.name);
    if (tensor.shape != ShapeOf(hf) || tensor.dtype != DTypeOf(stored_)) {
      return Different("HF tensor", tensor.name, absl::StrCat(tensor.shape, ShapeOf(hf)));
    }
    if (hf.passes_through && !map.passes_through(t)) {
      return Different("HF tensor", tensor.name, "does not pass through");
    }
    if (manifest() != nullptr &&
        tensor.name != checkpoint().tensors()[static_cast<size_t>(t)].name) {
      return Different("HF tensor", tensor.name, "is not where the manifest has it");
    }
  }
  const ByName tree(case_.tree);
  if (map.trainer().size() != case_.tree.size()) {
    return Different("trainer tensors", absl::StrCat(map.trainer().size()),
                     absl::StrCat(case_.tree.size()));
  }
  for (const WeightMap::TrainerTensor& tensor : map.trainer()) {
    if (!tree.has(tensor.name)) return Different("unexpected trainer tensor", tensor.name);
    const Elements& held = tree(tensor.name);
    if (tensor.sent != held.sent) return Different("trainer tensor", tensor.name, "sent or not");
    if (tensor.shape.rank() != static_cast<int>(held.shape.size())) {
      return Different("trainer tensor", tensor.name, absl::StrCat(tensor.shape));
    }
    for (int dim = 0; dim < tensor.shape.rank(); ++dim) {
      const int64_t size = held.shape[static_cast<size_t>(dim)];
      if (tensor.padded[static_cast<size_t>(dim)] ? tensor.shape[dim] > size
                                                  : tensor.shape[dim] != size) {
        return Different("trainer tensor", tensor.name, absl::StrCat(tensor.shape));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckedModel::CheckLoad(const WeightMap& map, Storage arrays) const {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<MutableTrainerArray> loaded;
  for (const Elements& tensor : case_.tree) {
    const Shape shape = ShapeOf(tensor);
    bytes.emplace_back(static_cast<size_t>(*ByteSize(DTypeOf(arrays), shape)), kPoison);
    loaded.push_back(
        {tensor.name, MutableTensorView::Contiguous(bytes.back().data(), DTypeOf(arrays), shape)});
  }
  int64_t told = 0, sent = 0;
  WS_RETURN_IF_ERROR(LoadCheckpoint(map, checkpoint(), loaded,
                                    [&](int64_t loaded_bytes) { told += loaded_bytes; }));
  for (size_t i = 0; i < bytes.size(); ++i) {
    const Elements& tensor = case_.tree[i];
    // What is sent nowhere comes from nowhere.
    const std::byte padding = tensor.sent ? std::byte{0} : kPoison;
    if (bytes[i] != Bytes(tensor, arrays, padding)) return Different("loaded array", tensor.name);
    if (tensor.sent) sent += static_cast<int64_t>(bytes[i].size());
  }
  if (told != sent) return Different("progress", absl::StrCat(told), absl::StrCat(sent));
  return absl::OkStatus();
}

absl::Status CheckedModel::CheckRefit(const WeightMap& map, Storage arrays,
                                      const Geometry& geometry, bool column_major) const {
  std::vector<std::unique_ptr<Array>> held;
  std::vector<ArraySpec> specs;
  std::vector<TrainerArray> given;
  for (const Elements& tensor : case_.tree) {
    held.push_back(std::make_unique<Array>(tensor, arrays, column_major));
    const TensorView view = held.back()->view();
    specs.push_back(
        {tensor.name, view.dtype(), view.shape(), {view.strides().begin(), view.strides().end()}});
    given.push_back({tensor.name, view});
  }
  StepGate gate;
  WS_ASSIGN_OR_RETURN(
      const std::unique_ptr<MapSource> source,
      MapSource::CreateUnbound(map, specs, manifest() ? &checkpoint() : nullptr, &gate));
  const RefitInfo& info = source->info();
  WS_RETURN_IF_ERROR(source->Bind(1, given));
  WS_ASSIGN_OR_RETURN(const std::vector<std::vector<std::byte>> table, RunRefit(*source, geometry));

  const ByName expected(case_.hf);
  for (int t = 0; t < info.size(); ++t) {
    const std::vector<std::byte> bytes = Bytes(expected(info[t].name), stored_);
    if (table[static_cast<size_t>(t)] != bytes) return Different("refitted tensor", info[t].name);
    WS_ASSIGN_OR_RETURN(const base::Digest128 digest, source->ReferenceDigest(t));
    if (digest != TensorDigest(info[t].name, TensorView::Contiguous(bytes.data(), info[t].dtype,
                                                                    info[t].shape))) {
      return Different("reference digest of", info[t].name);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckedModel::CheckTree(const Family& family) const {
  WS_ASSIGN_OR_RETURN(const WeightMap map, Build(family));
  WS_RETURN_IF_ERROR(CheckShapes(map));
  return CheckLoad(map, stored_);
}

}  // namespace weight_sync::refit::testing
