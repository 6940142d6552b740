// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/inspect/inspection.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "refit/maps/manifest.h"
#include "refit/maps/weight_map.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "tools/weight_sync/common/layout_argument.h"

namespace weight_sync::inspect {
namespace {

using refit::Family;
using refit::LayoutOptions;
using refit::WeightMap;
using tools::SourceModel;

absl::StatusOr<WeightMap> Build(const SourceModel& model, const LayoutOptions& layout,
                                refit::ManifestDifferences* differences = nullptr) {
  return WeightMap::Build(*model.model.family, model.model.config, layout,
                          {/*target=*/"", &model.manifest, differences});
}

std::vector<int64_t> Dims(const refit::Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

void Count(const SourceModel& model, Inspection& found) {
  std::map<std::string, DTypeCount> dtypes;
  for (const refit::NamedTensor& t : model.checkpoint.tensors()) {
    found.elements += t.tensor.shape().num_elements();
    const std::string name(refit::SafetensorsName(t.tensor.dtype()));
    DTypeCount& count = dtypes[name];
    count.dtype = name;
    ++count.tensors;
    count.bytes += t.tensor.num_bytes();
  }
  for (auto& [name, count] : dtypes) found.dtypes.push_back(std::move(count));
  found.files = static_cast<int64_t>(model.checkpoint.shards().size());
  found.tensors = static_cast<int64_t>(model.checkpoint.tensors().size());
  found.bytes = model.checkpoint.total_bytes();
}

void TellForm(const SourceModel& model, Inspection& found) {
  const refit::CheckpointForm form = model.manifest.Form(model.model.config);
  found.form = model.manifest.TargetLayout();
  found.tied_head = model.model.config.tie_word_embeddings;
  found.tied_head_written = found.tied_head && form.tied_lm_head;
  found.shared_kv_written = form.shared_kv;
  found.language_model_prefix = form.language_model_prefix;
}

std::string PartOf(const Family& family, const std::string& name) {
  for (const std::string& prefix : family.passthrough) {
    if (absl::StartsWith(name, prefix)) return prefix;
  }
  return "";
}

void Tell(const Family& family, const WeightMap& map, LayoutDetails& details) {
  for (int t = 0; t < map.hf().size(); ++t) {
    const refit::TensorSpec& tensor = map.hf()[t];
    const bool passes = map.passes_through(t);
    details.hf_tensors.push_back({tensor.name, std::string(refit::SafetensorsName(tensor.dtype)),
                                  Dims(tensor.shape), tensor.bytes(), passes,
                                  passes ? PartOf(family, tensor.name) : ""});
  }
  for (const WeightMap::TrainerTensor& tensor : map.trainer()) {
    TrainerTensor& told = details.trainer_tensors.emplace_back();
    told.name = tensor.name;
    told.shape = Dims(tensor.shape);
    told.sent = tensor.sent;
    for (int dim = 0; dim < tensor.shape.rank(); ++dim) {
      if (tensor.padded[static_cast<size_t>(dim)]) told.padded.push_back(dim);
    }
  }
  for (const WeightMap::RowUse& row : map.rows()) {
    details.rows.push_back(
        {row.hf_name, row.hf_axes, row.trainer_name, row.trainer_axes, row.regions});
  }
}

// Every layout there is, and the scanned form of the one that has it.
std::vector<LayoutOptions> LayoutsOf(const SourceModel& model) {
  std::vector<LayoutOptions> layouts;
  for (const std::string& name : tools::KnownLayouts()) {
    layouts.push_back(tools::LayoutOf({name}, model.model.config));
    if (name == model.model.family->scanned_layout) {
      layouts.push_back(tools::LayoutOf({name, /*scanned=*/true}, model.model.config));
    }
  }
  return layouts;
}

}  // namespace

Inspection Inspect(const SourceModel& model, const std::optional<LayoutOptions>& layout) {
  Inspection found;
  found.checkpoint = model.path;
  found.config = model.model.config_path;
  found.model_type = model.model.config.model_type;
  found.family = model.model.family->name;
  found.layers = model.model.config.num_hidden_layers;
  Count(model, found);
  TellForm(model, found);

  const LayoutOptions asked = layout.value_or(LayoutOptions{found.form});
  found.details.layout = tools::LayoutText(asked);
  refit::ManifestDifferences differences;
  const absl::StatusOr<WeightMap> own = Build(model, {found.form}, &differences);
  found.unmatched = {std::move(differences.unknown), std::move(differences.missing),
                     std::move(differences.shape)};
  if (!own.ok()) {
    found.details.error = std::string(own.status().message());
    return found;
  }
  for (const LayoutOptions& one : LayoutsOf(model)) {
    const absl::StatusOr<WeightMap> map = Build(model, one);
    found.layouts.push_back(
        {tools::LayoutText(one), map.ok(), std::string(map.status().message())});
  }
  const absl::StatusOr<WeightMap> map = Build(model, asked);
  if (map.ok()) {
    Tell(*model.model.family, *map, found.details);
  } else {
    found.details.error = std::string(map.status().message());
  }
  return found;
}

bool Ok(const Inspection& found) { return found.details.error.empty(); }

}  // namespace weight_sync::inspect
