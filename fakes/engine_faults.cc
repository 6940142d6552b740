// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/engine_faults.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace weight_sync::fakes {
namespace {

NLOHMANN_JSON_SERIALIZE_ENUM(EngineFault::At, {{EngineFault::At::kBegin, "begin"},
                                               {EngineFault::At::kLoad, "load"},
                                               {EngineFault::At::kEnd, "end"},
                                               {EngineFault::At::kFinish, "finish"},
                                               {EngineFault::At::kResume, "resume"},
                                               {EngineFault::At::kDigests, "digests"}})
NLOHMANN_JSON_SERIALIZE_ENUM(EngineFault::Do, {{EngineFault::Do::kFail, "fail"},
                                               {EngineFault::Do::kKill, "kill"},
                                               {EngineFault::Do::kStop, "stop"},
                                               {EngineFault::Do::kExit, "exit"},
                                               {EngineFault::Do::kDrop, "drop"},
                                               {EngineFault::Do::kSwap, "swap"}})

// from_json takes a name that it does not know for the first one.
template <typename Enum>
absl::Status Read(const nlohmann::json& name, Enum& value) {
  from_json(name, value);
  nlohmann::json understood;
  to_json(understood, value);
  if (understood == name) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("fault script: unknown ", name.dump()));
}

}  // namespace

std::string FaultsToJson(const std::vector<EngineFault>& faults) {
  nlohmann::json list = nlohmann::json::array();
  for (const EngineFault& fault : faults) {
    nlohmann::json at, action;
    to_json(at, fault.at);
    to_json(action, fault.action);
    list.push_back({{"update", fault.update},
                    {"at", at},
                    {"load", fault.load},
                    {"do", action},
                    {"text", fault.text},
                    {"tensor", fault.tensor},
                    {"other", fault.other}});
  }
  return list.dump();
}

absl::StatusOr<std::vector<EngineFault>> FaultsFromJson(absl::string_view text) {
  std::vector<EngineFault> faults;
  try {
    for (const nlohmann::json& entry : nlohmann::json::parse(text.begin(), text.end())) {
      EngineFault fault;
      fault.update = entry.value("update", fault.update);
      WS_RETURN_IF_ERROR(Read(entry.at("at"), fault.at));
      fault.load = entry.value("load", fault.load);
      WS_RETURN_IF_ERROR(Read(entry.at("do"), fault.action));
      fault.text = entry.value("text", "");
      fault.tensor = entry.value("tensor", "");
      fault.other = entry.value("other", "");
      faults.push_back(fault);
    }
  } catch (const nlohmann::json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("fault script: ", e.what()));
  }
  return faults;
}

}  // namespace weight_sync::fakes
