// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// MapSource: a RefitSource over a trainer's arrays in any layout that a WeightMap describes.
//
// The arrays' bytes, the source checkpoint and the gate are borrowed and must outlive the source and
// its programs. Arrays may be float32 where the HF tensor is bfloat16: they are rounded to nearest
// even on the way. What the map passes through comes from the source checkpoint.
//
//   WS_ASSIGN_OR_RETURN(WeightMap map, WeightMap::Build(Qwen3MoeFamily(), config, {"tunix"}));
//   StepGate gate;
//   WS_ASSIGN_OR_RETURN(auto source, MapSource::Create(std::move(map), arrays, nullptr, &gate));
//
// Where the arrays are new objects at each step, as JAX's are, programs are compiled once from what
// the arrays are, without a byte of them, and the arrays of a version are bound before its sync. They
// are then borrowed until the next Bind() or Release() only. Neither of these may run while a program
// or a digest does; a sync that finds its arrays gone in between ends with Aborted.
//
//   WS_ASSIGN_OR_RETURN(auto source, MapSource::CreateUnbound(std::move(map), specs, nullptr, &gate));
//   WS_ASSIGN_OR_RETURN(std::unique_ptr<Program> program, source->Compile(buckets));
//   for (Version version = 1;; ++version) {
//     WS_RETURN_IF_ERROR(source->Bind(version, arrays));
//     WS_ASSIGN_OR_RETURN(ReadGuard guard, program->Begin(version, scope));
//     ...                                                       // as in refit/refit_source.h
//     source->Release();
//   }

#ifndef WEIGHT_SYNC_REFIT_MAPS_MAP_SOURCE_H_
#define WEIGHT_SYNC_REFIT_MAPS_MAP_SOURCE_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/bound_arrays.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/layout/copy_program.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/maps/weight_map.h"
#include "refit/refit_source.h"
#include "refit/tensor/tensor_view.h"
#include "refit/version.h"

namespace weight_sync::refit {

class MapSource : public RefitSource {
 public:
  // InvalidArgument as MatchArrays; for dtypes whose values cannot be kept; and when `source`, which
  // is only needed for what passes through, lacks it or holds it otherwise than the manifest says.
  // The arrays are bound for every version.
  static absl::StatusOr<std::unique_ptr<MapSource>> Create(WeightMap map,
                                                           absl::Span<const TrainerArray> arrays,
                                                           const Checkpoint* source,
                                                           const StepGate* gate);

  // The same of arrays that are not there yet, as MatchSpecs. Until some are bound, Begin() and
  // ReferenceDigest() are FailedPrecondition.
  static absl::StatusOr<std::unique_ptr<MapSource>> CreateUnbound(WeightMap map,
                                                                  absl::Span<const ArraySpec> specs,
                                                                  const Checkpoint* source,
                                                                  const StepGate* gate);

  // The arrays that hold this version, in any order: programs copy from them from now on, and begin
  // syncs of no other version. InvalidArgument as MatchArrays, and for an array whose shape, dtype
  // or strides are not those that the source was made for (strides of dimensions of size 1 do not
  // matter); nothing is bound then.
  absl::Status Bind(Version version, absl::Span<const TrainerArray> arrays);

  // Forgets the arrays that are bound.
  void Release();

  // From now on a sync reads a copy that its Begin() makes (refit/bound_arrays.h): the trainer goes on
  // as soon as that is made, and the arrays may be released.
  absl::Status UseSnapshots();

  // Programs that are compiled from now on copy like this: by several threads, say.
  void UseCopyOptions(const CopyOptions& options) { copy_options_ = options; }

  const WeightMap& map() const { return map_; }
  const RefitInfo& info() const override { return map_.hf(); }
  absl::StatusOr<std::unique_ptr<Program>> Compile(absl::Span<const Bucket> buckets) override;
  absl::StatusOr<base::Digest128> ReferenceDigest(int tensor) const override;

  // What Compile() makes a Program of. Tensors are numbered as the map's trainer tensors, then those
  // that pass through.
  absl::StatusOr<CopyProgram> CompileCopies(absl::Span<const Bucket> buckets) const;

 private:
  // From matched views, wherever their bytes are.
  static absl::StatusOr<std::unique_ptr<MapSource>> CreateFrom(WeightMap map,
                                                               std::vector<TensorView> views,
                                                               const Checkpoint* source,
                                                               const StepGate* gate);
  MapSource(WeightMap map, std::vector<TensorView> views, std::vector<int> passed,
            const StepGate* gate);

  const WeightMap map_;
  // The trainer's and then those that pass through; only arrays_ says where their bytes are.
  const std::vector<TensorView> views_;
  const std::vector<int> passed_;  // by HF tensor: its view if it passes through, or -1
  const StepGate* const gate_;
  const std::shared_ptr<BoundArrays> arrays_;  // by view
  CopyOptions copy_options_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_MAP_SOURCE_H_
