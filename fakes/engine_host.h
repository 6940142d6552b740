// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EngineHost: a FakeEngine with the product's own consumer ends around it, listening: everything of
// an engine process but the process.
//
//   WS_ASSIGN_OR_RETURN(auto host, EngineHost::Start(path, info, /*faults=*/{}, {}));

#ifndef WEIGHT_SYNC_FAKES_ENGINE_HOST_H_
#define WEIGHT_SYNC_FAKES_ENGINE_HOST_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/answer_service.h"
#include "fakes/fake_engine.h"
#include "weight_sync/engines/native/generation_service.h"
#include "weight_sync/ipc/ipc_consumer.h"
#include "weight_sync/wire/rpc.h"

namespace weight_sync::fakes {

class EngineHost {
 public:
  static absl::StatusOr<std::unique_ptr<EngineHost>> Start(const std::string& endpoint,
                                                           const refit::RefitInfo& info,
                                                           std::vector<EngineFault> faults,
                                                           const ipc::IpcConsumerOptions& options);

  FakeEngine& engine() { return *engine_; }

 private:
  EngineHost(std::unique_ptr<FakeEngine> engine, const ipc::IpcConsumerOptions& options)
      : engine_(std::move(engine)),
        consumer_(engine_.get(), options),
        generation_(engine_.get()),
        answers_(engine_.get()) {}

  std::unique_ptr<FakeEngine> engine_;
  ipc::IpcConsumer consumer_;
  native::GenerationService generation_;
  AnswerService answers_;
  std::unique_ptr<wire::RpcServer> server_;  // stops first
};

}  // namespace weight_sync::fakes

#endif  // WEIGHT_SYNC_FAKES_ENGINE_HOST_H_
