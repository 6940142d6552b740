// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/demo/trainer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/status_macros.h"
#include "fakes/answer_service.h"
#include "fakes/faulty_link.h"
#include "fakes/seeded_policy.h"
#include "nlohmann/json.hpp"
#include "refit/checkpoint/checkpoint.h"
#include "tools/demo/demo_checkpoint.h"
#include "tools/demo/memory_copy.h"
#include "tools/demo/progress_link.h"
#include "tools/demo/trainer_events.h"
#include "weight_sync/engines/native/native_generation.h"
#include "weight_sync/factory.h"
#include "weight_sync/ipc/ipc_link.h"
#include "weight_sync/ipc/ipc_weight_synchronizer.h"
#include "weight_sync/wire/rpc.h"

namespace weight_sync::demo {
namespace {

using nlohmann::json;

constexpr char kRole[] = "--demo-trainer";

std::string ConfigToText(const TrainerConfig& config) {
  const DemoOptions& options = config.options;
  return OneLine({{"checkpoint", options.checkpoint},
                  {"steps", options.steps},
                  {"slots", options.slots},
                  {"slot_bytes", options.slot_bytes},
                  {"injection", static_cast<int>(options.injection)},
                  {"wire_digest", options.wire_digest},
                  {"read_guard", options.read_guard},
                  {"seed", options.seed},
                  {"timeout_ms", absl::ToInt64Milliseconds(options.timeout)},
                  {"endpoint", config.endpoint},
                  {"progress", config.progress},
                  {"fault_sync", config.fault_sync},
                  {"fault_bucket", config.fault_bucket}});
}

// Written by ConfigToText of this very binary.
TrainerConfig ConfigFromText(const std::string& text) {
  const json in = json::parse(text);
  TrainerConfig config;
  config.options.checkpoint = in.at("checkpoint");
  config.options.steps = in.at("steps");
  config.options.slots = in.at("slots");
  config.options.slot_bytes = in.at("slot_bytes");
  config.options.injection = static_cast<Injection>(in.at("injection").get<int>());
  config.options.wire_digest = in.at("wire_digest");
  config.options.read_guard = in.at("read_guard");
  config.options.seed = in.at("seed");
  config.options.timeout = absl::Milliseconds(in.at("timeout_ms").get<int64_t>());
  config.endpoint = in.at("endpoint");
  config.progress = in.at("progress");
  config.fault_sync = in.at("fault_sync");
  config.fault_bucket = in.at("fault_bucket");
  return config;
}

void Tell(const TrainerEvent& event) { fakes::ReportLine(EventToLine(event)); }

// How often the loop trains before a step's rollout: the first answers from the checkpoint itself,
// the third trains nothing (and so syncs nothing), the fourth trains and marks twice.
int64_t OptimizerSteps(int64_t step) {
  if (step == 1 || step == 3) return 0;
  return step == 4 ? 2 : 1;
}

class Trainer {
 public:
  explicit Trainer(const TrainerConfig& config) : config_(config), generation_(config.endpoint) {}

  absl::Status Run() {
    WS_RETURN_IF_ERROR(Load());
    WS_RETURN_IF_ERROR(MakeSynchronizer());
    WS_RETURN_IF_ERROR(synchronizer_->InitCommunicator());
    const base::CancelScope scope(base::Deadline::After(config_.options.timeout));
    WS_ASSIGN_OR_RETURN(engine_, wire::RpcClient::Connect(config_.endpoint, "engine", scope));
    for (step_.step = 1; step_.step <= config_.options.steps; ++step_.step) {
      const absl::Status status = Step();
      Tell(step_);
      WS_RETURN_IF_ERROR(base::Prefixed(absl::StrCat("step ", step_.step), status));
    }
    return synchronizer_->Shutdown();
  }

 private:
  absl::Status Load() {
    WS_ASSIGN_OR_RETURN(const refit::Checkpoint checkpoint,
                        refit::Checkpoint::Open(config_.options.checkpoint));
    // Larger than any cache, and before the parameters take their memory.
    TrainerSetup setup;
    setup.memory_copy_bytes =
        std::clamp<int64_t>(checkpoint.total_bytes(), int64_t{64} << 20, int64_t{256} << 20);
    setup.memory_copy_rate = MeasureMemoryCopy(setup.memory_copy_bytes);
    const auto start = std::chrono::steady_clock::now();
    WS_ASSIGN_OR_RETURN(fakes::Parameters parameters, LoadParameters(checkpoint));
    WS_ASSIGN_OR_RETURN(policy_,
                        fakes::SeededPolicy::Create(std::move(parameters), config_.options.seed));
    setup.load_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    Tell(setup);
    return absl::OkStatus();
  }

