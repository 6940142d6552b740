// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// HfSource: a RefitSource over parameters that already have Hugging Face names and shapes, in any
// strides (a transposed, sliced, reversed or broadcast view is sent as its logical values).
//
// The views' bytes and the gate are borrowed and must outlive the source and its programs. The
// trainer writes the parameters only inside a StepGate::Step.
//
//   StepGate gate;
//   WS_ASSIGN_OR_RETURN(auto source, HfSource::Create({{"model.norm.weight", view}}, &gate));

#ifndef WEIGHT_SYNC_REFIT_HF_SOURCE_H_
#define WEIGHT_SYNC_REFIT_HF_SOURCE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/bound_arrays.h"
#include "refit/layout/copy_program.h"
#include "refit/refit_source.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

struct HfParameter {
  std::string name;
  TensorView view;
};

class HfSource : public RefitSource {
 public:
  // InvalidArgument as RefitInfo::Create, and for a view without memory that has elements.
  static absl::StatusOr<std::unique_ptr<HfSource>> Create(std::vector<HfParameter> parameters,
                                                          const StepGate* gate);

  // From now on a sync reads a copy that its Begin() makes (refit/bound_arrays.h), and the trainer goes
  // on as soon as that is made.
  absl::Status UseSnapshots();

  // Programs that are compiled from now on copy like this: by several threads, say.
  void UseCopyOptions(const CopyOptions& options) { copy_options_ = options; }

  const RefitInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Program>> Compile(absl::Span<const Bucket> buckets) override;
  absl::StatusOr<base::Digest128> ReferenceDigest(int tensor) const override;

 private:
  HfSource(RefitInfo info, std::vector<HfParameter> parameters, const StepGate* gate);

  RefitInfo info_;
  std::vector<HfParameter> parameters_;
  const StepGate* gate_;
  const std::shared_ptr<BoundArrays> arrays_;
  CopyOptions copy_options_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_HF_SOURCE_H_
