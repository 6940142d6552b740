// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/refit_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "refit/layout/axis_pattern.h"
#include "refit/layout/convert.h"
#include "refit/layout/region_copy.h"
#include "refit/packing/packer.h"

namespace weight_sync::benchmarks {
namespace {

using refit::DType;
using refit::Shape;

constexpr DType kBF16 = DType::kBF16;

// [in, out] to [out, in].
RefitRow Transpose(int64_t in, int64_t out) {
  return {"transpose",
          absl::StrCat("transpose ", in, " ", out),
          0.5,
          "two lines of each source row at a time, stores past the caches into as many pages",
          kBF16,
          kBF16,
          {{"i", in}, {"o", out}},
          {{in, out}},
          {{out, in}},
          {{0, 0, "o i", "i o", {}}},
          [in, out](int64_t e) { return e % in * out + e / in; }};
}

// Stacked experts [E, H, M] to [M, H] of each.
RefitRow Experts(int64_t experts, int64_t h, int64_t m) {
  RefitRow row{"experts of one array",
               absl::StrCat("experts ", experts, " ", h, " ", m),
               0.5,
               "as the transpose, in rows of a page or less",
               kBF16,
               kBF16,
               {{"e", experts}, {"h", h}, {"m", m}},
               {{experts, h, m}},
               {},
               {},
               [h, m](int64_t e) { return e / (h * m) * h * m + e % h * m + e / h % m; }};
  for (int64_t expert = 0; expert < experts; ++expert) {
    row.hf.push_back({m, h});
    row.parts.push_back({static_cast<int>(expert), 0, "m h", "{e} h m", {expert}});
  }
  return row;
}

// q, k and v [H, N, D] to [N * D, H]; k and v have fewer heads.
RefitRow Attention(int64_t h, int64_t n, int64_t kv, int64_t d) {
  return {"q, k, v from [H, N, D]",
          absl::StrCat("transpose ", h, " ", (n + 2 * kv) * d),
          0.5,
          "as the transpose",
          kBF16,
          kBF16,
          {{"h", h}, {"n", n}, {"k", kv}, {"d", d}},
          {{h, n, d}, {h, kv, d}, {h, kv, d}},
          {{n * d, h}, {kv * d, h}, {kv * d, h}},
          {{0, 0, "(n d) h", "h n d", {}},
           {1, 1, "(k d) h", "h k d", {}},
           {2, 2, "(k d) h", "h k d", {}}},
          [h, n, kv, d](int64_t e) {
            const int64_t q = h * n * d, k = h * kv * d;
            const int64_t begin = e < q ? 0 : e < q + k ? q : q + k;
            const int64_t out = (begin == 0 ? n : kv) * d;
            return begin + (e - begin) % h * out + (e - begin) / h;
          }};
}

// gate and up [E, M, H] to [E, 2 M, H].
RefitRow GateUp(int64_t experts, int64_t m, int64_t h) {
  return {"gate and up side by side",
          absl::StrCat("gate_up ", experts, " ", m, " ", h),
          0.8,
          "memory: runs of megabytes",
          kBF16,
          kBF16,
          {{"e", experts}, {"m", m}, {"h", h}},
          {{experts, m, h}, {experts, m, h}},
          {{experts, 2 * m, h}},
          {{0, 0, "e ({0/2} m) h", "e m h", {}}, {0, 1, "e ({1/2} m) h", "e m h", {}}},
          [experts, m, h](int64_t e) {
            const int64_t one = m * h, within = e % (2 * one);
            return (within / one * experts + e / (2 * one)) * one + within % one;
          }};
}

// An array for each expert's gate and up [M, H] to one [E, 2 M, H].
RefitRow Stack(int64_t experts, int64_t m, int64_t h) {
  RefitRow row{"experts stacked (T2)",
               absl::StrCat("stack ", experts, " ", m, " ", h),
               0.8,
               "memory: runs of megabytes",
               kBF16,
               kBF16,
               {{"e", experts}, {"m", m}, {"h", h}},
               {},
               {{experts, 2 * m, h}},
               {},
               [](int64_t e) { return e; }};
  for (int64_t expert = 0; expert < experts; ++expert) {
    for (const char* axes : {"{e} ({0/2} m) h", "{e} ({1/2} m) h"}) {
      row.parts.push_back({0, static_cast<int>(row.arrays.size()), axes, "m h", {expert}});
      row.arrays.push_back({m, h});
    }
  }
  return row;
}

// Master weights as they are, rounded.
RefitRow Narrow(int64_t rows, int64_t columns) {
  return {"float32 to bfloat16",
          absl::StrCat("narrow ", rows * columns),
          0.7,
          "memory: two bytes read for one written",
          DType::kF32,
          kBF16,
          {{"r", rows}, {"c", columns}},
          {{rows, columns}},
          {{rows, columns}},
          {{0, 0, "r c", "r c", {}}},
          [](int64_t e) { return e; }};
}

// What two by two ranks hold of [R, C], FSDP over row parallelism, as shard plans copy it.
RefitRow Boxes(int64_t rows, int64_t columns) {
  const int64_t r = rows / 2, c = columns / 2;
  RefitRow row{"boxes of four shards",
               absl::StrCat("boxes ", rows, " ", columns),
               0.7,
               "memory: runs of half a row",
               kBF16,
               kBF16,
               {{"r", r}, {"c", c}},
               {},
               {{rows, columns}},
               {},
               [r, c](int64_t e) {
                 const int64_t i = e / (2 * c), j = e % (2 * c);
                 return ((i / r * 2 + j / c) * r + i % r) * c + j % c;
               }};
  for (const char* axes : {"({0/2} r) ({0/2} c)", "({0/2} r) ({1/2} c)", "({1/2} r) ({0/2} c)",
                           "({1/2} r) ({1/2} c)"}) {
    row.parts.push_back({0, static_cast<int>(row.arrays.size()), axes, "r c", {}});
    row.arrays.push_back({r, c});
  }
  return row;
}

int64_t Elements(absl::Span<const Shape> shapes) {
  int64_t elements = 0;
  for (const Shape& shape : shapes) elements += shape.num_elements();
  return elements;
}

}  // namespace

int64_t RefitRow::elements() const { return Elements(hf); }
int64_t RefitRow::array_bytes() const {
  return Elements(arrays) * refit::StorageElementBytes(from);
}
int64_t RefitRow::hf_bytes() const { return Elements(hf) * refit::StorageElementBytes(to); }

std::vector<RefitRow> RefitRows(bool small) {
  if (small) {
    return {Transpose(200, 130), Experts(3, 100, 70), Attention(96, 4, 2, 32), GateUp(3, 40, 130),
            Stack(3, 40, 130),   Narrow(200, 300),    Boxes(200, 130)};
  }
  return {Transpose(16384, 8192), Experts(64, 2048, 768), Attention(4096, 32, 8, 128),
          GateUp(64, 768, 2048),  Stack(64, 768, 2048),   Narrow(16384, 8192),
          Boxes(16384, 8192)};
}

absl::StatusOr<RefitJob> RefitJob::Create(const RefitRow& row, const refit::CopyOptions& options,
                                          const std::byte* memory, int64_t bucket_bytes) {
  RefitJob job(row, options, bucket_bytes);
  std::vector<std::vector<int64_t>> strides;
  for (const Shape& shape : row.arrays) {
    job.bases_.push_back(memory);
    memory += shape.num_elements() * refit::StorageElementBytes(row.from);
    std::vector<int64_t>& row_major = strides.emplace_back(shape.rank(), 1);
    for (int i = shape.rank() - 2; i >= 0; --i) {
      row_major[static_cast<size_t>(i)] = row_major[static_cast<size_t>(i) + 1] * shape[i + 1];
    }
  }
  std::vector<refit::TensorSpec> tensors;
  for (const Shape& shape : row.hf) {
    tensors.push_back({absl::StrCat("tensor.", tensors.size()), shape, row.to});
  }
  WS_ASSIGN_OR_RETURN(const refit::RefitInfo info, refit::RefitInfo::Create(std::move(tensors)));
  // The smallest alignment, so that tensors follow one another as the formula has them.
  WS_ASSIGN_OR_RETURN(const std::vector<refit::Bucket> buckets,
                      refit::Pack(info, {bucket_bytes, /*alignment=*/8}));
  for (const refit::Bucket& bucket : buckets) {
    job.program_.StartBucket();
    for (const refit::Piece& piece : bucket.pieces) {
      for (const RefitRow::Part& part : row.parts) {
        if (part.hf != piece.tensor) continue;
        WS_ASSIGN_OR_RETURN(const auto hf, refit::AxisPattern::Parse(part.hf_axes));
        WS_ASSIGN_OR_RETURN(const auto array, refit::AxisPattern::Parse(part.array_axes));
        WS_ASSIGN_OR_RETURN(const auto related,
                            refit::RegionTemplate::Create(hf, array, row.sizes));
        WS_RETURN_IF_ERROR(
            refit::AppendRegion(related.At(part.indices),
                                {part.array, row.from, strides[static_cast<size_t>(part.array)]},
                                piece.box, row.to, piece.dst, job.program_));
      }
    }
  }
  return job;
}

void RefitJob::Fill(std::byte* dst) const {
  for (int b = 0; b < program_.buckets(); ++b) program_.Run(b, bases_, dst + b * bucket_bytes_);
}

void RefitJob::FillSlots(std::byte* dst, int slots) const {
  for (int b = 0; b < program_.buckets(); ++b) {
    program_.Run(b, bases_, dst + b % slots * bucket_bytes_);
  }
}

absl::Status RefitJob::Verify(const std::byte* dst) const {
  const int64_t from = refit::StorageElementBytes(row_->from);
  const int64_t to = refit::StorageElementBytes(row_->to);
  WS_ASSIGN_OR_RETURN(const auto conversion, refit::ConversionBetween(row_->from, row_->to));
  for (int64_t e = 0; e < row_->elements(); ++e) {
    std::byte want[8];
    refit::ConvertElement(conversion, bases_[0] + row_->formula(e) * from, from, want);
    if (std::memcmp(dst + e * to, want, static_cast<size_t>(to)) != 0) {
      return absl::DataLossError(absl::StrCat(row_->name, ": element ", e, " is wrong"));
    }
  }
  return absl::OkStatus();
}

absl::Status RefitJob::VerifySlots(const std::byte* dst, std::byte* slot) const {
  for (int b = 0; b < program_.buckets(); ++b) {
    program_.Run(b, bases_, slot);
    const int64_t begin = b * bucket_bytes_;
    const int64_t bytes = std::min(bucket_bytes_, row_->hf_bytes() - begin);
    if (std::memcmp(dst + begin, slot, static_cast<size_t>(bytes)) != 0) {
      return absl::DataLossError(absl::StrCat(row_->name, ": bucket ", b, " of ", bucket_bytes_,
                                              " bytes differs from the whole"));
    }
  }
  return absl::OkStatus();
}

}  // namespace weight_sync::benchmarks
