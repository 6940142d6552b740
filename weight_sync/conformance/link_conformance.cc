// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/conformance/link_conformance.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/log/absl_check.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "fakes/parameters.h"
#include "gmock/gmock.h"
#include "refit/hf_source.h"
#include "refit/packing/packer.h"

namespace weight_sync {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Minutes(2);     // nothing that succeeds comes near it
constexpr absl::Duration kAtOnce = absl::Seconds(30);  // did not wait for a deadline

refit::RefitInfo Info(std::vector<refit::TensorSpec> specs) {
  auto info = refit::RefitInfo::Create(std::move(specs));
  ABSL_CHECK_OK(info);
  return *std::move(info);
}

fakes::Parameters Seeded(const refit::RefitInfo& info, uint64_t seed) {
  auto parameters = fakes::Parameters::Create(info);
  ABSL_CHECK_OK(parameters);
  parameters->FillSeeded(seed);
  return *std::move(parameters);
}

// Every dtype, scalars, tensors of no elements, odd sizes, some larger than a slot.
refit::RefitInfo RandomInfo(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<refit::TensorSpec> specs;
  const size_t count = 1 + random() % 30;
  for (size_t i = 0; i < count; ++i) {
    const refit::DType dtype = refit::kAllDTypes[random() % refit::kAllDTypes.size()];
    std::vector<int64_t> dims(random() % 4);
    for (int64_t& dim : dims) {
      dim = random() % 15 == 0 ? 0 : 1 + static_cast<int64_t>(random() % 40);
    }
    // Elements of less than a byte fill whole bytes.
    if (refit::IsSubByte(dtype)) dims.push_back(4);
    auto shape = refit::Shape::Create(dims);
    ABSL_CHECK_OK(shape);
    specs.push_back({absl::StrCat("tensor.", i), *shape, dtype});
  }
  return Info(std::move(specs));
}

// A table, and what it was told. Holds its caller to the contract of WeightReceiver.
class TableReceiver : public WeightReceiver {
 public:
  explicit TableReceiver(const refit::RefitInfo& info) : table_(Seeded(info, 999)) {}
  ~TableReceiver() override { EXPECT_FALSE(open_) << "an update was neither ended nor aborted"; }

  const refit::RefitInfo& expected() const override { return table_.info(); }

  absl::Status BeginUpdate(refit::Version version) override {
    absl::MutexLock lock(&mutex_);
    EXPECT_FALSE(open_) << "an update begins before the one before was ended or aborted";
    if (!fail_begin.ok()) return std::exchange(fail_begin, absl::OkStatus());
    calls_.push_back(absl::StrCat("begin ", version));
    open_ = true;
    loads_ = 0;
    return absl::OkStatus();
  }

  absl::Status Load(int tensor, const refit::Box& box, absl::Span<const std::byte> bytes) override {
    {
      absl::MutexLock lock(&mutex_);
      EXPECT_TRUE(open_) << "a load outside an update";
      if (loads_++ == fail_load_at && !fail_load.ok()) {
        return std::exchange(fail_load, absl::OkStatus());
      }
    }
    if (block_load != nullptr) {
      loading.Notify();
      std::exchange(block_load, nullptr)->WaitForNotification();
    }
    refit::StoreBox(bytes.data(), box, table_.view(tensor));
    return absl::OkStatus();
  }

  absl::Status EndUpdate(refit::Version version) override {
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(open_);
    if (!fail_end.ok()) return std::exchange(fail_end, absl::OkStatus());
    calls_.push_back(absl::StrCat("end ", version));
    return absl::OkStatus();
  }

  void AbortUpdate(const absl::Status& why) override {
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(open_) << "an abort outside an update";
    EXPECT_FALSE(why.ok());
    calls_.push_back("abort");
    open_ = false;
  }

