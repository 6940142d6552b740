// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rewrites a model from one layout into another, through the Hugging Face form: a trainer's tree to
// a checkpoint is a refit, a checkpoint to a tree is a load, and a tree to a tree is one after the
// other, with a scratch file between them.
//
// Files are read and written as mapped memory, so a model of any size that fits on the disk takes a
// few MB of anonymous memory.
//
//   WS_ASSIGN_OR_RETURN(const Result result, Convert(options, progress));

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_CONVERT_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_CONVERT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/common/progress_line.h"
#include "tools/weight_sync/common/layout_argument.h"

namespace weight_sync::convert {

struct Options {
  std::string in;  // a folder, an index or a safetensors file
  tools::LayoutArgument from;
  tools::LayoutArgument to;
  std::string config;  // config.json of the model
  std::string out;     // a folder that is new or empty
  // The checkpoint that the trainer started from, of a tree; empty: none.
  std::string manifest_from;
  std::string scratch;  // the folder of the scratch file
  int64_t max_shard_bytes = 5'000'000'000;
  bool float32_masters = false;  // of a tree that is made
};

struct Result {
  std::string from, to;  // as the command line names them
  int64_t tensors = 0;
  int64_t bytes = 0;
  int64_t files = 0;                  // without index and config.json
  int64_t rounded = 0;                // tensors of float32 that became bfloat16
  int64_t passed_through = 0;         // tensors that are those of the manifest's checkpoint
  std::vector<std::string> left_out;  // tensors of IN that the layout TO does not hold
  std::vector<std::string> zeros;     // tensors of OUT that nothing in IN says: held, and not sent
  // Parts that a checkpoint of the family may have and no trainer holds, by their names' beginnings:
  // left away for want of a manifest.
  std::vector<std::string> parts_left_away;
  double seconds = 0;
};

// Errors say what to do: InvalidArgument for a layout that is refused, for tensors that are missing,
// unknown or of another shape, and for those that only --manifest-from can give; FailedPrecondition
// for a folder that is not empty; ResourceExhausted for a disk that is too full.
absl::StatusOr<Result> Convert(const Options& options, tools::ProgressLine& progress);

}  // namespace weight_sync::convert

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_CONVERT_H_
