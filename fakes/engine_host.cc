// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/engine_host.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/local_endpoint.h"
#include "base/status_macros.h"
#include "weight_sync/engines/native/protocol.h"
#include "weight_sync/ipc/protocol.h"

namespace weight_sync::fakes {

absl::StatusOr<std::unique_ptr<EngineHost>> EngineHost::Start(
    const std::string& endpoint, const refit::RefitInfo& info, std::vector<EngineFault> faults,
    const ipc::IpcConsumerOptions& options) {
  // Claimed first: a second engine on one endpoint is refused before it takes memory.
  WS_ASSIGN_OR_RETURN(base::LocalEndpoint claim, base::LocalEndpoint::Claim(endpoint));
  WS_ASSIGN_OR_RETURN(std::unique_ptr<FakeEngine> engine,
                      FakeEngine::Create(info, std::move(faults)));
  std::unique_ptr<EngineHost> host(new EngineHost(std::move(engine), options));
  WS_ASSIGN_OR_RETURN(
      host->server_,
      wire::RpcServer::Start(std::move(claim), {{ipc::kServicePrefix, &host->consumer_},
                                                {native::kServicePrefix, &host->generation_},
                                                {kAnswerPrefix, &host->answers_}}));
  return host;
}

}  // namespace weight_sync::fakes
