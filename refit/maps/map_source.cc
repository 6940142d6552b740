// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/map_source.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/bucket_program.h"
#include "refit/differences.h"
#include "refit/layout/convert.h"
#include "refit/layout/region_copy.h"
#include "refit/layout/region_cursor.h"
#include "refit/maps/source_checks.h"
#include "refit/tensor_digest.h"

namespace weight_sync::refit {
namespace {

// Reads a region an element at a time, in the row-major order of its A side.
class RegionReader {
 public:
  // `b` says how B lies, `data` where.
  RegionReader(const Region& region, const Shape& a, const TensorView& b, const std::byte* data,
               Conversion conversion)
      : num_elements_(region.num_elements()),
        cursor_(region, a, b.strides()),
        data_(data),
        element_(StorageElementBytes(b.dtype())),
        conversion_(conversion) {}

  int64_t num_elements() const { return num_elements_; }
  // Where the next element lies in A, row-major.
  int64_t place() const { return cursor_.a_place(); }

  void Read(std::byte* dst) {
    ConvertElement(conversion_, data_ + cursor_.b_offset() * element_, element_, dst);
    cursor_.Advance();
  }

 private:
  const int64_t num_elements_;
  RegionCursor cursor_;
  const std::byte* const data_;
  const int64_t element_;  // bytes, of B
  const Conversion conversion_;
};

// Whether a copy program for one view copies the other rightly.
bool SameLayout(const TensorView& a, const TensorView& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  for (int dim = 0; dim < a.shape().rank(); ++dim) {
    const size_t d = static_cast<size_t>(dim);
    if (a.shape()[dim] > 1 && a.strides()[d] != b.strides()[d]) return false;
  }
  return true;
}

}  // namespace

MapSource::MapSource(WeightMap map, std::vector<TensorView> views, std::vector<int> passed,
                     const StepGate* gate)
    : map_(std::move(map)),
      views_(std::move(views)),
      passed_(std::move(passed)),
      gate_(gate),
      arrays_(std::make_shared<BoundArrays>(views_, map_.trainer().size())) {}

absl::StatusOr<std::unique_ptr<MapSource>> MapSource::Create(WeightMap map,
                                                             absl::Span<const TrainerArray> arrays,
                                                             const Checkpoint* source,
                                                             const StepGate* gate) {
  WS_ASSIGN_OR_RETURN(const std::vector<TensorView> views, MatchArrays(map, arrays));
  WS_ASSIGN_OR_RETURN(std::unique_ptr<MapSource> made,
                      CreateFrom(std::move(map), views, source, gate));
  made->arrays_->Bind(std::nullopt, views);
  return made;
}

absl::StatusOr<std::unique_ptr<MapSource>> MapSource::CreateUnbound(
    WeightMap map, absl::Span<const ArraySpec> specs, const Checkpoint* source,
    const StepGate* gate) {
  WS_ASSIGN_OR_RETURN(std::vector<TensorView> views, MatchSpecs(map, specs));
  return CreateFrom(std::move(map), std::move(views), source, gate);
}

absl::StatusOr<std::unique_ptr<MapSource>> MapSource::CreateFrom(WeightMap map,
                                                                 std::vector<TensorView> views,
                                                                 const Checkpoint* source,
                                                                 const StepGate* gate) {
  if (gate == nullptr) return absl::InvalidArgumentError("the source has no StepGate");
  std::vector<DType> dtypes;
  for (const TensorView& view : views) dtypes.push_back(view.dtype());
  WS_RETURN_IF_ERROR(CheckConversions(map, dtypes));
  WS_ASSIGN_OR_RETURN(const std::vector<const NamedTensor*> found, FindPassed(map, source));
  std::vector<int> passed;
  for (const NamedTensor* tensor : found) {
    passed.push_back(tensor == nullptr ? -1 : static_cast<int>(views.size()));
    if (tensor != nullptr) views.push_back(tensor->tensor);
  }
  return std::unique_ptr<MapSource>(
      new MapSource(std::move(map), std::move(views), std::move(passed), gate));
}

absl::Status MapSource::Bind(Version version, absl::Span<const TrainerArray> arrays) {
  Release();
  WS_ASSIGN_OR_RETURN(const std::vector<TensorView> views, MatchArrays(map_, arrays));
  Differences other("of another shape, dtype or strides than the source was created for");
  for (size_t i = 0; i < views.size(); ++i) {
    if (!SameLayout(views[i], views_[i])) other.Add(map_.trainer()[i].name);
  }
  if (!other.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the trainer's arrays of version ", version,
                                                   ": ", other.ToString(),
                                                   "; create another source for them"));
  }
  arrays_->Bind(version, views);
  return absl::OkStatus();
}

