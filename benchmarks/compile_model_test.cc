// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// That the benchmark compiles what it says: whole models, every byte of them.

#include "benchmarks/compile_model.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "gtest/gtest.h"
#include "refit/layout/copy_program.h"
#include "refit/packing/packer.h"
#include "refit/refit_info.h"

namespace weight_sync::benchmarks {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;

constexpr refit::Geometry kPieces = {4 << 20};

// Every tensor's elements in order, every one once.
void ExpectWhole(const refit::RefitInfo& info, const std::vector<refit::Bucket>& buckets) {
  std::vector<int64_t> packed(static_cast<size_t>(info.size()));
  int last = 0;
  for (const refit::Bucket& bucket : buckets) {
    int64_t end = 0;
    for (const refit::Piece& piece : bucket.pieces) {
      ASSERT_GE(piece.tensor, last);
      last = piece.tensor;
      ASSERT_GE(piece.dst, end);
      end = piece.dst + piece.bytes;
      const refit::Shape& shape = info[piece.tensor].shape;
      int64_t first = 0;
      for (int dim = 0; dim < shape.rank(); ++dim) {
        first = first * shape[dim] + piece.box.begin[dim];
      }
      // It begins where the last one ended.
      ASSERT_EQ(2 * first, packed[static_cast<size_t>(piece.tensor)]) << info[piece.tensor].name;
      packed[static_cast<size_t>(piece.tensor)] += piece.bytes;
    }
    ASSERT_LE(end, kPieces.bucket_bytes);
    ASSERT_EQ(end, bucket.bytes);
  }
  for (int t = 0; t < info.size(); ++t) {
    ASSERT_EQ(packed[static_cast<size_t>(t)], info[t].bytes()) << info[t].name;
  }
}

void ExpectCompiles(const CompileModel& model, int tensors, int64_t bytes, int passed) {
  auto map = model.BuildMap();
  ASSERT_THAT(map, IsOk());
  int passing = 0;
  for (int t = 0; t < map->hf().size(); ++t) passing += map->passes_through(t) ? 1 : 0;
  EXPECT_EQ(passing, passed);
  const auto source = model.CreateSource(*std::move(map));
  ASSERT_THAT(source, IsOk());
  EXPECT_EQ((*source)->info().size(), tensors);
  EXPECT_EQ((*source)->info().total_bytes(), bytes);
  const auto buckets = refit::Pack((*source)->info(), kPieces);
  ASSERT_THAT(buckets, IsOk());
  ExpectWhole((*source)->info(), *buckets);
  const auto copies = (*source)->CompileCopies(*buckets);
  ASSERT_THAT(copies, IsOk());
  EXPECT_EQ(copies->buckets(), static_cast<int>(buckets->size()));
  EXPECT_GE(copies->copies(), tensors);
  // Compiled, and nothing to read yet.
  const auto program = (*source)->Compile(*buckets);
  ASSERT_THAT(program, IsOk());
  const base::CancelScope scope(base::Deadline::After(absl::Seconds(60)));
  EXPECT_THAT((*program)->Begin(1, scope).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(CompileModelTest, Qwen3MoeInTunix) {
  const auto model = CompileModel::Qwen3Moe();
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ((*model)->arrays().size(), 579u);
  ExpectCompiles(**model, 18867, 61064245248, 0);
}

TEST(CompileModelTest, Qwen3NextInScannedMaxTextWithMtp) {
  const auto model = CompileModel::Qwen3Next();
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ((*model)->arrays().size(), 36u);
  ExpectCompiles(**model, 75944, 162649725440, 75944 - 74391);
}

}  // namespace
}  // namespace weight_sync::benchmarks
