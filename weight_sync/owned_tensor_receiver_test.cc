// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/owned_tensor_receiver.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "fakes/parameters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/hf_source.h"
#include "refit/packing/packer.h"
#include "refit/tensor_digest.h"
#include "weight_sync/deep_verification.h"

namespace {

// Bytes in arrays from operator new[], now and at most since ResetPeak(): a tensor of the receiver
// is one.
std::atomic<int64_t> live_array_bytes{0};
std::atomic<int64_t> peak_array_bytes{0};
constexpr size_t kHeader = alignof(std::max_align_t);

int64_t ResetPeak() {
  peak_array_bytes = live_array_bytes.load();
  return live_array_bytes;
}

}  // namespace

void* operator new[](size_t bytes) {
  char* const memory = static_cast<char*>(std::malloc(bytes + kHeader));
  if (memory == nullptr) std::abort();
  std::memcpy(memory, &bytes, sizeof(bytes));
  const int64_t live = live_array_bytes += static_cast<int64_t>(bytes);
  int64_t peak = peak_array_bytes;
  while (live > peak && !peak_array_bytes.compare_exchange_weak(peak, live)) {
  }
  return memory + kHeader;
}

void operator delete[](void* pointer) noexcept {
  if (pointer == nullptr) return;
  char* const memory = static_cast<char*>(pointer) - kHeader;
  size_t bytes;
  std::memcpy(&bytes, memory, sizeof(bytes));
  live_array_bytes -= static_cast<int64_t>(bytes);
  std::free(memory);
}

void operator delete[](void* pointer, size_t) noexcept { operator delete[](pointer); }

namespace weight_sync {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSlotBytes = 4096;

// A layer's q, k and v lie in three buckets and more each; the others are what tensors may be.
std::vector<refit::TensorSpec> Specs() {
  std::vector<refit::TensorSpec> specs = {{"scalar", {}, refit::DType::kF32},
                                          {"empty", {0, 4}, refit::DType::kBF16}};
  for (int layer = 0; layer < 4; ++layer) {
    for (const char* part : {"q", "k", "v"}) {
      specs.push_back({absl::StrCat("layer.", layer, ".", part), {61, 71}, refit::DType::kBF16});
    }
  }
  specs.push_back({"odd", {7}, refit::DType::kU8});
  return specs;
}

// Drives a receiver as a transport does: one slot for every bucket, overwritten as soon as the
// receiver returns.
class OwnedTensorReceiverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto info = refit::RefitInfo::Create(Specs());
    ASSERT_THAT(info, IsOk());
    auto parameters = fakes::Parameters::Create(*info);
    ASSERT_THAT(parameters, IsOk());
    parameters->FillSeeded(5);
    sent_ = std::make_unique<fakes::Parameters>(*std::move(parameters));
    auto source = refit::HfSource::Create(sent_->AsHf(), &gate_);
    ASSERT_THAT(source, IsOk());
    source_ = *std::move(source);
    auto buckets = refit::Pack(*info, {kSlotBytes});
    ASSERT_THAT(buckets, IsOk());
    buckets_ = *std::move(buckets);
    auto program = source_->Compile(buckets_);
    ASSERT_THAT(program, IsOk());
    program_ = *std::move(program);
  }

  absl::Status Deliver(WeightReceiver& receiver, int buckets) {
    refit::Stream stream = refit::Stream::Host();
    for (int b = 0; b < buckets; ++b) {
      auto filled = program_->Fill(b, {slot_, kSlotBytes, refit::Device::Host()}, stream);
      if (!filled.ok()) return filled.status();
      for (const refit::Piece& piece : buckets_[static_cast<size_t>(b)].pieces) {
        const absl::Status loaded = receiver.Load(
            piece.tensor, piece.box, {slot_ + piece.dst, static_cast<size_t>(piece.bytes)});
        if (!loaded.ok()) return loaded;
      }
      std::memset(slot_, 0xEE, kSlotBytes);
    }
    return absl::OkStatus();
  }
  absl::Status Deliver(WeightReceiver& receiver) {
    return Deliver(receiver, static_cast<int>(buckets_.size()));
  }

  refit::StepGate gate_;
  std::unique_ptr<fakes::Parameters> sent_;
  std::unique_ptr<refit::HfSource> source_;
  std::vector<refit::Bucket> buckets_;
  std::unique_ptr<refit::Program> program_;
  alignas(64) std::byte slot_[kSlotBytes];
};

// Waits until it has `hold` tensors before it takes them into its table.
class HoldingLoader : public OwnedTensorReceiver::Loader {
 public:
  HoldingLoader(const refit::RefitInfo& info, size_t hold) : info_(info), hold_(hold) {}

