// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
//   class MyTest : public ::testing::TestWithParam<CpuLevel> {};
//   INSTANTIATE_TEST_SUITE_P(Levels, MyTest, ::testing::ValuesIn(LevelsOfThisCpu()), LevelTestName);

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_LEVELS_FOR_TESTING_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_LEVELS_FOR_TESTING_H_

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "refit/layout/kernels/kernels.h"

namespace weight_sync::refit {

inline std::vector<CpuLevel> LevelsOfThisCpu() {
  std::vector<CpuLevel> levels;
  for (const CpuLevel level : {CpuLevel::kPortable, CpuLevel::kAvx2, CpuLevel::kAvx512}) {
    if (HasCpuLevel(level)) levels.push_back(level);
  }
  return levels;
}

inline std::string LevelTestName(const ::testing::TestParamInfo<CpuLevel>& level) {
  switch (level.param) {
    case CpuLevel::kPortable:
      return "Portable";
    case CpuLevel::kAvx2:
      return "Avx2";
    case CpuLevel::kAvx512:
      return "Avx512";
  }
  return "Unknown";
}

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_LEVELS_FOR_TESTING_H_
