// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Every family of this library.

#ifndef WEIGHT_SYNC_REFIT_MAPS_ALL_FAMILIES_H_
#define WEIGHT_SYNC_REFIT_MAPS_ALL_FAMILIES_H_

#include "refit/maps/registry.h"

namespace weight_sync::refit {

FamilyRegistry AllFamilies();

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_ALL_FAMILIES_H_
