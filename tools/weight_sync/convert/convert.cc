// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/convert/convert.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "refit/checkpoint/checkpoint.h"
#include "refit/checkpoint/pending_checkpoint.h"
#include "refit/maps/family.h"
#include "refit/maps/load_checkpoint.h"
#include "refit/maps/manifest.h"
#include "refit/maps/map_source.h"
#include "refit/maps/weight_map.h"
#include "refit/read_guard.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/tensor_view.h"
#include "tools/weight_sync/common/fill_buckets.h"
#include "tools/weight_sync/common/scratch_tensors.h"
#include "tools/weight_sync/common/source_model.h"
#include "tools/weight_sync/common/trainer_specs.h"
#include "tools/weight_sync/convert/output_directory.h"
#include "tools/weight_sync/convert/row_buckets.h"
#include "tools/weight_sync/convert/saved_names.h"

namespace weight_sync::convert {
namespace {

using refit::Checkpoint;
using refit::DType;
using refit::IsHfForm;
using refit::Manifest;
using refit::MapSource;
using refit::MutableTensorView;
using refit::TensorSpec;
using refit::TrainerArray;
using refit::WeightMap;

// Without its towers a checkpoint that config.json says to have them is none.
absl::Status CheckNoTowers(const tools::ModelOfConfig& model) {
  std::ifstream file(model.config_path);
  std::stringstream text;
  text << file.rdbuf();
  const auto config = nlohmann::json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  for (const char* tower : {"vision_config", "audio_config"}) {
    if (!config.contains(tower) || !config[tower].is_object()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", model.config_path, "' has a '", tower, "', and no trainer's tree holds its tensors (",
        absl::StrJoin(model.family->passthrough, "*, "),
        "*); give the checkpoint that the trainer started from with --manifest-from"));
  }
  return absl::OkStatus();
}

class Converter {
 public:
  Converter(const Options& options, tools::ModelOfConfig model, Checkpoint in,
            std::optional<Checkpoint> started_from, tools::ProgressLine& progress)
      : options_(options),
        model_(std::move(model)),
        in_(std::move(in)),
        started_from_(std::move(started_from)),
        from_(tools::LayoutOf(options.from, model_.config)),
        to_(tools::LayoutOf(options.to, model_.config)),
        progress_(progress) {}

  absl::StatusOr<Result> Run() {
    const absl::Time start = absl::Now();
    result_.from = tools::LayoutText(from_);
    result_.to = tools::LayoutText(to_);
    if (Source() != nullptr) {
      WS_ASSIGN_OR_RETURN(manifest_, Manifest::Record(*Source()));
    } else if (to_hf()) {
      WS_RETURN_IF_ERROR(CheckNoTowers(model_));
    }
    if (from_hf() && options_.from.name == "hf" && manifest_->TargetLayout() == "hf-fused") {
      return absl::InvalidArgumentError(
          absl::StrCat("'", options_.in, "' has its experts stacked: that is --from hf-fused"));
    }
    WS_ASSIGN_OR_RETURN(out_, OutputDirectory::Create(options_.out));
    WS_RETURN_IF_ERROR(to_hf() ? ToHf() : from_hf() ? HfToTrainer() : TrainerToTrainer());
    result_.seconds = absl::ToDoubleSeconds(absl::Now() - start);
    return std::move(result_);
  }

 private:
  bool from_hf() const { return IsHfForm(from_.name); }
  bool to_hf() const { return IsHfForm(to_.name); }

  // The checkpoint that has what a trainer does not hold; nullptr if there is none.
  const Checkpoint* Source() const {
    if (from_hf()) return &in_;
    return started_from_.has_value() ? &*started_from_ : nullptr;
  }

  absl::StatusOr<WeightMap> Build(const refit::LayoutOptions& layout, const std::string& target,
                                  const Manifest* manifest) const {
    absl::StatusOr<WeightMap> map =
        WeightMap::Build(*model_.family, model_.config, layout, {target, manifest});
    if (map.ok() || manifest != nullptr || !absl::StrContains(map.status().message(), "manifest")) {
      return map;
    }
    return absl::Status(map.status().code(),
                        absl::StrCat(map.status().message(),
                                     "; --manifest-from names the checkpoint that the trainer "
                                     "started from"));
  }
  const Manifest* manifest() const { return manifest_.has_value() ? &*manifest_ : nullptr; }

