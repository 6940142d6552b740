// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The driver against strict mocks: which calls it makes, in which order, and which it makes no more
// after a failure at each of them.

#include "weight_sync/sync_driver.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/log/check.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "fakes/checks_for_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/packing/packer.h"

namespace weight_sync {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Return;
using ::testing::Sequence;
using ::testing::StrictMock;

class MockLink : public Link {
 public:
  MOCK_METHOD(absl::StatusOr<refit::Geometry>, Hello,
              (const refit::RefitInfo&, const base::CancelScope&), (override));
  MOCK_METHOD(bool, connected, (), (const, override));
  MOCK_METHOD(absl::Status, Begin, (const TransferPlan&, const base::CancelScope&), (override));
  MOCK_METHOD(absl::StatusOr<refit::DeviceSpan>, Acquire, (int64_t, const base::CancelScope&),
              (override));
  MOCK_METHOD(absl::Status, Submit,
              (int64_t, int64_t, const refit::Event&, const base::CancelScope&), (override));
  MOCK_METHOD(absl::StatusOr<Receipt>, Commit,
              (absl::Span<const base::Digest128>, const base::CancelScope&), (override));
  MOCK_METHOD(absl::Status, Abort, (const absl::Status&, const base::CancelScope&), (override));
};

class MockGeneration : public Generation {
 public:
  MOCK_METHOD(absl::Status, Begin, (const UpdateOptions&, const base::CancelScope&), (override));
  MOCK_METHOD(absl::Status, Finish, (Version, const base::CancelScope&), (override));
  MOCK_METHOD(absl::Status, Resume, (const base::CancelScope&), (override));
  MOCK_METHOD(absl::Status, PrepareForGeneration,
              (absl::Span<const MemoryTag>, const base::CancelScope&), (override));
  MOCK_METHOD(absl::Status, Sleep, (absl::Span<const MemoryTag>, const base::CancelScope&),
              (override));
  MOCK_METHOD(absl::StatusOr<EngineState>, State, (const base::CancelScope&), (override));
  MOCK_METHOD(absl::StatusOr<std::vector<NamedDigest>>, TableDigests, (const base::CancelScope&),
              (override));
};

class MockProgram : public refit::Program {
 public:
  MOCK_METHOD(absl::StatusOr<refit::ReadGuard>, Begin, (refit::Version, const base::CancelScope&),
              (override));
  MOCK_METHOD(absl::StatusOr<refit::Event>, Fill, (int, const refit::DeviceSpan&, refit::Stream&),
              (override));
};

class MockSource : public refit::RefitSource {
 public:
  explicit MockSource(refit::RefitInfo info) : info_(std::move(info)) {}
  const refit::RefitInfo& info() const override { return info_; }
  MOCK_METHOD(absl::StatusOr<std::unique_ptr<refit::Program>>, Compile,
              (absl::Span<const refit::Bucket>), (override));
  MOCK_METHOD(absl::StatusOr<base::Digest128>, ReferenceDigest, (int), (const, override));

 private:
  const refit::RefitInfo info_;
};

constexpr Version kVersion = 7;
constexpr int kBuckets = 3;
constexpr int64_t kSlotBytes = 64;

// The calls of a sync with verification, in order. The first two run side by side.
const std::vector<std::string> kSteps = {
    "engine begin", "source begin",  "link begin", "acquire 0",     "fill 0", "submit 0",
    "acquire 1",    "fill 1",        "submit 1",   "acquire 2",     "fill 2", "submit 2",
    "commit",       "table digests", "finish",     "before resume", "resume"};

size_t StepIndex(absl::string_view step) {
  const auto found = std::find(kSteps.begin(), kSteps.end(), step);
  CHECK(found != kSteps.end()) << step;
  return static_cast<size_t>(found - kSteps.begin());
}

class SyncDriverTest : public ::testing::Test {
 protected:
  SyncDriverTest()
      : info_(*refit::RefitInfo::Create(
            {{"a", {40}, refit::DType::kF32}, {"none", {0}, refit::DType::kF32}})),
        buckets_(*refit::Pack(info_, {kSlotBytes})),
        source_(info_) {
    CHECK_EQ(buckets_.size(), static_cast<size_t>(kBuckets));
  }

  SyncJob Job() {
    SyncJob job;
    job.source = &source_;
    job.program = &program_;
    job.buckets = buckets_;
    job.plan = refit::PlanDigest(buckets_);
    job.link = &link_;
    job.generation = &generation_;
    job.version = kVersion;
    job.checks = checks_;
    job.verify = verify_;
    job.cleanup_timeout = absl::Seconds(60);
    job.before_resume = [this] {
      calls_.push_back("before resume");
      return before_resume_;
    };
    return job;
  }

