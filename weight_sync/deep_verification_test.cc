// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/deep_verification.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "fakes/parameters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/hf_source.h"
#include "refit/tensor_digest.h"

namespace weight_sync {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CompareTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<refit::TensorSpec> specs = {{"scalar", {}, refit::DType::kF32},
                                            {"empty", {0, 4}, refit::DType::kBF16}};
    for (int i = 0; i < 8; ++i) {
      specs.push_back({absl::StrCat("layer.", i), {3, 5}, refit::DType::kBF16});
    }
    auto info = refit::RefitInfo::Create(std::move(specs));
    ASSERT_THAT(info, IsOk());
    auto parameters = fakes::Parameters::Create(*info);
    ASSERT_THAT(parameters, IsOk());
    parameters->FillSeeded(11);
    parameters_ = std::make_unique<fakes::Parameters>(*std::move(parameters));
    auto source = refit::HfSource::Create(parameters_->AsHf(), &gate_);
    ASSERT_THAT(source, IsOk());
    source_ = *std::move(source);
  }

  std::vector<NamedDigest> Table() const {
    std::vector<NamedDigest> table;
    for (int t = 0; t < parameters_->info().size(); ++t) {
      const std::string& name = parameters_->info()[t].name;
      table.push_back({name, refit::TensorDigest(name, parameters_->view(t))});
    }
    return table;
  }

  refit::StepGate gate_;
  std::unique_ptr<fakes::Parameters> parameters_;
  std::unique_ptr<refit::HfSource> source_;
};

TEST_F(CompareTableTest, EqualTablesAreEqualInAnyOrder) {
  std::vector<NamedDigest> table = Table();
  EXPECT_THAT(CompareTable(*source_, table), IsOk());
  std::swap(table.front(), table.back());
  EXPECT_THAT(CompareTable(*source_, table), IsOk());
}

TEST_F(CompareTableTest, OneBitIsFoundAndItsTensorNamed) {
  const std::vector<NamedDigest> table = Table();
  for (int t = 0; t < parameters_->info().size(); ++t) {
    const refit::MutableTensorView& view = parameters_->view(t);
    if (view.num_bytes() == 0) continue;
    std::byte& last = view.data()[view.num_bytes() - 1];
    last ^= std::byte{0x80};
    EXPECT_THAT(CompareTable(*source_, table),
                StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr(parameters_->info()[t].name),
                                                            HasSubstr("1 of 10 tensors"))));
    last ^= std::byte{0x80};
  }
}

TEST_F(CompareTableTest, TwoSwappedTensorsAreBothNamed) {
  std::vector<NamedDigest> table = Table();
  const size_t a = 3, b = 5;
  // What an engine reports that loaded each into the other's place.
  table[a].digest = refit::TensorDigest(table[a].name, parameters_->view(static_cast<int>(b)));
  table[b].digest = refit::TensorDigest(table[b].name, parameters_->view(static_cast<int>(a)));
  EXPECT_THAT(CompareTable(*source_, table),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(table[a].name), HasSubstr(table[b].name))));
}

TEST_F(CompareTableTest, ATensorThatTheEngineLacksIsNamed) {
  std::vector<NamedDigest> table = Table();
  table.erase(table.begin() + 1);
  EXPECT_THAT(
      CompareTable(*source_, table),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("empty (not in the engine's table)")));
}

TEST_F(CompareTableTest, ATensorThatWasNeverSentIsNamed) {
  std::vector<NamedDigest> table = Table();
  table.push_back({"mtp.lm_head", {}});
  EXPECT_THAT(CompareTable(*source_, table),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("mtp.lm_head (never sent)")));
}

TEST_F(CompareTableTest, ANameThatIsThereTwiceIsNotEqual) {
  std::vector<NamedDigest> table = Table();
  table.push_back({table[4].name, {1, 2}});
  EXPECT_THAT(
      CompareTable(*source_, table),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr(absl::StrCat(table[4].name, " (twice"))));
}

TEST_F(CompareTableTest, AnEmptyTableIsNotEqual) {
  EXPECT_THAT(CompareTable(*source_, {}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("10 of 10 tensors")));
}

TEST_F(CompareTableTest, ALongListIsCutAndCounted) {
  std::vector<NamedDigest> table = Table();
  for (NamedDigest& entry : table) entry.digest.low ^= 1;
  EXPECT_THAT(CompareTable(*source_, table),
              StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr("10 of 10"), HasSubstr(", ..."),
                                                          Not(HasSubstr("layer.7")))));
}

// A source that cannot say what a tensor should be.
class SilentSource : public refit::RefitSource {
 public:
  explicit SilentSource(const refit::RefitInfo& info) : info_(info) {}
  const refit::RefitInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<refit::Program>> Compile(
      absl::Span<const refit::Bucket>) override {
    return absl::UnimplementedError("not asked here");
  }
  absl::StatusOr<base::Digest128> ReferenceDigest(int) const override {
    return absl::InternalError("the array is gone");
  }

 private:
  const refit::RefitInfo info_;
};

TEST_F(CompareTableTest, ASourceThatFailsNamesTheTensor) {
  const SilentSource silent(source_->info());
  EXPECT_THAT(CompareTable(silent, Table()),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("'scalar'"), HasSubstr("the array is gone"))));
}

}  // namespace
}  // namespace weight_sync
