// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A POSIX shared-memory segment that two processes of one user map, for the moments that it needs a
// name: the creator makes it, hands the name over, and unlinks it once the peer has mapped it.
//
// - Its pages are really allocated at creation: a /dev/shm that is too small is ResourceExhausted
//   there, never a SIGBUS at the first write.
// - It is private: mode 0600, and Open() refuses another user's, another size's or another kind.
// - While it has a name the creator holds flock(2) on it. A creator that died in between leaves an
//   entry that nobody holds; SweepSharedMemory() of the next start removes exactly those.
// Not thread-safe; the memory itself is as safe as what is put in it.
//
//   WS_ASSIGN_OR_RETURN(auto segment, base::SharedMemory::Create(64 << 20));   // trainer
//   send(segment.name());
//   WS_ASSIGN_OR_RETURN(auto mapped, base::SharedMemory::Open(name, 64 << 20));  // engine
//   WS_RETURN_IF_ERROR(segment.Unlink());     // trainer, when the engine has answered

#ifndef WEIGHT_SYNC_BASE_SHARED_MEMORY_H_
#define WEIGHT_SYNC_BASE_SHARED_MEMORY_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace weight_sync::base {

class SharedMemory {
 public:
  // `bytes` > 0. ResourceExhausted names the bytes asked for and the bytes that are free.
  static absl::StatusOr<SharedMemory> Create(int64_t bytes);

  // Unavailable when there is no such segment, FailedPrecondition when it is not this user's,
  // not private, or not of exactly `bytes`.
  static absl::StatusOr<SharedMemory> Open(const std::string& name, int64_t bytes);

  SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory() { Reset(); }

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

  // As shm_open(3) takes it: "/weight_sync.<uid>.<pid namespace>.<pid>.<serial>".
  const std::string& name() const { return name_; }

  // Removes the name; the mappings live on. Only the creator may, and a second call is harmless.
  absl::Status Unlink();

 private:
  SharedMemory() = default;
  void Reset();

  std::string name_;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  UniqueFd linked_;  // held, and locked, while this object owns the name
};

// What the names of this user's segments start with, as seen in /dev/shm.
std::string SharedMemoryPrefix();

// The same for the segments of one process of this pid namespace. Containers and sandboxes may
// share /dev/shm and have equal pids.
std::string SharedMemoryPrefix(pid_t pid);

// Removes this user's segments whose creators died before they unlinked them. Returns how many.
int SweepSharedMemory();

}  // namespace weight_sync::base

#endif  // WEIGHT_SYNC_BASE_SHARED_MEMORY_H_
