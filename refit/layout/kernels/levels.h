// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The table of each level (kernels.h), one file each.

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_LEVELS_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_LEVELS_H_

#include "refit/layout/kernels/kernels.h"

namespace weight_sync::refit {

extern const Kernels kPortableKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_LEVELS_H_
