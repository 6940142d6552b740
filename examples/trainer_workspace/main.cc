// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A training loop that keeps its engine's weights fresh. The engine generates, the trainer learns
// from what was generated, and before the next rollout the engine has the new weights.

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/local_endpoint.h"
#include "base/status_macros.h"
#include "engine.h"
#include "policy.h"
#include "weight_sync/engines/native/native_generation.h"
#include "weight_sync/factory.h"

namespace trainer {
namespace {

namespace ws = ::weight_sync;

constexpr int kSteps = 8;
constexpr float kLearningRate = 0.05F;
constexpr Input kPrompt = {1, -2, 0.5, 1.5};
constexpr Output kWanted = {3, -1};

absl::Status Train() {
  WS_ASSIGN_OR_RETURN(const std::unique_ptr<LinearPolicy> policy, LinearPolicy::Create());

  // In a real job the engine is a process of its own, and both get the job's name from the launcher.
  const std::string endpoint =
      ws::base::DefaultEndpointPath(absl::StrCat("trainer-", ::getpid()), "engine-0");
  WS_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                      Engine::Start(endpoint, policy->source().info()));

  ws::SynchronizerOptions options;
  options.endpoint = endpoint;
  options.deep_verification_every = 1;  // compare the engine's own table, tensor by tensor
  ws::native::NativeGeneration generation(endpoint);
  WS_ASSIGN_OR_RETURN(const std::unique_ptr<ws::WeightSynchronizer> synchronizer,
                      ws::CreateWeightSynchronizer(options, policy.get(), &generation));
  WS_RETURN_IF_ERROR(synchronizer->InitCommunicator());

  for (int step = 0; step < kSteps; ++step) {
    ws::SyncReport report;
    if (synchronizer->is_stale()) {
      WS_ASSIGN_OR_RETURN(report, synchronizer->SyncWeights());
      if (report.verification != ws::Verification::kEqual) {
        return absl::DataLossError(absl::StrCat("not verified: ", report.verification_detail));
      }
    }
    const ws::base::CancelScope scope(ws::base::Deadline::After(absl::Seconds(60)));
    WS_RETURN_IF_ERROR(generation.PrepareForGeneration(ws::kAllTags, scope));

    WS_ASSIGN_OR_RETURN(const Engine::Answer answer, engine->Generate(kPrompt));
    float loss = 0;
    Output gradient;
    for (int o = 0; o < kOutputs; ++o) {
      gradient[o] = answer.output[o] - kWanted[o];
      loss += gradient[o] * gradient[o] / 2;
    }
    std::printf("step %d: version %ld, %ld bytes in %.2f ms, engine equal, loss %.6f\n", step,
                static_cast<long>(answer.version), static_cast<long>(report.bytes),
                report.seconds * 1e3, static_cast<double>(loss));

    policy->Step(kPrompt, gradient, kLearningRate);
    synchronizer->MarkStale();
  }
  return synchronizer->Shutdown();
}

}  // namespace
}  // namespace trainer

int main() {
  const absl::Status status = trainer::Train();
  if (!status.ok()) std::fprintf(stderr, "trainer: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
