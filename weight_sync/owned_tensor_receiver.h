// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// OwnedTensorReceiver: gives an engine's loader whole tensors in memory of their own, which it may
// keep as long as it likes, for loaders that wait until a layer is complete. (Views of a reused
// slot would be overwritten under them: wrong weights without an error.)
//
// Extra memory: the tensor being assembled, plus whatever the loader keeps.
// The engine implements Loader; the adapter is the WeightReceiver.
//
//   OwnedTensorReceiver receiver(&my_loader);
//   IpcConsumer consumer(&receiver, {});

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_OWNED_TENSOR_RECEIVER_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_OWNED_TENSOR_RECEIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "weight_sync/weight_receiver.h"

namespace weight_sync {

class OwnedTensorReceiver : public WeightReceiver {
 public:
  // As WeightReceiver, with whole tensors instead of pieces.
  class Loader {
   public:
    virtual ~Loader() = default;
    virtual const refit::RefitInfo& expected() const = 0;
    virtual absl::Status BeginUpdate(refit::Version version) = 0;
    // The tensor's row-major bytes, now the loader's. Tensors of no elements come with none.
    virtual absl::Status LoadTensor(int tensor, std::unique_ptr<std::byte[]> bytes) = 0;
    virtual absl::Status EndUpdate(refit::Version version) = 0;
    virtual void AbortUpdate(const absl::Status& why) = 0;
  };

  explicit OwnedTensorReceiver(Loader* loader) : loader_(loader) {}

  const refit::RefitInfo& expected() const override { return loader_->expected(); }
  absl::Status BeginUpdate(refit::Version version) override;
  absl::Status Load(int tensor, const refit::Box& box, absl::Span<const std::byte> bytes) override;
  absl::Status EndUpdate(refit::Version version) override;
  void AbortUpdate(const absl::Status& why) override;

 private:
  Loader* const loader_;
  // The tensor being assembled: -1 for none.
  int current_ = -1;
  std::unique_ptr<std::byte[]> bytes_;
  int64_t missing_ = 0;
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_OWNED_TENSOR_RECEIVER_H_
