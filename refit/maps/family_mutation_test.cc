// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// That the proof of the families (family_proof_test) would notice a wrong table: every place of
// every table is made wrong in every way below, and the comparison with the trainers' trees must
// fail for a model of that family.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/maps/family.h"
#include "refit/maps/manifest.h"
#include "refit/maps/model_config.h"
#include "refit/maps/tree_check.h"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using testing::CheckedModel;
using ::testing::ElementsAre;
using testing::FamilyOf;
using ::testing::IsEmpty;
using testing::LayoutCase;
using testing::LayoutCases;
using testing::ModelSpec;
using testing::Storage;
using testing::TinyModels;

// Where the axes, indices and constants of a pattern are in its text.
std::vector<std::pair<size_t, size_t>> Atoms(const std::string& axes) {
  std::vector<std::pair<size_t, size_t>> atoms;
  for (size_t at = 0; at < axes.size();) {
    size_t end = at;
    if (axes[at] == '{') {
      end = axes.find('}', at) + 1;
    } else {
      while (end < axes.size() && !absl::StrContains(" ()", axes[end])) ++end;
    }
    if (end == at) {
      ++at;
    } else {
      atoms.emplace_back(at, end - at);
      at = end;
    }
  }
  return atoms;
}

// The pattern with two of its atoms exchanged.
std::string SwapAtoms(const std::string& axes, size_t a, size_t b) {
  const auto atoms = Atoms(axes);
  if (b >= atoms.size()) return axes;
  const auto [a_at, a_size] = atoms[a];
  const auto [b_at, b_size] = atoms[b];
  return absl::StrCat(axes.substr(0, a_at), axes.substr(b_at, b_size),
                      axes.substr(a_at + a_size, b_at - a_at - a_size), axes.substr(a_at, a_size),
                      axes.substr(b_at + b_size));
}

bool Written(const Place& place) { return !place.name.empty() && place.name != kSameAsHf.name; }

// Which rows, by group, some model has in some layout; and in how many axes its layers are scanned.
struct Reach {
  std::set<std::pair<size_t, size_t>> columns;  // group, column
  std::map<std::string, size_t> scanned_atoms;  // by the name of the place
};

struct Mutant {
  std::string what;
  Family family;
  size_t column = 0;          // of the layout that it concerns; 0: all
  bool scanned_only = false;  // concerns the scanned form alone
};

std::vector<Mutant> SwappedAxes(const Family& family, const Reach& reach) {
  std::vector<Mutant> mutants;
  for (const auto& [g, c] : reach.columns) {
    for (size_t r = 0; r < family.groups[g].rows.size(); ++r) {
      const Place& place = family.groups[g].rows[r][c];
      if (!Written(place)) continue;
      const size_t atoms = Atoms(place.axes).size();
      for (size_t a = 0; a < atoms; ++a) {
        for (size_t b = a + 1; b < atoms; ++b) {
          Mutant mutant = {"", family, c};
          Place& changed = mutant.family.groups[g].rows[r][c];
          changed.axes = SwapAtoms(place.axes, a, b);
          mutant.what = absl::StrCat(place.name, ": '", place.axes, "' as '", changed.axes, "'");
          mutants.push_back(std::move(mutant));
        }
      }
    }
  }
  return mutants;
}

std::vector<Mutant> SwappedRows(const Family& family, const Reach& reach) {
  std::vector<Mutant> mutants;
  for (size_t c = 1; c < family.layouts.size(); ++c) {
    std::vector<std::pair<size_t, size_t>> rows;
    for (size_t g = 0; g < family.groups.size(); ++g) {
      for (size_t r = 0; r < family.groups[g].rows.size(); ++r) {
        if (reach.columns.count({g, c}) > 0 && Written(family.groups[g].rows[r][c])) {
          rows.emplace_back(g, r);
        }
      }
    }
    for (size_t x = 0; x < rows.size(); ++x) {
      for (size_t y = x + 1; y < rows.size(); ++y) {
        const auto place = [&, c = c](Family& of, size_t row) -> Place& {
          return of.groups[rows[row].first].rows[rows[row].second][c];
        };
        Mutant mutant = {"", family, c};
        Place &one = place(mutant.family, x), &other = place(mutant.family, y);
        if (one.name == other.name && one.axes == other.axes) continue;
        mutant.what = absl::StrCat("places of ", one.name, " '", one.axes, "' and ", other.name,
                                   " '", other.axes, "'");
        std::swap(one, other);
        mutants.push_back(mutant);
        if (one.axes == other.axes || one.name == other.name) continue;
        // The names alone: the copy that was pushed keeps both.
        mutant.what = absl::StrCat("names of ", other.name, " and ", one.name);
        std::swap(one.axes, other.axes);
        mutants.push_back(std::move(mutant));
      }
    }
  }
  return mutants;
}

