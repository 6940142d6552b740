// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EngineFault: what goes wrong at a fake engine, where, as data. A script is a list of them; it
// crosses to an engine process as JSON:
//
//   [{"update": 2, "at": "load", "load": 5, "do": "fail", "text": "out of memory"},
//    {"update": -1, "at": "load", "do": "drop", "tensor": "model.norm.weight"}]

#ifndef WEIGHT_SYNC_FAKES_ENGINE_FAULTS_H_
#define WEIGHT_SYNC_FAKES_ENGINE_FAULTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weight_sync::fakes {

struct EngineFault {
  // At which update, counted from 0 since the engine's start; -1: at every one.
  int64_t update = -1;

  enum class At { kBegin, kLoad, kEnd, kFinish, kResume, kDigests };
  At at = At::kLoad;
  // For kLoad: at which Load call of the update, counted from 0. Drop and swap ignore it.
  int64_t load = 0;

  enum class Do {
    kFail,  // returns Internal with `text`
    kKill,  // the process gets SIGKILL
    kStop,  // the process gets SIGSTOP
    kExit,  // the process exits 0, as if all were well
    kDrop,  // `tensor` is not loaded and nobody is told
    kSwap,  // `tensor` and `other`, of one shape and dtype, are loaded into each other's place
  };
  Do action = Do::kFail;
  std::string text;
  std::string tensor;
  std::string other;
};

std::string FaultsToJson(const std::vector<EngineFault>& faults);
absl::StatusOr<std::vector<EngineFault>> FaultsFromJson(absl::string_view text);

}  // namespace weight_sync::fakes

#endif  // WEIGHT_SYNC_FAKES_ENGINE_FAULTS_H_
