// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StridedCopy: a copy over several dimensions, with its kernel chosen once, when it is planned. Two
// dimensions are the kernel's (plane.h), the others loops around it. May be run in parts, by several
// threads. An immutable value without heap memory; thread-safe as such.
//
//   StridedCopy copy = StridedCopy::Plan(dims, /*element=*/2, Conversion::kNone);
//   copy.Run(kernels, /*stream=*/false, src, dst);

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_STRIDED_COPY_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_STRIDED_COPY_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "refit/layout/convert.h"
#include "refit/layout/kernels/kernels.h"
#include "refit/layout/kernels/plane.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {

// One dimension of a copy: so many elements, so many bytes apart on each side.
struct CopyDim {
  int64_t size;
  int64_t src_stride;
  int64_t dst_stride;
};

class StridedCopy {
 public:
  // `dims`, at most kMaxRank and none empty, are best given fastest first; `run` is what is
  // contiguous on both sides, in bytes: an element that is copied, or several. It is not looked at
  // where elements are converted.
  static StridedCopy Plan(absl::Span<const CopyDim> dims, int64_t run, Conversion conversion);

  int64_t bytes() const { return bytes_; }  // in the destination

  // What the kernel does. The element is the destination's; for rows that are not converted it is a
  // byte.
  PlaneKind kind() const { return kind_; }
  Conversion conversion() const { return conversion_; }
  int64_t element() const { return element_; }
  const Plane& plane() const { return plane_; }
  absl::Span<const CopyDim> outer() const {
    return absl::MakeConstSpan(dims_.data(), static_cast<size_t>(outer_));
  }
  bool copies_runs() const { return kind_ == PlaneKind::kRows && conversion_ == Conversion::kNone; }

  // `stream` as in plane.h.
  void Run(const Kernels& kernels, bool stream, const std::byte* src, std::byte* dst) const;

  // What lies between `begin` and `end` of bytes(), about: parts that meet there are disjoint and
  // leave nothing out.
  void RunPart(const Kernels& kernels, bool stream, int64_t begin, int64_t end,
               const std::byte* src, std::byte* dst) const;

 private:
  static constexpr int kColumns = -2, kRows = -1;  // of the plane, beside the outer dimensions

  CopyDim Dim(int dim) const;
  void SetSize(int dim, int64_t size);
  int64_t Cut(int64_t byte) const;  // an index of the dimension that parts are cut in

  PlaneKernel kernel_;
  Plane plane_;
  int64_t bytes_;
  int32_t cut_unit_;  // parts begin at multiples of it
  PlaneKind kind_;
  Conversion conversion_;
  int8_t element_;
  int8_t cut_dim_;
  int8_t outer_ = 0;
  std::array<CopyDim, Shape::kMaxRank> dims_;  // the outer ones
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_STRIDED_COPY_H_
