// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// FakeEngine: an inference engine without the inference. It has a parameter table of its own that a
// transport loads into, the phases and versions of a real one, and faults scripted by data. It
// keeps the contracts of WeightReceiver and Generation to the letter and refuses, naming its state,
// what they do not allow; tests of transports and of the driver run against it, in one process or
// as a process of its own (engine_process.h).
//
// Answer() stands for a rollout: a digest over the whole table, labelled with the version that the
// engine claims to answer with. It is refused while the engine is paused, dirty, asleep, or has
// never been synced, so an answer from mixed weights cannot carry a version. Thread-safe.
//
//   WS_ASSIGN_OR_RETURN(auto engine, FakeEngine::Create(info, /*faults=*/{}));
//   ipc::IpcConsumer consumer(engine.get(), {});

#ifndef WEIGHT_SYNC_FAKES_FAKE_ENGINE_H_
#define WEIGHT_SYNC_FAKES_FAKE_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/digest.h"
#include "fakes/engine_faults.h"
#include "fakes/parameters.h"
#include "weight_sync/generation.h"
#include "weight_sync/weight_receiver.h"

namespace weight_sync::fakes {

// The digest that Answer() gives for these weights.
base::Digest128 AnswerDigest(const Parameters& weights);

class FakeEngine : public WeightReceiver, public Generation {
 public:
  struct Reply {
    Version version;
    base::Digest128 weights;
  };

  // Awake, serving nothing: its table holds 0xA5 and no version.
  static absl::StatusOr<std::unique_ptr<FakeEngine>> Create(const refit::RefitInfo& info,
                                                            std::vector<EngineFault> faults);

  absl::StatusOr<Reply> Answer();

  // WeightReceiver:
  const refit::RefitInfo& expected() const override { return table_.info(); }
  absl::Status BeginUpdate(Version version) override;
  absl::Status Load(int tensor, const refit::Box& box, absl::Span<const std::byte> bytes) override;
  absl::Status EndUpdate(Version version) override;
  void AbortUpdate(const absl::Status& why) override;

  // Generation:
  absl::Status Begin(const UpdateOptions& options, const base::CancelScope& scope) override;
  absl::Status Finish(Version version, const base::CancelScope& scope) override;
  absl::Status Resume(const base::CancelScope& scope) override;
  absl::Status PrepareForGeneration(absl::Span<const MemoryTag> tags,
                                    const base::CancelScope& scope) override;
  absl::Status Sleep(absl::Span<const MemoryTag> tags, const base::CancelScope& scope) override;
  absl::StatusOr<EngineState> State(const base::CancelScope& scope) override;
  absl::StatusOr<std::vector<NamedDigest>> TableDigests(const base::CancelScope& scope) override;

  // Why the last update was aborted; OK if none was.
  absl::Status last_abort() const;

  // Only while no update runs.
  const Parameters& table() const { return table_; }

 private:
  FakeEngine(Parameters table, std::vector<EngineFault> faults);

  // Carries out what the script has for this point.
  absl::Status Trip(EngineFault::At at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Where a tensor's bytes go by the script: itself, another, or nowhere.
  std::optional<int> Destination(int tensor) const;
  void CloseUpdate(bool published) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Describe() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Written by one update's Load calls, without the lock; read when complete_.
  Parameters table_;
  const std::vector<EngineFault> faults_;
  const std::string incarnation_;

  mutable absl::Mutex mutex_;
  std::optional<Version> version_ ABSL_GUARDED_BY(mutex_);
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool dirty_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<MemoryTag> awake_ ABSL_GUARDED_BY(mutex_) = {MemoryTag::kWeights, MemoryTag::kKvCache};
  int64_t updates_ ABSL_GUARDED_BY(mutex_) = -1;  // index of the open or last update
  std::optional<Version> update_ ABSL_GUARDED_BY(mutex_);
  bool receiving_ ABSL_GUARDED_BY(mutex_) = false;
  bool complete_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status last_abort_ ABSL_GUARDED_BY(mutex_);

  // Whether a Load is allowed, and what the Loads of this update have brought. Written by one
  // thread at a time, and read by others that end the update.
  std::atomic<bool> loading_{false};
  std::atomic<int64_t> loads_{0};
  std::atomic<int64_t> loaded_bytes_{0};
  std::vector<EngineFault> load_faults_;
};

}  // namespace weight_sync::fakes

#endif  // WEIGHT_SYNC_FAKES_FAKE_ENGINE_H_
