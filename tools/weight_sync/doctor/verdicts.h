// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// What each transport could do with a machine, from what was found there: a pure function.
//
//   for (const Verdict& verdict : Judge(findings)) ...
//   return Ready(verdicts) ? 0 : 1;

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_VERDICTS_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_VERDICTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/weight_sync/doctor/findings.h"

namespace weight_sync::doctor {

enum class Ability : uint8_t {
  kWorks,             // "works"
  kNotInThisVersion,  // "not_in_this_version": the machine is ready, this version is not
  kMissing,           // "missing": the machine lacks something
  kNoTransport,       // "no_transport": nothing supports this topology
};

// Something that the transport needs and this machine has not.
struct Lack {
  std::string what;  // "CUDA driver"
  std::string why;   // what was found instead
  std::string fix;   // what to do
};

struct Verdict {
  std::string topology;   // "colocated vLLM", as README's table
  std::string transport;  // "IPC", "NCCL", "HTTP" or "none"
  bool in_this_version = false;
  Ability ability = Ability::kMissing;
  std::string note;         // what else there is to know
  std::vector<Lack> lacks;  // not empty exactly for kMissing
};

// One for each row of README's table, in its order.
std::vector<Verdict> Judge(const Findings& findings);

// Whether every transport that this version has works.
bool Ready(const std::vector<Verdict>& verdicts);

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_VERDICTS_H_
