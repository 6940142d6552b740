// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/roundtrip/roundtrip_command.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "tools/common/callers_directory.h"
#include "tools/common/human_numbers.h"
#include "tools/common/page.h"
#include "tools/common/progress_line.h"
#include "tools/common/temporary_directory.h"
#include "tools/weight_sync/common/command_error.h"
#include "tools/weight_sync/common/layout_argument.h"
#include "tools/weight_sync/common/master_dtype.h"
#include "tools/weight_sync/common/source_model.h"
#include "tools/weight_sync/roundtrip/roundtrip.h"
#include "tools/weight_sync/roundtrip/simulated_ranks.h"

namespace weight_sync::roundtrip {
namespace {

using tools::HumanBytes;
using tools::WithCommas;

struct Arguments {
  std::string checkpoint;
  std::string config;
  std::string layout;
  std::string scratch;
  tools::MasterDType masters;
  bool json = false;
  std::string shards;
};

std::string Speed(int64_t bytes, double seconds) {
  return absl::StrFormat("%.2f s, %s GB/s", seconds,
                         tools::HumanRate(static_cast<double>(bytes) / seconds));
}

// As --shards takes it.
std::string MeshText(const refit::Mesh& mesh) {
  return absl::StrReplaceAll(mesh.ToString(), {{" ", ""}});
}

std::string JsonReport(const tools::SourceModel& model, const Options& options,
                       const Result& result) {
  const nlohmann::json out = {{"format", 1},
                              {"ok", result.differ.empty()},
                              {"checkpoint", model.path},
                              {"layout", tools::LayoutText(options.layout)},
                              {"float32_masters", options.float32_masters},
                              {"tensors", result.tensors},
                              {"bytes", result.bytes},
                              {"passed_through", result.passed_through},
                              {"trainer_tensors", result.trainer_tensors},
                              {"trainer_bytes", result.trainer_bytes},
                              {"load_seconds", result.load_seconds},
                              {"refit_seconds", result.refit_seconds},
                              {"shards", options.mesh.has_value() ? MeshText(*options.mesh) : ""},
                              {"scratch", options.scratch},
                              {"scratch_in_memory", result.scratch_in_memory},
                              {"differ", result.differ}};
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string TextReport(const tools::SourceModel& model, const Options& options,
                       const Result& result) {
  tools::Page page;
  page.Title("Round trip");
  page.Line("checkpoint", model.path);
  page.Fact("layout", absl::StrCat(tools::LayoutText(options.layout),
                                   options.float32_masters ? ", float32 masters" : ""));
  if (options.mesh.has_value()) {
    page.Fact("shards", absl::StrCat(MeshText(*options.mesh), ": ", options.mesh->ranks().size(),
                                     " simulated ranks"));
  }
  page.Fact("load", absl::StrCat(WithCommas(result.trainer_tensors), " trainer tensors, ",
                                 HumanBytes(result.trainer_bytes), " in ",
                                 Speed(result.trainer_bytes, result.load_seconds)));
  page.Fact("refit",
            absl::StrCat(WithCommas(result.tensors), " tensors, ", HumanBytes(result.bytes), " in ",
                         Speed(result.bytes, result.refit_seconds), ", compared"));
  if (result.passed_through > 0) {
    page.Fact("", absl::StrCat(WithCommas(result.passed_through),
                               " of them pass through: the layout does not hold them"));
  }
  if (result.scratch_in_memory) {
    page.Fact("scratch", absl::StrCat("'", options.scratch,
                                      "' is memory and no disk; --scratch names another folder"));
  }
  if (result.differ.empty()) {
    page.Fact("result", "every byte came back");
  } else {
    page.Fact("result", absl::StrCat(WithCommas(static_cast<int64_t>(result.differ.size())),
                                     " tensors DIFFER:"));
    for (const std::string& name : result.differ) page.Line("", name);
  }
  return page.text();
}

int Run(const Arguments& arguments) {
  const absl::StatusOr<tools::SourceModel> model =
      tools::OpenSourceModel(tools::FromCallersDirectory(arguments.checkpoint),
                             tools::FromCallersDirectory(arguments.config));
  if (!model.ok()) return tools::TellError(model.status(), arguments.json);
  Options options;
  options.layout =
      tools::LayoutOf(*tools::ParseLayoutArgument(arguments.layout), model->model.config);
  options.float32_masters = arguments.masters.float32();
  options.scratch = arguments.scratch.empty() ? tools::TemporaryParent()
                                              : tools::FromCallersDirectory(arguments.scratch);
  if (!arguments.shards.empty()) options.mesh = *ParseMesh(arguments.shards);
  tools::ProgressLine progress(stderr);
  const absl::StatusOr<Result> result = Roundtrip(*model, options, progress);
  progress.Clear();
  if (!result.ok()) return tools::TellError(result.status(), arguments.json);
  if (arguments.json) {
    std::puts(JsonReport(*model, options, *result).c_str());
  } else {
    std::fputs(TextReport(*model, options, *result).c_str(), stdout);
  }
  return result->differ.empty() ? 0 : 1;
}

}  // namespace

void AddRoundtripCommand(CLI::App& app, int* exit_status) {
  CLI::App* command = app.add_subcommand(
      "roundtrip",
      "Loads a checkpoint into a trainer's layout, refits it as a sync does, and compares what an "
      "engine would get with the checkpoint, byte for byte. The trainer's tree is a scratch file, "
      "so the model may be larger than memory.");
  const auto arguments = std::make_shared<Arguments>();
  command
      ->add_option(
          "CHECKPOINT", arguments->checkpoint,
          "A folder of a safetensors checkpoint with its config.json, one file or sharded; "
          "or a file or an index in one")
      ->required();
  command->add_option("--layout", arguments->layout, "The trainer's layout: " + tools::LayoutHelp())
      ->required()
      ->check(tools::LayoutValidator())
      ->option_text("LAYOUT REQUIRED");
  arguments->masters.AddTo(*command);
  command
      ->add_option("--shards", arguments->shards,
                   "Simulated ranks that hold the tree, cut along first dimensions as FSDP2 over "
                   "tensor parallelism does: dp=2,tp=2")
      ->check(
          [](const std::string& text) { return std::string(ParseMesh(text).status().message()); })
      ->option_text("MESH");
  command->add_option("--config", arguments->config, "Instead of the config.json beside it")
      ->option_text("FILE");
  command
      ->add_option("--scratch", arguments->scratch,
                   "The folder of the scratch file, which takes as much as the trainer's tree and "
                   "is gone when this ends, however it ends. Default: $TMPDIR or /tmp")
      ->option_text("DIR");
  command->add_flag("--json", arguments->json,
                    "Prints one JSON object and nothing else; its shape is described in "
                    "tools/weight_sync/roundtrip/roundtrip_command.h");
  command->footer(
      "Exit status: 0 every byte came back; 1 tensors differ (they are named), the layout is "
      "refused, or the checkpoint cannot be loaded; 2 wrong usage.");
  command->callback([arguments, exit_status] { *exit_status = Run(*arguments); });
}

}  // namespace weight_sync::roundtrip
