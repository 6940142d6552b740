// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/trainer_arrays.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
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

absl::StatusOr<TensorView> WithoutMemory(const ArraySpec& spec) {
  if (!spec.strides.empty()) {
    return TensorView::Strided(nullptr, spec.dtype, spec.shape, spec.strides);
  }
  WS_RETURN_IF_ERROR(ByteSize(spec.dtype, spec.shape).status());
  return TensorView::Contiguous(nullptr, spec.dtype, spec.shape);
}

struct Named {
  absl::string_view name;
  TensorView view;
};

struct Matched {
  std::vector<TensorView> views;     // in the map's order
  const TensorView* head = nullptr;  // a tied head beside its embedding
  const TensorView* head_of = nullptr;
};

absl::Status HeadDiffers(const WeightMap& map) {
  return absl::InvalidArgumentError(absl::StrCat("the model is tied, and '", map.tied_head(),
                                                 "' differs from '", map.tied_to(), "'"));
}

absl::StatusOr<Matched> Match(const WeightMap& map, const std::vector<Named>& arrays,
                              bool in_memory) {
  Differences unread("that no HF tensor is made of"), twice("given twice"), missing("missing"),
      shape("of another shape"), empty("without memory");
  std::vector<const TensorView*> views(map.trainer().size());
  Matched matched;
  for (const auto& [name, view] : arrays) {
    const std::optional<int> found = map.FindTrainer(name);
    if (!found.has_value()) {
      if (!map.tied_head().empty() && name == map.tied_head() && matched.head == nullptr) {
        matched.head = &view;
      } else {
        unread.Add(std::string(name));
      }
      continue;
    }
    const WeightMap::TrainerTensor& tensor = map.trainer()[static_cast<size_t>(*found)];
    if (std::exchange(views[static_cast<size_t>(*found)], &view) != nullptr) {
      twice.Add(std::string(name));
    }
    if (!Fits(tensor, view.shape())) {
      shape.Add(absl::StrCat("'", name, "' ", view.shape(), " for ", tensor.shape));
    } else if (in_memory && view.data() == nullptr && view.num_bytes() > 0) {
      empty.Add(std::string(name));
    }
  }
  for (size_t i = 0; i < views.size(); ++i) {
    if (views[i] == nullptr) missing.Add(map.trainer()[i].name);
  }
  const std::string found = JoinDifferences({&missing, &unread, &twice, &shape, &empty});
  if (!found.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the trainer's arrays are not those of family '",
                                                   map.family(), "', layout '", map.layout().name,
                                                   "': ", found));
  }
  matched.views.reserve(views.size());
  for (const TensorView* view : views) matched.views.push_back(*view);
  if (matched.head != nullptr) {
    const std::optional<int> original = map.FindTrainer(map.tied_to());
    if (!original.has_value()) return HeadDiffers(map);
    matched.head_of = views[static_cast<size_t>(*original)];
    if (matched.head->dtype() != matched.head_of->dtype() ||
        matched.head->shape() != matched.head_of->shape()) {
      return HeadDiffers(map);
    }
  }
  return matched;
}

}  // namespace

absl::StatusOr<std::vector<TensorView>> MatchSpecs(const WeightMap& map,
                                                   absl::Span<const ArraySpec> specs) {
  std::vector<Named> named;
  named.reserve(specs.size());
  for (const ArraySpec& spec : specs) {
    const absl::StatusOr<TensorView> view = WithoutMemory(spec);
    if (!view.ok()) return base::Prefixed(absl::StrCat("array '", spec.name, "'"), view.status());
    named.push_back({spec.name, *view});
  }
  WS_ASSIGN_OR_RETURN(Matched matched, Match(map, named, /*in_memory=*/false));
  return std::move(matched.views);
}

absl::StatusOr<std::vector<TensorView>> MatchArrays(const WeightMap& map,
                                                    absl::Span<const TrainerArray> arrays) {
  std::vector<Named> named;
  named.reserve(arrays.size());
  for (const TrainerArray& array : arrays) named.push_back({array.name, array.view});
  WS_ASSIGN_OR_RETURN(Matched matched, Match(map, named, /*in_memory=*/true));
  if (matched.head != nullptr && !SameValues(*matched.head, *matched.head_of)) {
    return HeadDiffers(map);
  }
  return std::move(matched.views);
}

}  // namespace weight_sync::refit
