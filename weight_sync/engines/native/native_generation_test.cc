// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// NativeGeneration and GenerationService, one on each side of a socket.

#include "weight_sync/engines/native/native_generation.h"

#include <poll.h>
#include <signal.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/log/absl_check.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/testing/socket_folder.h"
#include "fakes/child_process.h"
#include "fakes/fake_engine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/tensor_digest.h"
#include "weight_sync/engines/native/generation_service.h"
#include "weight_sync/engines/native/protocol.h"
#include "weight_sync/wire/rpc.h"

namespace weight_sync::native {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::weight_sync::fakes::ChildProcess;

constexpr absl::Duration kLong = absl::Minutes(2);
constexpr MemoryTag kKvCache[] = {MemoryTag::kKvCache};

base::Deadline Long() { return base::Deadline::After(kLong); }

std::unique_ptr<fakes::FakeEngine> MakeEngine() {
  auto info = refit::RefitInfo::Create(
      {{"a", {300}, refit::DType::kF32}, {"empty", {0}, refit::DType::kBF16}});
  ABSL_CHECK_OK(info);
  auto engine = fakes::FakeEngine::Create(*info, {});
  ABSL_CHECK_OK(engine);
  return *std::move(engine);
}

// Notes every call before it passes it on, and can make State slow.
class RecordingEngine : public Generation {
 public:
  explicit RecordingEngine(Generation* engine) : engine_(engine) {}

  absl::Status Begin(const UpdateOptions& options, const base::CancelScope& scope) override {
    Note(absl::StrCat("begin ", options.version));
    return engine_->Begin(options, scope);
  }
  absl::Status Finish(Version version, const base::CancelScope& scope) override {
    Note(absl::StrCat("finish ", version));
    return engine_->Finish(version, scope);
  }
  absl::Status Resume(const base::CancelScope& scope) override {
    Note("resume");
    return engine_->Resume(scope);
  }
  absl::Status PrepareForGeneration(absl::Span<const MemoryTag> tags,
                                    const base::CancelScope& scope) override {
    Note(absl::StrCat("prepare", Names(tags)));
    return engine_->PrepareForGeneration(tags, scope);
  }
  absl::Status Sleep(absl::Span<const MemoryTag> tags, const base::CancelScope& scope) override {
    Note(absl::StrCat("sleep", Names(tags)));
    return engine_->Sleep(tags, scope);
  }
  absl::StatusOr<EngineState> State(const base::CancelScope& scope) override {
    Note("state");
    return engine_->State(scope);
  }
  // Ends only with its scope, whose end it returns.
  absl::StatusOr<std::vector<NamedDigest>> TableDigests(const base::CancelScope& scope) override {
    Note("digests");
    if (!slow_digests) return engine_->TableDigests(scope);
    pollfd cancelled{scope.fd(), POLLIN, 0};
    while (scope.Check("digesting").ok()) ::poll(&cancelled, 1, scope.deadline().remaining_ms());
    absl::MutexLock lock(&mutex_);
    slow_end_ = scope.Check("digesting");
    return slow_end_;
  }

  std::vector<std::string> TakeCalls() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(calls_, {});
  }
  void AwaitCalls() {
    const auto called = [this] { return !calls_.empty(); };
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&called), kLong));
  }
  absl::Status AwaitSlowEnd() {
    const auto ended = [this] { return !slow_end_.ok(); };
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&ended), kLong));
    return slow_end_;
  }

  bool slow_digests = false;  // set before the service runs

 private:
  static std::string Names(absl::Span<const MemoryTag> tags) {
    std::string names;
    for (const MemoryTag tag : tags) absl::StrAppend(&names, " ", MemoryTagName(tag));
    return names;
  }
  void Note(std::string call) {
    absl::MutexLock lock(&mutex_);
    calls_.push_back(std::move(call));
  }

  Generation* const engine_;
  absl::Mutex mutex_;
  std::vector<std::string> calls_;
  absl::Status slow_end_;
};

