// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What is behind a ws_source, a ws_program and a ws_refit. weight_sync.h is the contract.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_C_API_SOURCE_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_C_API_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "base/digest.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/layout/copy_program.h"
#include "refit/maps/map_source.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/maps/tree_names.h"
#include "refit/maps/weight_map.h"
#include "refit/packing/bucket.h"
#include "refit/packing/packer.h"
#include "refit/read_guard.h"
#include "refit/refit_source.h"
#include "refit/sharding/communicator.h"
#include "refit/sharding/sharded_source.h"
#include "refit/tensor/dtype.h"
#include "refit/version.h"
#include "weight_sync/c_api/loans.h"
#include "weight_sync/c_api/weight_sync.h"

namespace weight_sync::c_api {

class Source {
 public:
  // `communicator` is null where this process has all there is.
  static absl::StatusOr<std::shared_ptr<Source>> Open(
      const ws_source_options& options, std::shared_ptr<refit::Communicator> communicator);

  const refit::WeightMap& map() const { return map_; }
  // Of the map's trainer tensor; nothing before it is declared.
  std::optional<refit::DType> DeclaredDType(int array) const;
  refit::StepGate& gate() { return gate_; }

  absl::Status Declare(const ws_array* arrays, size_t count);
  absl::Status Bind(refit::Version version, const ws_binding* bindings, size_t count);
  absl::Status Release();
  // Release() now, or by EndRefit() if a refit is open.
  void Close();
  absl::StatusOr<base::Digest128> Digest(int tensor) const;

  // What is declared; FailedPrecondition when nothing is.
  absl::StatusOr<refit::RefitSource*> declared() const;

  // Opens a refit by `begin`, after which EndRefit() must be called if that was OK.
  absl::Status BeginRefit(absl::FunctionRef<absl::Status()> begin);
  void EndRefit();
  absl::Status Contribute(refit::Program& program, size_t buckets, refit::Version version,
                          const base::CancelScope& scope);

 private:
  struct Declared {
    refit::ArraySpec spec;
    std::optional<refit::Sharding> sharding;
  };

  Source(const ws_source_options& options, std::shared_ptr<refit::Communicator> communicator,
         std::unique_ptr<const refit::Checkpoint> checkpoint, refit::WeightMap map);
  absl::StatusOr<Declared> ReadArray(const ws_array* given) const;
  absl::Status DeclareWhole(const std::vector<Declared>& arrays);
  absl::Status DeclareSharded(const std::vector<Declared>& arrays);
  absl::Status BindWhole(refit::Version version, const Loans& loans);
  absl::Status BindSharded(refit::Version version, const Loans& loans);
  void GiveBack();

  // In the order in which they need each other.
  refit::StepGate gate_;
  const bool snapshots_;
  refit::CopyOptions copy_options_;
  std::vector<int> process_of_rank_;
  std::shared_ptr<refit::Communicator> communicator_;
  const std::unique_ptr<const refit::Checkpoint> checkpoint_;
  const refit::WeightMap map_;
  const refit::TreeNames names_;
  std::unique_ptr<refit::MapSource> whole_;  // once arrays are declared, one of the two
  std::unique_ptr<refit::ShardedSource> sharded_;
  absl::flat_hash_set<std::string> on_every_process_;  // of a sharded source: arrays that are whole
  std::vector<std::optional<refit::DType>> dtypes_;    // by the map's trainer tensors
  Loans loans_;
  bool refit_open_ = false;
};

class CompiledProgram {
 public:
  // Without a geometry: each tensor whole, in a bucket of its own.
  static absl::StatusOr<std::shared_ptr<CompiledProgram>> Compile(
      std::shared_ptr<Source> source, const std::optional<refit::Geometry>& geometry);

  const std::vector<refit::Bucket>& buckets() const { return buckets_; }
  absl::StatusOr<const refit::Bucket*> BucketAt(int32_t index) const;
  absl::StatusOr<ws_piece> PieceAt(int32_t bucket, int32_t index) const;

  // A whole refit, as a process other than 0.
  absl::Status Contribute(refit::Version version, const base::Deadline& deadline);

 private:
  friend class Refit;
  CompiledProgram(std::shared_ptr<Source> source, std::vector<refit::Bucket> buckets,
                  std::unique_ptr<refit::Program> program);

  const std::shared_ptr<Source> source_;
  const std::vector<refit::Bucket> buckets_;
  const std::unique_ptr<refit::Program> program_;
};

class Refit {
 public:
  static absl::StatusOr<std::unique_ptr<Refit>> Begin(std::shared_ptr<CompiledProgram> program,
                                                      refit::Version version,
                                                      const base::Deadline& deadline);
  Refit(const Refit&) = delete;
  Refit& operator=(const Refit&) = delete;
  ~Refit();

  absl::Status Fill(int32_t bucket, void* memory, int64_t bytes);
  absl::Status Unchanged() const { return guard_->Unchanged(); }

 private:
  Refit(std::shared_ptr<CompiledProgram> program, const base::Deadline& deadline);

  const std::shared_ptr<CompiledProgram> program_;
  const base::CancelScope scope_;
  std::optional<refit::ReadGuard> guard_;
};

}  // namespace weight_sync::c_api

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_C_API_SOURCE_H_