  SyncResult Sync() {
    const SyncJob job = Job();
    return RunSync(job, scope_, digests_);
  }

  int64_t Used(int bucket) const { return buckets_[static_cast<size_t>(bucket)].bytes; }

  // Expects the calls of kSteps up to and with `last`; all succeed but the last, which returns
  // `result`.
  void ExpectUntil(absl::string_view last, const absl::Status& result) {
    const size_t end = StepIndex(last);
    const auto status = [&](absl::string_view step) {
      return step == last ? result : absl::OkStatus();
    };
    const ::testing::Expectation engine =
        EXPECT_CALL(generation_, Begin(::testing::Field(&UpdateOptions::version, kVersion), _))
            .WillOnce(Return(status("engine begin")));
    const ::testing::Expectation source =
        EXPECT_CALL(program_, Begin(kVersion, _))
            .WillOnce([this, failure = status("source begin")](
                          auto, auto&) -> absl::StatusOr<refit::ReadGuard> {
              if (!failure.ok()) return failure;
              return gate_.Read();
            });
    if (end < StepIndex("link begin")) return;
    EXPECT_CALL(link_,
                Begin(AllOf(::testing::Field(&TransferPlan::version, kVersion),
                            ::testing::Field(&TransferPlan::buckets, kBuckets),
                            ::testing::Field(&TransferPlan::plan, refit::PlanDigest(buckets_)),
                            ::testing::Field(&TransferPlan::wire_digests, checks_.wire_digests())),
                      _))
        .InSequence(order_)
        .After(engine, source)
        .WillOnce(Return(status("link begin")));
    for (int b = 0; b < kBuckets; ++b) {
      const std::string acquire = absl::StrCat("acquire ", b), fill = absl::StrCat("fill ", b),
                        submit = absl::StrCat("submit ", b);
      if (end < StepIndex(acquire)) return;
      EXPECT_CALL(link_, Acquire(b, _))
          .InSequence(order_)
          .WillOnce([this, failure = status(acquire)](int64_t,
                                                      auto&) -> absl::StatusOr<refit::DeviceSpan> {
            if (!failure.ok()) return failure;
            return refit::DeviceSpan{slot_, kSlotBytes, refit::Device::Host()};
          });
      if (end < StepIndex(fill)) return;
      EXPECT_CALL(program_, Fill(b, ::testing::Field(&refit::DeviceSpan::data, &slot_[0]), _))
          .InSequence(order_)
          .WillOnce([this, b, failure = status(fill)](auto, auto&,
                                                      auto&) -> absl::StatusOr<refit::Event> {
            if (!failure.ok()) return failure;
            std::memset(slot_, 'A' + b, kSlotBytes);
            return refit::Event::Complete();
          });
      if (end < StepIndex(submit)) return;
      EXPECT_CALL(link_, Submit(b, Used(b), _, _))
          .InSequence(order_)
          .WillOnce(Return(status(submit)));
    }
    if (end < StepIndex("commit")) return;
    EXPECT_CALL(link_, Commit(_, _))
        .InSequence(order_)
        .WillOnce([this, failure = status("commit")](auto digests,
                                                     auto& scope) -> absl::StatusOr<Receipt> {
          committed_.assign(digests.begin(), digests.end());
          if (on_commit_) on_commit_(scope);
          if (!failure.ok()) return failure;
          return receipt_;
        });
    if (end < StepIndex("table digests")) return;
    if (verify_) {
      EXPECT_CALL(generation_, TableDigests(_))
          .InSequence(order_)
          .WillOnce([this, failure = status("table digests")](
                        auto&) -> absl::StatusOr<std::vector<NamedDigest>> {
            if (on_table_) on_table_();
            if (!failure.ok()) return failure;
            return table_;
          });
      EXPECT_CALL(source_, ReferenceDigest(_)).WillRepeatedly([](int tensor) {
        return base::Digest128{static_cast<uint64_t>(tensor), 9};
      });
    }
    if (end < StepIndex("finish")) return;
    EXPECT_CALL(generation_, Finish(kVersion, _))
        .InSequence(order_)
        .WillOnce(Return(status("finish")));
    if (last == "before resume") before_resume_ = result;
    if (end < StepIndex("resume")) return;
    EXPECT_CALL(generation_, Resume(_))
        .InSequence(order_)
        .WillOnce([this, failure = status("resume")](auto&) {
          calls_.push_back("resume");
          return failure;
        });
  }

