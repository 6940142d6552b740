// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The demo: a trainer process syncs a checkpoint into an engine process, version after version, and
// proves after each that the engine holds exactly the trainer's weights.

#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "fakes/engine_process.h"
#include "tools/common/callers_directory.h"
#include "tools/common/progress_line.h"
#include "tools/demo/demo_options.h"
#include "tools/demo/display.h"
#include "tools/demo/supervisor.h"
#include "tools/demo/trainer.h"

namespace weight_sync::demo {
namespace {

int Main(int argc, char** argv) {
  DemoOptions options;
  bool json = false, no_wire_digest = false, no_read_guard = false;
  double timeout_seconds = absl::ToDoubleSeconds(options.timeout);
  std::string injection;
  std::map<std::string, Injection> injections;
  for (const Injection known :
       {Injection::kBitflip, Injection::kDrop, Injection::kSwap, Injection::kTorn,
        Injection::kKillEngine, Injection::kKillTrainer}) {
    injections.emplace(InjectionName(known), known);
  }

  CLI::App app(
      "Starts a trainer and an engine as two processes, syncs the trainer's weights into the "
      "engine step after step as a training loop does, and verifies each sync: the engine digests "
      "its own table after loading, the trainer its parameters by a path of its own.");
  app.add_option("--checkpoint", options.checkpoint,
                 "A folder with a safetensors checkpoint, one file or sharded. Default: one of 300 "
                 "MB is made in $TMPDIR and removed at the end")
      ->option_text("DIR");
  const auto defaults_to = [](auto value) { return absl::StrCat("N  [", value, "]"); };
  app.add_option("--steps", options.steps,
                 "Steps of the training loop. The third trains nothing, the fourth trains and "
                 "marks twice")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->option_text(defaults_to(options.steps));
  app.add_option("--slots", options.slots, "Slots of the ring in shared memory")
      ->option_text(defaults_to(options.slots));
  app.add_option("--slot-bytes", options.slot_bytes, "Bytes of a slot, a multiple of 64")
      ->option_text(defaults_to(options.slot_bytes));
  app.add_option("--seed", options.seed, "Of the checkpoint that is made, and of the training")
      ->option_text(defaults_to(options.seed));
  app.add_option("--timeout", timeout_seconds, "Seconds that one sync may take")
      ->check(CLI::Range(0.001, 1e6))
      ->option_text(defaults_to(timeout_seconds));
  app.add_option("--inject", injection,
                 "Injects one fault into the second sync, which must be caught: the exit status is "
                 "then 1 and the cause is named")
      ->check(CLI::IsMember(injections))
      ->option_text("bitflip|drop|swap|torn|kill-engine|kill-trainer");
  app.add_flag("--without-wire-digest", no_wire_digest,
               "Switches the digest of each bucket off, only to show that deep verification finds "
               "a fault alone");
  app.add_flag("--without-read-guard", no_read_guard,
               "Switches the check for overlapping optimizer steps off, only to show that deep "
               "verification finds a torn sync alone");
  app.add_flag("--json", json, "Prints one JSON object and nothing else");
  app.footer(
      "Exit status: 0 every sync was verified and every answer was right; 1 it failed, the cause "
      "is named; 2 wrong usage; 3 an injected fault was not caught; 128 + N interrupted by signal "
      "N.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kExitOk : kExitUsage;
  }
  options.checkpoint = tools::FromCallersDirectory(options.checkpoint);
  if (!injection.empty()) options.injection = injections.at(injection);
  options.timeout = absl::Seconds(timeout_seconds);
  options.wire_digest = !no_wire_digest;
  options.read_guard = !no_read_guard;

  Display display(json                        ? Display::Mode::kSilent
                  : tools::OnTerminal(stdout) ? Display::Mode::kTerminal
                                              : Display::Mode::kLog);
  display.Line("A trainer process syncs its weights into an engine process, step after step.");
  display.Line("");
  const DemoResult result = RunDemo(options, display);
  if (json) std::puts(OneLine(ToJson(options, result)).c_str());
  return result.exit_code;
}

}  // namespace
}  // namespace weight_sync::demo

int main(int argc, char** argv) {
  if (const std::optional<int> code = weight_sync::fakes::MaybeRunEngineProcess(argc, argv)) {
    return *code;
  }
  if (const std::optional<int> code = weight_sync::demo::MaybeRunTrainer(argc, argv)) return *code;
  return weight_sync::demo::Main(argc, argv);
}