  const refit::RefitInfo& expected() const override { return info_; }
  absl::Status BeginUpdate(refit::Version version) override {
    calls.push_back(absl::StrCat("begin ", version));
    return absl::OkStatus();
  }
  absl::Status LoadTensor(int tensor, std::unique_ptr<std::byte[]> bytes) override {
    if (info_[tensor].name == fail_at) return absl::ResourceExhaustedError("no room");
    EXPECT_EQ(bytes == nullptr, info_[tensor].bytes() == 0) << info_[tensor].name;
    held_.emplace_back(tensor, std::move(bytes));
    held_bytes_ += info_[tensor].bytes();
    most_held_bytes = std::max(most_held_bytes, held_bytes_);
    if (held_.size() >= hold_) Take();
    return absl::OkStatus();
  }
  absl::Status EndUpdate(refit::Version version) override {
    Take();
    calls.push_back(absl::StrCat("end ", version));
    return absl::OkStatus();
  }
  void AbortUpdate(const absl::Status& why) override {
    held_.clear();
    calls.push_back(absl::StrCat("abort ", why.message()));
  }

  std::vector<NamedDigest> table;
  std::vector<std::string> calls;
  std::string fail_at;
  int64_t most_held_bytes = 0;

 private:
  void Take() {
    for (const auto& [tensor, bytes] : held_) {
      const refit::TensorSpec& spec = info_[tensor];
      table.push_back(
          {spec.name, refit::TensorDigest(spec.name, refit::TensorView::Contiguous(
                                                         bytes.get(), spec.dtype, spec.shape))});
    }
    held_.clear();
    held_bytes_ = 0;
  }

  const refit::RefitInfo info_;
  const size_t hold_;
  int64_t held_bytes_ = 0;
  std::vector<std::pair<int, std::unique_ptr<std::byte[]>>> held_;
};

TEST_F(OwnedTensorReceiverTest, TensorsThatALoaderKeepsStayRightAfterTheirSlotsAreReused) {
  // From one tensor at a time to everything at the end: the result does not depend on it.
  for (const size_t hold : {1, 3, 5, 1000}) {
    HoldingLoader loader(sent_->info(), hold);
    OwnedTensorReceiver receiver(&loader);
    ASSERT_THAT(receiver.BeginUpdate(4), IsOk());
    ASSERT_THAT(Deliver(receiver), IsOk());
    ASSERT_THAT(receiver.EndUpdate(4), IsOk());
    EXPECT_THAT(CompareTable(*source_, loader.table), IsOk()) << "held " << hold;
    EXPECT_THAT(loader.calls, ::testing::ElementsAre("begin 4", "end 4"));
  }
}

TEST_F(OwnedTensorReceiverTest, TakesTheAssembledTensorAndWhatTheLoaderKeepsAndNoMore) {
  int64_t largest = 0;
  for (const refit::TensorSpec& spec : sent_->info().tensors()) {
    largest = std::max(largest, spec.bytes());
  }
  ASSERT_GT(largest, 2 * kSlotBytes);
  for (const size_t hold : {1, 3}) {
    HoldingLoader loader(sent_->info(), hold);
    OwnedTensorReceiver receiver(&loader);
    ASSERT_THAT(receiver.BeginUpdate(1), IsOk());
    const int64_t before = ResetPeak();
    ASSERT_THAT(Deliver(receiver), IsOk());
    // The loader's count includes the tensor that was just assembled.
    EXPECT_LE(peak_array_bytes - before, loader.most_held_bytes) << "held " << hold;
    EXPECT_GE(peak_array_bytes - before, largest);
    EXPECT_LT(loader.most_held_bytes, sent_->info().total_bytes());
  }
}

// What OwnedTensorReceiver is there for: a loader that keeps views of what Load lends it.
class ViewKeepingReceiver : public WeightReceiver {
 public:
  explicit ViewKeepingReceiver(fakes::Parameters* table) : table_(table) {}
  const refit::RefitInfo& expected() const override { return table_->info(); }
  absl::Status BeginUpdate(refit::Version) override { return absl::OkStatus(); }
  absl::Status Load(int tensor, const refit::Box& box, absl::Span<const std::byte> bytes) override {
    kept_.push_back({tensor, box, bytes});
    return absl::OkStatus();
  }
  absl::Status EndUpdate(refit::Version) override {
    for (const Kept& kept : kept_) {
      refit::StoreBox(kept.bytes.data(), kept.box, table_->view(kept.tensor));
    }
    return absl::OkStatus();
  }
  void AbortUpdate(const absl::Status&) override {}