  std::vector<std::string> TakeCalls() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(calls_, {});
  }
  void AwaitAbort() {
    const auto aborted = [this] { return !calls_.empty() && calls_.back() == "abort"; };
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&aborted), kLong));
  }

  // By name: the order may differ. Only after the far end has answered.
  absl::Status Equals(const fakes::Parameters& sent) const {
    for (int t = 0; t < sent.info().size(); ++t) {
      const std::string& name = sent.info()[t].name;
      const refit::TensorView expected = sent.view(t);
      const refit::TensorView& actual = table_.view(*table_.info().Find(name));
      if (expected.num_bytes() != actual.num_bytes() ||
          (expected.num_bytes() > 0 &&
           std::memcmp(expected.data(), actual.data(), static_cast<size_t>(expected.num_bytes())) !=
               0)) {
        return absl::DataLossError(absl::StrCat("'", name, "' is not what was sent"));
      }
    }
    return absl::OkStatus();
  }

  // What goes wrong, once each. Set while no update runs.
  absl::Status fail_begin, fail_load, fail_end;
  int64_t fail_load_at = 0;
  absl::Notification* block_load = nullptr;  // the first load waits for it
  absl::Notification loading;                // the first load has begun

 private:
  fakes::Parameters table_;
  absl::Mutex mutex_;
  std::vector<std::string> calls_;
  int64_t loads_ = 0;
  bool open_ = false;
};

// A trainer with a link: the driver's calls one by one.
class Sender {
 public:
  Sender(Link* link, const fakes::Parameters* parameters) : link_(link) {
    auto source = refit::HfSource::Create(parameters->AsHf(), &gate_);
    ABSL_CHECK_OK(source);
    source_ = *std::move(source);
  }

  absl::Status Hello() {
    WS_ASSIGN_OR_RETURN(const refit::Geometry geometry, link_->Hello(source_->info(), scope_));
    WS_ASSIGN_OR_RETURN(buckets_, refit::Pack(source_->info(), geometry));
    WS_ASSIGN_OR_RETURN(program_, source_->Compile(buckets_));
    return absl::OkStatus();
  }

  absl::Status Begin(refit::Version version, bool digests = true) {
    digests_.assign(digests ? buckets_.size() : 0, {});
    return link_->Begin({version, buckets(), refit::PlanDigest(buckets_), digests}, scope_);
  }

  absl::Status SendBucket(int64_t bucket, const base::CancelScope& scope) {
    WS_ASSIGN_OR_RETURN(const refit::DeviceSpan slot, link_->Acquire(bucket, scope));
    const size_t b = static_cast<size_t>(bucket);
    const int64_t used = buckets_[b].bytes;
    if (slot.bytes < used) return absl::InternalError("the slot is smaller than the bucket");
    WS_ASSIGN_OR_RETURN(const refit::Event filled,
                        program_->Fill(static_cast<int>(bucket), slot, stream_));
    if (!digests_.empty()) digests_[b] = base::DigestOf(slot.data, static_cast<size_t>(used));
    if (bucket == corrupt_bucket) slot.data[used / 2] ^= std::byte{0x10};
    return link_->Submit(bucket, used, filled, scope);
  }

