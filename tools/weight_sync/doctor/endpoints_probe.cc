// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/endpoints_probe.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/local_endpoint.h"

namespace weight_sync::doctor {

Endpoints ProbeEndpoints() {
  Endpoints out;
  const std::string path =
      base::DefaultEndpointPath("weight_sync doctor", absl::StrCat(::getpid()));
  out.folder = std::filesystem::path(path).parent_path().string();
  struct stat info;
  out.existed = ::lstat(out.folder.c_str(), &info) == 0;
  if (!out.existed) {
    // Not made for the sake of a look: who finds it made a moment ago may be about to use it.
    const std::string parent = std::filesystem::path(out.folder).parent_path().string();
    if (::access(parent.c_str(), W_OK | X_OK) != 0) {
      out.error = absl::StrCat("cannot make ", out.folder, ": ", std::strerror(errno));
    }
    return out;
  }
  out.owner = static_cast<int>(info.st_uid);
  out.mode = absl::StrFormat("%o", info.st_mode & 07777);
  const auto claim = base::LocalEndpoint::Claim(path);
  if (!claim.ok()) out.error = std::string(claim.status().message());
  return out;
}

}  // namespace weight_sync::doctor
