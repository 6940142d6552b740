// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/nccl_probe.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/dynamic_library.h"
#include "base/status_macros.h"

namespace weight_sync::doctor {
namespace {

absl::Status AskNccl(Nccl& out, const base::LibraryNames& names) {
  WS_ASSIGN_OR_RETURN(const base::DynamicLibrary library, base::DynamicLibrary::Open(names.names));
  out.library = library.path();
  // nccl.h: ncclResult_t ncclGetVersion(int*), where the result is an enum and 0 is success, and
  // the version 10000 * major + 100 * minor + patch (since 2.9).
  WS_ASSIGN_OR_RETURN(auto* get_version, library.Symbol<int(int*)>("ncclGetVersion"));
  int version = 0;
  if (const int result = get_version(&version); result != 0) {
    return absl::InternalError(absl::StrCat("ncclGetVersion answers error ", result));
  }
  out.version = absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
  return absl::OkStatus();
}

}  // namespace

Nccl ProbeNccl() {
  const base::LibraryNames names = base::ChooseLibrary(
      "", {"WEIGHT_SYNC_LIBNCCL", "VLLM_NCCL_SO_PATH"}, {"libnccl.so.2", "libnccl.so"});
  Nccl out;
  if (const absl::Status status = AskNccl(out, names); !status.ok()) {
    out.error = names.variable.empty()
                    ? std::string(status.message())
                    : absl::StrCat("named by ", names.variable, ": ", status.message());
  }
  return out;
}

}  // namespace weight_sync::doctor
