// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The contract of Link and of WeightReceiver's caller, as tests that every transport registers
// into. A transport says how to make a link together with its far end around a given receiver; the
// tests drive the link as the driver does and look at what the receiver was given.
//
//   INSTANTIATE_TEST_SUITE_P(Ipc, LinkConformanceTest, ::testing::Values(LinkConformanceParams{
//       "Ipc", [](WeightReceiver* receiver, const LinkSettings& settings) { ... }}));
//
// A transport whose geometry has no slots takes `slot_bytes` for its bucket's limit.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_CONFORMANCE_LINK_CONFORMANCE_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_CONFORMANCE_LINK_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "weight_sync/link.h"
#include "weight_sync/weight_receiver.h"

namespace weight_sync {

struct LinkSettings {
  int32_t slots = 4;
  int64_t slot_bytes = 4096;
  // What the far end insists on; 0 takes what the link proposes.
  int64_t far_slot_bytes = 0;
};

struct LinkAndFarEnd {
  std::shared_ptr<void> far_end;  // running; borrows the receiver
  std::unique_ptr<Link> link;     // before its Hello
};

struct LinkConformanceParams {
  std::string name;
  std::function<LinkAndFarEnd(WeightReceiver* receiver, const LinkSettings& settings)> make;
};

inline void PrintTo(const LinkConformanceParams& params, std::ostream* os) { *os << params.name; }

class LinkConformanceTest : public ::testing::TestWithParam<LinkConformanceParams> {};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_CONFORMANCE_LINK_CONFORMANCE_H_
