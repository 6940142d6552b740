// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/cuda/cuda_copy_program.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/layout/convert.h"
#include "refit/layout/kernels/plane.h"
#include "refit/layout/kernels/strided_copy.h"

namespace weight_sync::refit::cuda {
namespace {

static_assert(kMostOuter >= Shape::kMaxRank, "a copy has as many dimensions as a tensor");
static_assert(sizeof(CudaDevicePointer) == sizeof(uint64_t), "as the kernel reads them");
static_assert(kSharedBytes >= 64 * SharedRow(2) * 2 && kSharedBytes >= 32 * SharedRow(8) * 8,
              "a tile of the largest elements fits");

// The grid's first dimension.
constexpr int64_t kMostTiles = std::numeric_limits<int32_t>::max();

constexpr int kMostAlignment = 16;

int64_t Ceil(int64_t count, int64_t unit) { return (count + unit - 1) / unit; }

Change ChangeOf(Conversion conversion) {
  switch (conversion) {
    case Conversion::kNone:
      return Change::kNone;
    case Conversion::kF32ToBF16:
      return Change::kF32ToBF16;
    case Conversion::kBF16ToF32:
      return Change::kBF16ToF32;
  }
  return Change::kNone;
}

// What a copy is on the device but for where its tiles begin.
PermuteCopy Translate(const CopyProgram::PlannedCopy& planned) {
  PermuteCopy copy = {};
  copy.array = planned.tensor;
  copy.src = planned.src;
  copy.dst = planned.dst;
  if (planned.strided == nullptr) {
    copy.rows = 1;
    copy.columns = planned.bytes;
    copy.src_column = copy.dst_column = copy.src_element = copy.dst_element = 1;
    copy.way = Way::kRuns;
  } else {
    const StridedCopy& strided = *planned.strided;
    const Plane& plane = strided.plane();
    copy.rows = plane.rows;
    copy.columns = plane.columns;
    copy.src_row = plane.src_row;
    copy.src_column = plane.src_column;
    copy.dst_row = plane.dst_row;
    copy.dst_column = plane.dst_column;
    for (const CopyDim& dim : strided.outer()) {
      copy.outer_size[copy.outer] = dim.size;
      copy.outer_src[copy.outer] = dim.src_stride;
      copy.outer_dst[copy.outer] = dim.dst_stride;
      ++copy.outer;
    }
    copy.change = ChangeOf(strided.conversion());
    copy.dst_element = static_cast<int32_t>(strided.element());
    copy.src_element = copy.change == Change::kF32ToBF16   ? 4
                       : copy.change == Change::kBF16ToF32 ? 2
                                                           : copy.dst_element;
    copy.way = strided.copies_runs()                     ? Way::kRuns
               : strided.kind() == PlaneKind::kTranspose ? Way::kTransposed
                                                         : Way::kElements;
  }
  if (copy.way == Way::kTransposed) {
    copy.tile_rows = copy.tile_columns = TransposedSide(copy.dst_element);
  } else {
    const int64_t most = kTileBytes / copy.dst_element;
    copy.tile_columns = SmallerOf(copy.columns, most);
    copy.tile_rows = SmallerOf(copy.rows, std::max<int64_t>(1, most / copy.tile_columns));
  }
  copy.tiles_across = Ceil(copy.columns, copy.tile_columns);
  copy.tiles_down = Ceil(copy.rows, copy.tile_rows);
  // A column of a run is a byte, of which whole units are moved.
  uint64_t src = static_cast<uint64_t>(copy.src) | static_cast<uint64_t>(copy.src_row);
  uint64_t dst = static_cast<uint64_t>(copy.dst) | static_cast<uint64_t>(copy.dst_row);
  if (copy.way != Way::kRuns) {
    src |= static_cast<uint64_t>(copy.src_column);
    dst |= static_cast<uint64_t>(copy.dst_column);
  }
  for (int i = 0; i < copy.outer; ++i) {
    src |= static_cast<uint64_t>(copy.outer_src[i]);
    dst |= static_cast<uint64_t>(copy.outer_dst[i]);
  }
  copy.src_alignment = AlignmentOf(src, kMostAlignment);
  copy.dst_alignment = AlignmentOf(dst, kMostAlignment);
  return copy;
}

int64_t TilesOf(const PermuteCopy& copy) {
  int64_t tiles = copy.tiles_across * copy.tiles_down;
  for (int i = 0; i < copy.outer; ++i) tiles *= copy.outer_size[i];
  return tiles;
}

}  // namespace

PlannedBucket PlanBucket(const CopyProgram& program, int bucket) {
  PlannedBucket planned;
  for (const CopyProgram::PlannedCopy& copy : program.PlannedCopies(bucket)) {
    planned.copies.push_back(Translate(copy));
    planned.copies.back().first_tile = planned.tiles;
    planned.tiles += TilesOf(planned.copies.back());
  }
  return planned;
}

absl::StatusOr<std::unique_ptr<CudaCopyProgram>> CudaCopyProgram::Create(
    const CudaApi& cuda, const CopyProgram& program, absl::Span<const std::byte> kernels) {
  std::unique_ptr<CudaCopyProgram> made(new CudaCopyProgram(cuda));
  std::vector<PermuteCopy> copies;
  for (int b = 0; b < program.buckets(); ++b) {
    const PlannedBucket bucket = PlanBucket(program, b);
    if (bucket.tiles > kMostTiles) {
      return absl::InvalidArgumentError(absl::StrCat("bucket ", b, " takes ", bucket.tiles,
                                                     " blocks of a GPU, which launches at most ",
                                                     kMostTiles, "; make buckets smaller"));
    }
    made->buckets_.push_back({static_cast<int64_t>(copies.size()),
                              static_cast<int64_t>(bucket.copies.size()),
                              static_cast<unsigned int>(bucket.tiles)});
    copies.insert(copies.end(), bucket.copies.begin(), bucket.copies.end());
  }
  for (const PermuteCopy& copy : copies) {
    made->array_count_ = std::max<int64_t>(made->array_count_, copy.array + 1);
  }
  WS_RETURN_IF_ERROR(cuda.Check(cuda.module_load_data(&made->module_, kernels.data()),
                                "cuModuleLoadData of the copy kernel"));
  WS_RETURN_IF_ERROR(
      cuda.Check(cuda.module_get_function(&made->kernel_, made->module_, "PermuteCopyKernel"),
                 "cuModuleGetFunction of PermuteCopyKernel"));
  if (copies.empty()) return made;
  const size_t copy_bytes = copies.size() * sizeof(copies[0]);
  const size_t array_bytes = static_cast<size_t>(made->array_count_) * sizeof(CudaDevicePointer);
  WS_RETURN_IF_ERROR(cuda.Check(cuda.mem_alloc(&made->copies_, copy_bytes),
                                absl::StrCat("cuMemAlloc of ", copies.size(), " copies")));
  WS_RETURN_IF_ERROR(cuda.Check(cuda.mem_alloc(&made->arrays_, array_bytes),
                                absl::StrCat("cuMemAlloc of ", made->array_count_, " addresses")));
  // The null stream, on which nothing else of this program is: it waits for no one who matters.
  WS_RETURN_IF_ERROR(
      cuda.Check(cuda.memcpy_htod_async(made->copies_, copies.data(), copy_bytes, nullptr),
                 "cuMemcpyHtoDAsync of the copies"));
  WS_RETURN_IF_ERROR(
      cuda.Check(cuda.stream_synchronize(nullptr), "cuStreamSynchronize after the copies"));
  return made;
}

CudaCopyProgram::~CudaCopyProgram() {
  // Errors here are of the context, which is then gone with all that is in it.
  if (arrays_ != 0) cuda_.mem_free(arrays_);
  if (copies_ != 0) cuda_.mem_free(copies_);
  if (module_ != nullptr) cuda_.module_unload(module_);
}

absl::Status CudaCopyProgram::Bind(absl::Span<const CudaDevicePointer> arrays, CudaStream stream) {
  if (static_cast<int64_t>(arrays.size()) < array_count_) {
    return absl::InvalidArgumentError(absl::StrCat("the copies name ", array_count_,
                                                   " arrays, and ", arrays.size(), " are bound"));
  }
  // From pageable memory: the driver has read it when the call returns.
  if (array_count_ > 0) {
    WS_RETURN_IF_ERROR(cuda_.Check(
        cuda_.memcpy_htod_async(arrays_, arrays.data(),
                                static_cast<size_t>(array_count_) * sizeof(CudaDevicePointer),
                                stream),
        "cuMemcpyHtoDAsync of the arrays' addresses"));
  }
  bound_ = true;
  return absl::OkStatus();
}

absl::Status CudaCopyProgram::Run(int bucket, CudaDevicePointer dst, CudaStream stream) const {
  if (bucket < 0 || bucket >= buckets()) {
    return absl::InternalError(absl::StrCat("bucket ", bucket, " was not compiled"));
  }
  if (!bound_) return absl::FailedPreconditionError("no arrays are bound; Bind() them first");
  const Bucket& planned = buckets_[static_cast<size_t>(bucket)];
  if (planned.tiles == 0) return absl::OkStatus();
  // NOLINTBEGIN(performance-no-int-to-ptr): the driver's addresses are numbers.
  PermuteArguments arguments{reinterpret_cast<const PermuteCopy*>(copies_) + planned.first,
                             planned.copies, reinterpret_cast<const uint64_t*>(arrays_),
                             reinterpret_cast<std::byte*>(dst)};
  // NOLINTEND(performance-no-int-to-ptr)
  void* parameters[] = {&arguments};
  return cuda_.Check(cuda_.launch_kernel(kernel_, planned.tiles, 1, 1, kThreads, 1, 1,
                                         /*shared_bytes=*/0, stream, parameters, nullptr),
                     absl::StrCat("cuLaunchKernel of PermuteCopyKernel for bucket ", bucket));
}

}  // namespace weight_sync::refit::cuda
