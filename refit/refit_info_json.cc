// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/refit_info_json.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace weight_sync::refit {
namespace {

// Not ordered_json, whose insertion of n members takes n * n comparisons: the order is kept here.
using Json = nlohmann::json;

}  // namespace

// A JSON array of one-member objects would be safe against repeated names but is not what other
// programs read, so the text is an object that is written and read here member by member.
absl::StatusOr<std::string> RefitInfoToJson(const RefitInfo& info) {
  std::string text = "{";
  for (const TensorSpec& tensor : info.tensors()) {
    try {
      const std::vector<int64_t> dims(tensor.shape.dims().begin(), tensor.shape.dims().end());
      absl::StrAppend(&text, text.size() > 1 ? "," : "", Json(tensor.name).dump(), ":",
                      Json::array({dims, std::string(SafetensorsName(tensor.dtype))}).dump());
    } catch (const nlohmann::json::exception& e) {
      return absl::InvalidArgumentError(absl::StrCat("tensor name '", absl::CHexEscape(tensor.name),
                                                     "' is not UTF-8: ", e.what()));
    }
  }
  text += "}";
  return text;
}

absl::StatusOr<RefitInfo> RefitInfoFromJson(absl::string_view text) {
  if (absl::StrContains(text, '\0')) {  // where the parser would take the text to end
    return absl::InvalidArgumentError("refit info is not JSON: it holds a zero byte");
  }
  std::vector<TensorSpec> tensors;
  absl::Status bad;
  std::string name;
  // Member by member through the callback, because a parsed object keeps one of two equal names.
  const auto member = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth != 1 || !bad.ok()) return true;
    if (event == Json::parse_event_t::key) {
      name = value.get<std::string>();
      return true;
    }
    if (event == Json::parse_event_t::array_start || event == Json::parse_event_t::object_start) {
      return true;
    }
    if (!value.is_array() || value.size() != 2 || !value[0].is_array() || !value[1].is_string()) {
      bad =
          absl::InvalidArgumentError(absl::StrCat("tensor '", name, "': expected [[dims], dtype]"));
      return true;
    }
    std::vector<int64_t> dims;
    for (const Json& dim : value[0]) {
      if (!dim.is_number_integer()) {
        bad = absl::InvalidArgumentError(
            absl::StrCat("tensor '", name, "': a dimension is not an integer"));
        return true;
      }
      dims.push_back(dim.get<int64_t>());
    }
    auto shape = Shape::Create(dims);
    auto dtype = ParseSafetensorsDType(value[1].get<std::string>());
    for (const absl::Status& status : {shape.status(), dtype.status()}) {
      if (!status.ok()) bad = base::Prefixed(absl::StrCat("tensor '", name, "'"), status);
    }
    if (bad.ok()) tensors.push_back({name, *shape, *dtype});
    return true;
  };
  try {
    const Json parsed = Json::parse(text.begin(), text.end(), member);
    if (!parsed.is_object()) return absl::InvalidArgumentError("refit info is not a JSON object");
  } catch (const nlohmann::json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("refit info is not JSON: ", e.what()));
  }
  WS_RETURN_IF_ERROR(bad);
  return RefitInfo::Create(std::move(tensors));
}

}  // namespace weight_sync::refit
