// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// ShardedSource: a RefitSource over parameters that are cut over several processes (FSDP, tensor and
// expert parallelism, jax's NamedSharding), in any layout that a WeightMap describes. What a process
// holds goes straight into process 0's buckets: no tensor is ever whole in between.
//
// SPMD: every process makes the same source (same map, shardings and buckets, its own communicator)
// and the same calls. Process 0's program fills the transport's slots; on the others Fill() takes
// part and writes nothing (refit/contribute.h makes those calls). A failure on one process fails the
// sync on all, and ReadGuard::Unchanged() is the answer of all. Parameters on meshes of some of the
// processes may be declared as each of these sees them (refit/sharding/plan_agreement.h).
//
// A mesh rank is a device. Where a process drives one, as under torchrun, its mesh rank is its rank;
// where it drives several, as jax may, `process_of_rank` says whose each is, and a process binds
// several shards of one tensor.
//
// Arrays are borrowed from Bind() until the next one or Release(). The checkpoint, the gate and the
// communicator are borrowed for good. One thread at a time.
//
//   auto mesh = std::make_shared<const Mesh>(*Mesh::Create({{"dp", 2}, {"tp", 2}}));
//   std::vector<ShardedSpec> specs;       // of every parameter, as this rank sees it
//   specs.push_back({"model.embed_tokens.weight", DType::kF32, *Sharding::FromPlacements(
//       mesh, {Placement::StridedShard(0, 2), Placement::Shard(0)}, {151936, 1024})});
//   ...
//   WS_ASSIGN_OR_RETURN(auto source, ShardedSource::Create(std::move(map), specs, nullptr, &gate,
//                                                          &communicator));
//   WS_ASSIGN_OR_RETURN(auto program, source->Compile(buckets));
//   WS_RETURN_IF_ERROR(source->Bind(version, {{"model.embed_tokens.weight", local, rank}, ...}));

#ifndef WEIGHT_SYNC_REFIT_SHARDING_SHARDED_SOURCE_H_
#define WEIGHT_SYNC_REFIT_SHARDING_SHARDED_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"
#include "base/digest.h"
#include "refit/bound_arrays.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/layout/copy_program.h"
#include "refit/maps/weight_map.h"
#include "refit/read_guard.h"
#include "refit/refit_source.h"
#include "refit/sharding/communicator.h"
#include "refit/sharding/plan_agreement.h"
#include "refit/sharding/shard_plan.h"
#include "refit/sharding/sharding.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/tensor_view.h"
#include "refit/version.h"

namespace weight_sync::refit {

// A parameter, wherever its parts are. The sharding has its whole shape.
struct ShardedSpec {
  std::string name;
  DType dtype;
  Sharding sharding;
};

// What this process holds of a parameter at a mesh rank: the box that the sharding says.
struct ShardArray {
  std::string name;
  TensorView view;
  int mesh_rank = 0;
};

class ShardedSource : public RefitSource {
 public:
  // InvalidArgument as MatchSpecs, CheckConversions and, at process 0, FindPassed; and for mesh
  // ranks of no process. `process_of_rank` empty: each mesh rank is a process.
  static absl::StatusOr<std::unique_ptr<ShardedSource>> Create(
      WeightMap map, absl::Span<const ShardedSpec> specs, const Checkpoint* source,
      const StepGate* gate, Communicator* communicator, std::vector<int> process_of_rank = {});

  // The arrays that hold this version. Those that others contribute (replicas) and those without
  // elements may be left out. InvalidArgument lists what is missing, unknown, twice, or of another
  // shape or dtype than its sharding says; nothing is bound then. Row-major arrays only.
  absl::Status Bind(Version version, absl::Span<const ShardArray> shards);
  void Release();

  // From now on a sync reads a copy that its Begin() makes (refit/bound_arrays.h).
  absl::Status UseSnapshots();

  // Programs that are compiled from now on copy like this: by several threads, say. Each process may
  // choose its own.
  void UseCopyOptions(const CopyOptions& options) { copy_options_ = options; }

  const WeightMap& map() const { return map_; }
  const RefitInfo& info() const override { return map_.hf(); }

  // The programs of a source have one sync open at a time.
  absl::StatusOr<std::unique_ptr<Program>> Compile(absl::Span<const Bucket> buckets) override;

  // At process 0, and inside of a sync. The others take part while they ask whether anything changed.
  absl::StatusOr<base::Digest128> ReferenceDigest(int tensor) const override;

 private:
  class ShardedProgram;
  class ElementReader;

  ShardedSource(WeightMap map, const StepGate* gate, Communicator* communicator)
      : map_(std::move(map)), gate_(gate), communicator_(communicator) {}

  absl::Status Declare(absl::Span<const ShardedSpec> specs);
  int ProcessOf(int mesh_rank) const;
  // At processes other than 0: their part of each ReferenceDigest(), until process 0 ends the sync.
  absl::Status GiveDigests(const base::CancelScope& scope) const;
  absl::StatusOr<ShardPlan> PlanFor(absl::Span<const Bucket> buckets) const;
  PlanAgreement::Digests DigestsFor(absl::Span<const Bucket> buckets) const;
  bool IsOnMesh(int trainer, int process) const;

  const WeightMap map_;
  const StepGate* const gate_;
  Communicator* const communicator_;
  std::vector<int> process_of_rank_;
  std::vector<Sharding> shardings_;  // by trainer tensor
  Holdings holdings_;
  // The views of this process's shards, by trainer tensor and mesh rank; they are the first ones.
  absl::flat_hash_map<std::pair<int, int>, int> view_of_;
  std::unique_ptr<BoundArrays> arrays_;
  CopyOptions copy_options_;
  const base::CancelScope* open_sync_ = nullptr;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_SHARDED_SOURCE_H_