  // IN's tensors as the arrays of a map whose trainer side is IN's layout.
  absl::StatusOr<std::vector<TrainerArray>> ArraysOfIn(const WeightMap& map) {
    if (!from_hf()) return FindSaved(map, in_);
    std::vector<TrainerArray> arrays;
    for (const refit::NamedTensor& tensor : in_.tensors()) {
      if (map.FindTrainer(tensor.name).has_value() || tensor.name == map.tied_head()) {
        arrays.push_back({tensor.name, tensor.tensor});
      }
      if (!map.hf().Find(tensor.name).has_value() && !map.FindTrainer(tensor.name).has_value()) {
        result_.left_out.push_back(tensor.name);
      }
    }
    return arrays;
  }

  void CountRounded(const WeightMap& map, absl::Span<const TrainerArray> arrays) {
    std::vector<bool> is_float32(map.trainer().size());
    for (const TrainerArray& array : arrays) {
      const std::optional<int> found = map.FindTrainer(array.name);
      if (found.has_value()) {
        is_float32[static_cast<size_t>(*found)] = array.view.dtype() == DType::kF32;
      }
    }
    for (int t = 0; t < map.hf().size(); ++t) {
      if (map.hf()[t].dtype != DType::kBF16) continue;
      const auto regions = map.regions(t);
      result_.rounded += std::any_of(regions.begin(), regions.end(), [&](const auto& mapped) {
        return is_float32[static_cast<size_t>(mapped.trainer)];
      });
    }
  }

  // Refits into `targets`, one a tensor of the map or nullptr for one that is not wanted.
  absl::Status Refit(const WeightMap& map, absl::Span<const MutableTensorView* const> targets) {
    WS_ASSIGN_OR_RETURN(const std::vector<TrainerArray> arrays, ArraysOfIn(map));
    CountRounded(map, arrays);
    const refit::StepGate gate;
    WS_ASSIGN_OR_RETURN(const std::unique_ptr<MapSource> source,
                        MapSource::Create(map, arrays, Source(), &gate));
    constexpr int64_t kRunBytes = int64_t{32} << 20;
    const RowBuckets rows = MakeRowBuckets(map.hf(), targets, kRunBytes);
    int64_t done = 0;
    return tools::FillBuckets(
        *source, rows.buckets, [&](size_t b) { return rows.places[b]; },
        [&](size_t b) { progress_.Show("refitting", done += rows.buckets[b].bytes, rows.bytes); });
  }

  // Makes the files of OUT, whose tensors `fill` writes.
  template <typename Fill>
  absl::Status WriteOut(absl::Span<const TensorSpec> specs,
                        const std::map<std::string, std::string>& metadata, Fill fill) {
    for (const TensorSpec& spec : specs) result_.bytes += spec.bytes();
    result_.tensors = static_cast<int64_t>(specs.size());
    WS_RETURN_IF_ERROR(tools::CheckSpace(options_.out, result_.bytes, "the result",
                                         "name a folder on another disk with --out"));
    WS_ASSIGN_OR_RETURN(refit::PendingCheckpoint pending,
                        refit::PendingCheckpoint::Create(out_->staging(), specs,
                                                         options_.max_shard_bytes, metadata));
    result_.files = pending.num_files();
    WS_RETURN_IF_ERROR(fill(pending.tensors()));
    progress_.Show("to disk", 1, 1);
    WS_RETURN_IF_ERROR(pending.Publish());
    const std::string copy = absl::StrCat(out_->staging(), "/config.json");
    std::error_code error;
    std::filesystem::copy_file(model_.config_path, copy, error);
    if (error) {
      return absl::ErrnoToStatus(
          error.value(), absl::StrCat("cannot copy '", model_.config_path, "' to '", copy, "'"));
    }
    return out_->Publish();
  }

  absl::Status ToHf() {
    WS_ASSIGN_OR_RETURN(const WeightMap map, Build(from_, to_.name, manifest()));
    for (int t = 0; t < map.hf().size(); ++t) {
      if (!from_hf() && map.passes_through(t)) ++result_.passed_through;
    }
    if (Source() == nullptr) {
      for (const std::string& part : model_.family->passthrough) {
        result_.parts_left_away.push_back(part);
      }
    }
    return WriteOut(map.hf().tensors(), {{"format", "pt"}},
                    [&](const std::vector<MutableTensorView>& tensors) {
                      std::vector<const MutableTensorView*> targets;
                      for (const MutableTensorView& tensor : tensors) targets.push_back(&tensor);
                      return Refit(map, targets);
                    });
  }