void MapSource::Release() { arrays_->Release(); }

absl::Status MapSource::UseSnapshots() { return arrays_->UseSnapshots(); }

absl::StatusOr<CopyProgram> MapSource::CompileCopies(absl::Span<const Bucket> buckets) const {
  CopyProgram copies(copy_options_);
  for (const Bucket& bucket : buckets) {
    copies.StartBucket();
    for (const Piece& piece : bucket.pieces) {
      WS_RETURN_IF_ERROR(CheckPiece(piece, bucket, info()));
      const int passed = passed_[static_cast<size_t>(piece.tensor)];
      if (passed >= 0) {
        copies.Append(passed, views_[static_cast<size_t>(passed)], piece.box, piece.dst);
        continue;
      }
      for (const WeightMap::MappedRegion& mapped : map_.regions(piece.tensor)) {
        const TensorView& view = views_[static_cast<size_t>(mapped.trainer)];
        WS_RETURN_IF_ERROR(AppendRegion(mapped.region,
                                        {mapped.trainer, view.dtype(), view.strides()}, piece.box,
                                        info()[piece.tensor].dtype, piece.dst, copies));
      }
    }
  }
  return copies;
}

absl::StatusOr<std::unique_ptr<Program>> MapSource::Compile(absl::Span<const Bucket> buckets) {
  WS_ASSIGN_OR_RETURN(CopyProgram copies, CompileCopies(buckets));
  return MakeBucketProgram(std::move(copies), arrays_, buckets, gate_);
}

// Element by element from the map's definition, without the program.
absl::StatusOr<base::Digest128> MapSource::ReferenceDigest(int tensor) const {
  if (tensor < 0 || tensor >= info().size()) {
    return absl::InvalidArgumentError(absl::StrCat("no tensor ", tensor, " of ", info().size()));
  }
  WS_ASSIGN_OR_RETURN(const auto bases, arrays_->bases());
  const TensorSpec& spec = info()[tensor];
  const int passed = passed_[static_cast<size_t>(tensor)];
  if (passed >= 0) return TensorDigest(spec.name, views_[static_cast<size_t>(passed)]);

  std::vector<RegionReader> readers;
  for (const WeightMap::MappedRegion& mapped : map_.regions(tensor)) {
    const TensorView& view = views_[static_cast<size_t>(mapped.trainer)];
    WS_ASSIGN_OR_RETURN(const Conversion conversion, ConversionBetween(view.dtype(), spec.dtype));
    readers.emplace_back(mapped.region, spec.shape, view,
                         bases[static_cast<size_t>(mapped.trainer)], conversion);
  }
  const int64_t element = StorageElementBytes(spec.dtype);
  if (readers.size() == 1) {  // all of the tensor, so in its order
    return TensorDigest(spec.name, spec.dtype, spec.shape,
                        [&](int64_t begin, int64_t end, std::byte* dst) {
                          for (int64_t i = begin; i < end; ++i, dst += element) {
                            readers[0].Read(dst);
                          }
                        });
  }
  std::vector<std::byte> bytes(static_cast<size_t>(spec.bytes()));
  for (RegionReader& reader : readers) {
    for (int64_t i = 0; i < reader.num_elements(); ++i) {
      reader.Read(bytes.data() + reader.place() * element);
    }
  }
  return TensorDigest(spec.name, TensorView::Contiguous(bytes.data(), spec.dtype, spec.shape));
}

}  // namespace weight_sync::refit