  absl::Status SendBuckets(int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) WS_RETURN_IF_ERROR(SendBucket(b, scope_));
    return absl::OkStatus();
  }

  absl::StatusOr<Receipt> Commit() { return Commit(scope_); }
  absl::StatusOr<Receipt> Commit(const base::CancelScope& scope) {
    return link_->Commit(digests_, scope);
  }

  absl::Status Abort(const absl::Status& why) { return link_->Abort(why, scope_); }

  // A whole transfer; a failed one is aborted and returns what the driver would make of it.
  absl::Status Sync(refit::Version version, bool digests = true) {
    WS_RETURN_IF_ERROR(Begin(version, digests));
    absl::Status status = SendBuckets(0, buckets());
    if (status.ok()) {
      const absl::StatusOr<Receipt> receipt = Commit();
      status = receipt.status();
      if (status.ok()) {
        EXPECT_EQ(receipt->tensors, source_->info().size());
        EXPECT_EQ(receipt->buckets, buckets());
        EXPECT_EQ(receipt->bytes, source_->info().total_bytes());
        return status;
      }
    }
    const absl::Status far_end = Abort(status);
    return absl::IsAborted(status) && !far_end.ok() ? far_end : status;
  }

  int64_t buckets() const { return static_cast<int64_t>(buckets_.size()); }

  int64_t corrupt_bucket = -1;

 private:
  Link* const link_;
  refit::StepGate gate_;
  std::unique_ptr<refit::HfSource> source_;
  std::vector<refit::Bucket> buckets_;
  std::unique_ptr<refit::Program> program_;
  std::vector<base::Digest128> digests_;
  refit::Stream stream_ = refit::Stream::Host();
  base::CancelScope scope_{base::Deadline::After(kLong)};
};

// A trainer and an engine that hold `info`, connected.
struct Pair {
  Pair(const LinkConformanceParams& params, const refit::RefitInfo& info,
       const LinkSettings& settings = {})
      : Pair(params, info, info, settings) {}
  Pair(const LinkConformanceParams& params, const refit::RefitInfo& trainer,
       const refit::RefitInfo& engine, const LinkSettings& settings)
      : parameters(Seeded(trainer, 1)),
        receiver(engine),
        ends(params.make(&receiver, settings)),
        sender(ends.link.get(), &parameters) {}

  fakes::Parameters parameters;
  TableReceiver receiver;
  LinkAndFarEnd ends;
  Sender sender;
};

// Ten buckets of 4,096 bytes, more than twice a ring.
refit::RefitInfo TenBuckets() {
  return Info({{"first", {3, 1000}, refit::DType::kF32},
               {"second", {6000}, refit::DType::kBF16},
               {"last", {4096}, refit::DType::kF32}});
}

TEST_P(LinkConformanceTest, RandomTensorsArriveByteForByte) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    LinkSettings settings;
    settings.slots = 1 + static_cast<int32_t>(seed % 5);
    settings.slot_bytes = int64_t{64} << (seed % 8);
    Pair pair(GetParam(), RandomInfo(seed), settings);
    ASSERT_THAT(pair.sender.Hello(), IsOk()) << seed;
    ASSERT_THAT(pair.sender.Sync(1, seed % 2 == 0), IsOk()) << seed;
    EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk()) << seed;
    EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre("begin 1", "end 1"));
    EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
  }
}

TEST_P(LinkConformanceTest, EveryDtypeArrivesByteForByte) {
  std::vector<refit::TensorSpec> specs;
  for (const refit::DType dtype : refit::kAllDTypes) {
    specs.push_back({absl::StrCat("t.", refit::SafetensorsName(dtype)), {7, 12}, dtype});
  }
  Pair pair(GetParam(), Info(std::move(specs)), {2, 128});
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  ASSERT_THAT(pair.sender.Sync(1), IsOk());
  EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
}

TEST_P(LinkConformanceTest, ScalarsAndTensorsOfNoElementsArrive) {
  for (const auto& specs : std::vector<std::vector<refit::TensorSpec>>{
           {{"scalar", {}, refit::DType::kF32}},
           {{"empty", {0}, refit::DType::kF32}},
           {{"empty", {5, 0, 3}, refit::DType::kBF16}, {"also", {0, 0}, refit::DType::kF4}},
           {{"empty", {0}, refit::DType::kU8},
            {"one", {}, refit::DType::kU8},
            {"e", {0}, refit::DType::kF64}}}) {
    Pair pair(GetParam(), Info(specs));
    ASSERT_THAT(pair.sender.Hello(), IsOk());
    ASSERT_THAT(pair.sender.Sync(1), IsOk());
    EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
    EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre("begin 1", "end 1"));
    EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
  }
}

