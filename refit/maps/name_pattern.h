// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// NamePattern: tensor names with indices in braces, parsed once and written often.
//
//   WS_ASSIGN_OR_RETURN(NamePattern name, NamePattern::Parse("layers.{i}.mlp.experts.{e}.w"));
//   name.Format({{3, 7, 0, 0}});       // "layers.3.mlp.experts.7.w"

#ifndef WEIGHT_SYNC_REFIT_MAPS_NAME_PATTERN_H_
#define WEIGHT_SYNC_REFIT_MAPS_NAME_PATTERN_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weight_sync::refit {

// The indices that tables know (family.h).
enum class MapIndex : uint8_t { kLayer, kExpert, kBlock, kLocal };
inline constexpr std::array<absl::string_view, 4> kMapIndexNames = {"i", "e", "block", "local"};
using MapIndices = std::array<int64_t, 4>;  // by MapIndex

std::optional<MapIndex> FindMapIndex(absl::string_view name);

class NamePattern {
 public:
  // InvalidArgument for a brace without its partner or an index that is not known.
  static absl::StatusOr<NamePattern> Parse(absl::string_view text);

  std::string Format(const MapIndices& indices) const;
  bool Uses(MapIndex index) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<std::string> literals_;  // one more than indices_
  std::vector<MapIndex> indices_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_NAME_PATTERN_H_
