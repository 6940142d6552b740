// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/weight_map.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "refit/differences.h"
#include "refit/maps/name_pattern.h"

namespace weight_sync::refit {
namespace {

// Which regions each tensor has.
class RegionsByTensor {
 public:
  // `tensor_of` says of each region which tensor it is of; -1: none.
  RegionsByTensor(size_t tensors, const std::vector<int>& tensor_of) : end_(tensors + 1) {
    for (const int tensor : tensor_of) {
      if (tensor >= 0) ++end_[static_cast<size_t>(tensor) + 1];
    }
    std::partial_sum(end_.begin(), end_.end(), end_.begin());
    regions_.resize(end_.back());
    // Each begin moves up to its end as the tensor's regions come in.
    for (size_t region = 0; region < tensor_of.size(); ++region) {
      if (tensor_of[region] >= 0) regions_[end_[static_cast<size_t>(tensor_of[region])]++] = region;
    }
  }

  absl::Span<const size_t> operator[](size_t tensor) const {
    const size_t begin = tensor == 0 ? 0 : end_[tensor - 1];
    return absl::MakeConstSpan(regions_).subspan(begin, end_[tensor] - begin);
  }

 private:
  std::vector<size_t> end_;
  std::vector<size_t> regions_;
};

}  // namespace

class WeightMapBuilder {
 public:
  WeightMapBuilder(const Family& family, const ModelConfig& config, const LayoutOptions& layout,
                   const MapOptions& options)
      : family_(family),
        config_(config),
        layout_(layout),
        manifest_(options.manifest),
        differences_(options.differences) {
    if (manifest_ != nullptr) {
      form_ = manifest_->Form(config);
    } else {
      form_.language_model_prefix = config.multimodal;
    }
    target_ = options.target;
    if (target_.empty()) target_ = manifest_ != nullptr ? manifest_->TargetLayout() : "hf";
  }

  absl::StatusOr<WeightMap> Run() {
    if (family_.check) {
      WS_RETURN_IF_ERROR(base::Prefixed(Title(), family_.check(config_, layout_)));
    }
    if (!IsHfForm(target_)) {
      return absl::InvalidArgumentError(
          absl::StrCat("target '", target_, "' is neither 'hf' nor 'hf-fused'"));
    }
    WS_ASSIGN_OR_RETURN(hf_column_, Column(target_));
    WS_ASSIGN_OR_RETURN(trainer_column_, Column(layout_.name));
    WS_RETURN_IF_ERROR(CheckScan());
    WS_RETURN_IF_ERROR(AddGroups());
    WS_RETURN_IF_ERROR(AddTiedHead());
    const RegionsByTensor by_hf = GroupByHf();
    WS_RETURN_IF_ERROR(CheckElements(by_hf));
    return Finish(by_hf);
  }

 private:
  // A row with sizes put in.
  struct BoundRow {
    bool hf_absent, trainer_absent;
    NamePattern hf_name, trainer_name;
    std::optional<NamePattern> left_out;  // the published name of what the target form lacks
    std::array<bool, Shape::kMaxRank> padded = {};
    RegionTemplate region;          // an absent side stands for itself
    std::vector<MapIndex> indices;  // of `region`, in its order
    bool uses_expert = false;
    size_t use;  // in rows_
  };

  std::string Title() const {
    return absl::StrCat("family '", family_.name, "', layout '", layout_.name, "'");
  }

  absl::StatusOr<size_t> Column(const std::string& layout) const {
    const auto found = std::find(family_.layouts.begin(), family_.layouts.end(), layout);
    if (found == family_.layouts.end()) {
      return absl::InvalidArgumentError(absl::StrCat("family '", family_.name, "' has no layout '",
                                                     layout, "'; it has ",
                                                     absl::StrJoin(family_.layouts, ", ")));
    }
    return static_cast<size_t>(found - family_.layouts.begin());
  }

