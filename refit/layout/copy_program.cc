// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/copy_program.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/log/check.h"
#include "refit/layout/kernels/plane.h"

namespace weight_sync::refit {
namespace {

// Waking a thread takes as long as copying this.
constexpr int64_t kLeastShared = 256 << 10;

// A shorter run is memcpy's also when the bucket is streamed.
constexpr int64_t kLeastStreamed = 4 << 10;

void StreamRun(const Kernels& kernels, const std::byte* src, int64_t bytes, std::byte* dst) {
  static const PlaneKernel kernel = KernelFor(PlaneKind::kRows, 1, Conversion::kNone);
  kernel(kernels, {1, bytes, 0, 1, 0, 1}, /*stream=*/true, src, dst);
}

}  // namespace

CopyProgram::CopyProgram(const CopyOptions& options, std::shared_ptr<WorkerPool> workers)
    : kernels_(&KernelsFor(options.level)),
      stream_elements_from_(options.stream_elements_from),
      stream_runs_from_(options.stream_runs_from),
      workers_(std::move(workers)) {}

std::shared_ptr<WorkerPool> CopyProgram::StartWorkers(const CopyOptions& options) {
  return options.threads > 1 ? std::make_shared<WorkerPool>(options.threads) : nullptr;
}

void CopyProgram::Append(int tensor, const TensorView& view, const Box& box, int64_t dst) {
  const int64_t element = StorageElementBytes(view.dtype());
  const bool sub_byte = IsSubByte(view.dtype());  // stored as one dimension of whole bytes
  std::array<CopyDim, Shape::kMaxRank> dims;
  int64_t src = 0, dst_stride = element;
  for (int dim = box.rank - 1; dim >= 0; --dim) {
    CopyDim& copy = dims[static_cast<size_t>(dim)];
    copy = {box.size[dim], 0, dst_stride};
    dst_stride *= box.size[dim];
    // The stride of a dimension of size 1 may be any number, also one that overflows in bytes.
    if (box.size[dim] == 1 && box.begin[dim] == 0) continue;
    copy.src_stride = sub_byte ? 1 : view.strides()[dim] * element;
    src += box.begin[dim] * copy.src_stride;
  }
  Append(tensor, src, absl::MakeConstSpan(dims.data(), box.rank), element, Conversion::kNone, dst);
}

void CopyProgram::Append(int tensor, int64_t src, absl::Span<const CopyDim> dims, int64_t element,
                         Conversion conversion, int64_t dst) {
  CHECK(!first_.empty()) << "StartBucket() first";
  int64_t run = conversion == Conversion::kNone ? element : 1;
  size_t outer = 0;
  std::array<CopyDim, Shape::kMaxRank> kept;  // fastest first
  // Innermost first: grow the contiguous run while it continues, then collect what remains.
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    if (dim->size == 0) return;
    if (dim->size == 1) continue;
    if (conversion == Conversion::kNone && outer == 0 && dim->src_stride == run &&
        dim->dst_stride == run) {
      run *= dim->size;
      continue;
    }
    if (outer > 0) {
      CopyDim& last = kept[outer - 1];
      if (dim->src_stride == last.src_stride * last.size &&
          dim->dst_stride == last.dst_stride * last.size) {
        last.size *= dim->size;
        continue;
      }
    }
    kept[outer++] = *dim;
  }
  const int64_t copied = Copied();
  if (outer == 0 && conversion == Conversion::kNone) {
    if (copied > 0) {
      Copy& last = copies_.back();
      const int64_t last_bytes =
          last.end - (copies_.size() - 1 > first_.back() ? copies_[copies_.size() - 2].end : 0);
      if (last.tensor == tensor && last.strided < 0 && last.src + last_bytes == src &&
          last.dst + last_bytes == dst) {
        last.end += run;
        return;
      }
    }
    copies_.push_back({src, dst, copied + run, tensor, -1});
    return;
  }
  strided_.push_back(StridedCopy::Plan(absl::MakeConstSpan(kept.data(), outer), run, conversion));
  copies_.push_back({src, dst, copied + strided_.back().bytes(), tensor,
                     static_cast<int32_t>(strided_.size() - 1)});
}

size_t CopyProgram::EndOf(int bucket) const {
  const size_t next = static_cast<size_t>(bucket) + 1;
  return next < first_.size() ? first_[next] : copies_.size();
}

std::vector<CopyProgram::PlannedCopy> CopyProgram::PlannedCopies(int bucket) const {
  std::vector<PlannedCopy> planned;
  int64_t start = 0;
  for (size_t i = first_[static_cast<size_t>(bucket)]; i < EndOf(bucket); ++i) {
    const Copy& copy = copies_[i];
    const bool strided = copy.strided >= 0;
    planned.push_back({copy.tensor, copy.src, copy.dst, strided ? 0 : copy.end - start,
                       strided ? &strided_[static_cast<size_t>(copy.strided)] : nullptr});
    start = copy.end;
  }
  return planned;
}

void CopyProgram::Run(int bucket, absl::Span<const std::byte* const> bases, std::byte* dst) const {
  const size_t first = first_[static_cast<size_t>(bucket)], end = EndOf(bucket);
  if (first == end) return;
  const int64_t bytes = copies_[end - 1].end;
  if (workers_ == nullptr || bytes < kLeastShared) {
    RunPart(first, end, 0, bytes, bases, dst);
    return;
  }
  const int64_t share = bytes / workers_->workers();
  workers_->Run([&](int worker) {
    const int64_t from = worker * share;
    RunPart(first, end, from, worker + 1 == workers_->workers() ? bytes : from + share, bases, dst);
  });
}

void CopyProgram::RunPart(size_t first, size_t end, int64_t from, int64_t to,
                          absl::Span<const std::byte* const> bases, std::byte* dst) const {
  const int64_t bytes = copies_[end - 1].end;
  const bool stream_elements = bytes >= stream_elements_from_;
  const bool stream_runs = bytes >= stream_runs_from_;
  size_t i = first;
  if (from > 0) {
    i = static_cast<size_t>(
        std::upper_bound(copies_.begin() + static_cast<ptrdiff_t>(first),
                         copies_.begin() + static_cast<ptrdiff_t>(end), from,
                         [](int64_t byte, const Copy& copy) { return byte < copy.end; }) -
        copies_.begin());
  }
  int64_t start = i > first ? copies_[i - 1].end : 0;
  for (; i < end && start < to; ++i) {
    const Copy& copy = copies_[i];
    const std::byte* const src = bases[static_cast<size_t>(copy.tensor)] + copy.src;
    const int64_t part = std::max<int64_t>(from - start, 0);
    const int64_t part_end = std::min(to, copy.end) - start;
    if (copy.strided >= 0) {
      const StridedCopy& strided = strided_[static_cast<size_t>(copy.strided)];
      const bool stream = strided.copies_runs() ? stream_runs : stream_elements;
      if (part == 0 && part_end == copy.end - start) {
        strided.Run(*kernels_, stream, src, dst + copy.dst);
      } else {
        strided.RunPart(*kernels_, stream, part, part_end, src, dst + copy.dst);
      }
    } else if (stream_runs && part_end - part >= kLeastStreamed) {
      StreamRun(*kernels_, src + part, part_end - part, dst + copy.dst + part);
    } else {
      std::memcpy(dst + copy.dst + part, src + part, static_cast<size_t>(part_end - part));
    }
    start = copy.end;
  }
  if (stream_elements || stream_runs) kernels_->fence();
}

}  // namespace weight_sync::refit
