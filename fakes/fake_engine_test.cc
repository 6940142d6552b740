// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/fake_engine.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

constexpr MemoryTag kWeights[] = {MemoryTag::kWeights};

refit::RefitInfo TwoTensors() {
  return *refit::RefitInfo::Create(
      {{"a", {3}, refit::DType::kF32}, {"b", {3}, refit::DType::kF32}});
}

// An engine and a well-meaning transport that brings version v's own weights, one tensor a Load.
class Rig {
 public:
  explicit Rig(std::vector<EngineFault> faults = {})
      : engine(*FakeEngine::Create(TwoTensors(), std::move(faults))),
        source_(*Parameters::Create(TwoTensors())) {}

  absl::Status Begin() {
    source_.FillSeeded(static_cast<uint64_t>(++version));
    weights_[version] = AnswerDigest(source_);
    next_ = 0;
    return engine->Begin({version}, scope);
  }
  absl::Status BeginUpdate() {
    next_ = 0;
    return engine->BeginUpdate(version);
  }
  absl::Status Load() {
    const int tensor = next_++ % 2;
    const refit::MutableTensorView& view = source_.view(tensor);
    return engine->Load(tensor, refit::Box::Whole(view.shape()),
                        absl::MakeConstSpan(view.data(), static_cast<size_t>(view.num_bytes())));
  }
  absl::Status EndUpdate() { return engine->EndUpdate(version); }
  absl::Status AbortUpdate() {
    engine->AbortUpdate(absl::AbortedError("told to"));
    return absl::OkStatus();
  }
  absl::Status Finish() { return engine->Finish(version, scope); }
  absl::Status Resume() { return engine->Resume(scope); }
  absl::Status Sleep() { return engine->Sleep(kWeights, scope); }
  absl::Status Prepare() { return engine->PrepareForGeneration(kAllTags, scope); }
  absl::Status Answer() {
    const absl::StatusOr<FakeEngine::Reply> reply = engine->Answer();
    if (reply.ok()) {
      EXPECT_EQ(reply->weights, weights_.at(reply->version))
          << "mixed weights under version " << reply->version;
    }
    return reply.status();
  }

  // From whatever state.
  absl::Status WholeSync() {
    for (const auto call : {&Rig::Prepare, &Rig::Begin, &Rig::BeginUpdate, &Rig::Load, &Rig::Load,
                            &Rig::EndUpdate, &Rig::Finish, &Rig::Resume, &Rig::Answer}) {
      if (absl::Status status = (this->*call)(); !status.ok()) return status;
    }
    while (weights_.size() > 1) weights_.erase(weights_.begin());
    return absl::OkStatus();
  }

  std::unique_ptr<FakeEngine> engine;
  base::CancelScope scope{base::Deadline::After(absl::Minutes(1))};
  Version version = 0;

 private:
  Parameters source_;
  int next_ = 0;
  std::map<Version, base::Digest128> weights_;  // of every version since the last whole sync
};

struct Call {
  const char* name;
  absl::Status (Rig::*call)();
};
constexpr Call kCalls[] = {{"Begin", &Rig::Begin},
                           {"BeginUpdate", &Rig::BeginUpdate},
                           {"Load", &Rig::Load},
                           {"EndUpdate", &Rig::EndUpdate},
                           {"AbortUpdate", &Rig::AbortUpdate},
                           {"Finish", &Rig::Finish},
                           {"Resume", &Rig::Resume},
                           {"Sleep", &Rig::Sleep},
                           {"Prepare", &Rig::Prepare}};