 private:
  struct Kept {
    int tensor;
    refit::Box box;
    absl::Span<const std::byte> bytes;
  };
  fakes::Parameters* const table_;
  std::vector<Kept> kept_;
};

TEST_F(OwnedTensorReceiverTest, ALoaderThatKeepsBorrowedViewsIsFoundByDeepVerification) {
  auto table = fakes::Parameters::Create(sent_->info());
  ASSERT_THAT(table, IsOk());
  ViewKeepingReceiver receiver(&*table);
  ASSERT_THAT(receiver.BeginUpdate(1), IsOk());
  ASSERT_THAT(Deliver(receiver), IsOk());
  ASSERT_THAT(receiver.EndUpdate(1), IsOk());  // it does not know
  std::vector<NamedDigest> digests;
  for (int t = 0; t < table->info().size(); ++t) {
    const std::string& name = table->info()[t].name;
    digests.push_back({name, refit::TensorDigest(name, table->view(t))});
  }
  EXPECT_THAT(CompareTable(*source_, digests),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("layer.0.q")));
}

TEST_F(OwnedTensorReceiverTest, AbortFreesTheHalfAssembledTensorAndTheNextUpdateIsWhole) {
  HoldingLoader loader(sent_->info(), 1);
  OwnedTensorReceiver receiver(&loader);
  ASSERT_THAT(receiver.BeginUpdate(1), IsOk());
  const int64_t before = ResetPeak();
  ASSERT_THAT(Deliver(receiver, 2), IsOk());
  EXPECT_GT(live_array_bytes, before);  // in the middle of a tensor
  receiver.AbortUpdate(absl::AbortedError("the trainer left"));
  EXPECT_EQ(live_array_bytes, before);
  loader.table.clear();
  ASSERT_THAT(receiver.BeginUpdate(2), IsOk());
  ASSERT_THAT(Deliver(receiver), IsOk());
  ASSERT_THAT(receiver.EndUpdate(2), IsOk());
  EXPECT_THAT(CompareTable(*source_, loader.table), IsOk());
  EXPECT_THAT(loader.calls,
              ::testing::ElementsAre("begin 1", "abort the trainer left", "begin 2", "end 2"));
}

TEST_F(OwnedTensorReceiverTest, AnUpdateThatEndsInTheMiddleOfATensorNamesIt) {
  HoldingLoader loader(sent_->info(), 1);
  OwnedTensorReceiver receiver(&loader);
  ASSERT_THAT(receiver.BeginUpdate(1), IsOk());
  ASSERT_THAT(Deliver(receiver, 2), IsOk());
  EXPECT_THAT(receiver.EndUpdate(1),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("'layer.0.q'")));
}

TEST_F(OwnedTensorReceiverTest, ATensorThatBeginsBeforeAnotherIsCompleteNamesBoth) {
  HoldingLoader loader(sent_->info(), 1);
  OwnedTensorReceiver receiver(&loader);
  ASSERT_THAT(receiver.BeginUpdate(1), IsOk());
  ASSERT_THAT(Deliver(receiver, 2), IsOk());
  const int odd = *sent_->info().Find("odd");
  EXPECT_THAT(
      receiver.Load(odd, refit::Box::Whole({7}), {slot_, 7}),
      StatusIs(absl::StatusCode::kInternal, AllOf(HasSubstr("'odd'"), HasSubstr("'layer.0.q'"))));
}

TEST_F(OwnedTensorReceiverTest, TheLoadersOwnErrorIsPassedOn) {
  HoldingLoader loader(sent_->info(), 1);
  loader.fail_at = "layer.1.k";
  OwnedTensorReceiver receiver(&loader);
  ASSERT_THAT(receiver.BeginUpdate(1), IsOk());
  EXPECT_THAT(Deliver(receiver), StatusIs(absl::StatusCode::kResourceExhausted, "no room"));
}

TEST_F(OwnedTensorReceiverTest, ALoaderThatFailsOnATensorWithoutElementsIsToldThatItIsOver) {
  HoldingLoader loader(sent_->info(), 1);
  loader.fail_at = "empty";
  OwnedTensorReceiver receiver(&loader);
  EXPECT_THAT(receiver.BeginUpdate(1), StatusIs(absl::StatusCode::kResourceExhausted,
                                                AllOf(HasSubstr("'empty'"), HasSubstr("no room"))));
  EXPECT_THAT(loader.calls, ::testing::ElementsAre("begin 1", "abort no room"));
}

}  // namespace
}  // namespace weight_sync
