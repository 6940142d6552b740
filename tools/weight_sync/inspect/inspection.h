// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What `weight_sync inspect` found out about a checkpoint: plain data, which Inspect() fills and the
// reports read. Its JSON (`inspect --json`) has the members under their names here.
//
//   const Inspection found = Inspect(model, refit::LayoutOptions{"tunix"});
//   for (const LayoutVerdict& verdict : found.layouts) ...

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_INSPECT_INSPECTION_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_INSPECT_INSPECTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "refit/maps/family.h"
#include "tools/weight_sync/common/source_model.h"

namespace weight_sync::inspect {

struct DTypeCount {
  std::string dtype;
  int64_t tensors = 0;
  int64_t bytes = 0;
};

// Where config.json and the files disagree, by name; shape with both shapes.
struct Unmatched {
  std::vector<std::string> unknown;  // in the files, and no tensor of such a model
  std::vector<std::string> missing;  // of such a model, and in no file
  std::vector<std::string> shape;
};

struct LayoutVerdict {
  std::string layout;  // as the command line names it
  bool exact = false;
  std::string reason;  // why it is refused
};

// A row of the family's table.
struct RowCount {
  std::string hf_name, hf_axes, trainer_name, trainer_axes;
  // Boxes of HF tensors that it fills: as many as tensors, where it fills whole ones.
  int64_t regions = 0;
};

struct HfTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  // The layout does not hold it: a refit takes it from the source checkpoint, however the trainer
  // trained.
  bool passes_through = false;
  // Where it passes through as a part that no trainer holds: the prefix that says so ("mtp.").
  std::string part;
};

struct TrainerTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<int> padded;  // dimensions that may be longer
  bool sent = true;         // false: the trainer holds it, and no HF tensor is made of it
};

// One layout, in full.
struct LayoutDetails {
  std::string layout;
  std::string error;  // why it is refused; then the rest is empty
  std::vector<HfTensor> hf_tensors;
  std::vector<TrainerTensor> trainer_tensors;
  std::vector<RowCount> rows;
};

struct Inspection {
  std::string checkpoint;
  std::string config;
  std::string model_type;
  std::string family;
  std::string form;  // the target form that these files are in: "hf" or "hf-fused"
  int64_t layers = 0;
  int64_t files = 0;
  int64_t tensors = 0;
  int64_t elements = 0;
  int64_t bytes = 0;
  std::vector<DTypeCount> dtypes;
  bool tied_head = false;              // by config.json
  bool tied_head_written = false;      // its copy is in the files all the same
  bool shared_kv_written = false;      // so are K and V of layers that use an earlier layer's
  bool language_model_prefix = false;  // model.language_model.* instead of model.*
  Unmatched unmatched;
  std::vector<LayoutVerdict> layouts;  // all that there are; none where something is unmatched
  LayoutDetails details;  // of the layout that was asked for, or of the files' own form
};

Inspection Inspect(const tools::SourceModel& model,
                   const std::optional<refit::LayoutOptions>& layout);

// Whether the files are such a model's and the layout can be refitted from exactly.
bool Ok(const Inspection& found);

}  // namespace weight_sync::inspect

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_INSPECT_INSPECTION_H_
