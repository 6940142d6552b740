// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The ring's two ends as two threads over one mapping, where ThreadSanitizer sees every race that
// two processes would have, and once as two processes.

#include "weight_sync/ipc/ring.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/log/absl_check.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::ipc {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr int64_t kSlotBytes = 4096;
constexpr absl::Duration kLong = absl::Minutes(2);  // no test comes near it

// Memory for a ring, shared with a fork.
class RingMemory {
 public:
  explicit RingMemory(const RingLayout& layout)
      : bytes_(static_cast<size_t>(layout.bytes())),
        data_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    ABSL_CHECK(data_ != MAP_FAILED);
  }
  ~RingMemory() { ::munmap(data_, bytes_); }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  const size_t bytes_;
  void* const data_;
};

struct Ring {
  explicit Ring(int32_t slots, uint64_t position = 0)
      : layout{slots, kSlotBytes},
        memory(layout),
        producer(memory.data(), layout, /*initialize=*/true, position),
        consumer(memory.data(), layout) {
    consumer.StartAt(position);
  }
  RingLayout layout;
  RingMemory memory;
  RingProducer producer;
  RingConsumer consumer;
  base::CancelScope scope{base::Deadline::After(kLong)};
  RingWait wait{&scope};
};

// What slot number `serial` holds: both ends compute it alike.
int64_t UsedOf(uint64_t serial) {
  return static_cast<int64_t>(std::minstd_rand(static_cast<uint32_t>(serial * 7919 + 1))() %
                              (kSlotBytes + 1));
}
void FillOf(uint64_t serial, std::byte* out, int64_t bytes) {
  uint64_t word = serial * 0x9E3779B97F4A7C15u + 1;
  for (int64_t at = 0; at < bytes; at += 8) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(out + at, &word, static_cast<size_t>(std::min<int64_t>(8, bytes - at)));
  }
}

absl::Status Produce(RingProducer& producer, const RingWait& wait, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    auto slot = producer.Acquire(wait);
    if (!slot.ok()) return slot.status();
    FillOf(i, *slot, UsedOf(i));
    producer.Publish(static_cast<int64_t>(i), UsedOf(i));
  }
  return absl::OkStatus();
}

// Internal names the first slot that is not what was produced.
absl::Status Consume(RingConsumer& consumer, const RingWait& wait, uint64_t count) {
  std::vector<std::byte> expected(kSlotBytes);
  for (uint64_t i = 0; i < count; ++i) {
    auto filled = consumer.Next(wait);
    if (!filled.ok()) return filled.status();
    FillOf(i, expected.data(), UsedOf(i));
    if (filled->bucket != static_cast<int64_t>(i) || filled->used != UsedOf(i) ||
        std::memcmp(filled->data, expected.data(), static_cast<size_t>(filled->used)) != 0) {
      return absl::InternalError(absl::StrCat("slot ", i, " is not what was produced"));
    }
    consumer.Release();
  }
  return absl::OkStatus();
}

// `count` slots through the ring, each end on a thread of its own.
void Transfer(Ring& ring, uint64_t count) {
  std::thread producing([&] { EXPECT_THAT(Produce(ring.producer, ring.wait, count), IsOk()); });
  EXPECT_THAT(Consume(ring.consumer, ring.wait, count), IsOk());
  producing.join();
}

class RingTransferTest : public ::testing::TestWithParam<int32_t> {};

TEST_P(RingTransferTest, ThousandsOfSlotsOfEverySizeArriveByteForByte) {
  Ring ring(GetParam());
  Transfer(ring, kSanitized ? 2'000 : 10'000);
}

TEST_P(RingTransferTest, TheCountersWrap) {
  // Two slots before 2^32, where a slot count that is no power of two would lose its place.
  Ring ring(GetParam(), (uint64_t{1} << 32) - 2);
  Transfer(ring, 100);
  EXPECT_EQ(ring.producer.position(), (uint64_t{1} << 32) + 98);
}

