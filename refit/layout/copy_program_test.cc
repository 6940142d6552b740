// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/copy_program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/layout/box.h"
#include "refit/layout/kernels/kernels.h"
#include "refit/layout/kernels/levels_for_testing.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"
#include "refit/testing/box_elements.h"
#include "refit/testing/random_tensor.h"

namespace weight_sync::refit {
namespace {

using testing::BoxBytes;
using testing::DenseBytes;
using testing::kAllViewKinds;
using testing::RandomShape;
using testing::RandomTensor;
using testing::ViewKind;

constexpr std::byte kPoison{0xa5};

Box RandomBox(const Shape& shape, std::mt19937& rng) {
  Box box = Box::Whole(shape);
  for (int dim = 0; dim < box.rank; ++dim) {
    if (shape[dim] == 0 || rng() % 2 == 0) continue;
    box.begin[dim] = static_cast<int64_t>(rng()) % shape[dim];
    box.size[dim] = 1 + static_cast<int64_t>(rng()) % (shape[dim] - box.begin[dim]);
  }
  return box;
}

// Every level of this CPU, past the caches and not.
std::vector<CopyOptions> KindsOfOptions() {
  std::vector<CopyOptions> kinds;
  for (const CpuLevel level : LevelsOfThisCpu()) {
    for (const int64_t from : {int64_t{0}, std::numeric_limits<int64_t>::max()}) {
      kinds.push_back({/*threads=*/1, from, from, level});
    }
  }
  return kinds;
}

TEST(CopyProgramTest, BoxesOfViewsInAnyStridesEqualANaiveLoop) {
  std::mt19937 rng(1);
  const std::vector<CopyOptions> options = KindsOfOptions();
  for (size_t round = 0; round < 600; ++round) {
    std::vector<RandomTensor> tensors;
    std::vector<const std::byte*> bases;
    for (int t = 0; t < 4; ++t) {
      tensors.emplace_back(kAllDTypes[rng() % kAllDTypes.size()], RandomShape(rng),
                           kAllViewKinds[rng() % kAllViewKinds.size()], rng);
      bases.push_back(tensors.back().view().data());
    }
    CopyProgram program(options[round % options.size()]);
    std::vector<std::vector<std::byte>> expected;
    const int buckets = static_cast<int>(rng() % 4);
    for (int b = 0; b < buckets; ++b) {
      program.StartBucket();
      expected.emplace_back();
      const int boxes = static_cast<int>(rng() % 6);
      for (int i = 0; i < boxes; ++i) {
        const int tensor = static_cast<int>(rng() % tensors.size());
        const TensorView& view = tensors[static_cast<size_t>(tensor)].view();
        const Shape shape = StorageShape(view.dtype(), view.shape());
        const Box box = RandomBox(shape, rng);
        std::vector<std::byte>& bucket = expected.back();
        bucket.resize(bucket.size() + rng() % 3, kPoison);
        program.Append(tensor, view, box, static_cast<int64_t>(bucket.size()));
        const std::vector<std::byte> bytes =
            BoxBytes(DenseBytes(view), shape, StorageElementBytes(view.dtype()), box);
        bucket.insert(bucket.end(), bytes.begin(), bytes.end());
      }
    }
    ASSERT_EQ(program.buckets(), buckets);
    for (int b = buckets - 1; b >= 0; --b) {  // in any order
      std::vector<std::byte> want = expected[static_cast<size_t>(b)];
      want.resize(want.size() + 16, kPoison);
      std::vector<std::byte> got(want.size(), kPoison);
      program.Run(b, bases, got.data());
      ASSERT_EQ(got, want) << "round " << round << " bucket " << b;
    }
  }
}

// Buckets large enough that threads share them: of tiny and of large copies, whose borders lie where
// they will.
TEST(CopyProgramTest, ThreadsCopyABucketTogether) {
  std::mt19937 rng(6);
  std::vector<RandomTensor> tensors;
  std::vector<const std::byte*> bases;
  const Shape shapes[] = {{700, 450}, {90, 3, 700}, {3000}, {450, 700}, {16, 40, 30, 20}, {7}};
  for (const Shape& shape : shapes) {
    for (const ViewKind kind : {ViewKind::kContiguous, ViewKind::kTransposed, ViewKind::kMixed}) {
      tensors.emplace_back(DType::kBF16, shape, kind, rng);
      bases.push_back(tensors.back().view().data());
    }
  }
  struct Piece {
    int tensor;
    Box box;
    int64_t dst;
  };
  std::vector<Piece> pieces;
  std::vector<std::byte> want;
  while (want.size() < 1u << 20) {
    const size_t tensor = rng() % tensors.size();
    const TensorView& view = tensors[tensor].view();
    const Box box = RandomBox(view.shape(), rng);
    want.resize(want.size() + rng() % 3, kPoison);
    pieces.push_back({static_cast<int>(tensor), box, static_cast<int64_t>(want.size())});
    const std::vector<std::byte> bytes = BoxBytes(DenseBytes(view), view.shape(), 2, box);
    want.insert(want.end(), bytes.begin(), bytes.end());
  }
  want.resize(want.size() + 16, kPoison);
  for (CopyOptions options : KindsOfOptions()) {
    for (options.threads = 2; options.threads <= 5; ++options.threads) {
      CopyProgram program(options);
      for (int bucket = 0; bucket < 2; ++bucket) {
        program.StartBucket();
        for (const Piece& piece : pieces) {
          program.Append(piece.tensor, tensors[static_cast<size_t>(piece.tensor)].view(), piece.box,
                         piece.dst);
        }
      }
      for (int bucket = 0; bucket < 2; ++bucket) {
        std::vector<std::byte> got(want.size(), kPoison);
        program.Run(bucket, bases, got.data());
        ASSERT_TRUE(got == want) << options.threads << " threads, " << CpuLevelName(options.level);
      }
    }
  }
}

TEST(CopyProgramTest, ThreadsShareOneRunToTheByte) {
  std::mt19937 rng(9);
  const int64_t bytes = 1'000'003;
  const RandomTensor tensor(DType::kU8, {bytes}, ViewKind::kContiguous, rng);
  const std::vector<const std::byte*> bases = {tensor.view().data()};
  for (CopyOptions options : KindsOfOptions()) {
    for (options.threads = 1; options.threads <= 5; ++options.threads) {
      CopyProgram program(options);
      program.StartBucket();
      program.Append(0, tensor.view(), Box::Whole({bytes}), 1);
      std::vector<std::byte> got(static_cast<size_t>(bytes) + 2, kPoison);
      program.Run(0, bases, got.data());
      EXPECT_EQ(got.front(), kPoison);
      EXPECT_EQ(got.back(), kPoison);
      EXPECT_TRUE(std::equal(got.begin() + 1, got.end() - 1, tensor.storage().begin()))
          << options.threads << " threads, " << CpuLevelName(options.level);
    }
  }
}

TEST(CopyProgramTest, SeveralThreadsMayRunOneProgramWithThreadsOfItsOwn) {
  std::mt19937 rng(7);
  const RandomTensor tensor(DType::kF32, {700, 450}, ViewKind::kTransposed, rng);
  CopyProgram program(CopyOptions{/*threads=*/2});
  program.StartBucket();
  program.Append(0, tensor.view(), Box::Whole(tensor.view().shape()), 0);
  const std::vector<const std::byte*> bases = {tensor.view().data()};
  const std::vector<std::byte> want = DenseBytes(tensor.view());
  std::vector<std::vector<std::byte>> got(3, std::vector<std::byte>(want.size()));
  std::vector<std::thread> threads;
  for (std::vector<std::byte>& dst : got) {
    threads.emplace_back([&] {
      for (int run = 0; run < 5; ++run) program.Run(0, bases, dst.data());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(got, ::testing::Each(want));
}

TEST(CopyProgramTest, ArraysMayBeReplacedBetweenRuns) {
  std::mt19937 rng(2);
  const RandomTensor old(DType::kF32, {3, 5}, ViewKind::kReversed, rng);
  const RandomTensor next(DType::kF32, {3, 5}, ViewKind::kReversed, rng);
  CopyProgram program;
  program.StartBucket();
  program.Append(0, old.view(), Box::Whole({3, 5}), 0);
  std::vector<std::byte> got(60);
  for (const RandomTensor* tensor : {&old, &next}) {
    const std::vector<const std::byte*> bases = {tensor->view().data()};
    program.Run(0, bases, got.data());
    EXPECT_EQ(got, DenseBytes(tensor->view()));
  }
}

TEST(CopyProgramTest, ContiguousTensorCutInManyPiecesIsOneCopyABucket) {
  std::mt19937 rng(3);
  const Shape shape = {6, 5, 7};
  const RandomTensor tensor(DType::kBF16, shape, ViewKind::kContiguous, rng);
  CopyProgram program;
  std::vector<Box> boxes;
  int64_t done = 0;
  for (const int64_t end : {3, 8, 9, 70, 71, 210}) {
    CutFlatRange(shape, done, end, boxes);
    done = end;
  }
  ASSERT_GT(boxes.size(), 10u);
  for (int bucket = 0; bucket < 2; ++bucket) {
    program.StartBucket();
    int64_t dst = 0;
    for (const Box& box : boxes) {
      program.Append(0, tensor.view(), box, dst);
      dst += box.num_elements() * 2;
    }
  }
  EXPECT_EQ(program.copies(), 2);
  const std::vector<const std::byte*> bases = {tensor.view().data()};
  std::vector<std::byte> got(tensor.storage().size());
  program.Run(1, bases, got.data());
  EXPECT_EQ(got, tensor.storage());
}

TEST(CopyProgramTest, CopiesThatDoNotContinueEachOtherStayApart) {
  std::vector<std::byte> storage(64);
  const TensorView view = TensorView::Contiguous(storage.data(), DType::kU8, {64});
  const auto part = [](int64_t begin, int64_t size) {
    Box box = Box::Whole({size});
    box.begin[0] = begin;
    return box;
  };
  CopyProgram program;
  program.StartBucket();
  program.Append(0, view, part(0, 8), 0);
  program.Append(0, view, part(9, 8), 8);    // a hole in the source
  program.Append(0, view, part(17, 8), 17);  // a hole in the destination
  program.Append(1, view, part(25, 8), 25);  // another tensor
  program.StartBucket();
  program.Append(1, view, part(33, 8), 33);  // another bucket
  EXPECT_EQ(program.copies(), 5);
}

TEST(CopyProgramTest, WholeTensorIsOneCopyWhateverItsStrides) {
  std::mt19937 rng(4);
  for (const ViewKind kind : kAllViewKinds) {
    const RandomTensor tensor(DType::kI64, {3, 4, 5}, kind, rng);
    CopyProgram program;
    program.StartBucket();
    program.Append(0, tensor.view(), Box::Whole(tensor.view().shape()), 0);
    EXPECT_EQ(program.copies(), 1);
  }
}

TEST(CopyProgramTest, BoxesWithoutElementsAreNoCopies) {
  const TensorView view = TensorView::Contiguous(nullptr, DType::kF32, {3, 0});
  CopyProgram program;
  program.StartBucket();
  program.Append(0, view, Box::Whole({3, 0}), 0);
  EXPECT_EQ(program.copies(), 0);
  const std::vector<const std::byte*> bases = {nullptr};
  program.Run(0, bases, nullptr);
}

TEST(CopyProgramTest, StrideOfADimensionOfSizeOneMayBeAnyNumber) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  std::mt19937 rng(5);
  const RandomTensor tensor(DType::kF64, {2, 3}, ViewKind::kContiguous, rng);
  for (const int64_t odd : {most, -most, int64_t{0}, int64_t{7}}) {
    const TensorView view =
        TensorView::Strided(tensor.view().data(), DType::kF64, {1, 2, 1, 3}, {odd, 3, odd, 1})
            .value();
    CopyProgram program;
    program.StartBucket();
    program.Append(0, view, Box::Whole(view.shape()), 0);
    const std::vector<const std::byte*> bases = {view.data()};
    std::vector<std::byte> got(tensor.storage().size());
    program.Run(0, bases, got.data());
    EXPECT_EQ(got, tensor.storage());
  }
}

TEST(CopyProgramDeathTest, NeedsABucketFirst) {
  std::vector<std::byte> storage(4);
  CopyProgram program;
  EXPECT_DEATH(program.Append(0, TensorView::Contiguous(storage.data(), DType::kU8, {4}),
                              Box::Whole({4}), 0),
               "StartBucket");
}

}  // namespace
}  // namespace weight_sync::refit
