// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// For tests of faults between processes: a fixture with a private directory for endpoints that
// proves at the end that nothing was left behind, a trainer in this process, trainer processes by
// script, and what /proc and /dev/shm say about a process. A test that uses it links
// //fakes:process_test_main, or has a main of its own that calls MaybeRunChild first.
//
//   using EngineDiesTest = ProcessTest;
//   TEST_F(EngineDiesTest, IsSeenAtOnce) {
//     StartEngine(SmallTensors(8));
//     auto trainer = StartTrainer(SmallTensors(8));
//     ExpectWholeSync(*trainer);
//   }

#ifndef WEIGHT_SYNC_FAKES_PROCESS_TEST_H_
#define WEIGHT_SYNC_FAKES_PROCESS_TEST_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/testing/socket_folder.h"
#include "fakes/child_process.h"
#include "fakes/engine_process.h"
#include "fakes/fake_engine.h"
#include "fakes/faulty_link.h"
#include "fakes/seeded_policy.h"
#include "gtest/gtest.h"
#include "refit/refit_info.h"
#include "weight_sync/engines/native/native_generation.h"
#include "weight_sync/options.h"
#include "weight_sync/weight_synchronizer.h"

namespace weight_sync::fakes {

// --- What the kernel says --------------------------------------------------------------

int OpenFds(pid_t pid);
// Lines of /proc/<pid>/maps; of those, the ones of weight_sync's shared memory.
int Mappings(pid_t pid);
int RingMappings(pid_t pid);
int64_t ResidentBytes(pid_t pid);
// Whether no shared-memory entry carries this process's number. Waits, since the test of another
// sandbox may have a process of the same number in its own pid namespace, and an entry for a
// moment.
bool LeftNoSharedMemory(pid_t pid);

// Until `done()`; false after a minute. For what has no event to wait on: another process's
// kernel objects.
bool WaitUntil(const std::function<bool()>& done);

// Returns once the child has stopped (SIGSTOP).
void AwaitStopped(pid_t child);

// --- The trainer's side, in this process -----------------------------------------------

// Long: a test that needs its end is wrong. Those that test it set their own.
inline constexpr absl::Duration kLongTimeout = absl::Seconds(60);
// What "at once" means where a death must be seen, on a loaded machine.
inline constexpr absl::Duration kAtOnce = absl::Seconds(2);

struct TrainerOptions {
  refit::RefitInfo info;
  SynchronizerOptions sync;
  std::vector<LinkFault> faults = {};
  uint64_t seed = 7;
};

// 4 slots of 4096 bytes, every sync deeply verified, long timeouts.
SynchronizerOptions SmallRing(const std::string& endpoint);

class Trainer {
 public:
  explicit Trainer(const TrainerOptions& options);

  // An optimizer step and its mark.
  void Step();
  absl::StatusOr<FakeEngine::Reply> Ask();
  absl::StatusOr<EngineState> State();

  SeededPolicy& policy() { return *policy_; }
  WeightSynchronizer& synchronizer() { return *synchronizer_; }

 private:
  const std::string endpoint_;
  std::unique_ptr<SeededPolicy> policy_;
  native::NativeGeneration generation_;
  std::unique_ptr<WeightSynchronizer> synchronizer_;
};

// A whole, verified sync, after which the engine answers with the trainer's weights and version.
void ExpectWholeSync(Trainer& trainer);
// The engine may hold bytes of two versions: it says so, answers nothing, and is stale here.
void ExpectDirty(Trainer& trainer);

// `count` tensors of 4096 bytes, "t0", "t1", ...: with SmallRing one bucket and one Load each.
refit::RefitInfo SmallTensors(int count);

// --- A trainer process -----------------------------------------------------------------

// What it does, and where it gets a signal: between hello and the unlinking of its ring
// (kHandOver), at a bucket of a sync, or between commit and finish.
struct TrainerScript {
  std::string endpoint;
  refit::RefitInfo info;
  int syncs = 1;  // an optimizer step before each but the first
  enum class At { kNowhere, kHandOver, kBucket, kFinish };
  At at = At::kNowhere;
  int64_t sync = 0;
  int64_t bucket = 0;
  int signal = 0;
  absl::Duration sync_timeout = kLongTimeout;
  uint64_t seed = 7;
};

// It reports "connected", then "synced <version>" for each sync, or "error: ..." and ends; and
// stays connected until its input is closed. For kHandOver it reports the name of its ring.
absl::StatusOr<ChildProcess> StartTrainerProcess(const TrainerScript& script);

// Runs the child process that this one was started as, if it was: its exit code.
std::optional<int> MaybeRunChild(int argc, char** argv);

// --- The fixture -----------------------------------------------------------------------

class ProcessTest : public ::testing::Test {
 protected:
  ProcessTest();

  // Nothing left behind: no child process, no file in the directory, no shared memory of this
  // process or of one that RememberChild() was told of, no open file descriptor more than before.
  void TearDown() override;

  std::string Endpoint(const std::string& name = "engine") const;
  const std::string& directory() const { return folder_.path(); }

  void RememberChild(pid_t child) { children_.push_back(child); }

  // At Endpoint(), into engine_.
  void StartEngine(const refit::RefitInfo& info, std::vector<EngineFault> faults = {});
  // Waits until it has ended and forgets it; what waitpid(2) said, in words.
  std::string ReapEngine();
  // To Endpoint(), connected.
  std::unique_ptr<Trainer> StartTrainer(const refit::RefitInfo& info,
                                        std::vector<LinkFault> faults = {});

  std::optional<EngineProcess> engine_;

 private:
  const base::testing::SocketFolder folder_;
  int fds_before_;
  std::vector<pid_t> children_;
};

}  // namespace weight_sync::fakes

#endif  // WEIGHT_SYNC_FAKES_PROCESS_TEST_H_