  // Ready for another sync's expectations.
  void StartOver() {
    ::testing::Mock::VerifyAndClearExpectations(&link_);
    ::testing::Mock::VerifyAndClearExpectations(&generation_);
    ::testing::Mock::VerifyAndClearExpectations(&program_);
    order_ = Sequence();
  }

  void ExpectAbort(absl::Status far_end = absl::OkStatus()) {
    EXPECT_CALL(link_, Abort(_, _))
        .InSequence(order_)
        .WillOnce([this, far_end](auto& why, auto& scope) {
          aborted_with_ = why;
          EXPECT_FALSE(scope.cancelled()) << "what is done after a failure has a scope of its own";
          return far_end;
        });
  }
  void ExpectCleanupResume() {
    EXPECT_CALL(generation_, Resume(_)).InSequence(order_).WillOnce([](auto& scope) {
      EXPECT_FALSE(scope.cancelled());
      return absl::OkStatus();
    });
  }

  const refit::RefitInfo info_;
  const std::vector<refit::Bucket> buckets_;
  StrictMock<MockSource> source_;
  StrictMock<MockProgram> program_;
  StrictMock<MockLink> link_;
  StrictMock<MockGeneration> generation_;
  Sequence order_;
  refit::StepGate gate_;
  base::CancelScope scope_{base::Deadline::After(absl::Seconds(60))};
  std::vector<base::Digest128> digests_;
  Checks checks_;
  bool verify_ = true;
  alignas(64) std::byte slot_[kSlotBytes];
  Receipt receipt_{2, kBuckets, 160};
  std::vector<NamedDigest> table_ = {{"none", {1, 9}}, {"a", {0, 9}}};
  absl::Status before_resume_;
  std::function<void(const base::CancelScope&)> on_commit_;
  std::function<void()> on_table_;

  std::vector<std::string> calls_;
  std::vector<base::Digest128> committed_;
  absl::Status aborted_with_;
};

TEST_F(SyncDriverTest, SuccessMakesEveryCallInOrder) {
  ExpectUntil("resume", absl::OkStatus());
  const SyncResult result = Sync();
  EXPECT_THAT(result.status, IsOk());
  EXPECT_TRUE(result.bytes_sent);
  EXPECT_THAT(calls_, ElementsAre("before resume", "resume"));
  EXPECT_EQ(result.report.version, kVersion);
  EXPECT_EQ(result.report.tensors, 2);
  EXPECT_EQ(result.report.bytes, 160);
  EXPECT_EQ(result.report.buckets, kBuckets);
  EXPECT_EQ(result.report.verification, Verification::kEqual);
  EXPECT_GE(result.report.seconds, result.report.transfer_seconds);
}

TEST_F(SyncDriverTest, CommitBringsTheDigestOfEachBucketAsItWasFilled) {
  ExpectUntil("resume", absl::OkStatus());
  ASSERT_THAT(Sync().status, IsOk());
  std::vector<base::Digest128> expected;
  for (int b = 0; b < kBuckets; ++b) {
    const std::string bytes(static_cast<size_t>(Used(b)), static_cast<char>('A' + b));
    expected.push_back(base::DigestOf(bytes.data(), bytes.size()));
  }
  EXPECT_EQ(committed_, expected);
}

TEST_F(SyncDriverTest, WithoutWireDigestsCommitBringsNone) {
  checks_ = ChecksForTesting::Make(/*wire_digests=*/false, /*read_guard=*/true);
  digests_.resize(10);  // scratch of an earlier sync
  ExpectUntil("resume", absl::OkStatus());
  ASSERT_THAT(Sync().status, IsOk());
  EXPECT_TRUE(committed_.empty());
}

TEST_F(SyncDriverTest, WithoutItsTurnVerificationIsNotRunAndNotClaimed) {
  verify_ = false;
  ExpectUntil("resume", absl::OkStatus());
  const SyncResult result = Sync();
  ASSERT_THAT(result.status, IsOk());
  EXPECT_EQ(result.report.verification, Verification::kNotRun);
}

TEST_F(SyncDriverTest, AnEngineThatCannotTellIsNeverCountedAsEqual) {
  ExpectUntil("commit", absl::OkStatus());
  EXPECT_CALL(generation_, TableDigests(_))
      .InSequence(order_)
      .WillOnce(Return(absl::UnimplementedError("its parameters are fused")));
  EXPECT_CALL(generation_, Finish(kVersion, _))
      .InSequence(order_)
      .WillOnce(Return(absl::OkStatus()));
  EXPECT_CALL(generation_, Resume(_)).InSequence(order_).WillOnce(Return(absl::OkStatus()));
  const SyncResult result = Sync();
  ASSERT_THAT(result.status, IsOk());
  EXPECT_EQ(result.report.verification, Verification::kCannotTell);
  EXPECT_EQ(result.report.verification_detail, "its parameters are fused");
}

// A failure at each call.
class FailureTest : public SyncDriverTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(FailureTest, StopsThereTellsTheFarEndAndResumesOnlyWithoutAByteSent) {
  const std::string& step = GetParam();
  const absl::Status cause = absl::ResourceExhaustedError(absl::StrCat("no ", step));
  ExpectUntil(step, cause);
  const size_t failed = StepIndex(step);
  const bool open = failed > StepIndex("link begin") && failed <= StepIndex("finish");
  const bool sent = failed >= StepIndex("submit 0");
  if (open) ExpectAbort();
  if (!sent) ExpectCleanupResume();
  const SyncResult result = Sync();
  EXPECT_THAT(result.status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("sync of version 7"), HasSubstr(cause.message()))));
  EXPECT_EQ(result.bytes_sent, sent);
  if (const char bucket = step.back(); bucket >= '0' && bucket <= '2') {
    EXPECT_THAT(result.status.message(),
                HasSubstr(absl::StrCat("bucket ", std::string(1, bucket), " of 3")));
  }
  EXPECT_EQ(aborted_with_.code(),
            open ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kOk);
}

