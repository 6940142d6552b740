// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// What is the IPC transport's own: its messages, its ring, its shared memory. What every link does
// is in ipc_link_conformance_test.

#include "weight_sync/ipc/ipc_link.h"

#include <sys/stat.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/testing/socket_folder.h"
#include "fakes/engine_host.h"
#include "fakes/fake_engine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/refit_info_json.h"
#include "weight_sync/ipc/ipc_consumer.h"
#include "weight_sync/ipc/protocol.h"

namespace weight_sync::ipc {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A segment in /dev/shm. Its name alone does not tell whose it is: tests in other pid namespaces
// take the same names.
struct Segment {
  std::string name;
  ino_t inode = 0;  // 0: there is none of that name
};

Segment FindSegment(const std::string& name) {
  struct stat info;
  const bool found = ::stat(absl::StrCat("/dev/shm", name).c_str(), &info) == 0;
  return {name, found ? info.st_ino : 0};
}

// An engine's consumer that notes each ring that it is offered.
class NotingConsumer : public wire::RpcService {
 public:
  explicit NotingConsumer(WeightReceiver* receiver) : consumer_(receiver, {}) {}

  void Handle(wire::RpcRequest request, wire::RpcResponder responder) override {
    if (request.method == kHello) {
      const auto hello = HelloFromJson(request.body);
      ASSERT_THAT(hello, IsOk());
      absl::MutexLock lock(&mutex_);
      rings_.push_back(FindSegment(hello->ring_name));
    }
    consumer_.Handle(std::move(request), std::move(responder));
  }
  void PeerGone(const absl::Status& why) override { consumer_.PeerGone(why); }

  std::vector<Segment> rings() const {
    absl::MutexLock lock(&mutex_);
    return rings_;
  }

 private:
  IpcConsumer consumer_;
  mutable absl::Mutex mutex_;
  std::vector<Segment> rings_;
};

class IpcLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto info = refit::RefitInfo::Create({{"a", {100, 100}, refit::DType::kF32}});
    ASSERT_THAT(info, IsOk());
    info_ = std::make_unique<refit::RefitInfo>(*std::move(info));
    auto buckets = refit::Pack(*info_, {4096});
    ASSERT_THAT(buckets, IsOk());
    buckets_ = *std::move(buckets);
    auto host = fakes::EngineHost::Start(endpoint_.endpoint(), *info_, {}, {});
    ASSERT_THAT(host, IsOk());
    host_ = *std::move(host);
  }

  base::testing::SocketFolder endpoint_;
  std::unique_ptr<refit::RefitInfo> info_;
  std::vector<refit::Bucket> buckets_;
  std::unique_ptr<fakes::EngineHost> host_;
  base::CancelScope scope_{base::Deadline::After(absl::Minutes(2))};
};

TEST_F(IpcLinkTest, TheRingHasNoNameOnceHelloHasEndedEitherWay) {
  host_.reset();
  auto engine = fakes::FakeEngine::Create(*info_, {});
  ASSERT_THAT(engine, IsOk());
  NotingConsumer consumer(engine->get());
  auto claim = base::LocalEndpoint::Claim(endpoint_.endpoint());
  ASSERT_THAT(claim, IsOk());
  auto server = wire::RpcServer::Start(*std::move(claim), {{kServicePrefix, &consumer}});
  ASSERT_THAT(server, IsOk());
  IpcLink link(endpoint_.endpoint(), {4, 4096});
  ASSERT_THAT(link.Hello(*info_, scope_), IsOk());
  auto other = refit::RefitInfo::Create({{"b", {1}, refit::DType::kF32}});
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT(link.Hello(*other, scope_), StatusIs(absl::StatusCode::kInvalidArgument));
  const std::vector<Segment> rings = consumer.rings();
  ASSERT_THAT(rings, SizeIs(2));
  for (const Segment& ring : rings) {
    EXPECT_NE(ring.inode, 0u) << ring.name << " was not there when it was offered";
    EXPECT_NE(FindSegment(ring.name).inode, ring.inode) << ring.name << " is left behind";
  }
}

