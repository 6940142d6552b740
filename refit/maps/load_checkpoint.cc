// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/load_checkpoint.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/differences.h"
#include "refit/layout/convert.h"
#include "refit/layout/region_copy.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/tensor_digest.h"

namespace weight_sync::refit {
namespace {

absl::Status CheckTiedHead(const WeightMap& map, const Checkpoint& checkpoint) {
  if (map.tied_head().empty()) return absl::OkStatus();
  const NamedTensor* const head = checkpoint.Find(map.tied_head());
  const NamedTensor* const original = checkpoint.Find(map.tied_to());
  if (head == nullptr || original == nullptr) return absl::OkStatus();
  if (SameValues(head->tensor, original->tensor)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the model is tied, and '", map.tied_head(),
                                                 "' of the checkpoint differs from '",
                                                 map.tied_to(), "'"));
}

// The checkpoint's tensors in the order of map.hf().
absl::StatusOr<std::vector<TensorView>> FindTensors(const WeightMap& map,
                                                    const Checkpoint& checkpoint) {
  Differences missing("missing"), shape("of another shape");
  std::vector<TensorView> views;
  for (const TensorSpec& tensor : map.hf().tensors()) {
    const NamedTensor* const held = checkpoint.Find(tensor.name);
    if (held == nullptr) {
      missing.Add(tensor.name);
    } else if (held->tensor.shape() != tensor.shape) {
      shape.Add(absl::StrCat("'", tensor.name, "' ", held->tensor.shape(), " for ", tensor.shape));
    } else {
      views.push_back(held->tensor);
    }
  }
  const std::string found = JoinDifferences({&missing, &shape});
  if (found.empty()) return views;
  return absl::InvalidArgumentError(
      absl::StrCat("the checkpoint is not that of family '", map.family(), "': tensors ", found));
}

// What is loaded must come out again as it was, so rounding is not for loaders.
absl::Status CheckKept(DType checkpoint, DType array) {
  WS_ASSIGN_OR_RETURN(const Conversion conversion, ConversionBetween(checkpoint, array));
  if (conversion != Conversion::kF32ToBF16) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("loading ", checkpoint, " to ", array, " would round its values"));
}

}  // namespace

absl::Status LoadCheckpoint(const WeightMap& map, const Checkpoint& checkpoint,
                            absl::Span<const MutableTrainerArray> arrays,
                            const std::function<void(int64_t bytes)>& loaded) {
  std::vector<TrainerArray> readable;
  for (const MutableTrainerArray& array : arrays) readable.push_back({array.name, array.view});
  WS_RETURN_IF_ERROR(MatchArrays(map, readable).status());
  WS_ASSIGN_OR_RETURN(const std::vector<TensorView> tensors, FindTensors(map, checkpoint));
  WS_RETURN_IF_ERROR(CheckTiedHead(map, checkpoint));

  std::vector<const MutableTensorView*> targets(map.trainer().size());
  for (const MutableTrainerArray& array : arrays) {
    const std::optional<int> found = map.FindTrainer(array.name);
    if (!found.has_value()) continue;  // a tied head, which shares its embedding's memory
    if (!array.view.is_contiguous()) {
      return absl::InvalidArgumentError(
          absl::StrCat("array '", array.name, "' is not contiguous; a loader needs it to be"));
    }
    targets[static_cast<size_t>(*found)] = &array.view;
  }

  // Which parts of which HF tensors make up each array; a tied copy adds nothing.
  struct Part {
    int hf;
    Region region;
  };
  std::vector<std::vector<Part>> parts(map.trainer().size());
  for (int t = 0; t < map.hf().size(); ++t) {
    if (!map.tied_head().empty() && map.hf()[t].name == map.tied_head()) continue;
    for (const WeightMap::MappedRegion& mapped : map.regions(t)) {
      parts[static_cast<size_t>(mapped.trainer)].push_back({t, mapped.region.Inverted()});
      WS_RETURN_IF_ERROR(
          base::Prefixed(absl::StrCat("'", map.hf()[t].name, "' into '",
                                      map.trainer()[static_cast<size_t>(mapped.trainer)].name, "'"),
                         CheckKept(tensors[static_cast<size_t>(t)].dtype(),
                                   targets[static_cast<size_t>(mapped.trainer)]->dtype())));
    }
  }

  std::vector<const std::byte*> bases;
  for (const TensorView& tensor : tensors) bases.push_back(tensor.data());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) continue;
    const MutableTensorView& target = *targets[i];
    if (target.shape() != map.trainer()[i].shape) {
      std::memset(target.data(), 0, static_cast<size_t>(target.num_bytes()));
    }
    CopyProgram program;
    program.StartBucket();
    for (const Part& part : parts[i]) {
      const TensorView& tensor = tensors[static_cast<size_t>(part.hf)];
      WS_RETURN_IF_ERROR(AppendRegion(part.region, {part.hf, tensor.dtype(), tensor.strides()},
                                      Box::Whole(target.shape()), target.dtype(), 0, program));
    }
    program.Run(0, bases, target.data());
    if (loaded) loaded(target.num_bytes());
  }
  return absl::OkStatus();
}

}  // namespace weight_sync::refit