// An engine that listens.
struct Host {
  explicit Host(const std::string& path, bool slow_digests = false)
      : fake(MakeEngine()), engine(fake.get()) {
    engine.slow_digests = slow_digests;
    service = std::make_unique<GenerationService>(&engine);
    auto claim = base::LocalEndpoint::Claim(path);
    ABSL_CHECK_OK(claim);
    auto started = wire::RpcServer::Start(*std::move(claim), {{kServicePrefix, service.get()}});
    ABSL_CHECK_OK(started);
    server = *std::move(started);
  }
  std::unique_ptr<fakes::FakeEngine> fake;
  RecordingEngine engine;
  std::unique_ptr<GenerationService> service;
  std::unique_ptr<wire::RpcServer> server;
};

class NativeGenerationTest : public ::testing::Test {
 protected:
  // One update of the fake, over the socket but for the bytes.
  absl::Status Update(NativeGeneration& generation, fakes::FakeEngine& fake, Version version) {
    absl::Status status = generation.Begin({version}, scope_);
    if (status.ok()) status = fake.BeginUpdate(version);
    const std::vector<std::byte> bytes(1200, std::byte{7});
    if (status.ok()) status = fake.Load(0, refit::Box::Whole({300}), bytes);
    if (status.ok()) status = fake.EndUpdate(version);
    if (status.ok()) status = generation.Finish(version, scope_);
    if (status.ok()) status = generation.Resume(scope_);
    return status;
  }

  base::testing::SocketFolder endpoint_;
  base::CancelScope scope_{Long()};
};

TEST_F(NativeGenerationTest, EveryCallReachesTheEngineWithItsArguments) {
  Host host(endpoint_.endpoint());
  NativeGeneration generation(endpoint_.endpoint());
  EXPECT_THAT(Update(generation, *host.fake, 41), IsOk());
  EXPECT_THAT(generation.PrepareForGeneration(kAllTags, scope_), IsOk());
  EXPECT_THAT(generation.Sleep(kKvCache, scope_), IsOk());
  auto state = generation.State(scope_);
  ASSERT_THAT(state, IsOk());
  EXPECT_EQ(state->version, 41);
  EXPECT_FALSE(state->paused);
  EXPECT_FALSE(state->dirty);
  EXPECT_THAT(state->awake, ElementsAre(MemoryTag::kWeights));
  EXPECT_FALSE(state->incarnation.empty());
  auto digests = generation.TableDigests(scope_);
  ASSERT_THAT(digests, IsOk());
  ASSERT_EQ(digests->size(), 2u);
  for (const NamedDigest& entry : *digests) {
    const int tensor = *host.fake->expected().Find(entry.name);
    EXPECT_EQ(entry.digest, refit::TensorDigest(entry.name, host.fake->table().view(tensor)));
  }
  EXPECT_THAT(host.engine.TakeCalls(),
              ElementsAre("begin 41", "finish 41", "resume", "prepare weights kv_cache",
                          "sleep kv_cache", "state", "digests"));
}

TEST_F(NativeGenerationTest, TheEnginesOwnErrorComesBackWithCodeAndText) {
  Host host(endpoint_.endpoint());
  NativeGeneration generation(endpoint_.endpoint());
  EXPECT_THAT(generation.Finish(3, scope_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("version 3 is not complete"), HasSubstr("engine"))));
}

TEST_F(NativeGenerationTest, ADirtyEngineSaysSo) {
  Host host(endpoint_.endpoint());
  NativeGeneration generation(endpoint_.endpoint());
  ASSERT_THAT(generation.Begin({1}, scope_), IsOk());
  ASSERT_THAT(host.fake->BeginUpdate(1), IsOk());
  ASSERT_THAT(host.fake->Load(0, refit::Box::Whole({300}), std::vector<std::byte>(1200)), IsOk());
  host.fake->AbortUpdate(absl::AbortedError("test"));
  EXPECT_THAT(generation.Resume(scope_), StatusIs(absl::StatusCode::kFailedPrecondition));
  auto state = generation.State(scope_);
  ASSERT_THAT(state, IsOk());
  EXPECT_TRUE(state->dirty);
  EXPECT_TRUE(state->paused);
  EXPECT_EQ(state->version, std::nullopt);
  EXPECT_THAT(Update(generation, *host.fake, 2), IsOk());
}

