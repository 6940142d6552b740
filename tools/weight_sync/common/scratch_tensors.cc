// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/common/scratch_tensors.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "tools/common/human_numbers.h"

namespace weight_sync::tools {
namespace {

constexpr int64_t kAlignment = 64;
constexpr char kAdvice[] = "name another folder with --scratch";

absl::Status Failed(absl::string_view what, const std::string& directory, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " '", directory, "'"));
}

}  // namespace

absl::Status CheckSpace(const std::string& directory, int64_t bytes, absl::string_view what,
                        absl::string_view advice) {
  struct statvfs disk;
  if (::statvfs(directory.c_str(), &disk) != 0) return Failed("look into", directory, errno);
  const uint64_t free = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (static_cast<uint64_t>(bytes) <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " takes ", HumanBytes(bytes), ", and '", directory, "' has ",
                   HumanBytes(static_cast<int64_t>(free)), " free; ", advice));
}

absl::StatusOr<ScratchTensors> ScratchTensors::Create(const std::string& directory,
                                                      absl::Span<const refit::TensorSpec> tensors) {
  int64_t size = 0;
  std::vector<int64_t> begins;
  for (const refit::TensorSpec& tensor : tensors) {
    begins.push_back(size);
    size += (tensor.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  size = std::max(size, kAlignment);  // an empty file cannot be mapped
  WS_RETURN_IF_ERROR(CheckSpace(directory, size, "the scratch file", kAdvice));

  std::string path = absl::StrCat(directory, "/weight_sync_scratch.XXXXXX");
  const base::UniqueFd fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid()) return Failed("make a scratch file in", directory, errno);
  ::unlink(path.c_str());
  int error;
  do {
    error = ::posix_fallocate(fd.get(), 0, size);
  } while (error == EINTR);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(absl::StrCat("the scratch file takes ", HumanBytes(size),
                                                     ", for which '", directory, "' has no room; ",
                                                     kAdvice));
  }
  if (error != 0) return Failed("allocate a scratch file in", directory, error);
  struct statfs kind;
  if (::fstatfs(fd.get(), &kind) != 0) return Failed("look into", directory, errno);
  void* const address =
      ::mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return Failed("map a scratch file in", directory, errno);

  std::byte* const first = static_cast<std::byte*>(address);
  std::vector<refit::MutableTensorView> views;
  views.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    views.push_back(refit::MutableTensorView::Contiguous(first + begins[i], tensors[i].dtype,
                                                         tensors[i].shape));
  }
  return ScratchTensors({first, static_cast<size_t>(size)}, std::move(views),
                        kind.f_type == TMPFS_MAGIC || kind.f_type == RAMFS_MAGIC);
}

ScratchTensors::~ScratchTensors() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
}

}  // namespace weight_sync::tools
