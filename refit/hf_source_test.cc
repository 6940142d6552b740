// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/hf_source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/device/device.h"
#include "refit/layout/box.h"
#include "refit/layout/copy_program.h"
#include "refit/packing/bucket.h"
#include "refit/packing/packer.h"
#include "refit/read_guard.h"
#include "refit/refit_info.h"
#include "refit/refit_source.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"
#include "refit/tensor_digest.h"
#include "refit/testing/random_tensor.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using testing::DenseBytes;
using ::testing::HasSubstr;
using testing::kAllViewKinds;
using testing::RandomShape;
using testing::RandomTensor;
using testing::ViewKind;

constexpr std::byte kPoison{0xa5};
constexpr size_t kGuardBytes = 64;

std::vector<HfParameter> Parameters(const std::vector<RandomTensor>& tensors) {
  std::vector<HfParameter> parameters;
  for (const RandomTensor& tensor : tensors) {
    parameters.push_back({absl::StrCat("t", parameters.size()), tensor.view()});
  }
  return parameters;
}

// Sends every parameter through buckets of this geometry into a table of its own, as an engine
// does, and compares the table with the parameters' logical values.
void ExpectRefitIsExact(const std::vector<RandomTensor>& tensors, const Geometry& geometry,
                        const CopyOptions& options = {}) {
  std::vector<std::vector<std::byte>> before;
  for (const RandomTensor& tensor : tensors) before.push_back(tensor.storage());
  StepGate gate;
  auto source = HfSource::Create(Parameters(tensors), &gate);
  ASSERT_THAT(source, IsOk());
  (*source)->UseCopyOptions(options);
  const RefitInfo& info = (*source)->info();
  ASSERT_EQ(info.size(), static_cast<int>(tensors.size()));
  auto buckets = Pack(info, geometry);
  ASSERT_THAT(buckets, IsOk());
  auto program = (*source)->Compile(*buckets);
  ASSERT_THAT(program, IsOk());

  std::vector<std::vector<std::byte>> table;
  for (const TensorSpec& spec : info.tensors()) {
    table.emplace_back(static_cast<size_t>(spec.bytes()), kPoison);
  }
  const base::CancelScope scope(base::Deadline::After(absl::Seconds(60)));
  const auto guard = (*program)->Begin(1, scope);
  ASSERT_THAT(guard, IsOk());
  Stream stream = Stream::Host();
  for (size_t b = 0; b < buckets->size(); ++b) {
    const Bucket& bucket = (*buckets)[b];
    std::vector<std::byte> slot(static_cast<size_t>(geometry.bucket_bytes) + kGuardBytes, kPoison);
    const auto filled = (*program)->Fill(
        static_cast<int>(b), {slot.data(), geometry.bucket_bytes, Device::Host()}, stream);
    ASSERT_THAT(filled, IsOk());
    EXPECT_TRUE(filled->done());
    // What no piece covers keeps what it held: the padding, the rest of the slot, the guard.
    std::vector<std::byte> outside = slot;
    for (const Piece& piece : bucket.pieces) {
      const TensorSpec& spec = info[piece.tensor];
      StoreBox(slot.data() + piece.dst, piece.box,
               MutableTensorView::Contiguous(table[static_cast<size_t>(piece.tensor)].data(),
                                             spec.dtype, spec.shape));
      std::fill_n(outside.begin() + piece.dst, piece.bytes, kPoison);
    }
    ASSERT_EQ(outside, std::vector<std::byte>(slot.size(), kPoison)) << "bucket " << b;
  }
  EXPECT_THAT(guard->Unchanged(), IsOk());

  for (int t = 0; t < info.size(); ++t) {
    const RandomTensor& tensor = tensors[static_cast<size_t>(t)];
    const std::vector<std::byte>& loaded = table[static_cast<size_t>(t)];
    const TensorSpec& spec = info[t];
    std::vector<std::byte> logical(loaded.size());
    CopyElements(tensor.view(), 0, StorageShape(spec.dtype, spec.shape).num_elements(),
                 logical.data());
    ASSERT_EQ(loaded, logical) << spec.name;
    ASSERT_EQ(loaded, DenseBytes(tensor.view())) << spec.name;
    ASSERT_EQ(tensor.storage(), before[static_cast<size_t>(t)]) << spec.name << " was changed";
    const auto reference = (*source)->ReferenceDigest(t);
    ASSERT_THAT(reference, IsOk());
    EXPECT_EQ(*reference, TensorDigest(spec.name, TensorView::Contiguous(loaded.data(), spec.dtype,
                                                                         spec.shape)));
  }
}

Geometry RandomGeometry(std::mt19937& rng) {
  const int64_t alignment = int64_t{8} << (rng() % 5);
  return {alignment * (1 + static_cast<int64_t>(rng() % 50)), alignment};
}