  absl::Status CheckScan() const {
    if (layout_.scan_period < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(Title(), ": scan_period is ", layout_.scan_period, ", below 1"));
    }
    if (!layout_.scanned) return absl::OkStatus();
    if (layout_.name != family_.scanned_layout) {
      return absl::InvalidArgumentError(absl::StrCat(Title(), " has no scanned form"));
    }
    if (layout_.scan_axis != 0 && layout_.scan_axis != 1) {  // a norm has room for no other
      return absl::InvalidArgumentError(
          absl::StrCat(Title(), ": scan_axis is ", layout_.scan_axis, ", neither 0 nor 1"));
    }
    return absl::OkStatus();
  }

  // Layers in order, and in each the groups in order: groups of layers that follow one another are
  // walked together.
  absl::Status AddGroups() {
    if (manifest_ != nullptr) {  // as many, but for what passes through
      const size_t tensors = static_cast<size_t>(manifest_->tensors().size());
      hf_.reserve(tensors);
      hf_by_name_.reserve(tensors);
      regions_.reserve(tensors);
    }
    const std::vector<RowGroup>& groups = family_.groups;
    for (size_t g = 0; g < groups.size();) {
      if (!groups[g].each_layer) {
        WS_RETURN_IF_ERROR(AddGroup(g, -1));
        ++g;
        continue;
      }
      size_t end = g;
      while (end < groups.size() && groups[end].each_layer) ++end;
      for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
        for (size_t i = g; i < end; ++i) WS_RETURN_IF_ERROR(AddGroup(i, layer));
      }
      g = end;
    }
    return absl::OkStatus();
  }

  absl::Status AddGroup(size_t g, int64_t layer) {
    const RowGroup& group = family_.groups[g];
    if (group.when && !group.when(config_, form_, layer)) return absl::OkStatus();
    const size_t sizes = SizesAt(layer);
    std::vector<const BoundRow*> rows;
    for (size_t r = 0; r < group.rows.size(); ++r) {
      WS_ASSIGN_OR_RETURN(const BoundRow* row, Bind(g, r, sizes, layer));
      rows.push_back(row);
    }
    MapIndices indices = {std::max<int64_t>(layer, 0), 0, 0, 0};
    indices[static_cast<size_t>(MapIndex::kBlock)] = indices[0] / layout_.scan_period;
    indices[static_cast<size_t>(MapIndex::kLocal)] = indices[0] % layout_.scan_period;
    // Rows of one expert stay together: an engine fuses its gate and up.
    for (size_t r = 0; r < rows.size();) {
      if (!rows[r]->uses_expert) {
        WS_RETURN_IF_ERROR(AddRow(*rows[r], indices));
        ++r;
        continue;
      }
      size_t end = r;
      while (end < rows.size() && rows[end]->uses_expert) ++end;
      int64_t& expert = indices[static_cast<size_t>(MapIndex::kExpert)];
      for (expert = 0; expert < config_.num_experts; ++expert) {
        for (size_t i = r; i < end; ++i) WS_RETURN_IF_ERROR(AddRow(*rows[i], indices));
      }
      expert = 0;
      r = end;
    }
    return absl::OkStatus();
  }

  absl::Status AddRow(const BoundRow& row, const MapIndices& indices) {
    int hf = -1, trainer = -1;
    if (!row.hf_absent) {
      WS_ASSIGN_OR_RETURN(hf, AddHf(row.hf_name.Format(indices), row.region.a_shape()));
    }
    if (!row.trainer_absent) {
      WS_ASSIGN_OR_RETURN(trainer, AddTrainer(row, row.trainer_name.Format(indices)));
    }
    if (row.left_out.has_value()) left_out_.insert(row.left_out->Format(indices));
    if (hf < 0 || trainer < 0) return absl::OkStatus();
    map_trainer(trainer).sent = true;
    std::array<int64_t, 4> values;
    for (size_t i = 0; i < row.indices.size(); ++i) {
      values[i] = indices[static_cast<size_t>(row.indices[i])];
    }
    regions_.push_back(
        {hf, {trainer, row.region.At(absl::MakeConstSpan(values.data(), row.indices.size()))}});
    ++rows_[row.use].regions;
    return absl::OkStatus();
  }

  WeightMap::TrainerTensor& map_trainer(int trainer) {
    return trainer_[static_cast<size_t>(trainer)];
  }

  absl::StatusOr<int> AddHf(absl::string_view name, const Shape& shape) {
    const auto [found, added] = hf_by_name_.try_emplace(name, static_cast<int>(hf_.size()));
    if (added) hf_.push_back({found->first, shape, config_.dtype});
    WS_RETURN_IF_ERROR(
        CheckAgree(found->first, hf_[static_cast<size_t>(found->second)].shape, shape));
    return found->second;
  }

  absl::StatusOr<int> AddTrainer(const BoundRow& row, absl::string_view name) {
    const auto [found, added] =
        trainer_by_name_.try_emplace(name, static_cast<int>(trainer_.size()));
    const Shape& shape = row.region.b_shape();
    if (added) trainer_.push_back({found->first, shape, row.padded, /*sent=*/false});
    WS_RETURN_IF_ERROR(CheckAgree(found->first, map_trainer(found->second).shape, shape));
    return found->second;
  }

  // All rows of a tensor have to give it one shape.
  static absl::Status CheckAgree(const std::string& name, const Shape& first, const Shape& other) {
    if (first == other) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("rows of '", name, "' give it the shapes ", first, " and ", other));
  }

  // The index of these sizes: layers of the same sizes share their bound rows.
  size_t SizesAt(int64_t layer) {
    AxisSizes sizes = family_.sizes(config_, layer);
    sizes["i"] = config_.num_hidden_layers;
    sizes["block"] = std::max<int64_t>(1, config_.num_hidden_layers / layout_.scan_period);
    sizes["local"] = std::max<int64_t>(1, layout_.scan_period - 1);
    const auto found = std::find(sizes_.begin(), sizes_.end(), sizes);
    if (found != sizes_.end()) return static_cast<size_t>(found - sizes_.begin());
    sizes_.push_back(std::move(sizes));
    return sizes_.size() - 1;
  }

  // Names of the text model carry the checkpoint's prefix.
  std::string Prefixed(const std::string& name) const {
    constexpr absl::string_view kModel = "model.";
    if (!form_.language_model_prefix || !absl::StartsWith(name, kModel)) return name;
    return absl::StrCat("model.language_model.", name.substr(kModel.size()));
  }

  Place PlaceOf(const Row& row, size_t column) const {
    const Place& place = row[column];
    return place.name == kSameAsHf.name ? row[0] : place;
  }

  absl::StatusOr<const BoundRow*> Bind(size_t g, size_t r, size_t sizes, int64_t layer) {
    const Row& row = family_.groups[g].rows[r];
    if (row.size() != family_.layouts.size()) {
      return absl::InternalError(absl::StrCat("row '", row.empty() ? "" : row[0].name, "' has ",
                                              row.size(), " places for ", family_.layouts.size(),
                                              " layouts"));
    }
    Place hf = PlaceOf(row, hf_column_), trainer = PlaceOf(row, trainer_column_);
    const bool hf_absent = hf.name.empty(), trainer_absent = trainer.name.empty();
    hf.name = Prefixed(hf.name);
    if (IsHfForm(layout_.name)) trainer.name = Prefixed(trainer.name);
    if (layout_.scanned && layer >= 0 && !trainer_absent) {
      trainer = family_.scanned_place(config_, layout_, layer, trainer);
    }
    const std::string key = absl::StrCat(g, " ", r, " ", sizes, " ", trainer.name);
    std::unique_ptr<BoundRow>& bound = bound_[key];
    if (bound == nullptr) {
      bound = std::make_unique<BoundRow>();
      bound->hf_absent = hf_absent;
      bound->trainer_absent = trainer_absent;
      bound->use = UseOf(hf, trainer);
      if (hf_absent && !row[0].name.empty()) {
        WS_ASSIGN_OR_RETURN(bound->left_out, NamePattern::Parse(Prefixed(row[0].name)));
      }
      WS_RETURN_IF_ERROR(
          base::Prefixed(absl::StrCat("row '", hf.name, "' <-> '", trainer.name, "'"),
                         BindNew(hf, trainer, sizes_[sizes], *bound)));
    }
    return bound.get();
  }

  size_t UseOf(const Place& hf, const Place& trainer) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].hf_name == hf.name && rows_[i].hf_axes == hf.axes &&
          rows_[i].trainer_name == trainer.name) {
        return i;
      }
    }
    rows_.push_back({hf.name, hf.axes, trainer.name, trainer.axes});
    return rows_.size() - 1;
  }

  static absl::Status BindNew(const Place& hf, const Place& trainer, const AxisSizes& sizes,
                              BoundRow& bound) {
    // An absent side is related to itself, for its shape.
    WS_ASSIGN_OR_RETURN(const AxisPattern hf_axes,
                        AxisPattern::Parse(bound.hf_absent ? trainer.axes : hf.axes));
    WS_ASSIGN_OR_RETURN(const AxisPattern trainer_axes,
                        AxisPattern::Parse(bound.trainer_absent ? hf.axes : trainer.axes));
    WS_ASSIGN_OR_RETURN(bound.hf_name, NamePattern::Parse(hf.name));
    WS_ASSIGN_OR_RETURN(bound.trainer_name, NamePattern::Parse(trainer.name));
    WS_ASSIGN_OR_RETURN(bound.region, RegionTemplate::Create(hf_axes, trainer_axes, sizes));
    for (size_t dim = 0; dim < trainer_axes.dims().size(); ++dim) {
      bound.padded[dim] = trainer_axes.dims()[dim].padded;
    }
    bound.uses_expert =
        bound.hf_name.Uses(MapIndex::kExpert) || bound.trainer_name.Uses(MapIndex::kExpert);
    for (const std::string& name : bound.region.index_names()) {
      const std::optional<MapIndex> index = FindMapIndex(name);
      if (!index.has_value()) {
        return absl::InvalidArgumentError(absl::StrCat("no index is called '", name, "'"));
      }
      bound.indices.push_back(*index);
      bound.uses_expert |= *index == MapIndex::kExpert;
    }
    return absl::OkStatus();
  }

  absl::Status AddTiedHead() {
    if (!config_.tie_word_embeddings || family_.tied_head.empty()) return absl::OkStatus();
    tied_head_ = family_.tied_head;
    tied_to_ = Prefixed(family_.tied_to);
    const auto original = hf_by_name_.find(tied_to_);
    if (original == hf_by_name_.end()) {
      return absl::InternalError(
          absl::StrCat("no row of '", tied_to_, "', which the head repeats"));
    }
    if (!form_.tied_lm_head) return absl::OkStatus();
    const int to = original->second;
    WS_ASSIGN_OR_RETURN(tied_copy_, AddHf(tied_head_, hf_[static_cast<size_t>(to)].shape));
    const size_t before = regions_.size();
    for (size_t i = 0; i < before; ++i) {
      if (regions_[i].first == to) regions_.emplace_back(tied_copy_, regions_[i].second);
    }
    return absl::OkStatus();
  }

  RegionsByTensor GroupByHf() const {
    std::vector<int> hf;
    hf.reserve(regions_.size());
    for (const auto& [tensor, mapped] : regions_) hf.push_back(tensor);
    return RegionsByTensor(hf_.size(), hf);
  }

  RegionsByTensor GroupByTrainer() const {
    std::vector<int> trainer;
    trainer.reserve(regions_.size());
    for (const auto& [hf, mapped] : regions_) {
      trainer.push_back(hf == tied_copy_ ? -1 : mapped.trainer);
    }
    return RegionsByTensor(trainer_.size(), trainer);
  }

  // Both ways: each side's elements are all there, once. What the trainer lacks may still pass
  // through from the source checkpoint, tensor by tensor.
  absl::Status CheckElements(const RegionsByTensor& by_hf) const {
    Differences unheld("HF tensors that this layout does not hold"),
        hf("HF tensors not written exactly once"), trainer("trainer tensors not read exactly once");
    std::vector<Region> regions;
    for (size_t i = 0; i < hf_.size(); ++i) {
      if (by_hf[i].empty()) {
        if (manifest_ == nullptr) unheld.Add(hf_[i].name);
        continue;
      }
      if (IsWhole(by_hf[i], hf_[i].shape)) continue;
      regions.clear();
      for (const size_t r : by_hf[i]) regions.push_back(regions_[r].second.region);
      AddUnlessOnce(hf_[i].name, hf_[i].shape, regions, hf);
    }
    const RegionsByTensor by_trainer = GroupByTrainer();
    for (size_t i = 0; i < trainer_.size(); ++i) {
      if (!trainer_[i].sent || IsWhole(by_trainer[i], trainer_[i].shape)) continue;
      regions.clear();
      for (const size_t r : by_trainer[i]) regions.push_back(regions_[r].second.region.Inverted());
      AddUnlessOnce(trainer_[i].name, trainer_[i].shape, regions, trainer);
    }
    const std::string found = JoinDifferences({&unheld, &hf, &trainer});
    if (found.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        Title(), ": ", found,
        unheld.empty() ? ""
                       : "; what a layout does not hold passes through from the source "
                         "checkpoint if there is a manifest of it"));
  }

  // One region is one to one, and by its pattern of the tensor's shape.
  bool IsWhole(absl::Span<const size_t> regions, const Shape& shape) const {
    return regions.size() == 1 &&
           regions_[regions[0]].second.region.num_elements() == shape.num_elements();
  }

  static void AddUnlessOnce(const std::string& name, const Shape& shape,
                            const std::vector<Region>& regions, Differences& out) {
    const absl::Status once = CheckCoversOnce(shape, regions);
    if (!once.ok()) out.Add(absl::StrCat("'", name, "' (", once.message(), ")"));
  }

  // Brings the HF tensors into the manifest's order, with its dtypes and what passes through.
  absl::Status FollowManifest(std::vector<TensorSpec>& ordered, std::vector<int>& from) {
    Differences unknown("in the checkpoint that the map does not know"),
        missing("of the map that the checkpoint lacks"), shape("with another shape");
    std::vector<bool> taken(hf_.size());
    // Stacked experts have other names than single ones: then only the rest is compared.
    const bool same_form = target_ == manifest_->TargetLayout();
    const auto is_expert = [](absl::string_view name) {
      return absl::StrContains(name, ".mlp.experts.");
    };
    for (const TensorSpec& tensor : manifest_->tensors().tensors()) {
      const auto found = hf_by_name_.find(tensor.name);
      if (found == hf_by_name_.end()) {
        if (left_out_.contains(tensor.name)) continue;
        if (!same_form && is_expert(tensor.name) && !PassesThrough(tensor.name)) continue;
        if (!PassesThrough(tensor.name)) {
          unknown.Add(tensor.name);
          continue;
        }
        ordered.push_back(tensor);
        from.push_back(-1);
        continue;
      }
      const size_t i = static_cast<size_t>(found->second);
      taken[i] = true;
      if (hf_[i].shape != tensor.shape) {
        shape.Add(
            absl::StrCat("'", tensor.name, "' ", tensor.shape, ", by the config ", hf_[i].shape));
      }
      ordered.push_back(tensor);
      from.push_back(found->second);
    }
    for (size_t i = 0; i < hf_.size(); ++i) {
      if (taken[i]) continue;
      if (same_form || !is_expert(hf_[i].name)) {
        missing.Add(hf_[i].name);
      } else {
        ordered.push_back(hf_[i]);
        from.push_back(static_cast<int>(i));
      }
    }
    const std::string found = JoinDifferences({&unknown, &missing, &shape});
    if (found.empty()) return absl::OkStatus();
    if (differences_ != nullptr) *differences_ = {unknown.all(), missing.all(), shape.all()};
    return absl::InvalidArgumentError(
        absl::StrCat("config and checkpoint disagree; tensors ", found));
  }

  bool PassesThrough(absl::string_view name) const {
    return std::any_of(family_.passthrough.begin(), family_.passthrough.end(),
                       [name](const std::string& p) { return absl::StartsWith(name, p); });
  }

  absl::StatusOr<WeightMap> Finish(const RegionsByTensor& by_hf) {
    std::vector<TensorSpec> ordered;
    std::vector<int> from;  // the number in hf_, or -1
    if (manifest_ != nullptr) {
      WS_RETURN_IF_ERROR(FollowManifest(ordered, from));
    } else {
      from.resize(hf_.size());
      std::iota(from.begin(), from.end(), 0);
      ordered = std::move(hf_);
    }
    WS_ASSIGN_OR_RETURN(RefitInfo info, RefitInfo::Create(std::move(ordered)));
    WeightMap map(std::move(info));
    map.family_ = family_.name;
    map.layout_ = layout_;
    map.trainer_ = std::move(trainer_);
    map.trainer_by_name_ = std::move(trainer_by_name_);
    map.regions_.reserve(regions_.size());
    map.first_region_ = {0};
    map.first_region_.reserve(from.size() + 1);
    for (const int hf : from) {
      if (hf >= 0) {
        for (const size_t r : by_hf[static_cast<size_t>(hf)]) {
          map.regions_.push_back(regions_[r].second);
        }
      }
      map.first_region_.push_back(map.regions_.size());
    }
    map.tied_head_ = tied_head_;
    map.tied_to_ = tied_to_;
    map.rows_ = std::move(rows_);
    return map;
  }

  const Family& family_;
  const ModelConfig& config_;
  const LayoutOptions layout_;
  const Manifest* const manifest_;
  ManifestDifferences* const differences_;
  CheckpointForm form_;
  std::string target_;
  size_t hf_column_ = 0;
  size_t trainer_column_ = 0;

  std::vector<TensorSpec> hf_;
  absl::flat_hash_map<std::string, int> hf_by_name_;
  absl::flat_hash_set<std::string> left_out_;
  std::vector<WeightMap::TrainerTensor> trainer_;
  absl::flat_hash_map<std::string, int> trainer_by_name_;
  std::vector<std::pair<int, WeightMap::MappedRegion>> regions_;
  std::string tied_head_;
  std::string tied_to_;
  int tied_copy_ = -1;

  std::vector<AxisSizes> sizes_;
  absl::flat_hash_map<std::string, std::unique_ptr<BoundRow>> bound_;
  std::vector<WeightMap::RowUse> rows_;
};

absl::StatusOr<WeightMap> WeightMap::Build(const Family& family, const ModelConfig& config,
                                           const LayoutOptions& layout, const MapOptions& options) {
  return WeightMapBuilder(family, config, layout, options).Run();
}

std::optional<int> WeightMap::FindTrainer(absl::string_view name) const {
  const auto found = trainer_by_name_.find(name);
  if (found == trainer_by_name_.end()) return std::nullopt;
  return found->second;
}

absl::Span<const WeightMap::MappedRegion> WeightMap::regions(int hf_tensor) const {
  const size_t i = static_cast<size_t>(hf_tensor);
  return absl::MakeConstSpan(regions_).subspan(first_region_[i],
                                               first_region_[i + 1] - first_region_[i]);
}

}  // namespace weight_sync::refit
