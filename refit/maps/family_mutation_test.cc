// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// That the proof of the families (family_proof_test) would notice a wrong table: every place of
// every table is made wrong in every way below, and the comparison with the trainers' trees must
// fail for a model of that family.

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/maps/family.h"
#include "refit/maps/tree_check.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
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

struct Mutant {
  std::string what;
  Family family;
  size_t column;      // of the layout that it concerns; 0: all
  bool scanned_only;  // concerns the scanned form alone
};

void AddSwappedAxes(const Family& family, std::vector<Mutant>& mutants) {
  for (size_t g = 0; g < family.groups.size(); ++g) {
    for (size_t r = 0; r < family.groups[g].rows.size(); ++r) {
      for (size_t c = 0; c < family.layouts.size(); ++c) {
        const Place& place = family.groups[g].rows[r][c];
        if (!Written(place)) continue;
        const size_t atoms = Atoms(place.axes).size();
        for (size_t a = 0; a < atoms; ++a) {
          for (size_t b = a + 1; b < atoms; ++b) {
            Mutant mutant = {"", family, c, false};
            Place& changed = mutant.family.groups[g].rows[r][c];
            changed.axes = SwapAtoms(place.axes, a, b);
            mutant.what = absl::StrCat(place.name, ": '", place.axes, "' as '", changed.axes, "'");
            mutants.push_back(std::move(mutant));
          }
        }
      }
    }
  }
}

void AddSwappedRows(const Family& family, std::vector<Mutant>& mutants) {
  std::vector<std::pair<size_t, size_t>> rows;
  for (size_t g = 0; g < family.groups.size(); ++g) {
    for (size_t r = 0; r < family.groups[g].rows.size(); ++r) rows.emplace_back(g, r);
  }
  for (size_t c = 1; c < family.layouts.size(); ++c) {
    for (size_t x = 0; x < rows.size(); ++x) {
      for (size_t y = x + 1; y < rows.size(); ++y) {
        const auto place = [&](Family& of, size_t row) -> Place& {
          return of.groups[rows[row].first].rows[rows[row].second][c];
        };
        Mutant mutant = {"", family, c, false};
        Place &one = place(mutant.family, x), &other = place(mutant.family, y);
        if (!Written(one) || !Written(other)) continue;
        if (one.name == other.name && one.axes == other.axes) continue;
        mutant.what = absl::StrCat("places of ", one.name, " '", one.axes, "' and ", other.name,
                                   " '", other.axes, "'");
        std::swap(one, other);
        mutants.push_back(mutant);
        if (one.axes == other.axes || one.name == other.name) continue;
        mutant.what = absl::StrCat("names of ", other.name, " and ", one.name);
        std::swap(one.axes, other.axes);
        mutants.push_back(std::move(mutant));
      }
    }
  }
}

void AddScannedAxes(const Family& family, std::vector<Mutant>& mutants) {
  if (!family.scanned_place) return;
  const size_t column = family.layouts.size() - 1;  // MaxText's
  for (const RowGroup& group : family.groups) {
    if (!group.each_layer) continue;
    for (const Row& row : group.rows) {
      const Place& place = row[column];
      if (!Written(place)) continue;
      // A block and a local layer are at most added.
      const size_t atoms = Atoms(place.axes).size() + 2;
      for (size_t a = 0; a < atoms; ++a) {
        for (size_t b = a + 1; b < atoms; ++b) {
          Mutant mutant = {absl::StrCat("scanned ", place.name, ": ", a, " and ", b), family,
                           column, true};
          mutant.family.scanned_place = [original = family.scanned_place, name = place.name, a, b](
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
  }
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
        models_.emplace_back(c, *std::move(checked));
      }
    }
    ASSERT_NE(family_, nullptr);
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

  const Family* family_ = nullptr;
  std::vector<std::pair<LayoutCase, CheckedModel>> models_;
};

TEST_P(FamilyMutationTest, SwappedAxesAreNoticed) {
  std::vector<Mutant> mutants;
  AddSwappedAxes(*family_, mutants);
  EXPECT_GT(mutants.size(), 20);
  EXPECT_THAT(Unnoticed(mutants), IsEmpty());
}

TEST_P(FamilyMutationTest, SwappedRowsAndNamesAreNoticed) {
  std::vector<Mutant> mutants;
  AddSwappedRows(*family_, mutants);
  EXPECT_GT(mutants.size(), 20);
  EXPECT_THAT(Unnoticed(mutants), IsEmpty());
}

TEST_P(FamilyMutationTest, SwappedAxesOfScannedLayersAreNoticed) {
  std::vector<Mutant> mutants;
  AddScannedAxes(*family_, mutants);
  EXPECT_THAT(Unnoticed(mutants), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyMutationTest,
                         ::testing::Values("dense", "qwen3_moe", "qwen3_next", "gemma4"),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace weight_sync::refit