TEST_P(RingTransferTest, AFullRingHoldsAsManySlotsAsItHas) {
  Ring ring(GetParam());
  for (int32_t i = 0; i < GetParam(); ++i) {
    ASSERT_THAT(ring.producer.Acquire(ring.wait), IsOk());
    ring.producer.Publish(i, 1);
  }
  base::CancelScope soon(base::Deadline::After(absl::Milliseconds(5)));
  EXPECT_THAT(ring.producer.Acquire({&soon}), StatusIs(absl::StatusCode::kDeadlineExceeded));
  ASSERT_THAT(ring.consumer.Next(ring.wait), IsOk());
  ring.consumer.Release();
  EXPECT_THAT(ring.producer.Acquire(ring.wait), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Slots, RingTransferTest, ::testing::Range(1, 9));

TEST(RingTest, TwoProcessesHandOverByteForByte) {
  constexpr uint64_t kCount = 2'000;
  Ring ring(3);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::_exit(Consume(ring.consumer, ring.wait, kCount).ok() ? 0 : 1);
  }
  EXPECT_THAT(Produce(ring.producer, ring.wait, kCount), IsOk());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(RingTest, SlotsLieBehindTheControlBlockOnPagesOfTheirOwn) {
  for (const int32_t slots : {1, 4, 63, 64, 4096}) {
    const RingLayout layout{slots, kSlotBytes};
    EXPECT_EQ(layout.slots_offset() % 4096, 0);
    EXPECT_GE(layout.slots_offset(), 64 * slots);
    EXPECT_EQ(layout.bytes(), layout.slots_offset() + slots * kSlotBytes);
  }
}

TEST(RingTest, NoWakeUpIsLost) {
  // Each slot is a handover in both directions. A lost wake-up would cost its sleeper a whole
  // slice.
  constexpr uint64_t kCount = kSanitized ? 10'000 : 30'000;
  Ring ring(1);
  const absl::Time start = absl::Now();
  std::thread producing([&] {
    for (uint64_t i = 0; i < kCount; ++i) {
      ASSERT_THAT(ring.producer.Acquire(ring.wait), IsOk());
      ring.producer.Publish(static_cast<int64_t>(i), 0);
    }
  });
  std::thread consuming([&] {
    for (uint64_t i = 0; i < kCount; ++i) {
      auto filled = ring.consumer.Next(ring.wait);
      ASSERT_THAT(filled, IsOk());
      ASSERT_EQ(filled->bucket, static_cast<int64_t>(i));
      ring.consumer.Release();
    }
  });
  producing.join();
  consuming.join();
  const absl::Duration taken = absl::Now() - start;
  RecordProperty("ns_a_handover", absl::StrCat(absl::ToInt64Nanoseconds(taken / kCount)));
  // However busy the machine is.
  EXPECT_LT(taken, kCount * absl::Milliseconds(1));
}

// How a wait ends other than by its turn. Both ends wait alike.
enum class End { kProducer, kConsumer };

class RingWaitTest : public ::testing::TestWithParam<End> {
 protected:
  RingWaitTest() : ring_(2) {
    if (GetParam() == End::kConsumer) return;
    for (int i = 0; i < 2; ++i) {
      ABSL_CHECK_OK(ring_.producer.Acquire(ring_.wait).status());
      ring_.producer.Publish(i, 1);
    }
  }
  absl::Status Wait(const RingWait& wait) {
    return GetParam() == End::kProducer ? ring_.producer.Acquire(wait).status()
                                        : ring_.consumer.Next(wait).status();
  }
  const char* What() const {
    return GetParam() == End::kProducer ? "waiting for a free ring slot"
                                        : "waiting for a filled ring slot";
  }
  Ring ring_;
};

TEST_P(RingWaitTest, EndsByItsDeadlineAndSaysWhatItWaitedFor) {
  base::CancelScope soon(base::Deadline::After(absl::Milliseconds(20)));
  EXPECT_THAT(Wait({&soon}), StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(What())));
}

TEST_P(RingWaitTest, EndsByCancellationWithItsCause) {
  std::thread cancelling([&] { ring_.scope.Cancel(absl::AbortedError("the engine side failed")); });
  EXPECT_THAT(Wait(ring_.wait), StatusIs(absl::StatusCode::kAborted, "the engine side failed"));
  cancelling.join();
}