// Every order of `length` calls, from every point of a sync of a serving engine, with a question
// after every call; after each order a whole sync must work.
void TryAllOrders(Rig& rig, int length, const std::vector<Call>& prefix) {
  std::vector<size_t> order(static_cast<size_t>(length), 0);
  for (;;) {
    const auto describe = [&] {
      std::string text;
      for (const Call& call : prefix) absl::StrAppend(&text, call.name, " ");
      for (const size_t call : order) absl::StrAppend(&text, kCalls[call].name, " ");
      return text;
    };
    for (const Call& call : prefix) ASSERT_THAT((rig.*call.call)(), IsOk()) << describe();
    for (const size_t call : order) {
      (rig.*kCalls[call].call)().IgnoreError();  // a refusal is an answer; a crash is not
      rig.Answer().IgnoreError();
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << describe();
    ASSERT_THAT(rig.WholeSync(), IsOk()) << describe();
    size_t digit = 0;
    while (digit < order.size() && ++order[digit] == std::size(kCalls)) order[digit++] = 0;
    if (digit == order.size()) return;
  }
}

// Under sanitizers, a call shorter: each costs ten times as much.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kLongestOrder = 4;
#else
constexpr int kLongestOrder = 5;
#endif

TEST(FakeEngineTest, NoOrderOfCallsAnswersFromMixedWeightsAndAWholeSyncHealsAll) {
  Rig rig;
  ASSERT_THAT(rig.WholeSync(), IsOk());
  for (int length = 1; length <= kLongestOrder; ++length) {
    ASSERT_NO_FATAL_FAILURE(TryAllOrders(rig, length, {}));
  }
  // A whole sync is longer than that: short orders from each point of it.
  const std::vector<Call> sync = {kCalls[0], kCalls[1], kCalls[2], kCalls[2],
                                  kCalls[3], kCalls[5], kCalls[6]};
  for (size_t done = 1; done <= sync.size(); ++done) {
    const std::vector<Call> prefix(sync.begin(), sync.begin() + static_cast<std::ptrdiff_t>(done));
    for (int length = 1; length < kLongestOrder; ++length) {
      ASSERT_NO_FATAL_FAILURE(TryAllOrders(rig, length, prefix));
    }
  }
}

TEST(FakeEngineTest, AnswersNothingBeforeItsFirstSync) {
  Rig rig;
  EXPECT_THAT(rig.engine->Answer(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                             HasSubstr("without a synced version")));
  ASSERT_THAT(rig.Begin(), IsOk());
  EXPECT_THAT(rig.Resume(), IsOk());
  EXPECT_THAT(rig.engine->Answer(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(FakeEngineTest, AnUpdateWithoutBytesIsUndoneByResume) {
  Rig rig;
  ASSERT_THAT(rig.WholeSync(), IsOk());
  const Version served = rig.version;
  ASSERT_THAT(rig.Begin(), IsOk());
  EXPECT_THAT(rig.engine->Answer(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("paused")));
  ASSERT_THAT(rig.BeginUpdate(), IsOk());
  rig.AbortUpdate().IgnoreError();
  ASSERT_THAT(rig.Resume(), IsOk());
  EXPECT_EQ(rig.engine->Answer()->version, served);
}

TEST(FakeEngineTest, AnUpdateWithBytesLeavesItDirtyUntilAWholeSync) {
  Rig rig;
  ASSERT_THAT(rig.WholeSync(), IsOk());
  ASSERT_THAT(rig.Begin(), IsOk());
  ASSERT_THAT(rig.BeginUpdate(), IsOk());
  ASSERT_THAT(rig.Load(), IsOk());
  rig.AbortUpdate().IgnoreError();
  EXPECT_THAT(rig.engine->last_abort(), StatusIs(absl::StatusCode::kAborted, "told to"));
  EXPECT_THAT(rig.Resume(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("mixed weights")));
  EXPECT_THAT(rig.engine->Answer(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("dirty")));
  EXPECT_TRUE(rig.engine->State(rig.scope)->dirty);
  EXPECT_THAT(rig.WholeSync(), IsOk());
  EXPECT_FALSE(rig.engine->State(rig.scope)->dirty);
}

TEST(FakeEngineTest, HalfTheBytesAreNotAVersion) {
  Rig rig;
  ASSERT_THAT(rig.Begin(), IsOk());
  ASSERT_THAT(rig.BeginUpdate(), IsOk());
  ASSERT_THAT(rig.Load(), IsOk());
  EXPECT_THAT(rig.EndUpdate(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("12 of 24 bytes")));
  EXPECT_THAT(rig.Finish(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(FakeEngineTest, ATransferOfAnotherVersionIsRefused) {
  Rig rig;
  ASSERT_THAT(rig.Begin(), IsOk());
  EXPECT_THAT(rig.engine->BeginUpdate(rig.version + 1),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("version 2")));
  ASSERT_THAT(rig.BeginUpdate(), IsOk());
  EXPECT_THAT(rig.engine->EndUpdate(rig.version + 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(rig.engine->Finish(rig.version + 1, rig.scope),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(FakeEngineTest, ALoadOutsideATransferChangesNothing) {
  Rig rig;
  ASSERT_THAT(rig.WholeSync(), IsOk());
  EXPECT_THAT(rig.Load(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(rig.Answer(), IsOk());
}

TEST(FakeEngineTest, WeightsThatSleptAreGoneUntilASync) {
  Rig rig;
  ASSERT_THAT(rig.WholeSync(), IsOk());
  ASSERT_THAT(rig.Sleep(), IsOk());
  EXPECT_THAT(rig.engine->Answer(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("asleep")));
  ASSERT_THAT(rig.Begin(), IsOk());
  EXPECT_THAT(rig.BeginUpdate(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("asleep")));
  EXPECT_THAT(rig.Sleep(), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(rig.Resume(), IsOk());
  ASSERT_THAT(rig.Prepare(), IsOk());
  EXPECT_THAT(rig.engine->Answer(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                             HasSubstr("without a synced version")));
  EXPECT_THAT(rig.WholeSync(), IsOk());
}

TEST(FakeEngineTest, EveryEngineHasAnIncarnationOfItsOwn) {
  Rig a, b;
  EXPECT_NE(a.engine->State(a.scope)->incarnation, b.engine->State(b.scope)->incarnation);
}

TEST(FakeEngineTest, AFaultStrikesAtItsUpdateAndPointOnly) {
  using At = EngineFault::At;
  const struct {
    At at;
    const char* first;  // the call that is to fail
  } cases[] = {{At::kBegin, "Begin"},
               {At::kLoad, "Load"},
               {At::kEnd, "EndUpdate"},
               {At::kFinish, "Finish"},
               {At::kResume, "Resume"}};
  const Call sync[] = {kCalls[0], kCalls[1], kCalls[2], kCalls[2], kCalls[3], kCalls[5], kCalls[6]};
  for (const auto& c : cases) {
    EngineFault fault;
    fault.update = 1;
    fault.at = c.at;
    fault.text = "scripted";
    Rig rig({fault});
    ASSERT_THAT(rig.WholeSync(), IsOk()) << c.first;
    for (const Call& call : sync) {
      const absl::Status status = (rig.*call.call)();
      if (std::string(call.name) == c.first) {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, "scripted")) << c.first;
        break;
      }
      EXPECT_THAT(status, IsOk()) << c.first << " at " << call.name;
    }
    EXPECT_THAT(rig.engine->Answer(), StatusIs(absl::StatusCode::kFailedPrecondition)) << c.first;
    EXPECT_THAT(rig.WholeSync(), IsOk()) << c.first;
  }
}

TEST(FakeEngineTest, DropAndSwapAreSilentAndVisibleInTheDigests) {
  EngineFault drop, swap;
  drop.update = 0;
  drop.action = EngineFault::Do::kDrop;
  drop.tensor = "a";
  swap.update = 1;
  swap.action = EngineFault::Do::kSwap;
  swap.tensor = "a";
  swap.other = "b";
  Rig rig({drop, swap});
  const auto digests_after_sync = [&] {
    for (const auto call : {&Rig::Begin, &Rig::BeginUpdate, &Rig::Load, &Rig::Load, &Rig::EndUpdate,
                            &Rig::Finish, &Rig::Resume}) {
      EXPECT_THAT((rig.*call)(), IsOk());
    }
    return *rig.engine->TableDigests(rig.scope);
  };
  const std::vector<NamedDigest> dropped = digests_after_sync();
  EXPECT_EQ(rig.engine->table().view(0).data()[0], std::byte{0xA5});
  const std::vector<NamedDigest> swapped = digests_after_sync();
  const std::vector<NamedDigest> whole = digests_after_sync();
  for (size_t t = 0; t < 2; ++t) {
    EXPECT_EQ(whole[t].name, rig.engine->expected()[static_cast<int>(t)].name);
    EXPECT_NE(swapped[t].digest, whole[t].digest);
  }
  EXPECT_NE(dropped[0].digest, whole[0].digest);
  EXPECT_THAT(rig.Answer(), IsOk());
}

TEST(FakeEngineTest, AFaultAtTheDigestsIsItsAnswer) {
  EngineFault fault;
  fault.at = EngineFault::At::kDigests;
  fault.text = "scripted";
  Rig rig({fault});
  EXPECT_THAT(rig.engine->TableDigests(rig.scope),
              StatusIs(absl::StatusCode::kInternal, "scripted"));
}

}  // namespace
}  // namespace weight_sync::fakes