  // Loads `checkpoint`, of the HF side of `map`, into OUT, once `make` has made it.
  template <typename Make>
  absl::Status Load(const WeightMap& map, const Checkpoint& checkpoint, Make make) {
    WS_ASSIGN_OR_RETURN(const std::vector<TensorSpec> specs,
                        tools::TrainerSpecs(map, model_.config.dtype, options_.float32_masters));
    int64_t all = 0, done = 0;
    for (size_t i = 0; i < specs.size(); ++i) {
      all += specs[i].bytes();
      if (!map.trainer()[i].sent) result_.zeros.push_back(specs[i].name);
    }
    return WriteOut(specs, {}, [&](const std::vector<MutableTensorView>& tensors) {
      WS_RETURN_IF_ERROR(make());
      return refit::LoadCheckpoint(
          map, checkpoint, tools::ArraysOf(specs, tensors),
          [&](int64_t bytes) { progress_.Show("loading", done += bytes, all); });
    });
  }

  absl::Status HfToTrainer() {
    WS_ASSIGN_OR_RETURN(const WeightMap map, Build(to_, from_.name, manifest()));
    for (int t = 0; t < map.hf().size(); ++t) {
      if (map.passes_through(t)) result_.left_out.push_back(map.hf()[t].name);
    }
    return Load(map, in_, [] { return absl::OkStatus(); });
  }

  // As `map` takes them in from its trainer, and with masters' values not rounded on the way.
  absl::StatusOr<Manifest> BetweenTrainers(const WeightMap& map) const {
    std::vector<TensorSpec> specs = map.hf().tensors();
    for (int t = 0; t < map.hf().size(); ++t) {
      TensorSpec& spec = specs[static_cast<size_t>(t)];
      if (options_.float32_masters && !map.passes_through(t) && spec.dtype == DType::kBF16) {
        spec.dtype = DType::kF32;
      }
    }
    WS_ASSIGN_OR_RETURN(refit::RefitInfo info, refit::RefitInfo::Create(std::move(specs)));
    return Manifest(std::move(info));
  }

  absl::Status TrainerToTrainer() {
    const std::string target = manifest_.has_value() ? manifest_->TargetLayout() : "hf";
    WS_ASSIGN_OR_RETURN(const WeightMap held, Build(from_, target, manifest()));
    WS_ASSIGN_OR_RETURN(const Manifest between, BetweenTrainers(held));
    WS_ASSIGN_OR_RETURN(const WeightMap from_map, Build(from_, target, &between));
    WS_ASSIGN_OR_RETURN(const WeightMap to_map, Build(to_, target, &between));

    std::vector<TensorSpec> specs;
    for (int t = 0; t < from_map.hf().size(); ++t) {
      const bool passed = from_map.passes_through(t), wanted = !to_map.passes_through(t);
      if (!passed) specs.push_back(from_map.hf()[t]);
      if (passed && wanted) ++result_.passed_through;
      if (!passed && !wanted) result_.left_out.push_back(from_map.hf()[t].name);
    }
    WS_ASSIGN_OR_RETURN(const tools::ScratchTensors scratch,
                        tools::ScratchTensors::Create(options_.scratch, specs));
    std::vector<const MutableTensorView*> targets;
    std::vector<refit::NamedTensor> tensors;
    size_t next = 0;
    for (int t = 0; t < from_map.hf().size(); ++t) {
      const std::string& name = from_map.hf()[t].name;
      const bool passed = from_map.passes_through(t);
      targets.push_back(passed ? nullptr : &scratch.tensors()[next]);
      tensors.push_back({name, passed ? Source()->Find(name)->tensor : scratch.tensors()[next]});
      if (!passed) ++next;
    }
    WS_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::OfTensors(std::move(tensors)));
    return Load(to_map, checkpoint, [&] { return Refit(from_map, targets); });
  }

  const Options& options_;
  const tools::ModelOfConfig model_;
  const Checkpoint in_;
  const std::optional<Checkpoint> started_from_;
  const refit::LayoutOptions from_;
  const refit::LayoutOptions to_;
  tools::ProgressLine& progress_;
  std::optional<Manifest> manifest_;
  std::unique_ptr<OutputDirectory> out_;
  Result result_;
};

}  // namespace

absl::StatusOr<Result> Convert(const Options& options, tools::ProgressLine& progress) {
  WS_ASSIGN_OR_RETURN(tools::ModelOfConfig model, tools::ReadModel(options.config));
  WS_ASSIGN_OR_RETURN(Checkpoint in, tools::OpenCheckpoint(options.in));
  std::optional<Checkpoint> started_from;
  if (!options.manifest_from.empty()) {
    WS_ASSIGN_OR_RETURN(started_from, tools::OpenCheckpoint(options.manifest_from));
  }
  return Converter(options, std::move(model), std::move(in), std::move(started_from), progress)
      .Run();
}

}  // namespace weight_sync::convert