INSTANTIATE_TEST_SUITE_P(At, FailureTest, ::testing::ValuesIn(kSteps), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

TEST_F(SyncDriverTest, AnEngineThatIsGoneIsNotAskedToResume) {
  ExpectUntil("engine begin", absl::UnavailableError("engine (pid 3) died"));
  EXPECT_THAT(Sync().status, StatusIs(absl::StatusCode::kUnavailable,
                                      AllOf(HasSubstr("pausing the engine"), HasSubstr("pid 3"))));
}

TEST_F(SyncDriverTest, TheFarEndsOwnErrorIsWhatAnAbortedTransferReports) {
  for (const char* step : {"acquire 1", "submit 1", "commit"}) {
    ExpectUntil(step, absl::AbortedError("the consumer has failed"));
    ExpectAbort(absl::ResourceExhaustedError("loading 'a': out of memory"));
    EXPECT_THAT(Sync().status,
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(HasSubstr("sync of version 7"), HasSubstr("loading 'a'"))))
        << step;
    StartOver();
  }
}

TEST_F(SyncDriverTest, AnErrorOfThisSideIsNotReplacedByTheFarEnds) {
  ExpectUntil("acquire 1", absl::DeadlineExceededError("waiting for a free ring slot"));
  ExpectAbort(absl::InternalError("late"));
  EXPECT_THAT(Sync().status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                      AllOf(HasSubstr("bucket 1 of 3"), HasSubstr("ring slot"))));
}

// Also where the source's error is one that says of an engine that it is gone.
TEST_F(SyncDriverTest, ASourceThatFailsCancelsTheEnginesBeginAndBothAreJoined) {
  for (const absl::Status& error : {absl::AbortedError("an optimizer step is writing"),
                                    absl::UnavailableError("rank 2 died")}) {
    base::CancelScope scope(base::Deadline::After(absl::Minutes(1)));
    EXPECT_CALL(generation_, Begin(_, _)).WillOnce([](auto&, const base::CancelScope& beginning) {
      pollfd cancelled{beginning.fd(), POLLIN, 0};
      ::poll(&cancelled, 1, beginning.deadline().remaining_ms());
      return beginning.Check("pausing");
    });
    EXPECT_CALL(program_, Begin(kVersion, _))
        .WillOnce([&](auto, auto&) -> absl::StatusOr<refit::ReadGuard> { return error; });
    ExpectCleanupResume();
    EXPECT_THAT(RunSync(Job(), scope, digests_).status,
                StatusIs(error.code(), AllOf(HasSubstr("reading the parameters"),
                                             HasSubstr(std::string(error.message())))));
    StartOver();
  }
}

