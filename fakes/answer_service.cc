// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/answer_service.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace weight_sync::fakes {

void AnswerService::Handle(wire::RpcRequest, wire::RpcResponder responder) {
  const absl::StatusOr<FakeEngine::Reply> answer = engine_->Answer();
  if (!answer.ok()) return responder.Reply(answer.status());
  const nlohmann::json body = {{"version", answer->version}, {"weights", answer->weights.Hex()}};
  responder.Reply(wire::RpcReply{body.dump(), ""});
}

absl::StatusOr<FakeEngine::Reply> AskForAnswer(wire::RpcClient& client,
                                               const base::CancelScope& scope) {
  WS_ASSIGN_OR_RETURN(const wire::RpcReply reply,
                      client.Call(absl::StrCat(kAnswerPrefix, "answer"), "", "", scope));
  const nlohmann::json body = nlohmann::json::parse(reply.body);
  WS_ASSIGN_OR_RETURN(const base::Digest128 weights,
                      base::Digest128::FromHex(body.at("weights").get<std::string>()));
  return FakeEngine::Reply{body.at("version").get<Version>(), weights};
}

}  // namespace weight_sync::fakes