TEST_P(LinkConformanceTest, ATensorLargerThanASlotAndThanTheWholeRingArrives) {
  Pair pair(GetParam(), Info({{"large", {257, 1031}, refit::DType::kF32}}), {2, 4096});
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  ASSERT_THAT(pair.sender.Sync(1), IsOk());
  EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
}

TEST_P(LinkConformanceTest, TwentyThousandTinyTensorsArrive) {
  std::vector<refit::TensorSpec> specs;
  for (int i = 0; i < 20'000; ++i) {
    specs.push_back(
        {absl::StrCat("model.layers.", i, ".weight"), {1 + i % 17}, refit::DType::kBF16});
  }
  Pair pair(GetParam(), Info(std::move(specs)), {4, 64 << 10});
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  ASSERT_THAT(pair.sender.Sync(1), IsOk());
  EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
}

TEST_P(LinkConformanceTest, TheEnginesOrderMayDiffer) {
  std::vector<refit::TensorSpec> specs;
  for (int i = 0; i < 50; ++i) {
    specs.push_back({absl::StrCat("t", i), {3, 1 + i}, refit::DType::kF32});
  }
  const refit::RefitInfo trainer = Info(specs);
  std::shuffle(specs.begin(), specs.end(), std::mt19937(3));
  Pair pair(GetParam(), trainer, Info(specs), {});
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  ASSERT_THAT(pair.sender.Sync(1), IsOk());
  EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
}

TEST_P(LinkConformanceTest, UpdatesFollowOneAnotherWithAndWithoutDigests) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  ASSERT_EQ(pair.sender.buckets(), 10);
  for (int version = 1; version <= 6; ++version) {
    ASSERT_THAT(pair.sender.Sync(version, version % 2 == 0), IsOk());
    EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
    EXPECT_THAT(pair.receiver.TakeCalls(),
                ElementsAre(absl::StrCat("begin ", version), absl::StrCat("end ", version)));
    EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
    pair.receiver.TakeCalls();
    pair.parameters.Perturb(1, version);
  }
}

TEST_P(LinkConformanceTest, ACorruptedBucketIsDataLossAndNamed) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  for (const int64_t bucket : {0, 4, 9}) {
    pair.sender.corrupt_bucket = bucket;
    const char* tensor = bucket == 0 ? "'first'" : bucket == 4 ? "'second'" : "'last'";
    EXPECT_THAT(pair.sender.Sync(1),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("1 of 10 buckets"), HasSubstr(absl::StrCat(": ", bucket)),
                               HasSubstr(tensor))));
    EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre("begin 1", "abort"));
  }
  pair.sender.corrupt_bucket = -1;
  EXPECT_THAT(pair.sender.Sync(2), IsOk());
  EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
}

TEST_P(LinkConformanceTest, WithoutDigestsACorruptedBucketIsLeftToOthersToFind) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  pair.sender.corrupt_bucket = 4;
  EXPECT_THAT(pair.sender.Sync(1, /*digests=*/false), IsOk());
  EXPECT_THAT(pair.receiver.Equals(pair.parameters), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(pair.sender.Abort(absl::DataLossError("found")), IsOk());
  EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre("begin 1", "end 1", "abort"));
}

TEST_P(LinkConformanceTest, AReceiverThatFailsAtItsBeginIsHeard) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  pair.receiver.fail_begin = absl::FailedPreconditionError("the engine is not paused");
  EXPECT_THAT(pair.sender.Begin(1), StatusIs(absl::StatusCode::kFailedPrecondition,
                                             HasSubstr("the engine is not paused")));
  EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre());
  EXPECT_THAT(pair.sender.Sync(2), IsOk());
  EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
}