TEST_F(NativeGenerationTest, PreparingWhatIsAwakeSendsNoMessage) {
  Host host(endpoint_.endpoint());
  NativeGeneration generation(endpoint_.endpoint());
  ASSERT_THAT(generation.PrepareForGeneration(kKvCache, scope_), IsOk());
  EXPECT_THAT(host.engine.TakeCalls(), ElementsAre("prepare kv_cache"));
  // Only what is not known to be awake.
  ASSERT_THAT(generation.PrepareForGeneration(kAllTags, scope_), IsOk());
  EXPECT_THAT(host.engine.TakeCalls(), ElementsAre("prepare weights"));
  for (int i = 0; i < 3; ++i)
    ASSERT_THAT(generation.PrepareForGeneration(kAllTags, scope_), IsOk());
  EXPECT_THAT(host.engine.TakeCalls(), IsEmpty());
  // A sync keeps them awake.
  ASSERT_THAT(Update(generation, *host.fake, 1), IsOk());
  host.engine.TakeCalls();
  ASSERT_THAT(generation.PrepareForGeneration(kAllTags, scope_), IsOk());
  EXPECT_THAT(host.engine.TakeCalls(), IsEmpty());
  ASSERT_THAT(generation.Sleep(kKvCache, scope_), IsOk());
  ASSERT_THAT(generation.PrepareForGeneration(kAllTags, scope_), IsOk());
  EXPECT_THAT(host.engine.TakeCalls(), ElementsAre("sleep kv_cache", "prepare kv_cache"));
}

TEST_F(NativeGenerationTest, AfterASleepThatFailedNothingIsTakenForAwake) {
  Host host(endpoint_.endpoint());
  NativeGeneration generation(endpoint_.endpoint());
  ASSERT_THAT(generation.PrepareForGeneration(kAllTags, scope_), IsOk());
  ASSERT_THAT(generation.Begin({1}, scope_), IsOk());
  ASSERT_THAT(generation.Sleep(kKvCache, scope_), StatusIs(absl::StatusCode::kFailedPrecondition));
  host.engine.TakeCalls();
  ASSERT_THAT(generation.PrepareForGeneration(kAllTags, scope_), IsOk());
  EXPECT_THAT(host.engine.TakeCalls(), ElementsAre("prepare kv_cache"));
}

TEST_F(NativeGenerationTest, FindsARestartedEngineAndForgetsWhatWasAwake) {
  auto host = std::make_unique<Host>(endpoint_.endpoint());
  NativeGeneration generation(endpoint_.endpoint());
  ASSERT_THAT(generation.PrepareForGeneration(kAllTags, scope_), IsOk());
  auto before = generation.State(scope_);
  ASSERT_THAT(before, IsOk());
  host.reset();
  host = std::make_unique<Host>(endpoint_.endpoint());
  // It sees at its next call that what answers is another, and connects at the one after.
  EXPECT_THAT(generation.State(scope_), StatusIs(absl::StatusCode::kUnavailable));
  auto after = generation.State(scope_);
  ASSERT_THAT(after, IsOk());
  EXPECT_NE(after->incarnation, before->incarnation);
  host->engine.TakeCalls();
  ASSERT_THAT(generation.PrepareForGeneration(kAllTags, scope_), IsOk());
  EXPECT_THAT(host->engine.TakeCalls(), ElementsAre("prepare weights kv_cache"));
}

TEST_F(NativeGenerationTest, WithoutAnEngineEveryCallIsUnavailableAndNamesTheEndpoint) {
  NativeGeneration generation(endpoint_.endpoint());
  const std::vector<std::function<absl::Status(const base::CancelScope&)>> calls = {
      [&](auto& scope) { return generation.Begin({1}, scope); },
      [&](auto& scope) { return generation.Finish(1, scope); },
      [&](auto& scope) { return generation.Resume(scope); },
      [&](auto& scope) { return generation.PrepareForGeneration(kAllTags, scope); },
      [&](auto& scope) { return generation.Sleep(kAllTags, scope); },
      [&](auto& scope) { return generation.State(scope).status(); },
      [&](auto& scope) { return generation.TableDigests(scope).status(); },
  };
  for (const auto& call : calls) {
    const base::CancelScope scope(base::Deadline::After(absl::Milliseconds(20)));
    EXPECT_THAT(call(scope),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(endpoint_.endpoint())));
  }
}