std::vector<Mutant> SwappedScannedAxes(const Family& family, const Reach& reach) {
  std::vector<Mutant> mutants;
  for (const auto& [name, atoms] : reach.scanned_atoms) {
    for (size_t a = 0; a < atoms; ++a) {
      for (size_t b = a + 1; b < atoms; ++b) {
        Mutant mutant = {absl::StrCat("scanned ", name, ": ", a, " and ", b), family,
                         family.layouts.size() - 1, /*scanned_only=*/true};
        mutant.family.scanned_place = [original = family.scanned_place, name = name, a, b](
                                          const ModelConfig& config, const LayoutOptions& layout,
                                          int64_t layer, const Place& unscanned) {
          Place scanned = original(config, layout, layer, unscanned);
          if (unscanned.name == name) scanned.axes = SwapAtoms(scanned.axes, a, b);
          return scanned;
        };
        mutants.push_back(std::move(mutant));
      }
    }
  }
  return mutants;
}

class FamilyMutationTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const ModelSpec& model : TinyModels()) {
      if (FamilyOf(model).name != GetParam()) continue;
      family_ = &FamilyOf(model);
      std::set<std::string> seen;
      for (const LayoutCase& c : LayoutCases(model)) {
        // One of each form is enough: what the manifest adds is proved elsewhere.
        const std::string form = absl::StrCat(c.layout.name, c.layout.scanned, c.target);
        if (c.layout.name == "hf" || c.layout.scan_axis == 0 || !seen.insert(form).second) continue;
        auto checked = CheckedModel::Write(model, c, Storage::kBF16);
        ASSERT_THAT(checked, IsOk());
        ASSERT_THAT(checked->CheckTree(*family_), IsOk()) << model.name << " " << c.label;
        NoteReach(c, *checked);
        models_.emplace_back(c, *std::move(checked));
      }
    }
    ASSERT_NE(family_, nullptr);
  }

  void NoteReach(const LayoutCase& c, const CheckedModel& checked) {
    const ModelConfig& config = checked.config();
    const CheckpointForm form =
        checked.manifest() != nullptr ? checked.manifest()->Form(config) : CheckpointForm();
    const auto column = static_cast<size_t>(
        std::find(family_->layouts.begin(), family_->layouts.end(), c.layout.name) -
        family_->layouts.begin());
    for (size_t g = 0; g < family_->groups.size(); ++g) {
      const RowGroup& group = family_->groups[g];
      const int64_t layers = group.each_layer ? config.num_hidden_layers : 0;
      for (int64_t layer = group.each_layer ? 0 : -1; layer < layers; ++layer) {
        if (!group.when(config, form, layer)) continue;
        reach_.columns.insert({g, 0});
        reach_.columns.insert({g, column});
        if (!c.layout.scanned || !group.each_layer) continue;
        for (const Row& row : group.rows) {
          const Place& place = row[column];
          if (!Written(place)) continue;
          const Place scanned = family_->scanned_place(config, c.layout, layer, place);
          size_t& atoms = reach_.scanned_atoms[place.name];
          atoms = std::max(atoms, Atoms(scanned.axes).size());
        }
      }
    }
  }

  bool Noticed(const Mutant& mutant) const {
    return std::any_of(models_.begin(), models_.end(), [&](const auto& model) {
      const auto& [c, checked] = model;
      const std::string& column = family_->layouts[mutant.column];
      if (mutant.column > 0 && c.layout.name != column && c.target != column) return false;
      if (mutant.scanned_only && !c.layout.scanned) return false;
      return !checked.CheckTree(mutant.family).ok();
    });
  }

  std::vector<std::string> Unnoticed(const std::vector<Mutant>& mutants) const {
    std::vector<std::string> unnoticed;
    for (const Mutant& mutant : mutants) {
      if (!Noticed(mutant)) unnoticed.push_back(mutant.what);
    }
    return unnoticed;
  }

  // What no model of this family has, so that no mutant of it can be told from the table.
  std::vector<std::string> Unreached() const {
    std::vector<std::string> unreached;
    for (size_t g = 0; g < family_->groups.size(); ++g) {
      for (const Row& row : family_->groups[g].rows) {
        for (size_t c = 1; c < row.size(); ++c) {
          if (Written(row[c]) && reach_.columns.count({g, c}) == 0) {
            unreached.push_back(row[c].name);
          }
        }
      }
    }
    return unreached;
  }

  const Family* family_ = nullptr;
  Reach reach_;
  std::vector<std::pair<LayoutCase, CheckedModel>> models_;
};

