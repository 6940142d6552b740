// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/trainer_arrays.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "refit/differences.h"
#include "refit/tensor_digest.h"

namespace weight_sync::refit {
namespace {

bool Fits(const WeightMap::TrainerTensor& tensor, const Shape& shape) {
  if (shape.rank() != tensor.shape.rank()) return false;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    const bool padded = tensor.padded[static_cast<size_t>(dim)];
    if (padded ? shape[dim] < tensor.shape[dim] : shape[dim] != tensor.shape[dim]) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<TensorView>> MatchArrays(const WeightMap& map,
                                                    absl::Span<const TrainerArray> arrays) {
  Differences unread("that no HF tensor is made of"), twice("given twice"), missing("missing"),
      shape("of another shape"), empty("without memory");
  std::vector<std::optional<TensorView>> views(map.trainer().size());
  std::optional<TensorView> head;
  for (const TrainerArray& array : arrays) {
    const std::optional<int> found = map.FindTrainer(array.name);
    if (!found.has_value()) {
      if (!map.tied_head().empty() && array.name == map.tied_head() && !head.has_value()) {
        head = array.view;
      } else {
        unread.Add(array.name);
      }
      continue;
    }
    const WeightMap::TrainerTensor& tensor = map.trainer()[static_cast<size_t>(*found)];
    std::optional<TensorView>& view = views[static_cast<size_t>(*found)];
    if (view.has_value()) twice.Add(array.name);
    view = array.view;
    if (!Fits(tensor, array.view.shape())) {
      shape.Add(absl::StrCat("'", array.name, "' ", array.view.shape(), " for ", tensor.shape));
    } else if (array.view.data() == nullptr && array.view.num_bytes() > 0) {
      empty.Add(array.name);
    }
  }
  std::vector<TensorView> matched;
  matched.reserve(views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    if (!views[i].has_value()) {
      missing.Add(map.trainer()[i].name);
    } else {
      matched.push_back(*views[i]);
    }
  }
  const std::string found = JoinDifferences({&missing, &unread, &twice, &shape, &empty});
  if (!found.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the trainer's arrays are not those of family '",
                                                   map.family(), "', layout '", map.layout().name,
                                                   "': ", found));
  }
  if (head.has_value()) {
    const std::optional<int> original = map.FindTrainer(map.tied_to());
    if (!original.has_value() || !SameValues(*head, matched[static_cast<size_t>(*original)])) {
      return absl::InvalidArgumentError(absl::StrCat("the model is tied, and '", map.tied_head(),
                                                     "' differs from '", map.tied_to(), "'"));
    }
  }
  return matched;
}

}  // namespace weight_sync::refit
