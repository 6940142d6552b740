// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/common/layout_argument.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "refit/maps/all_families.h"

namespace weight_sync::tools {
namespace {

using refit::LayoutOptions;
using refit::ModelConfig;

// The fewest layers after which their kinds repeat, among the divisors of their number.
int64_t PeriodOf(const ModelConfig& config) {
  const size_t layers = static_cast<size_t>(config.num_hidden_layers);
  for (size_t period = 1; period < layers; ++period) {
    if (layers % period != 0) continue;
    bool repeats = true;
    for (size_t i = period; i < layers && repeats; ++i) {
      repeats = config.full_attention[i] == config.full_attention[i - period] &&
                config.sparse[i] == config.sparse[i - period];
    }
    if (repeats) return static_cast<int64_t>(period);
  }
  return config.num_hidden_layers;
}

absl::Status ReadOption(absl::string_view option, LayoutArgument& argument) {
  if (option == "scanned") {
    argument.scanned = true;
    return absl::OkStatus();
  }
  const std::pair<absl::string_view, absl::string_view> entry =
      absl::StrSplit(option, absl::MaxSplits('=', 1));
  if (entry.first == "axis") {
    if (absl::SimpleAtoi(entry.second, &argument.axis)) return absl::OkStatus();
  } else if (entry.first == "period") {
    int64_t period;
    if (absl::SimpleAtoi(entry.second, &period)) {
      argument.period = period;
      return absl::OkStatus();
    }
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("'", option, "' is none of scanned, axis=N, period=N"));
  }
  return absl::InvalidArgumentError(absl::StrCat("'", option, "' has no number"));
}

}  // namespace

std::vector<std::string> KnownLayouts() {
  std::vector<std::string> known;
  for (const refit::Family* family : refit::AllFamilies().Families()) {
    for (const std::string& layout : family->layouts) {
      if (std::find(known.begin(), known.end(), layout) == known.end()) known.push_back(layout);
    }
  }
  return known;
}

absl::StatusOr<LayoutArgument> ParseLayoutArgument(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  LayoutArgument argument;
  argument.name = std::string(parts[0]);
  const std::vector<std::string> known = KnownLayouts();
  if (std::find(known.begin(), known.end(), argument.name) == known.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no layout is called '", argument.name,
                                                   "'; there are ", absl::StrJoin(known, ", ")));
  }
  if (parts.size() == 1) return argument;
  for (const absl::string_view option : absl::StrSplit(parts[1], ',')) {
    WS_RETURN_IF_ERROR(
        base::Prefixed(absl::StrCat("layout '", text, "'"), ReadOption(option, argument)));
  }
  if (!argument.scanned) {
    return absl::InvalidArgumentError(
        absl::StrCat("layout '", text, "': axis and period are of scanned layers: write '",
                     argument.name, ":scanned,", parts[1], "'"));
  }
  return argument;
}

LayoutOptions LayoutOf(const LayoutArgument& argument, const ModelConfig& config) {
  LayoutOptions layout;
  layout.name = argument.name;
  if (!argument.scanned) return layout;
  layout.scanned = true;
  layout.scan_axis = argument.axis;
  layout.scan_period = argument.period.has_value() ? *argument.period : PeriodOf(config);
  return layout;
}

std::string LayoutText(const LayoutOptions& layout) {
  if (!layout.scanned) return layout.name;
  return absl::StrCat(layout.name, ":scanned,axis=", layout.scan_axis,
                      ",period=", layout.scan_period);
}

CLI::Validator LayoutValidator() {
  return CLI::Validator(
      [](const std::string& text) {
        return std::string(ParseLayoutArgument(text).status().message());
      },
      "LAYOUT");
}

std::string LayoutHelp() {
  return absl::StrCat(absl::StrJoin(KnownLayouts(), ", "),
                      "; maxtext:scanned[,axis=N][,period=N] with stacked layers");
}

}  // namespace weight_sync::tools
