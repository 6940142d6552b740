// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The contract of Communicator as tests that every implementation registers into. An implementation
// says how to make the communicators of all ranks in one process; the tests run a thread a rank.
//
//   INSTANTIATE_TEST_SUITE_P(Thread, CommunicatorConformanceTest, ::testing::Values(
//       CommunicatorConformanceParams{"Thread", [](int size) { ... }}));

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_COMMUNICATOR_CONFORMANCE_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_COMMUNICATOR_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "refit/sharding/communicator.h"

namespace weight_sync::refit {

struct CommunicatorConformanceParams {
  std::string name;
  // By rank.
  std::function<std::vector<std::unique_ptr<Communicator>>(int size)> make;
};

inline void PrintTo(const CommunicatorConformanceParams& params, std::ostream* os) {
  *os << params.name;
}

class CommunicatorConformanceTest : public ::testing::TestWithParam<CommunicatorConformanceParams> {
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_COMMUNICATOR_CONFORMANCE_H_
