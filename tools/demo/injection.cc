// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/demo/injection.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/packing/packer.h"
#include "tools/demo/demo_checkpoint.h"

namespace weight_sync::demo {
namespace {

using refit::NamedTensor;

bool SameBytes(const refit::TensorView& a, const refit::TensorView& b) {
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(a.num_bytes())) == 0;
}

// "model.layers.3.mlp" -> "model.layers..mlp"
std::string WithoutDigits(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) out.push_back(c);
  }
  return out;
}

// The first two tensors of one shape and dtype with different bytes; best one parameter of two
// layers, the mistake that a loader would make.
absl::StatusOr<std::pair<std::string, std::string>> ChooseSwap(
    const std::vector<NamedTensor>& tensors) {
  for (const bool same_parameter : {true, false}) {
    absl::flat_hash_map<std::string, const NamedTensor*> first;
    for (const NamedTensor& t : tensors) {
      if (t.tensor.num_bytes() == 0) continue;
      const std::string kind =
          absl::StrCat(refit::SafetensorsName(t.tensor.dtype()), t.tensor.shape(),
                       same_parameter ? WithoutDigits(t.name) : "");
      const auto [found, is_new] = first.emplace(kind, &t);
      if (!is_new && !SameBytes(found->second->tensor, t.tensor)) {
        return std::make_pair(found->second->name, t.name);
      }
    }
  }
  return absl::InvalidArgumentError(
      "--inject swap needs two tensors of one shape and dtype with different values; the "
      "checkpoint has none");
}

}  // namespace

absl::StatusOr<InjectionPlan> PlanInjection(const DemoOptions& options,
                                            const refit::Checkpoint& checkpoint) {
  InjectionPlan plan;
  if (options.injection == Injection::kNone) return plan;
  if (checkpoint.total_bytes() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--inject ", InjectionName(options.injection),
                     " needs a tensor with elements; the checkpoint has none"));
  }
  plan.sync = options.steps > 1 ? 1 : 0;
  WS_ASSIGN_OR_RETURN(const refit::RefitInfo info, InfoOf(checkpoint));
  WS_ASSIGN_OR_RETURN(const std::vector<refit::Bucket> buckets,
                      refit::Pack(info, refit::Geometry{options.slot_bytes}));
  int64_t pieces = 0;
  for (const refit::Bucket& bucket : buckets) pieces += static_cast<int64_t>(bucket.pieces.size());
  plan.bucket = static_cast<int64_t>(buckets.size()) / 2;
  const std::string in_bucket =
      absl::StrCat("bucket ", plan.bucket, " of ", buckets.size(), " of sync ", plan.sync + 1);

  fakes::EngineFault fault;
  fault.update = plan.sync;
  fault.load = pieces / 2;
  switch (options.injection) {
    case Injection::kNone:
      break;
    case Injection::kBitflip:
      plan.text = absl::StrCat("one bit of ", in_bucket, " flips on the wire");
      break;
    case Injection::kDrop:
      plan.text = absl::StrCat(in_bucket, " is lost on the wire");
      break;
    case Injection::kTorn:
      plan.text = absl::StrCat("an optimizer step runs during ", in_bucket);
      break;
    case Injection::kKillTrainer:
      plan.text = absl::StrCat("the trainer gets SIGKILL in ", in_bucket);
      break;
    case Injection::kKillEngine:
      fault.action = fakes::EngineFault::Do::kKill;
      plan.engine_faults.push_back(fault);
      plan.text = absl::StrCat("the engine gets SIGKILL in load ", fault.load, " of ", pieces,
                               " of sync ", plan.sync + 1);
      break;
    case Injection::kSwap: {
      WS_ASSIGN_OR_RETURN(std::tie(fault.tensor, fault.other), ChooseSwap(checkpoint.tensors()));
      fault.action = fakes::EngineFault::Do::kSwap;
      plan.engine_faults.push_back(fault);
      plan.text = absl::StrCat("in sync ", plan.sync + 1, " the engine loads '", fault.tensor,
                               "' and '", fault.other, "' into each other's place");
      break;
    }
  }
  return plan;
}

}  // namespace weight_sync::demo
