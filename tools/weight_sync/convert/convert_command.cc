// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/convert/convert_command.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "refit/maps/family.h"
#include "tools/common/callers_directory.h"
#include "tools/common/human_numbers.h"
#include "tools/common/page.h"
#include "tools/common/progress_line.h"
#include "tools/common/temporary_directory.h"
#include "tools/weight_sync/common/command_error.h"
#include "tools/weight_sync/common/layout_argument.h"
#include "tools/weight_sync/common/master_dtype.h"
#include "tools/weight_sync/convert/convert.h"

namespace weight_sync::convert {
namespace {

using tools::WithCommas;

struct Arguments {
  Options options;  // paths as they are on the command line
  std::string from;
  std::string to;
  tools::MasterDType masters;
  bool json = false;
};

std::string JsonReport(const Options& options, const Result& result) {
  const nlohmann::json out = {{"format", 1},
                              {"ok", true},
                              {"in", options.in},
                              {"from", result.from},
                              {"out", options.out},
                              {"to", result.to},
                              {"tensors", result.tensors},
                              {"bytes", result.bytes},
                              {"files", result.files},
                              {"rounded", result.rounded},
                              {"passed_through", result.passed_through},
                              {"left_out", result.left_out},
                              {"zeros", result.zeros},
                              {"parts_left_away", result.parts_left_away},
                              {"seconds", result.seconds}};
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string TextReport(const Options& options, const Result& result) {
  tools::Page page;
  page.Title("Converted");
  page.Line("from", absl::StrCat(result.from, "  ", options.in));
  page.Line("to", absl::StrCat(result.to, "  ", options.out));
  page.Fact("result",
            absl::StrCat(WithCommas(result.tensors), " tensors, ", tools::HumanBytes(result.bytes),
                         " in ", result.files, result.files == 1 ? " file" : " files",
                         absl::StrFormat(", %.2f s", result.seconds)));
  const auto list = [&page](absl::string_view label, absl::string_view what,
                            const std::vector<std::string>& names) {
    if (names.empty()) return;
    constexpr size_t kShown = 10;  // --json has them all
    page.Fact(label, absl::StrCat(WithCommas(static_cast<int64_t>(names.size())), " ", what));
    for (size_t i = 0; i < names.size() && i < kShown; ++i) page.Line("", names[i]);
    if (names.size() > kShown) page.Line("", "...");
  };
  if (result.rounded > 0) {
    page.Fact("rounded", absl::StrCat(WithCommas(result.rounded),
                                      " tensors from float32 to bfloat16, to nearest even"));
  }
  if (result.passed_through > 0) {
    page.Fact("passed", absl::StrCat(WithCommas(result.passed_through), " tensors come from ",
                                     options.manifest_from, ": the trainer does not hold them"));
  }
  list("left out",
       "tensors that this layout does not hold; to convert back, --manifest-from takes them from "
       "IN:",
       result.left_out);
  list("zeros", "tensors that the trainer holds and no checkpoint has:", result.zeros);
  if (!result.parts_left_away.empty()) {
    page.Fact("note", absl::StrCat("without --manifest-from the checkpoint has no ",
                                   absl::StrJoin(result.parts_left_away, "*, "), "*"));
  }
  return page.text();
}

// Throws, as the parser does, for options that do not go together.
void CheckTogether(const Arguments& arguments) {
  if (!arguments.options.manifest_from.empty() && refit::IsHfForm(arguments.from)) {
    throw CLI::ValidationError("--manifest-from",
                               absl::StrCat("is for a trainer's tree; with --from ", arguments.from,
                                            " IN is such a checkpoint itself"));
  }
  if (arguments.masters.float32() && refit::IsHfForm(arguments.to)) {
    throw CLI::ValidationError("--master-dtype",
                               absl::StrCat("is for a trainer's tree; --to ", arguments.to,
                                            " has the checkpoint's types"));
  }
}

int Run(const Arguments& arguments) {
  Options options = arguments.options;
  for (std::string* path :
       {&options.in, &options.config, &options.out, &options.manifest_from, &options.scratch}) {
    *path = tools::FromCallersDirectory(*path);
  }
  if (options.scratch.empty()) options.scratch = tools::TemporaryParent();
  options.from = *tools::ParseLayoutArgument(arguments.from);
  options.to = *tools::ParseLayoutArgument(arguments.to);
  options.float32_masters = arguments.masters.float32();
  tools::ProgressLine progress(stderr);
  const absl::StatusOr<Result> result = Convert(options, progress);
  progress.Clear();
  if (!result.ok()) return tools::TellError(result.status(), arguments.json);
  if (arguments.json) {
    std::puts(JsonReport(options, *result).c_str());
  } else {
    std::fputs(TextReport(options, *result).c_str(), stdout);
  }
  return 0;
}

}  // namespace

void AddConvertCommand(CLI::App& app, int* exit_status) {
  CLI::App* command = app.add_subcommand(
      "convert",
      "Rewrites a model from one layout into another: a checkpoint into a trainer's tree, a tree "
      "into a checkpoint, or a tree into another trainer's. The result appears when it is whole.");
  const auto arguments = std::make_shared<Arguments>();
  Options& options = arguments->options;
  command
      ->add_option("IN", options.in,
                   "A folder of safetensors, one file or sharded, or a file or an index. A "
                   "trainer's tree may have path names of its own: layers/0/attn/q_proj/w, "
                   "layers-0-..., ['layers'][0]..., params/ before, .value after")
      ->required();
  command->add_option("--from", arguments->from, "IN's layout: " + tools::LayoutHelp())
      ->required()
      ->check(tools::LayoutValidator())
      ->option_text("LAYOUT REQUIRED");
  command->add_option("--to", arguments->to, "OUT's layout")
      ->required()
      ->check(tools::LayoutValidator())
      ->option_text("LAYOUT REQUIRED");
  command
      ->add_option("--config", options.config,
                   "The model's config.json, or a folder with it; it is copied to OUT")
      ->required()
      ->option_text("CONFIG_JSON REQUIRED");
  command
      ->add_option("--out", options.out,
                   "The folder of the result, new or empty: safetensors, with an index where there "
                   "are several, as Hugging Face's libraries write them")
      ->required()
      ->option_text("DIR REQUIRED");
  command
      ->add_option("--manifest-from", options.manifest_from,
                   "The checkpoint that the trainer started from. A tree becomes a checkpoint of "
                   "the same tensors, types and order, and what a trainer does not hold comes from "
                   "there: towers, MTP layers, biases. Without it: what save_pretrained writes")
      ->option_text("CHECKPOINT");
  arguments->masters.AddTo(*command);
  command
      ->add_option("--max-shard-bytes", options.max_shard_bytes,
                   "Of tensors in one file, also as 500MB or 5GB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true))
      ->check(CLI::PositiveNumber)
      ->option_text("BYTES  [5GB]");
  command
      ->add_option("--scratch", options.scratch,
                   "The folder of the scratch file that a tree takes on its way into another "
                   "trainer's. Default: $TMPDIR or /tmp")
      ->option_text("DIR");
  command->add_flag("--json", arguments->json,
                    "Prints one JSON object and nothing else; its shape is described in "
                    "tools/weight_sync/convert/convert_command.h");
  command->footer(
      "Float32 of a trainer becomes what the manifest or config.json says, rounded to nearest "
      "even; "
      "from a tree to a tree --master-dtype float32 keeps it.\n"
      "Exit status: 0 the result is there; 1 it is not, and the error says why; 2 wrong usage.");
  command->callback([arguments, exit_status] {
    CheckTogether(*arguments);
    *exit_status = Run(*arguments);
  });
}

}  // namespace weight_sync::convert
