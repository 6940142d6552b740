// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GenerationService: lets a trainer in another process drive an engine that implements Generation
// itself. A service on the engine's RpcServer; its far end is NativeGeneration.
//
// Calls run one at a time, in order, on a thread of the service, so a slow one (digests, waking
// memory) does not keep the server from seeing the trainer's death. When the trainer is gone the
// call that runs is cancelled. The engine outlives the service, and the service its server.
//
//   GenerationService service(&engine);
//   WS_ASSIGN_OR_RETURN(auto server, wire::RpcServer::Start(std::move(endpoint),
//                                                           {{kServicePrefix, &service}}));

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_ENGINES_NATIVE_GENERATION_SERVICE_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_ENGINES_NATIVE_GENERATION_SERVICE_H_

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/cancel_scope.h"
#include "weight_sync/engines/native/protocol.h"
#include "weight_sync/generation.h"
#include "weight_sync/wire/rpc.h"

namespace weight_sync::native {

class GenerationService : public wire::RpcService {
 public:
  explicit GenerationService(Generation* engine);
  ~GenerationService() override;

  void Handle(wire::RpcRequest request, wire::RpcResponder responder) override;
  void PeerGone(const absl::Status& why) override;

 private:
  using Task = std::pair<wire::RpcRequest, wire::RpcResponder>;

  void Loop();
  absl::StatusOr<wire::RpcReply> Run(const std::string& method, const RequestBody& body,
                                     const base::CancelScope& scope);

  Generation* const engine_;
  absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  base::CancelScope* running_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace weight_sync::native

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_ENGINES_NATIVE_GENERATION_SERVICE_H_