TEST_F(NativeGenerationTest, TheCallersDeadlineIsTheEnginesToo) {
  Host host(endpoint_.endpoint(), /*slow_digests=*/true);
  NativeGeneration generation(endpoint_.endpoint());
  const base::CancelScope scope(base::Deadline::After(absl::Milliseconds(200)));
  EXPECT_THAT(generation.TableDigests(scope), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(host.engine.AwaitSlowEnd(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(generation.State(scope_), IsOk());
}

TEST_F(NativeGenerationTest, CallsOfManyThreadsAreCarriedOutOneAtATime) {
  Host host(endpoint_.endpoint());
  NativeGeneration generation(endpoint_.endpoint());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_THAT(generation.State(scope_), IsOk());
        EXPECT_THAT(generation.PrepareForGeneration(kAllTags, scope_), IsOk());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(NativeGenerationTest, AMessageThatIsNoneIsRefusedByTheService) {
  Host host(endpoint_.endpoint());
  auto client = wire::RpcClient::Connect(endpoint_.endpoint(), "engine", scope_);
  ASSERT_THAT(client, IsOk());
  EXPECT_THAT((*client)->Call("engine.begin", "{", "", scope_),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT((*client)->Call("engine.dance", ToJson(RequestBody{1000, 0, {}}), "", scope_),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'dance'")));
  EXPECT_THAT(host.engine.TakeCalls(), IsEmpty());
}

// A trainer in a process of its own that asks for digests, and is killed or leaves.
constexpr char kTrainerRole[] = "--asking-trainer";

int RunTrainer() {
  const std::string path = fakes::ChildConfig();
  base::CancelScope scope(Long());
  NativeGeneration generation(path);
  std::thread asking(
      [&] { fakes::ReportLine(generation.TableDigests(scope).status().ToString()); });
  fakes::WaitForParent();
  scope.Cancel(absl::AbortedError("the trainer was told to leave"));
  asking.join();
  return 0;
}

class TrainerGoneTest : public NativeGenerationTest, public ::testing::WithParamInterface<bool> {};

TEST_P(TrainerGoneTest, TheCallThatRunsIsCancelledAndTheNextTrainerServed) {
  const bool killed = GetParam();
  Host host(endpoint_.endpoint(), /*slow_digests=*/true);
  auto trainer = ChildProcess::Start(kTrainerRole, endpoint_.endpoint());
  ASSERT_THAT(trainer, IsOk());
  host.engine.AwaitCalls();
  const pid_t pid = trainer->pid();
  if (killed) {
    trainer->Kill(SIGKILL);
  } else {
    trainer->CloseInput();
  }
  const absl::Time start = absl::Now();
  const absl::Status end = host.engine.AwaitSlowEnd();
  if (killed) {
    EXPECT_THAT(end,
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(absl::StrCat("pid ", pid))));
  } else {
    EXPECT_THAT(end, StatusIs(absl::StatusCode::kAborted, HasSubstr("trainer left")));
  }
  EXPECT_LT(absl::Now() - start, kLong / 4);
  ASSERT_THAT(trainer->Wait(Long()), IsOk());
  NativeGeneration generation(endpoint_.endpoint());
  EXPECT_THAT(generation.State(scope_), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Ends, TrainerGoneTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Killed" : "Leaving"; });

TEST_F(NativeGenerationTest, AServiceThatEndsCancelsItsCall) {
  auto host = std::make_unique<Host>(endpoint_.endpoint(), /*slow_digests=*/true);
  NativeGeneration generation(endpoint_.endpoint());
  base::CancelScope scope(Long());
  std::thread asking([&] { EXPECT_FALSE(generation.TableDigests(scope).ok()); });
  host->engine.AwaitCalls();
  const absl::Time start = absl::Now();
  host->server.reset();
  host->service.reset();
  EXPECT_LT(absl::Now() - start, kLong / 4);
  EXPECT_THAT(host->engine.AwaitSlowEnd(), StatusIs(absl::StatusCode::kAborted));
  scope.Cancel(absl::AbortedError("no reply will come"));
  asking.join();
}

}  // namespace

int NativeGenerationTestMain(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string(kTrainerRole)) return RunTrainer();
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace weight_sync::native

int main(int argc, char** argv) {
  return weight_sync::native::NativeGenerationTestMain(argc, argv);
}
