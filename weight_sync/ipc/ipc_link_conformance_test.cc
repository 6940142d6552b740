// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>
#include <utility>

#include "absl/log/absl_check.h"
#include "base/testing/socket_folder.h"
#include "gtest/gtest.h"
#include "weight_sync/conformance/link_conformance.h"
#include "weight_sync/ipc/ipc_consumer.h"
#include "weight_sync/ipc/ipc_link.h"

namespace weight_sync::ipc {
namespace {

struct FarEnd {
  FarEnd(WeightReceiver* receiver, const IpcConsumerOptions& options)
      : consumer(receiver, options) {
    auto claim = base::LocalEndpoint::Claim(endpoint.endpoint());
    ABSL_CHECK_OK(claim);
    auto started = wire::RpcServer::Start(*std::move(claim), {{kServicePrefix, &consumer}});
    ABSL_CHECK_OK(started);
    server = *std::move(started);
  }
  base::testing::SocketFolder endpoint;
  IpcConsumer consumer;
  std::unique_ptr<wire::RpcServer> server;
};

LinkAndFarEnd Make(WeightReceiver* receiver, const LinkSettings& settings) {
  auto far_end = std::make_shared<FarEnd>(receiver, IpcConsumerOptions{settings.far_slot_bytes});
  auto link = std::make_unique<IpcLink>(far_end->endpoint.endpoint(),
                                        RingLayout{settings.slots, settings.slot_bytes});
  return {std::move(far_end), std::move(link)};
}

}  // namespace
}  // namespace weight_sync::ipc

namespace weight_sync {

INSTANTIATE_TEST_SUITE_P(Ipc, LinkConformanceTest,
                         ::testing::Values(LinkConformanceParams{"Ipc", ipc::Make}));

}  // namespace weight_sync
