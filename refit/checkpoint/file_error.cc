// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/file_error.h"

#include <cerrno>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace weight_sync::refit {

absl::Status FileError(absl::string_view action, absl::string_view path, int error_number) {
  const std::string message =
      absl::StrCat("cannot ", action, " '", path,
                   "': ", std::error_code(error_number, std::generic_category()).message());
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(message);
    case EIO:
      return absl::InternalError(message);
    default:
      return absl::InvalidArgumentError(message);
  }
}

absl::Status BadFile(absl::string_view path, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("file '", path, "': ", text));
}

}  // namespace weight_sync::refit