TEST_F(SyncDriverTest, AnEngineThatFailsFirstIsTheCauseAndTheSourceIsJoined) {
  absl::Notification engine_failed;
  bool source_returned = false;
  EXPECT_CALL(generation_, Begin(_, _)).WillOnce([&](auto&, auto&) {
    engine_failed.Notify();
    return absl::InternalError("cannot pause");
  });
  EXPECT_CALL(program_, Begin(kVersion, _))
      .WillOnce([&](auto, auto&) -> absl::StatusOr<refit::ReadGuard> {
        engine_failed.WaitForNotification();
        while (!scope_.cancelled()) std::this_thread::yield();
        source_returned = true;
        return absl::AbortedError("later, and of no interest");
      });
  ExpectCleanupResume();
  EXPECT_THAT(Sync().status, StatusIs(absl::StatusCode::kInternal, HasSubstr("cannot pause")));
  EXPECT_TRUE(source_returned);
}

TEST_F(SyncDriverTest, AStepDuringTheTransferPublishesNothing) {
  ExpectUntil("table digests", absl::OkStatus());
  on_commit_ = [this](auto&) { const refit::StepGate::Step step(gate_); };
  ExpectAbort();
  const SyncResult result = Sync();
  EXPECT_THAT(result.status, StatusIs(absl::StatusCode::kAborted, HasSubstr("optimizer step")));
  EXPECT_TRUE(result.bytes_sent);
}

TEST_F(SyncDriverTest, AStepDuringTheVerificationIsTheReasonThatIsGivenForADifference) {
  table_[1].digest.low ^= 1;
  ExpectUntil("table digests", absl::OkStatus());
  on_table_ = [this] { const refit::StepGate::Step step(gate_); };
  ExpectAbort();
  EXPECT_THAT(Sync().status, StatusIs(absl::StatusCode::kAborted, HasSubstr("optimizer step")));
}

TEST_F(SyncDriverTest, WithoutTheReadGuardAStepIsNotSeenByTheDriverItself) {
  checks_ = ChecksForTesting::Make(/*wire_digests=*/true, /*read_guard=*/false);
  ExpectUntil("resume", absl::OkStatus());
  on_commit_ = [this](auto&) { const refit::StepGate::Step step(gate_); };
  EXPECT_THAT(Sync().status, IsOk());
}

TEST_F(SyncDriverTest, ATableThatDiffersPublishesNothingAndNamesTheTensor) {
  table_[1].digest.low ^= 1;
  ExpectUntil("table digests", absl::OkStatus());
  ExpectAbort();
  EXPECT_THAT(Sync().status, StatusIs(absl::StatusCode::kDataLoss,
                                      AllOf(HasSubstr("sync of version 7"), HasSubstr(": a"))));
}

TEST_F(SyncDriverTest, AReceiptThatDisagreesIsDataLoss) {
  const Receipt good = receipt_;
  for (const Receipt& receipt :
       {Receipt{1, good.buckets, good.bytes}, Receipt{good.tensors, 2, good.bytes},
        Receipt{good.tensors, good.buckets, 159}, Receipt{}}) {
    receipt_ = receipt;
    ExpectUntil("commit", absl::OkStatus());
    ExpectAbort();
    EXPECT_THAT(
        Sync().status,
        StatusIs(absl::StatusCode::kDataLoss,
                 HasSubstr(absl::StrCat(receipt.tensors, " tensors, ", receipt.bytes, " bytes, ",
                                        receipt.buckets, " buckets of 2, 160, 3"))));
    StartOver();
  }
}

TEST_F(SyncDriverTest, ADeadlineThatPassesDuringTheTransferPublishesNothing) {
  verify_ = false;
  const SyncJob job = Job();
  base::CancelScope scope(base::Deadline::After(absl::Seconds(1)));
  ExpectUntil("commit", absl::OkStatus());
  on_commit_ = [](const base::CancelScope& s) {
    while (!s.deadline().expired()) ::poll(nullptr, 0, s.deadline().remaining_ms());
  };
  ExpectAbort();
  EXPECT_THAT(RunSync(job, scope, digests_).status,
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("before publishing")));
}

TEST_F(SyncDriverTest, ADeadlineThatHasPassedAtTheStartSendsNothing) {
  const SyncJob job = Job();
  base::CancelScope scope(base::Deadline::After(absl::ZeroDuration()));
  ExpectUntil("source begin", absl::OkStatus());
  ExpectCleanupResume();
  EXPECT_THAT(RunSync(job, scope, digests_).status, StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(SyncDriverTest, ACancellationDuringTheTransferIsTheCause) {
  verify_ = false;
  ExpectUntil("commit", absl::OkStatus());
  on_commit_ = [this](auto&) {
    scope_.Cancel(absl::AbortedError("the synchronizer was shut down"));
  };
  ExpectAbort();
  EXPECT_THAT(Sync().status, StatusIs(absl::StatusCode::kAborted, HasSubstr("shut down")));
}

}  // namespace
}  // namespace weight_sync
