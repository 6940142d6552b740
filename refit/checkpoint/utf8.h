// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_UTF8_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_UTF8_H_

#include "absl/strings/string_view.h"

namespace weight_sync::refit {

// True when `text` is well-formed UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates,
// nothing above U+10FFFF. The empty text is.
bool IsValidUtf8(absl::string_view text);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_UTF8_H_