TEST_P(LinkConformanceTest, AReceiverThatFailsAtALoadIsHeardWithItsTensorAndItsText) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  // Before bucket 1, between two, and at the last before the answer.
  for (const int64_t load : {0, 3, 4, 11}) {
    pair.receiver.fail_load = absl::ResourceExhaustedError("CUDA out of \"memory\"");
    pair.receiver.fail_load_at = load;
    const absl::Time start = absl::Now();
    EXPECT_THAT(
        pair.sender.Sync(1),
        StatusIs(absl::StatusCode::kResourceExhausted,
                 AllOf(HasSubstr("CUDA out of \"memory\""), HasSubstr("bucket "),
                       AnyOf(HasSubstr("'first'"), HasSubstr("'second'"), HasSubstr("'last'")))))
        << load;
    EXPECT_LT(absl::Now() - start, kAtOnce);
    EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre("begin 1", "abort"));
    ASSERT_THAT(pair.sender.Sync(2), IsOk());
    EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
    EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
    pair.receiver.TakeCalls();
    pair.parameters.Perturb(1, load);
  }
}

TEST_P(LinkConformanceTest, AReceiverThatFailsAtItsEndIsHeard) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  pair.receiver.fail_end = absl::InternalError("re-blocking failed");
  EXPECT_THAT(pair.sender.Sync(1),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("re-blocking failed")));
  EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre("begin 1", "abort"));
  EXPECT_THAT(pair.sender.Sync(2), IsOk());
  EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
}

TEST_P(LinkConformanceTest, AcquireAfterTheReceiverFailedIsAborted) {
  Pair pair(GetParam(), Info({{"long", {64 << 10}, refit::DType::kU8}}), {2, 64});
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  pair.receiver.fail_load = absl::InternalError("the loader's own text");
  ASSERT_THAT(pair.sender.Begin(1), IsOk());
  EXPECT_THAT(pair.sender.SendBuckets(0, pair.sender.buckets()),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("the far end failed")),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("the loader's own text")));
  // What it had run into was of that update.
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("once more")), IsOk());
}

TEST_P(LinkConformanceTest, AfterAnAbortAtAnyPointAFullSyncWorks) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  int version = 0;
  for (const int64_t sent : {0, 1, 3, 4, 7, 10}) {
    ASSERT_THAT(pair.sender.Begin(++version), IsOk());
    ASSERT_THAT(pair.sender.SendBuckets(0, sent), IsOk());
    EXPECT_THAT(pair.sender.Abort(absl::AbortedError("a test")), IsOk()) << sent;
    EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre(absl::StrCat("begin ", version), "abort"));
    pair.parameters.Perturb(1, version);
    ASSERT_THAT(pair.sender.Sync(++version), IsOk()) << sent;
    EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk()) << sent;
    // Also after everything was loaded: the trainer may still find a reason not to publish.
    EXPECT_THAT(pair.sender.Abort(absl::AbortedError("an optimizer step overlapped")), IsOk());
    EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre(absl::StrCat("begin ", version),
                                                       absl::StrCat("end ", version), "abort"));
  }
}

TEST_P(LinkConformanceTest, AnAbortWithAnAcquiredSlotLosesIt) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  const base::CancelScope scope(base::Deadline::After(kLong));
  ASSERT_THAT(pair.sender.Begin(1), IsOk());
  ASSERT_THAT(pair.ends.link->Acquire(0, scope), IsOk());
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("the fill failed")), IsOk());
  ASSERT_THAT(pair.sender.Sync(2), IsOk());
  EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
}

TEST_P(LinkConformanceTest, AnAbortWithoutAnUpdateIsHarmless) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("nothing to abort")), IsOk());
  EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre());
}

TEST_P(LinkConformanceTest, ASecondBeginEndsTheUpdateBeforeIt) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  ASSERT_THAT(pair.sender.Begin(1), IsOk());
  ASSERT_THAT(pair.sender.SendBuckets(0, 2), IsOk());
  ASSERT_THAT(pair.sender.Sync(2), IsOk());
  EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
  EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre("begin 1", "abort", "begin 2", "end 2"));
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
}

