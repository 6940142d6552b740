// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/kernels/kernels.h"

#include "absl/log/check.h"
#include "refit/layout/kernels/levels.h"

namespace weight_sync::refit {

absl::string_view CpuLevelName(CpuLevel level) {
  switch (level) {
    case CpuLevel::kPortable:
      return "portable";
    case CpuLevel::kAvx2:
      return "AVX2";
    case CpuLevel::kAvx512:
      return "AVX-512";
  }
  return "unknown";
}

bool HasCpuLevel(CpuLevel level) {
  switch (level) {
    case CpuLevel::kPortable:
      return true;
#if defined(__x86_64__)
    case CpuLevel::kAvx2:
      return __builtin_cpu_supports("avx2") != 0;
    case CpuLevel::kAvx512:
      return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0;
#else
    default:
      return false;
#endif
  }
  return false;
}

CpuLevel BestCpuLevel() {
  static const CpuLevel best = [] {
    for (const CpuLevel level : {CpuLevel::kAvx512, CpuLevel::kAvx2}) {
      if (HasCpuLevel(level)) return level;
    }
    return CpuLevel::kPortable;
  }();
  return best;
}

const Kernels& KernelsFor(CpuLevel level) {
  CHECK(HasCpuLevel(level)) << "this CPU has no " << CpuLevelName(level);
#if defined(__x86_64__)
  if (level == CpuLevel::kAvx512) return kAvx512Kernels;
  if (level == CpuLevel::kAvx2) return kAvx2Kernels;
#endif
  return kPortableKernels;
}

}  // namespace weight_sync::refit
