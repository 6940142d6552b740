// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// AnswerService: asks a FakeEngine in another process for its Answer(), for tests and the demo.
// Method "answer" -> {"version": n, "weights": hex}.

#ifndef WEIGHT_SYNC_FAKES_ANSWER_SERVICE_H_
#define WEIGHT_SYNC_FAKES_ANSWER_SERVICE_H_

#include "absl/status/statusor.h"
#include "base/cancel_scope.h"
#include "fakes/fake_engine.h"
#include "weight_sync/wire/rpc.h"

namespace weight_sync::fakes {

inline constexpr char kAnswerPrefix[] = "fake.";

class AnswerService : public wire::RpcService {
 public:
  explicit AnswerService(FakeEngine* engine) : engine_(engine) {}
  void Handle(wire::RpcRequest request, wire::RpcResponder responder) override;
  void PeerGone(const absl::Status&) override {}

 private:
  FakeEngine* const engine_;
};

absl::StatusOr<FakeEngine::Reply> AskForAnswer(wire::RpcClient& client,
                                               const base::CancelScope& scope);

}  // namespace weight_sync::fakes

#endif  // WEIGHT_SYNC_FAKES_ANSWER_SERVICE_H_
