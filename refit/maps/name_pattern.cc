// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/name_pattern.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weight_sync::refit {

std::optional<MapIndex> FindMapIndex(absl::string_view name) {
  const auto found = std::find(kMapIndexNames.begin(), kMapIndexNames.end(), name);
  if (found == kMapIndexNames.end()) return std::nullopt;
  return static_cast<MapIndex>(found - kMapIndexNames.begin());
}

absl::StatusOr<NamePattern> NamePattern::Parse(absl::string_view text) {
  NamePattern pattern;
  pattern.text_ = std::string(text);
  pattern.literals_.emplace_back();
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '}') {
      return absl::InvalidArgumentError(absl::StrCat("name pattern '", text, "': } without {"));
    }
    if (text[at] != '{') {
      pattern.literals_.back() += text[at++];
      continue;
    }
    const size_t end = text.find('}', at);
    const absl::string_view name = text.substr(at + 1, end == text.npos ? 0 : end - at - 1);
    const std::optional<MapIndex> index = FindMapIndex(name);
    if (!index.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("name pattern '", text, "': '{", name,
                                                     "}' is none of {",
                                                     absl::StrJoin(kMapIndexNames, "} {"), "}"));
    }
    pattern.indices_.push_back(*index);
    pattern.literals_.emplace_back();
    at = end + 1;
  }
  return pattern;
}

std::string NamePattern::Format(const MapIndices& indices) const {
  std::string name;
  name.reserve(text_.size() + 8);  // mostly enough, since braces and names of indices fall away
  name = literals_[0];
  for (size_t i = 0; i < indices_.size(); ++i) {
    absl::StrAppend(&name, indices[static_cast<size_t>(indices_[i])], literals_[i + 1]);
  }
  return name;
}

bool NamePattern::Uses(MapIndex index) const {
  return std::find(indices_.begin(), indices_.end(), index) != indices_.end();
}

}  // namespace weight_sync::refit