TEST_F(IpcLinkTest, ARingThatDoesNotFitIsRefusedBeforeTheEngineIsAskedAndNamesTheSettings) {
  host_.reset();
  IpcLink link(endpoint_.endpoint(), {2, int64_t{1} << 50});
  EXPECT_THAT(link.Hello(*info_, scope_),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("ring_slots 2"),
                             HasSubstr(absl::StrCat("ring_slot_bytes ", int64_t{1} << 50)))));
}

TEST_F(IpcLinkTest, ARestartedEngineIsFoundByTheNextHello) {
  IpcLink link(endpoint_.endpoint(), {4, 4096});
  ASSERT_THAT(link.Hello(*info_, scope_), IsOk());
  host_.reset();
  auto host = fakes::EngineHost::Start(endpoint_.endpoint(), *info_, {}, {});
  ASSERT_THAT(host, IsOk());
  EXPECT_THAT(
      link.Begin({1, static_cast<int64_t>(buckets_.size()), refit::PlanDigest(buckets_)}, scope_),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr(endpoint_.endpoint())));
  EXPECT_FALSE(link.connected());
  EXPECT_THAT(link.Hello(*info_, scope_), IsOk());
  EXPECT_TRUE(link.connected());
}

TEST_F(IpcLinkTest, ABucketPlanOtherThanTheHellosIsRefused) {
  IpcLink link(endpoint_.endpoint(), {4, 4096});
  ASSERT_THAT(link.Hello(*info_, scope_), IsOk());
  EXPECT_THAT(link.Begin({1, static_cast<int64_t>(buckets_.size()), {1, 2}}, scope_),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("buckets")));
  EXPECT_THAT(link.Begin({1, 3, refit::PlanDigest(buckets_)}, scope_),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("buckets")));
}

// Messages that IpcLink does not send.
class IpcConsumerTest : public IpcLinkTest {
 protected:
  void SetUp() override {
    IpcLinkTest::SetUp();
    auto client = wire::RpcClient::Connect(endpoint_.endpoint(), "engine", scope_);
    ASSERT_THAT(client, IsOk());
    client_ = *std::move(client);
    auto tensors = refit::RefitInfoToJson(*info_);
    ASSERT_THAT(tensors, IsOk());
    tensors_ = *std::move(tensors);
    auto memory = base::SharedMemory::Create(hello_.ring.bytes());
    ASSERT_THAT(memory, IsOk());
    memory_ = std::make_unique<base::SharedMemory>(*std::move(memory));
    hello_.ring_name = memory_->name();
  }
  absl::Status Ask(const char* method, const std::string& body,
                   const std::string& attachment = "") {
    return client_->Call(absl::StrCat(kServicePrefix, method), body, attachment, scope_).status();
  }
  absl::Status Hello() { return Ask(kHello, ToJson(hello_), tensors_); }
  // The engine paused for version 1 and the update begun.
  absl::Status Begin() {
    if (absl::Status status = host_->engine().Begin({1}, scope_); !status.ok()) return status;
    BeginBody begin;
    begin.ring_name = hello_.ring_name;
    begin.plan = {1, static_cast<int64_t>(buckets_.size()), refit::PlanDigest(buckets_), true};
    begin.timeout_ms = 120'000;
    return Ask(kBegin, ToJson(begin));
  }

  std::unique_ptr<wire::RpcClient> client_;
  std::string tensors_;
  std::unique_ptr<base::SharedMemory> memory_;
  HelloBody hello_{kProtocolVersion, "", {4, 4096}, {4096, 64}};
};

TEST_F(IpcConsumerTest, AHelloInGoodOrderIsTaken) { EXPECT_THAT(Hello(), IsOk()); }

TEST_F(IpcConsumerTest, AnotherProtocolIsRefusedWithBothNumbers) {
  hello_.protocol = 7;
  EXPECT_THAT(Hello(), StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("protocol 7"),
                                      HasSubstr(absl::StrCat("engine ", kProtocolVersion)))));
}