  // The factory's, unless something stands between the driver and the wire.
  absl::Status MakeSynchronizer() {
    const SynchronizerOptions options = SynchronizerOptionsOf(config_.options, config_.endpoint);
    std::vector<fakes::LinkFault> faults = LinkFaults();
    if (faults.empty() && !config_.progress) {
      WS_ASSIGN_OR_RETURN(synchronizer_,
                          CreateWeightSynchronizer(options, policy_.get(), &generation_));
      return absl::OkStatus();
    }
    std::unique_ptr<Link> link = std::make_unique<ipc::IpcLink>(
        options.endpoint, ipc::RingLayout{options.ring_slots, options.ring_slot_bytes});
    if (!faults.empty()) {
      link = std::make_unique<fakes::FaultyLink>(std::move(link), std::move(faults));
    }
    if (config_.progress) {
      link = std::make_unique<ProgressLink>(std::move(link), [this](int64_t done, int64_t of) {
        Tell(Progress{step_.step, done < of ? "transferring" : "verifying", done, of});
      });
    }
    WS_RETURN_IF_ERROR(CheckOptions(options));
    synchronizer_ = std::make_unique<ipc::IpcWeightSynchronizer>(options, policy_.get(),
                                                                 &generation_, std::move(link));
    return absl::OkStatus();
  }

  std::vector<fakes::LinkFault> LinkFaults() {
    fakes::LinkFault fault;
    fault.sync = config_.fault_sync;
    fault.bucket = config_.fault_bucket;
    switch (config_.options.injection) {
      case Injection::kNone:
      case Injection::kSwap:
      case Injection::kKillEngine:
        return {};
      case Injection::kBitflip:
        fault.action = fakes::LinkFault::Do::kFlipBit;
        break;
      case Injection::kDrop:
        fault.action = fakes::LinkFault::Do::kLoseBytes;
        break;
      case Injection::kTorn:
        fault.action = fakes::LinkFault::Do::kCall;
        fault.call = [this] { policy_->Step(); };
        break;
      case Injection::kKillTrainer:
        fault.action = fakes::LinkFault::Do::kKillSelf;
        break;
    }
    return {fault};
  }

  absl::Status Step() {
    step_.trained = OptimizerSteps(step_.step);
    step_.sync.reset();
    step_.answered = false;
    if (step_.trained > 0) ShowPhase("training");
    for (int64_t i = 0; i < step_.trained; ++i) {
      policy_->Step();
      synchronizer_->MarkStale();
      ++step_.version;
    }
    step_.stale_before = step_.stale_after = synchronizer_->is_stale();
    if (synchronizer_->is_stale()) {
      WS_ASSIGN_OR_RETURN(step_.sync, synchronizer_->SyncWeights());
      step_.stale_after = synchronizer_->is_stale();
      if (step_.sync->verification != Verification::kEqual) {
        return absl::DataLossError(
            absl::StrCat("the sync of version ", step_.version,
                         " was not verified: ", step_.sync->verification_detail));
      }
    }
    ShowPhase("answering");
    return AskEngine();
  }

  // A rollout: the engine answers with a digest of its weights under the version it claims.
  absl::Status AskEngine() {
    const base::CancelScope scope(base::Deadline::After(config_.options.timeout));
    WS_RETURN_IF_ERROR(generation_.PrepareForGeneration(kAllTags, scope));
    WS_ASSIGN_OR_RETURN(const fakes::FakeEngine::Reply reply, fakes::AskForAnswer(*engine_, scope));
    if (reply.version != step_.version ||
        reply.weights != fakes::AnswerDigest(policy_->parameters())) {
      return absl::DataLossError(
          absl::StrCat("the engine answered as version ", reply.version, " with weights ",
                       reply.weights.Hex(), "; the trainer is at version ", step_.version,
                       " with weights ", fakes::AnswerDigest(policy_->parameters()).Hex()));
    }
    step_.answered = true;
    return absl::OkStatus();
  }

  void ShowPhase(const char* phase) {
    if (config_.progress) Tell(Progress{step_.step, phase, 0, 0});
  }

  const TrainerConfig config_;
  std::unique_ptr<fakes::SeededPolicy> policy_;
  native::NativeGeneration generation_;
  std::unique_ptr<WeightSynchronizer> synchronizer_;
  std::unique_ptr<wire::RpcClient> engine_;
  StepReport step_;
};

}  // namespace

absl::StatusOr<fakes::ChildProcess> StartTrainer(const TrainerConfig& config) {
  return fakes::ChildProcess::Start(kRole, ConfigToText(config));
}

std::optional<int> MaybeRunTrainer(int argc, char** argv) {
  if (argc != 2 || std::string(argv[1]) != kRole) return std::nullopt;
  const TrainerConfig config = ConfigFromText(fakes::ChildConfig());
  // Never outlives the supervisor, whatever it is doing.
  std::thread([] {
    fakes::WaitForParent();
    ::_exit(1);
  }).detach();
  const absl::Status status = Trainer(config).Run();
  if (status.ok()) return 0;
  Tell(status);
  return 1;
}

}  // namespace weight_sync::demo