class HfSourceDTypeTest : public ::testing::TestWithParam<DType> {};

TEST_P(HfSourceDTypeTest, EveryKindOfStridesArrivesAsItsLogicalValues) {
  std::mt19937 rng(1);
  for (const ViewKind kind : kAllViewKinds) {
    for (int round = 0; round < 8; ++round) {
      std::vector<RandomTensor> tensors;
      for (int t = 0; t < 3; ++t) tensors.emplace_back(GetParam(), RandomShape(rng), kind, rng);
      ExpectRefitIsExact(tensors, RandomGeometry(rng));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(HfSourceDTypeTest, ScalarsAndTensorsWithoutElements) {
  std::mt19937 rng(2);
  std::vector<RandomTensor> tensors;
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{3, 0, 2}, Shape{}}) {
    tensors.emplace_back(GetParam(), shape, ViewKind::kContiguous, rng);
  }
  ExpectRefitIsExact(tensors, {64, 64});
  tensors.erase(tensors.begin());
  tensors.erase(tensors.begin() + 1, tensors.end());
  ExpectRefitIsExact(tensors, {64, 64});  // nothing but a tensor without elements
}

INSTANTIATE_TEST_SUITE_P(AllDTypes, HfSourceDTypeTest, ::testing::ValuesIn(kAllDTypes),
                         [](const auto& param) {
                           return std::string(SafetensorsName(param.param));
                         });

TEST(HfSourceTest, ThreadsFillABucketTogether) {
  std::mt19937 rng(8);
  std::vector<RandomTensor> tensors;
  for (const ViewKind kind : kAllViewKinds) {
    tensors.emplace_back(DType::kBF16, Shape({300, 1000}), kind, rng);
  }
  CopyOptions options;
  options.threads = 3;
  ExpectRefitIsExact(tensors, {1 << 20, 64}, options);
}

TEST(HfSourceTest, MixedTensorsInRandomGeometries) {
  std::mt19937 rng(3);
  for (int round = 0; round < 150; ++round) {
    std::vector<RandomTensor> tensors;
    const int count = 1 + static_cast<int>(rng() % 12);
    for (int t = 0; t < count; ++t) {
      tensors.emplace_back(kAllDTypes[rng() % kAllDTypes.size()], RandomShape(rng),
                           kAllViewKinds[rng() % kAllViewKinds.size()], rng);
    }
    ExpectRefitIsExact(tensors, RandomGeometry(rng));
    if (::testing::Test::HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST(HfSourceTest, ColumnsOfASquareWeight) {
  std::mt19937 rng(4);
  std::vector<RandomTensor> tensors;
  tensors.emplace_back(DType::kBF16, Shape{224, 224}, ViewKind::kTransposed, rng);
  tensors.emplace_back(DType::kF32, Shape{4}, ViewKind::kEveryOther, rng);
  ExpectRefitIsExact(tensors, {4096, 64});
  ExpectRefitIsExact(tensors, {64, 64});  // a row does not fit
}

TEST(HfSourceTest, FillReadsThePresentValues) {
  std::mt19937 rng(5);
  RandomTensor tensor(DType::kF32, {4, 4}, ViewKind::kContiguous, rng);
  std::vector<std::byte> storage = tensor.storage();
  StepGate gate;
  auto source =
      HfSource::Create({{"w", TensorView::Contiguous(storage.data(), DType::kF32, {4, 4})}}, &gate);
  ASSERT_THAT(source, IsOk());
  auto buckets = Pack((*source)->info(), {64, 64});
  auto program = (*source)->Compile(*buckets);
  ASSERT_THAT(program, IsOk());
  Stream stream = Stream::Host();
  std::vector<std::byte> slot(64);
  for (int step = 0; step < 3; ++step) {
    {
      StepGate::Step open(gate);
      for (std::byte& byte : storage) byte = static_cast<std::byte>(rng());
    }
    ASSERT_THAT((*program)->Fill(0, {slot.data(), 64, Device::Host()}, stream), IsOk());
    EXPECT_EQ(slot, storage);
  }
}

TEST(HfSourceTest, StepThatOverlapsASyncIsTold) {
  std::mt19937 rng(6);
  const RandomTensor tensor(DType::kF32, {4}, ViewKind::kContiguous, rng);
  StepGate gate;
  auto source = HfSource::Create({{"w", tensor.view()}}, &gate);
  ASSERT_THAT(source, IsOk());
  auto program = (*source)->Compile({});
  ASSERT_THAT(program, IsOk());
  const base::CancelScope scope(base::Deadline::After(absl::Seconds(60)));
  const auto guard = (*program)->Begin(1, scope);
  ASSERT_THAT(guard, IsOk());
  {
    StepGate::Step step(gate);
    EXPECT_THAT(guard->Unchanged(), StatusIs(absl::StatusCode::kAborted));
    EXPECT_THAT((*program)->Begin(2, scope).status(), StatusIs(absl::StatusCode::kAborted));
  }
  EXPECT_THAT((*program)->Begin(2, scope), IsOk());
}

TEST(HfSourceTest, BadParametersAreRefusedByName) {
  std::mt19937 rng(7);
  const RandomTensor tensor(DType::kF32, {4}, ViewKind::kContiguous, rng);
  StepGate gate;
  EXPECT_THAT(
      HfSource::Create({{"w", TensorView::Contiguous(nullptr, DType::kF32, {4})}}, &gate).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("'w'"), HasSubstr("no memory"))));
  EXPECT_THAT(HfSource::Create({{"w", tensor.view()}, {"w", tensor.view()}}, &gate).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'w'")));
  EXPECT_THAT(HfSource::Create({}, &gate).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(HfSource::Create({{"e", TensorView::Contiguous(nullptr, DType::kF32, {0})}}, &gate),
              IsOk());
  EXPECT_THAT(HfSource::Create({{"w", tensor.view()}}, nullptr).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("StepGate")));
}

TEST(HfSourceTest, PiecesOutsideTheirTensorOrBucketAreRefusedByName) {
  std::mt19937 rng(9);
  const RandomTensor tensor(DType::kF32, {4, 6}, ViewKind::kContiguous, rng);
  StepGate gate;
  auto source = HfSource::Create({{"w", tensor.view()}}, &gate);
  ASSERT_THAT(source, IsOk());
  const auto box = [](int64_t row, int64_t column, int64_t rows, int64_t columns) {
    Box made;
    made.rank = 2;
    made.begin = {row, column};
    made.size = {rows, columns};
    return made;
  };
  const std::vector<Bucket> good = {{{{0, box(1, 2, 3, 4), 16, 48}}, 64}};
  EXPECT_THAT((*source)->Compile(good), IsOk());
  const Piece bad[] = {
      {0, box(-1, 0, 1, 1), 0, 4}, {0, box(0, 0, 5, 1), 0, 20}, {0, box(3, 0, 2, 1), 0, 8},
      {0, box(0, 5, 1, 2), 0, 8},  {0, box(5, 0, 0, 0), 0, 0},  {0, Box::Whole({24}), 0, 96},
      {0, box(0, 0, 1, 1), -4, 4}, {0, box(0, 0, 1, 1), 64, 4}, {0, box(0, 0, 4, 6), 0, 96},
      {0, box(0, 0, 1, 1), 0, 8},
  };
  for (const Piece& piece : bad) {
    const std::vector<Bucket> buckets = {{{piece}, 64}};
    EXPECT_THAT((*source)->Compile(buckets).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("'w'"), HasSubstr(piece.box.ToString()))));
  }
}

TEST(HfSourceTest, UnknownTensorsAndBucketsAndShortSlotsAreRefused) {
  std::mt19937 rng(8);
  const RandomTensor tensor(DType::kF32, {16}, ViewKind::kContiguous, rng);
  StepGate gate;
  auto source = HfSource::Create({{"w", tensor.view()}}, &gate);
  ASSERT_THAT(source, IsOk());
  for (const int unknown : {-1, 1}) {
    EXPECT_THAT((*source)->ReferenceDigest(unknown).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(absl::StrCat(unknown))));
    const std::vector<Bucket> buckets = {{{{unknown, Box::Whole({16}), 0, 64}}, 64}};
    EXPECT_THAT(
        (*source)->Compile(buckets).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(absl::StrCat("tensor ", unknown))));
  }
  auto buckets = Pack((*source)->info(), {64, 64});
  auto program = (*source)->Compile(*buckets);
  ASSERT_THAT(program, IsOk());
  Stream stream = Stream::Host();
  std::vector<std::byte> slot(64, kPoison);
  for (const int unknown : {-1, 1}) {
    EXPECT_THAT((*program)->Fill(unknown, {slot.data(), 64, Device::Host()}, stream).status(),
                StatusIs(absl::StatusCode::kInternal, HasSubstr(absl::StrCat("bucket ", unknown))));
  }
  EXPECT_THAT((*program)->Fill(0, {slot.data(), 63, Device::Host()}, stream).status(),
              StatusIs(absl::StatusCode::kInternal, AllOf(HasSubstr("bucket 0"), HasSubstr("63"))));
  EXPECT_EQ(slot, std::vector<std::byte>(64, kPoison));
}

}  // namespace
}  // namespace weight_sync::refit