TEST_P(LinkConformanceTest, ASecondCommitIsRefused) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  ASSERT_THAT(pair.sender.Sync(1), IsOk());
  EXPECT_THAT(pair.sender.Commit(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
}

TEST_P(LinkConformanceTest, ACommitBeforeEveryBucketWasSentEndsByItsDeadline) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  ASSERT_THAT(pair.sender.Begin(1), IsOk());
  ASSERT_THAT(pair.sender.SendBuckets(0, 9), IsOk());
  const base::CancelScope soon(base::Deadline::After(absl::Milliseconds(50)));
  EXPECT_THAT(pair.sender.Commit(soon), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(pair.sender.Abort(absl::DeadlineExceededError("a test")), IsOk());
  EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre("begin 1", "abort"));
}

TEST_P(LinkConformanceTest, AReceiverThatHangsEndsAnAcquireByItsDeadline) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  absl::Notification go_on;
  pair.receiver.block_load = &go_on;
  ASSERT_THAT(pair.sender.Begin(1), IsOk());
  const base::CancelScope soon(base::Deadline::After(absl::Milliseconds(50)));
  absl::Status status;
  for (int64_t b = 0; b < pair.sender.buckets() && status.ok(); ++b) {
    status = pair.sender.SendBucket(b, soon);
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  go_on.Notify();
  EXPECT_THAT(pair.sender.Abort(status), IsOk());
  ASSERT_THAT(pair.sender.Sync(2), IsOk());
  EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
}

TEST_P(LinkConformanceTest, ACancellationEndsAnAcquireWithItsCause) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  absl::Notification go_on;
  pair.receiver.block_load = &go_on;
  ASSERT_THAT(pair.sender.Begin(1), IsOk());
  base::CancelScope scope(base::Deadline::After(kLong));
  std::thread cancelling([&] {
    pair.receiver.loading.WaitForNotification();
    scope.Cancel(absl::InternalError("the engine side failed"));
  });
  absl::Status status;
  for (int64_t b = 0; b < pair.sender.buckets() && status.ok(); ++b) {
    status = pair.sender.SendBucket(b, scope);
  }
  cancelling.join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("the engine side failed")));
  go_on.Notify();
  EXPECT_THAT(pair.sender.Abort(status), IsOk());
}

TEST_P(LinkConformanceTest, ACancellationEndsACommitWithItsCause) {
  Pair pair(GetParam(), Info({{"small", {16}, refit::DType::kF32}}));
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  absl::Notification go_on;
  pair.receiver.block_load = &go_on;
  ASSERT_THAT(pair.sender.Begin(1), IsOk());
  ASSERT_THAT(pair.sender.SendBuckets(0, 1), IsOk());
  base::CancelScope scope(base::Deadline::After(kLong));
  std::thread cancelling([&] {
    pair.receiver.loading.WaitForNotification();
    scope.Cancel(absl::AbortedError("the synchronizer was shut down"));
  });
  EXPECT_THAT(pair.sender.Commit(scope),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("shut down")));
  cancelling.join();
  go_on.Notify();
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("shut down")), IsOk());
  ASSERT_THAT(pair.sender.Sync(2), IsOk());
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
}

