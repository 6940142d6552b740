// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/weight_sync/doctor/findings_json.h"
#include "tools/weight_sync/doctor/report.h"

namespace weight_sync::doctor {

NLOHMANN_JSON_SERIALIZE_ENUM(Ability, {{Ability::kWorks, "works"},
                                       {Ability::kNotInThisVersion, "not_in_this_version"},
                                       {Ability::kMissing, "missing"},
                                       {Ability::kNoTransport, "no_transport"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Lack, what, why, fix)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Verdict, topology, transport, in_this_version, ability, note,
                                   lacks)

std::string JsonReport(const Findings& findings, const std::vector<Verdict>& verdicts) {
  nlohmann::json out = findings;
  out["format"] = 1;
  out["ready"] = Ready(verdicts);
  out["transports"] = verdicts;
  return out.dump(2);
}

}  // namespace weight_sync::doctor
