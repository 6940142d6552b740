// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Engine: an inference engine that links weight_sync. It holds a table of tensors of its own, which
// only a sync changes, and answers x -> W x + b from it. In a real job it is another process; to the
// trainer it is an endpoint either way.
//
// What every such engine implements: Loader, where a sync's tensors go, and Generation, how a sync
// pauses the engine, publishes a version and lets it go on. Their contract in one sentence: no answer
// from the first tensor of a version until Finish() has published it.

#ifndef TRAINER_ENGINE_H_
#define TRAINER_ENGINE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"
#include "refit/refit_info.h"
#include "weight_sync/engines/native/generation_service.h"
#include "weight_sync/generation.h"
#include "weight_sync/ipc/ipc_consumer.h"
#include "weight_sync/owned_tensor_receiver.h"
#include "weight_sync/wire/rpc.h"

namespace trainer {

class Engine : public weight_sync::OwnedTensorReceiver::Loader, public weight_sync::Generation {
 public:
  using Version = weight_sync::Version;
  using Scope = weight_sync::base::CancelScope;

  // Listens at `endpoint` from here on. The tensors are those of its checkpoint: a weight [m, n]
  // and a bias [m], both F32.
  static absl::StatusOr<std::unique_ptr<Engine>> Start(
      const std::string& endpoint, const weight_sync::refit::RefitInfo& tensors);

  struct Answer {
    Version version;
    std::vector<float> output;
  };
  // FailedPrecondition before the first sync, and while one runs or after one that failed.
  absl::StatusOr<Answer> Generate(absl::Span<const float> input);

  // Loader:
  const weight_sync::refit::RefitInfo& expected() const override { return tensors_; }
  absl::Status BeginUpdate(Version version) override;
  absl::Status LoadTensor(int tensor, std::unique_ptr<std::byte[]> bytes) override;
  absl::Status EndUpdate(Version version) override;
  void AbortUpdate(const absl::Status& why) override;

  // Generation:
  absl::Status Begin(const weight_sync::UpdateOptions& options, const Scope& scope) override;
  absl::Status Finish(Version version, const Scope& scope) override;
  absl::Status Resume(const Scope& scope) override;
  absl::Status PrepareForGeneration(absl::Span<const weight_sync::MemoryTag> tags,
                                    const Scope& scope) override;
  absl::Status Sleep(absl::Span<const weight_sync::MemoryTag> tags, const Scope& scope) override;
  absl::StatusOr<weight_sync::EngineState> State(const Scope& scope) override;
  absl::StatusOr<std::vector<weight_sync::NamedDigest>> TableDigests(const Scope& scope) override;

 private:
  explicit Engine(const weight_sync::refit::RefitInfo& tensors);

  const weight_sync::refit::RefitInfo tensors_;
  const std::string incarnation_;

  absl::Mutex mutex_;
  std::vector<std::unique_ptr<std::byte[]>> table_ ABSL_GUARDED_BY(mutex_);
  std::optional<Version> version_ ABSL_GUARDED_BY(mutex_);  // what was published last
  bool dirty_ ABSL_GUARDED_BY(mutex_) = false;              // the table holds other tensors, too
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Version> update_ ABSL_GUARDED_BY(mutex_);  // what the engine is paused for
  enum class Transfer {
    kNone,
    kOpen,
    kComplete
  } transfer_ ABSL_GUARDED_BY(mutex_) = Transfer::kNone;

  weight_sync::OwnedTensorReceiver receiver_{this};
  weight_sync::ipc::IpcConsumer consumer_{&receiver_, {}};
  weight_sync::native::GenerationService service_{this};
  std::unique_ptr<weight_sync::wire::RpcServer> server_;  // stops first
};

}  // namespace trainer

#endif  // TRAINER_ENGINE_H_