TEST_F(IpcConsumerTest, ARingThatIsNotThisUsersIsRefused) {
  for (const char* name : {"", "/another_program", "/../etc/passwd"}) {
    hello_.ring_name = name;
    EXPECT_THAT(Hello(), StatusIs(absl::StatusCode::kFailedPrecondition)) << name;
  }
  hello_.ring_name = absl::StrCat("/", base::SharedMemoryPrefix(), "0.0");
  EXPECT_THAT(Hello(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(hello_.ring_name)));
}

TEST_F(IpcConsumerTest, ARingOfAnotherSizeThanItsMemoryIsRefusedWithBothNumbers) {
  hello_.ring.slots = 5;
  EXPECT_THAT(Hello(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr(absl::StrCat(hello_.ring.bytes())),
                                      HasSubstr(absl::StrCat(memory_->bytes())))));
}

TEST_F(IpcConsumerTest, ImpossibleRingsAreRefused) {
  const RingLayout rings[] = {{0, 4096},
                              {-1, 4096},
                              {4, -4096},
                              {4, 2048},  // smaller than its buckets
                              {std::numeric_limits<int32_t>::max(), int64_t{1} << 60},
                              {4, std::numeric_limits<int64_t>::max()}};
  for (const RingLayout& ring : rings) {
    hello_.ring = ring;
    EXPECT_THAT(Hello(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat(ring.slots, " slots of ", ring.slot_bytes))));
  }
}

TEST_F(IpcConsumerTest, ImpossibleGeometriesAreRefused) {
  for (const refit::Geometry& geometry :
       {refit::Geometry{0, 64}, refit::Geometry{-64, 64}, refit::Geometry{4096, 0},
        refit::Geometry{4096, 3}, refit::Geometry{100, 64}}) {
    hello_.geometry = geometry;
    EXPECT_THAT(Hello(), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST_F(IpcConsumerTest, MalformedMessagesAreRefused) {
  EXPECT_THAT(Ask(kHello, "{", tensors_), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Ask(kHello, ToJson(hello_), "{"), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_THAT(Hello(), IsOk());
  EXPECT_THAT(Ask(kBegin, "[]"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Ask("dance", ""), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'dance'")));
}

TEST_F(IpcConsumerTest, MessagesOutOfTurnAreRefused) {
  EXPECT_THAT(Begin(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("say hello anew")));
  EXPECT_THAT(Ask(kCommit, ""),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("before begin")));
  EXPECT_THAT(Ask(kAbort, "not JSON either"), IsOk());
}

TEST_F(IpcConsumerTest, ACommitWithTooFewDigestsIsRefused) {
  ASSERT_THAT(Hello(), IsOk());
  ASSERT_THAT(Begin(), IsOk());
  EXPECT_THAT(Ask(kCommit, "", std::string(16, 'd')),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("16 bytes of digests"),
                             HasSubstr(absl::StrCat("not ", 16 * buckets_.size())))));
}

TEST_F(IpcConsumerTest, BucketsOutOfOrderAreDataLossAndNamed) {
  RingProducer ring(memory_->data(), hello_.ring, /*initialize=*/true);
  ASSERT_THAT(Hello(), IsOk());
  ASSERT_THAT(Begin(), IsOk());
  ring.Publish(1, buckets_[1].bytes);
  EXPECT_THAT(Ask(kCommit, "", std::string(16 * buckets_.size(), 'd')),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("expected bucket 0"), HasSubstr("got bucket 1"))));
  EXPECT_THAT(host_->engine().last_abort(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(IpcConsumerTest, AnUpdateWhoseDeadlinePassesIsAborted) {
  ASSERT_THAT(Hello(), IsOk());
  ASSERT_THAT(host_->engine().Begin({1}, scope_), IsOk());
  BeginBody begin;
  begin.ring_name = hello_.ring_name;
  begin.plan = {1, static_cast<int64_t>(buckets_.size()), refit::PlanDigest(buckets_), true};
  begin.timeout_ms = 20;
  ASSERT_THAT(Ask(kBegin, ToJson(begin)), IsOk());
  EXPECT_THAT(Ask(kCommit, "", std::string(16 * buckets_.size(), 'd')),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("bucket 0")));
}

}  // namespace
}  // namespace weight_sync::ipc
