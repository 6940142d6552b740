// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// CompiledRefit: a source's buckets in the geometry that the engine takes, and the program that fills
// them. Compiled anew only when the geometry is another. Not thread-safe.
//
//   CompiledRefit refit;
//   WS_RETURN_IF_ERROR(refit.CompileFor(policy->source(), geometry));
//   refit.program().Begin(...);

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_COMPILED_REFIT_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_COMPILED_REFIT_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "refit/packing/bucket.h"
#include "refit/packing/packer.h"
#include "refit/refit_source.h"

namespace weight_sync {

class CompiledRefit {
 public:
  // Always of the same source. After an error there is no program.
  absl::Status CompileFor(refit::RefitSource& source, const refit::Geometry& geometry) {
    if (program_ != nullptr && geometry.bucket_bytes == geometry_.bucket_bytes &&
        geometry.alignment == geometry_.alignment) {
      return absl::OkStatus();
    }
    program_ = nullptr;
    geometry_ = geometry;
    WS_ASSIGN_OR_RETURN(buckets_, refit::Pack(source.info(), geometry));
    plan_ = refit::PlanDigest(buckets_);
    WS_ASSIGN_OR_RETURN(program_, source.Compile(buckets_));
    return absl::OkStatus();
  }

  // Of the last CompileFor() that was OK.
  const std::vector<refit::Bucket>& buckets() const { return buckets_; }
  const base::Digest128& plan() const { return plan_; }
  refit::Program& program() const { return *program_; }

 private:
  refit::Geometry geometry_;
  std::vector<refit::Bucket> buckets_;
  base::Digest128 plan_;
  std::unique_ptr<refit::Program> program_;
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_COMPILED_REFIT_H_
