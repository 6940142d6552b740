// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Files that SafetensorsFile must refuse, for its test and for the comparison with the library.

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_MALFORMED_FILES_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_MALFORMED_FILES_H_

#include <string>
#include <vector>

namespace weight_sync::refit {

struct MalformedFile {
  std::string header;
  std::string data;
  std::string error;                   // a part of the message
  bool refused_by_the_library = true;  // safetensors_file.h names the exceptions
};

std::vector<MalformedFile> MalformedSafetensors();

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_MALFORMED_FILES_H_
