// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A trainer's layout as the command line names it:
//
//   tunix                              a layout of refit/maps
//   maxtext:scanned                    with its layers stacked, at axis 1 as MaxText does by default
//   maxtext:scanned,axis=0,period=4    at another axis; the pattern of layers repeats after 4
//
// Without `period` it is what the model's config says: the fewest layers after which their kinds
// repeat.
//
//   WS_ASSIGN_OR_RETURN(const LayoutArgument argument, ParseLayoutArgument("maxtext:scanned"));
//   const refit::LayoutOptions layout = LayoutOf(argument, config);
//   LayoutText(layout);   // "maxtext:scanned,axis=1,period=1"

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_LAYOUT_ARGUMENT_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_LAYOUT_ARGUMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "refit/maps/family.h"
#include "refit/maps/model_config.h"

namespace weight_sync::tools {

struct LayoutArgument {
  std::string name;
  bool scanned = false;
  int axis = 1;
  std::optional<int64_t> period = std::nullopt;
};

// Every layout that a family of this library has, each once.
std::vector<std::string> KnownLayouts();

// InvalidArgument says which layouts exist, or what is wrong behind the colon.
absl::StatusOr<LayoutArgument> ParseLayoutArgument(absl::string_view text);

refit::LayoutOptions LayoutOf(const LayoutArgument& argument, const refit::ModelConfig& config);

// As ParseLayoutArgument reads it.
std::string LayoutText(const refit::LayoutOptions& layout);

// For an option that takes a layout: refuses what ParseLayoutArgument refuses.
CLI::Validator LayoutValidator();

// What the help of such an option says about its argument.
std::string LayoutHelp();

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_LAYOUT_ARGUMENT_H_
