// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/placement.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace weight_sync::refit {

absl::StatusOr<Placement> Placement::Parse(absl::string_view text) {
  const auto error = [text] {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is no placement; those are R, S(dim), _S(dim, split factor), P"));
  };
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  const absl::string_view name = rest.substr(0, rest.find('('));
  rest.remove_prefix(name.size());
  if (rest.empty() && (name == "R" || name == "P")) {
    return name == "R" ? Replicate() : Partial();
  }
  if (!absl::ConsumePrefix(&rest, "(") || !absl::ConsumeSuffix(&rest, ")")) return error();
  if (name == "Replicate") return rest.empty() ? absl::StatusOr<Placement>(Replicate()) : error();
  if (name == "P" || name == "Partial") return Partial();

  std::vector<absl::string_view> arguments = absl::StrSplit(rest, ',');
  const auto number = [&arguments](size_t i, absl::string_view keyword, auto* out) {
    absl::string_view argument = absl::StripAsciiWhitespace(arguments[i]);
    absl::ConsumePrefix(&argument, keyword);
    return absl::SimpleAtoi(argument, out);
  };
  Placement placement = Shard(0);
  if (!number(0, "dim=", &placement.dim)) return error();
  if (arguments.size() == 1 && (name == "S" || name == "Shard")) return placement;
  placement.kind = Kind::kStridedShard;
  if (arguments.size() != 2 || (name != "_S" && name != "_StridedShard") ||
      !number(1, "sf=", &placement.split_factor)) {
    return error();
  }
  return placement;
}

std::string Placement::ToString() const {
  switch (kind) {
    case Kind::kReplicate:
      return "R";
    case Kind::kShard:
      return absl::StrCat("S(", dim, ")");
    case Kind::kStridedShard:
      return absl::StrCat("_S(", dim, ", ", split_factor, ")");
    case Kind::kPartial:
      return "P";
  }
  return "";
}

}  // namespace weight_sync::refit
