// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_FILE_ERROR_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_FILE_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weight_sync::refit {

// The status of a failed system call on a file: "cannot <action> '<path>': <text of the errno>".
// ResourceExhausted when space, memory, file size or descriptors ran out; Internal when the device
// failed (EIO); InvalidArgument otherwise: the path is the caller's.
absl::Status FileError(absl::string_view action, absl::string_view path, int error_number);

// `text` with `file '<path>': ` before it, as InvalidArgument: the file's content is wrong.
absl::Status BadFile(absl::string_view path, absl::string_view text);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_FILE_ERROR_H_