TEST_P(LinkConformanceTest, NothingWorksBeforeHello) {
  Pair pair(GetParam(), TenBuckets());
  const base::CancelScope scope(base::Deadline::After(kLong));
  EXPECT_FALSE(pair.ends.link->connected());
  EXPECT_THAT(pair.sender.Begin(1), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(pair.ends.link->Acquire(0, scope), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(pair.sender.Commit(), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  EXPECT_TRUE(pair.ends.link->connected());
}

TEST_P(LinkConformanceTest, AnotherNameShapeOrDtypeIsRefusedByNameBeforeAnyByte) {
  const std::vector<refit::TensorSpec> good = {{"a", {4, 8}, refit::DType::kBF16},
                                               {"b", {5}, refit::DType::kF32}};
  std::vector<refit::TensorSpec> name = good, shape = good, dtype = good, more = good;
  name[1].name = "model.b";
  shape[0].shape = {8, 4};
  dtype[0].dtype = refit::DType::kF16;
  more.push_back({"mtp.lm_head", {1}, refit::DType::kF32});
  const struct {
    std::vector<refit::TensorSpec> trainer;
    std::vector<const char*> named;
  } cases[] = {{name, {"model.b", "b"}},
               {shape, {"a (trainer [8, 4], engine [4, 8])"}},
               {dtype, {"a (trainer F16, engine BF16)"}},
               {more, {"only at the trainer: mtp.lm_head"}}};
  for (const auto& one : cases) {
    Pair pair(GetParam(), Info(one.trainer), Info(good), {});
    const absl::Time start = absl::Now();
    const absl::Status status = pair.sender.Hello();
    EXPECT_LT(absl::Now() - start, kAtOnce);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
    for (const char* named : one.named) EXPECT_THAT(status.message(), HasSubstr(named));
    EXPECT_FALSE(pair.ends.link->connected());
    EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre());
    // The link is good for a trainer that holds the right tensors.
    const fakes::Parameters right = Seeded(Info(good), 2);
    Sender sender(pair.ends.link.get(), &right);
    ASSERT_THAT(sender.Hello(), IsOk());
    EXPECT_THAT(sender.Sync(1), IsOk());
    EXPECT_THAT(pair.receiver.Equals(right), IsOk());
    EXPECT_THAT(sender.Abort(absl::AbortedError("unpublished")), IsOk());
  }
}

TEST_P(LinkConformanceTest, AnotherGeometryIsRefusedAtOnceWithBothNumbers) {
  Pair pair(GetParam(), TenBuckets(), {4, 4096, /*far_slot_bytes=*/1024});
  const absl::Time start = absl::Now();
  EXPECT_THAT(pair.sender.Hello(), StatusIs(absl::StatusCode::kInvalidArgument,
                                            AllOf(HasSubstr("4096"), HasSubstr("1024"))));
  EXPECT_LT(absl::Now() - start, kAtOnce);
  EXPECT_FALSE(pair.ends.link->connected());
}

TEST_P(LinkConformanceTest, ASecondHelloBeginsAnewAndEndsAnOpenUpdate) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  ASSERT_THAT(pair.sender.Begin(1), IsOk());
  ASSERT_THAT(pair.sender.SendBuckets(0, 3), IsOk());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre("begin 1", "abort"));
  ASSERT_THAT(pair.sender.Sync(2), IsOk());
  EXPECT_THAT(pair.receiver.Equals(pair.parameters), IsOk());
  EXPECT_THAT(pair.sender.Abort(absl::AbortedError("unpublished")), IsOk());
}

TEST_P(LinkConformanceTest, TheEndOfALinkAbortsItsUpdate) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  ASSERT_THAT(pair.sender.Begin(1), IsOk());
  ASSERT_THAT(pair.sender.SendBuckets(0, 3), IsOk());
  pair.ends.link.reset();
  pair.receiver.AwaitAbort();
}

TEST_P(LinkConformanceTest, TheEndOfTheFarEndAbortsItsUpdate) {
  Pair pair(GetParam(), TenBuckets());
  ASSERT_THAT(pair.sender.Hello(), IsOk());
  ASSERT_THAT(pair.sender.Begin(1), IsOk());
  ASSERT_THAT(pair.sender.SendBuckets(0, 3), IsOk());
  const absl::Time start = absl::Now();
  pair.ends.far_end.reset();
  EXPECT_LT(absl::Now() - start, kAtOnce);
  EXPECT_THAT(pair.receiver.TakeCalls(), ElementsAre("begin 1", "abort"));
}

}  // namespace
}  // namespace weight_sync