TEST_P(RingWaitTest, EndsAtOnceByThePeersDeath) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (;;) ::pause();
  }
  auto peer = base::PeerProcess::Watch(child, "engine");
  ASSERT_THAT(peer, IsOk());
  std::thread killing([&] { ::kill(child, SIGKILL); });
  const absl::Time start = absl::Now();
  EXPECT_THAT(Wait({&ring_.scope, &*peer}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(absl::StrCat("pid ", child))));
  EXPECT_LT(absl::Now() - start, kLong / 4);
  killing.join();
  ::waitpid(child, nullptr, 0);
}

INSTANTIATE_TEST_SUITE_P(Each, RingWaitTest, ::testing::Values(End::kProducer, End::kConsumer),
                         [](const auto& info) {
                           return info.param == End::kProducer ? "Producer" : "Consumer";
                         });

TEST(RingTest, WhatAPeerPublishedBeforeItDiedIsStillRead) {
  Ring ring(2);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ring.producer.Publish(5, 17);
    ::_exit(0);
  }
  auto peer = base::PeerProcess::Watch(child, "trainer");
  ASSERT_THAT(peer, IsOk());
  siginfo_t ended;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  auto filled = ring.consumer.Next({&ring.scope, &*peer});
  ASSERT_THAT(filled, IsOk());
  EXPECT_EQ(filled->bucket, 5);
  EXPECT_EQ(filled->used, 17);
  ring.consumer.Release();
  EXPECT_THAT(ring.consumer.Next({&ring.scope, &*peer}), StatusIs(absl::StatusCode::kUnavailable));
  ::waitpid(child, nullptr, 0);
}

TEST(RingTest, AFailedConsumerEndsTheWaitOfASleepingProducer) {
  Ring ring(1);
  ASSERT_THAT(ring.producer.Acquire(ring.wait), IsOk());
  ring.producer.Publish(0, 1);
  std::thread failing([&] { ring.consumer.Fail(); });
  const absl::Time start = absl::Now();
  EXPECT_THAT(ring.producer.Acquire(ring.wait),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("consumer")));
  EXPECT_LT(absl::Now() - start, kLong / 4);
  failing.join();
  EXPECT_TRUE(ring.producer.consumer_failed());
}

TEST(RingTest, AFailedConsumerIsSeenWhileSlotsAreFree) {
  Ring ring(4);
  ring.consumer.Fail();
  EXPECT_THAT(ring.producer.Acquire(ring.wait), StatusIs(absl::StatusCode::kAborted));
}

TEST(RingTest, BeginsAnewWhereTheProducerIsAfterAnAbortedTransfer) {
  Ring ring(3);
  for (int round = 0; round < 5; ++round) {
    // Three published, one of them read, one acquired and never published.
    for (int i = 0; i < 3; ++i) {
      ASSERT_THAT(ring.producer.Acquire(ring.wait), IsOk());
      ring.producer.Publish(900 + i, 1);
    }
    ASSERT_THAT(ring.consumer.Next(ring.wait), IsOk());
    ring.consumer.Release();
    ASSERT_THAT(ring.producer.Acquire(ring.wait), IsOk());
    ring.consumer.Fail();
    ring.consumer.StartAt(ring.producer.position());
    EXPECT_FALSE(ring.producer.consumer_failed());
    Transfer(ring, 50);
  }
}

TEST(RingTest, AHeaderThatMakesNoSenseIsDataLossAndNamesTheSlot) {
  for (const int64_t used : {int64_t{-1}, kSlotBytes + 1, int64_t{1} << 62}) {
    Ring ring(4);
    ring.producer.Publish(0, 1);
    ASSERT_THAT(ring.consumer.Next(ring.wait), IsOk());
    ring.consumer.Release();
    ring.producer.Publish(1, used);
    EXPECT_THAT(ring.consumer.Next(ring.wait),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("ring slot 1"), HasSubstr(absl::StrCat(used, " bytes")))));
  }
}

}  // namespace
}  // namespace weight_sync::ipc
