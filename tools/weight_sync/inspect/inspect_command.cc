// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/inspect/inspect_command.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "tools/common/callers_directory.h"
#include "tools/weight_sync/common/command_error.h"
#include "tools/weight_sync/common/layout_argument.h"
#include "tools/weight_sync/common/source_model.h"
#include "tools/weight_sync/inspect/inspection.h"
#include "tools/weight_sync/inspect/report.h"

namespace weight_sync::inspect {
namespace {

struct Options {
  std::string checkpoint;
  std::string config;
  std::string layout;
  bool json = false;
};

int Run(const Options& options) {
  const absl::StatusOr<tools::SourceModel> model = tools::OpenSourceModel(
      tools::FromCallersDirectory(options.checkpoint), tools::FromCallersDirectory(options.config));
  if (!model.ok()) return tools::TellError(model.status(), options.json);
  std::optional<refit::LayoutOptions> layout;
  if (!options.layout.empty()) {
    layout = tools::LayoutOf(*tools::ParseLayoutArgument(options.layout), model->model.config);
  }
  const Inspection found = Inspect(*model, layout);
  if (options.json) {
    std::puts(JsonReport(found).c_str());
  } else {
    std::fputs(TextReport(found).c_str(), stdout);
  }
  return Ok(found) ? 0 : 1;
}

}  // namespace

void AddInspectCommand(CLI::App& app, int* exit_status) {
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Says what a checkpoint is: its family and form, how many tensors of which types, what "
      "config.json does not say, which trainers' layouts can be refitted from exactly, and how the "
      "tensors of one layout map to the engine's. Reads headers only and changes nothing.");
  const auto options = std::make_shared<Options>();
  command
      ->add_option(
          "CHECKPOINT", options->checkpoint,
          "A folder of a safetensors checkpoint with its config.json, one file or sharded; "
          "or a file or an index in one")
      ->required();
  command
      ->add_option("--layout", options->layout,
                   "The trainer's layout to show: " + tools::LayoutHelp() +
                       ". Default: the checkpoint's own form")
      ->check(tools::LayoutValidator())
      ->option_text("LAYOUT");
  command->add_option("--config", options->config, "Instead of the config.json beside it")
      ->option_text("FILE");
  command->add_flag("--json", options->json,
                    "Prints one JSON object and nothing else; its shape is described in "
                    "tools/weight_sync/inspect/report.h");
  command->footer(
      "Exit status: 0 every tensor is known and the layout is exact; 1 something is unmatched, the "
      "layout is refused, or the checkpoint cannot be read: the report says what; 2 wrong usage.");
  command->callback([options, exit_status] { *exit_status = Run(*options); });
}

}  // namespace weight_sync::inspect
