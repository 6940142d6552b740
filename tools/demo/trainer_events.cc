// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/demo/trainer_events.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace weight_sync::demo {
namespace {

using nlohmann::json;

const char* VerificationName(Verification verification) {
  switch (verification) {
    case Verification::kNotRun:
      return "not run";
    case Verification::kEqual:
      return "equal";
    case Verification::kCannotTell:
      return "cannot tell";
  }
  return "";
}

struct ToEvent {
  json operator()(const TrainerSetup& setup) const {
    return {{"event", "setup"},
            {"load_seconds", setup.load_seconds},
            {"memory_copy_bytes", setup.memory_copy_bytes},
            {"memory_copy_rate", setup.memory_copy_rate}};
  }
  json operator()(const Progress& progress) const {
    return {{"event", "progress"},
            {"step", progress.step},
            {"phase", progress.phase},
            {"done", progress.done},
            {"of", progress.of}};
  }
  json operator()(const StepReport& step) const {
    json out = ToJson(step);
    out["event"] = "step";
    return out;
  }
  json operator()(const absl::Status& status) const {
    return {{"event", "failed"},
            {"code", static_cast<int>(status.code())},
            {"message", std::string(status.message())}};
  }
};

SyncReport SyncFromJson(const json& in) {
  SyncReport sync;
  sync.version = in.at("version");
  sync.tensors = in.at("tensors");
  sync.bytes = in.at("bytes");
  sync.buckets = in.at("buckets");
  sync.seconds = in.at("seconds");
  sync.trainer_blocked_seconds = in.at("trainer_blocked_seconds");
  sync.engine_paused_seconds = in.at("engine_paused_seconds");
  sync.transfer_seconds = in.at("transfer_seconds");
  sync.verification_seconds = in.at("verification_seconds");
  for (const Verification v : {Verification::kEqual, Verification::kCannotTell}) {
    if (in.at("verified") == VerificationName(v)) sync.verification = v;
  }
  return sync;
}

StepReport StepFromJson(const json& in) {
  StepReport step;
  step.step = in.at("step");
  step.trained = in.at("trained");
  step.version = in.at("version");
  step.stale_before = in.at("stale_before");
  step.stale_after = in.at("stale_after");
  step.answered = in.at("answered");
  if (!in.at("sync").is_null()) step.sync = SyncFromJson(in.at("sync"));
  return step;
}

}  // namespace

json ToJson(const StepReport& step) {
  json out = {{"step", step.step},
              {"trained", step.trained},
              {"version", step.version},
              {"stale_before", step.stale_before},
              {"stale_after", step.stale_after},
              {"answered", step.answered},
              {"sync", nullptr}};
  if (step.sync.has_value()) {
    const SyncReport& sync = *step.sync;
    out["sync"] = {{"version", sync.version},
                   {"tensors", sync.tensors},
                   {"bytes", sync.bytes},
                   {"buckets", sync.buckets},
                   {"seconds", sync.seconds},
                   {"trainer_blocked_seconds", sync.trainer_blocked_seconds},
                   {"engine_paused_seconds", sync.engine_paused_seconds},
                   {"transfer_seconds", sync.transfer_seconds},
                   {"verification_seconds", sync.verification_seconds},
                   {"verified", VerificationName(sync.verification)}};
  }
  return out;
}

std::string OneLine(const json& in) {
  return in.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string EventToLine(const TrainerEvent& event) { return OneLine(std::visit(ToEvent(), event)); }

absl::StatusOr<TrainerEvent> EventFromLine(absl::string_view line) {
  try {
    const json in = json::parse(line.begin(), line.end());
    const std::string event = in.at("event");
    if (event == "setup") {
      return TrainerSetup{in.at("load_seconds"), in.at("memory_copy_bytes"),
                          in.at("memory_copy_rate")};
    }
    if (event == "progress") {
      return Progress{in.at("step"), in.at("phase"), in.at("done"), in.at("of")};
    }
    if (event == "step") return StepFromJson(in);
    if (event == "failed") {
      return TrainerEvent(absl::Status(static_cast<absl::StatusCode>(in.at("code").get<int>()),
                                       in.at("message").get<std::string>()));
    }
    return absl::InternalError(absl::StrCat("unknown trainer event '", event, "'"));
  } catch (const json::exception& e) {
    return absl::InternalError(absl::StrCat("trainer event '", line, "': ", e.what()));
  }
}

}  // namespace weight_sync::demo