TEST_P(FamilyMutationTest, SwappedAxesAreNoticed) {
  const std::vector<Mutant> mutants = SwappedAxes(*family_, reach_);
  EXPECT_GT(mutants.size(), 50);
  EXPECT_THAT(Unnoticed(mutants), IsEmpty());
}

TEST_P(FamilyMutationTest, SwappedRowsAndNamesAreNoticed) {
  const std::vector<Mutant> mutants = SwappedRows(*family_, reach_);
  EXPECT_GT(mutants.size(), 200);
  if (GetParam() != "gemma4") {
    EXPECT_THAT(Unnoticed(mutants), IsEmpty());
    return;
  }
  // Rows of arrays that are held and not sent, whole: their order says nothing.
  EXPECT_THAT(Unnoticed(mutants), ElementsAre("places of layers.{i}.attn.kv_einsum.w 'g k h d' and "
                                              "layers.{i}.attn._key_norm.scale 'd'",
                                              "places of layers.{i}.attn.k_einsum.w 'k h d' and "
                                              "layers.{i}.attn._key_norm.scale 'd'"));
}

TEST_P(FamilyMutationTest, SwappedAxesOfScannedLayersAreNoticed) {
  const std::vector<Mutant> mutants = SwappedScannedAxes(*family_, reach_);
  EXPECT_EQ(mutants.empty(), GetParam() == "gemma4");  // not scanned
  EXPECT_THAT(Unnoticed(mutants), IsEmpty());
}

// No table can say this one: the checkpoint's experts change places instead.
TEST_P(FamilyMutationTest, SwappedExpertsAreNoticed) {
  int swapped = 0;
  for (const ModelSpec& model : TinyModels()) {
    if (&FamilyOf(model) != family_ || model.experts == 0) continue;
    for (LayoutCase c : LayoutCases(model)) {
      if (c.target != "hf") continue;
      const std::vector<testing::Elements> hf = c.hf;
      const testing::ByName find(hf);
      for (testing::Elements& tensor : c.hf) {
        if (absl::StrContains(tensor.name, ".1.mlp.experts.0.up_proj.")) {
          tensor.ids = find(absl::StrReplaceAll(tensor.name, {{"experts.0", "experts.2"}})).ids;
          ++swapped;
        } else if (absl::StrContains(tensor.name, ".1.mlp.experts.2.up_proj.")) {
          tensor.ids = find(absl::StrReplaceAll(tensor.name, {{"experts.2", "experts.0"}})).ids;
        } else if (absl::EndsWith(tensor.name, ".1.experts.down_proj")) {
          const auto expert = tensor.ids.size() / static_cast<size_t>(tensor.shape[0]);
          std::swap_ranges(tensor.ids.begin(), tensor.ids.begin() + static_cast<int64_t>(expert),
                           tensor.ids.end() - static_cast<int64_t>(expert));
          ++swapped;
        }
      }
      const auto checked = CheckedModel::Write(model, c, Storage::kBF16);
      ASSERT_THAT(checked, IsOk());
      EXPECT_THAT(checked->CheckTree(*family_), StatusIs(absl::StatusCode::kDataLoss)) << c.label;
    }
  }
  EXPECT_EQ(swapped == 0, GetParam() == "dense");
}

TEST_P(FamilyMutationTest, EveryPlaceIsReached) {
  if (GetParam() != "qwen3_moe") {
    EXPECT_THAT(Unreached(), IsEmpty());
    return;
  }
  // Of rows that it shares with dense models: Qwen2's biases, and layers without experts, which
  // neither trainer has in a model with experts.
  EXPECT_THAT(
      Unreached(),
      ElementsAre("layers.{i}.attn.q_bias", "params-decoder-layers_{i}-self_attention-query-bias",
                  "layers.{i}.attn.k_bias", "params-decoder-layers_{i}-self_attention-key-bias",
                  "layers.{i}.attn.v_bias", "params-decoder-layers_{i}-self_attention-value-bias",
                  "layers.{i}.mlp.gate_proj.kernel", "params-decoder-layers_{i}-mlp-wi_0-kernel",
                  "layers.{i}.mlp.up_proj.kernel", "params-decoder-layers_{i}-mlp-wi_1-kernel",
                  "layers.{i}.mlp.down_proj.kernel", "params-decoder-layers_{i}-mlp-wo-kernel"));
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyMutationTest,
                         ::testing::Values("dense", "qwen3_moe", "qwen3_next", "gemma4"),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace weight_sync::refit
