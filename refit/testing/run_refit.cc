// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/testing/run_refit.h"

#include <memory>

#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "refit/device/device.h"
#include "refit/layout/box.h"
#include "refit/packing/bucket.h"
#include "refit/read_guard.h"
#include "refit/refit_info.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit::testing {

absl::StatusOr<std::vector<std::vector<std::byte>>> FillTable(const RefitInfo& info,
                                                              Program& program,
                                                              absl::Span<const Bucket> buckets,
                                                              int64_t slot_bytes) {
  constexpr std::byte kUnwritten{0xa5};
  std::vector<std::vector<std::byte>> table;
  for (const TensorSpec& tensor : info.tensors()) {
    table.emplace_back(static_cast<size_t>(tensor.bytes()), kUnwritten);
  }
  Stream stream = Stream::Host();
  std::vector<std::byte> slot(static_cast<size_t>(slot_bytes), kUnwritten);
  for (size_t b = 0; b < buckets.size(); ++b) {
    WS_RETURN_IF_ERROR(
        program.Fill(static_cast<int>(b), {slot.data(), slot_bytes, Device::Host()}, stream)
            .status());
    for (const Piece& piece : buckets[b].pieces) {
      const TensorSpec& tensor = info[piece.tensor];
      StoreBox(slot.data() + piece.dst, piece.box,
               MutableTensorView::Contiguous(table[static_cast<size_t>(piece.tensor)].data(),
                                             tensor.dtype, tensor.shape));
    }
  }
  return table;
}

absl::StatusOr<std::vector<std::vector<std::byte>>> RunRefit(RefitSource& source,
                                                             const Geometry& geometry) {
  WS_ASSIGN_OR_RETURN(const std::vector<Bucket> buckets, Pack(source.info(), geometry));
  WS_ASSIGN_OR_RETURN(const std::unique_ptr<Program> program, source.Compile(buckets));
  const base::CancelScope scope(base::Deadline::After(absl::Seconds(60)));
  WS_ASSIGN_OR_RETURN(const ReadGuard guard, program->Begin(1, scope));
  WS_ASSIGN_OR_RETURN(auto table,
                      FillTable(source.info(), *program, buckets, geometry.bucket_bytes));
  WS_RETURN_IF_ERROR(guard.Unchanged());
  return table;
}

}  // namespace weight_sync::refit::testing
