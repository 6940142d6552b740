// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Tensors of every odd size, dtype, stride and number through the whole IPC transport, from the
// smallest slot up, each byte compared: tensors that do not fit a slot, padding, mixed dtypes,
// views that are not contiguous, tensors without elements, two names of one storage, very many.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "base/local_endpoint.h"
#include "base/testing/socket_folder.h"
#include "fakes/engine_host.h"
#include "fakes/parameters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/hf_source.h"
#include "refit/read_guard.h"
#include "weight_sync/engines/native/generation_service.h"
#include "weight_sync/engines/native/native_generation.h"
#include "weight_sync/engines/native/protocol.h"
#include "weight_sync/ipc/ipc_consumer.h"
#include "weight_sync/ipc/ipc_link.h"
#include "weight_sync/ipc/ipc_weight_synchronizer.h"
#include "weight_sync/ipc/protocol.h"
#include "weight_sync/wire/rpc.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using refit::DType;
using refit::HfParameter;
using refit::TensorView;

// Any parameters, in HF names.
class HfPolicy : public Policy {
 public:
  explicit HfPolicy(std::vector<HfParameter> parameters)
      : source_(*refit::HfSource::Create(std::move(parameters), &gate_)) {}
  refit::RefitSource& source() override { return *source_; }
  absl::Status OffloadBeforeRefit() override { return absl::OkStatus(); }
  absl::Status OffloadAfterRefit() override { return absl::OkStatus(); }

 private:
  refit::StepGate gate_;
  std::unique_ptr<refit::HfSource> source_;
};

// Paints each slot before it is filled, and looks at what must not have been written.
class GuardedLink : public Link {
 public:
  explicit GuardedLink(std::unique_ptr<Link> link) : link_(std::move(link)) {}

  absl::StatusOr<refit::Geometry> Hello(const refit::RefitInfo& info,
                                        const base::CancelScope& scope) override {
    return link_->Hello(info, scope);
  }
  bool connected() const override { return link_->connected(); }
  absl::Status Begin(const TransferPlan& plan, const base::CancelScope& scope) override {
    return link_->Begin(plan, scope);
  }
  absl::StatusOr<refit::DeviceSpan> Acquire(int64_t bucket,
                                            const base::CancelScope& scope) override {
    auto slot = link_->Acquire(bucket, scope);
    if (slot.ok()) {
      slot_ = *slot;
      std::memset(slot_.data, kPaint, static_cast<size_t>(slot_.bytes));
    }
    return slot;
  }
  absl::Status Submit(int64_t bucket, int64_t used, const refit::Event& filled,
                      const base::CancelScope& scope) override {
    EXPECT_LE(used, slot_.bytes);
    EXPECT_TRUE(std::all_of(slot_.data + used, slot_.data + slot_.bytes,
                            [](std::byte b) { return b == std::byte{kPaint}; }))
        << "written behind the end of bucket " << bucket;
    return link_->Submit(bucket, used, filled, scope);
  }
  absl::StatusOr<Receipt> Commit(absl::Span<const base::Digest128> digests,
                                 const base::CancelScope& scope) override {
    return link_->Commit(digests, scope);
  }
  absl::Status Abort(const absl::Status& why, const base::CancelScope& scope) override {
    return link_->Abort(why, scope);
  }

 private:
  static constexpr uint8_t kPaint = 0x5A;
  const std::unique_ptr<Link> link_;
  refit::DeviceSpan slot_;
};

std::string LogicalBytes(const TensorView& view) {
  std::string bytes(static_cast<size_t>(view.num_bytes()), '\0');
  const int64_t elements = refit::StorageShape(view.dtype(), view.shape()).num_elements();
  refit::CopyElements(view, 0, elements, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

class OddTensorsTest : public ::testing::Test {
 protected:
  // Seeded bytes that live as long as the test.
  std::byte* Memory(int64_t bytes) {
    std::vector<std::byte>& memory = memory_.emplace_back(static_cast<size_t>(bytes));
    for (std::byte& byte : memory) byte = static_cast<std::byte>(random_());
    return memory.data();
  }
  HfParameter Dense(const std::string& name, DType dtype, const refit::Shape& shape) {
    return {name, TensorView::Contiguous(Memory(*refit::ByteSize(dtype, shape)), dtype, shape)};
  }

  SyncReport ExpectArrives(const std::vector<HfParameter>& parameters, int64_t slot_bytes) {
    std::vector<refit::TensorSpec> specs;
    for (const HfParameter& p : parameters) {
      specs.push_back({p.name, p.view.shape(), p.view.dtype()});
    }
    auto host = EngineHost::Start(endpoint_, *refit::RefitInfo::Create(specs), {}, {});
    EXPECT_THAT(host, IsOk());
    HfPolicy policy(parameters);
    native::NativeGeneration generation(endpoint_);
    SynchronizerOptions options;
    options.endpoint = endpoint_;
    options.ring_slots = 3;
    options.ring_slot_bytes = slot_bytes;
    options.deep_verification_every = 1;
    EXPECT_THAT(CheckOptions(options), IsOk());
    ipc::IpcWeightSynchronizer synchronizer(
        options, &policy, &generation,
        std::make_unique<GuardedLink>(std::make_unique<ipc::IpcLink>(
            endpoint_, ipc::RingLayout{options.ring_slots, slot_bytes})));
    EXPECT_THAT(synchronizer.InitCommunicator(), IsOk());
    const absl::StatusOr<SyncReport> report = synchronizer.SyncWeights();
    EXPECT_THAT(report, IsOk());
    if (!report.ok()) return {};
    EXPECT_EQ(report->verification, Verification::kEqual);
    EXPECT_EQ(report->tensors, static_cast<int64_t>(parameters.size()));

    // Byte for byte, and the padding between the table's tensors as it was.
    const Parameters& table = (*host)->engine().table();
    for (int t = 0; t < table.info().size(); ++t) {
      const refit::MutableTensorView& view = table.view(t);
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(view.data()),
                            static_cast<size_t>(view.num_bytes())),
                LogicalBytes(parameters[static_cast<size_t>(t)].view))
          << table.info()[t].name << " by slots of " << slot_bytes;
      const std::byte* const end = view.data() + view.num_bytes();
      const std::byte* const next = t + 1 < table.info().size() ? table.view(t + 1).data() : end;
      EXPECT_TRUE(std::all_of(end, next, [](std::byte b) { return b == std::byte{0xA5}; }))
          << "written behind " << table.info()[t].name;
    }
    return *report;
  }

  const base::testing::SocketFolder folder_;
  const std::string endpoint_ = folder_.endpoint();
  std::mt19937 random_{7};
  std::vector<std::vector<std::byte>> memory_;
};

constexpr int64_t kSmallestSlot = 64;

TEST_F(OddTensorsTest, TensorsAroundAndFarOverTheSlotArriveAtEveryPlace) {
  constexpr int64_t kSlot = 4096;
  const std::vector<refit::Shape> shapes = {{kSlot - 1},      {kSlot},        {kSlot + 1},
                                            {10 * kSlot + 3}, {2, 3 * kSlot},  // a row of 3 slots
                                            {1, 10 * kSlot}};
  std::vector<HfParameter> parameters;
  for (size_t i = 0; i < shapes.size(); ++i) {
    parameters.push_back(Dense(absl::StrCat("t", i), DType::kU8, shapes[i]));
  }
  // Each of them once first, in the middle and last, and alone.
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::rotate(parameters.begin(), parameters.begin() + 1, parameters.end());
    ExpectArrives(parameters, kSlot);
    ExpectArrives({parameters[0]}, kSlot);
  }
  for (const int64_t slot : {kSmallestSlot, int64_t{192}, int64_t{1} << 20}) {
    ExpectArrives(parameters, slot);
  }
}

TEST_F(OddTensorsTest, ATensorLargerThanTheWholeRingArrives) {
  // Three slots of 4096 bytes, and a tensor of 250 of them in elements of 8 bytes.
  EXPECT_EQ(ExpectArrives({Dense("large", DType::kI64, {128000})}, 4096).buckets, 250);
}

TEST_F(OddTensorsTest, RandomSizesArrive) {
  for (int round = 0; round < 20; ++round) {
    std::vector<HfParameter> parameters;
    for (uint32_t i = 0; i <= random_() % 12; ++i) {
      const DType dtype = refit::kAllDTypes[random_() % refit::kAllDTypes.size()];
      // A multiple of 8 fills whole bytes in every dtype.
      const int64_t unit = refit::IsSubByte(dtype) ? 8 : 1;
      parameters.push_back(
          Dense(absl::StrCat("t", i), dtype, {unit * static_cast<int64_t>(random_() % 300)}));
    }
    parameters.push_back(Dense("last, of one slot exactly", DType::kU8, {256}));
    ExpectArrives(parameters, 256);
  }
}

TEST_F(OddTensorsTest, OddDTypeMixesArriveInEveryOrder) {
  std::vector<HfParameter> parameters = {
      Dense("i8", DType::kI8, {3}), Dense("f8", DType::kF8E4M3, {5}),
      Dense("bf16", DType::kBF16, {7}), Dense("f32", DType::kF32, {9}),
      Dense("i64", DType::kI64, {11})};
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  int orders = 0;
  do {
    std::vector<HfParameter> ordered;
    for (const size_t i : order) ordered.push_back(parameters[i]);
    ExpectArrives(ordered, orders % 2 == 0 ? kSmallestSlot : 128);
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 120);
}

TEST_F(OddTensorsTest, PaddingThatDoesNotFitMovesTheTensorToTheNextSlot) {
  for (int64_t odd = 55; odd <= 65; ++odd) {
    ExpectArrives({Dense("odd", DType::kI8, {odd}), Dense("wide", DType::kI64, {1})},
                  kSmallestSlot);
    ExpectArrives({Dense("odd", DType::kI8, {odd}), Dense("wide", DType::kI64, {1})}, 128);
  }
}

TEST_F(OddTensorsTest, EveryStrideOfEveryDTypeArrivesAsItsLogicalValues) {
  std::vector<HfParameter> parameters;
  for (const DType dtype : refit::kAllDTypes) {
    if (refit::IsSubByte(dtype)) {
      parameters.push_back(Dense(absl::StrCat(dtype, " dense"), dtype, {5, 8}));
      continue;
    }
    const TensorView base = Dense("", dtype, {6, 10}).view;
    const auto add = [&](const char* name, const absl::StatusOr<TensorView>& view) {
      ASSERT_THAT(view, IsOk());
      parameters.push_back({absl::StrCat(dtype, " ", name), *view});
    };
    add("transposed", base.Transposed(0, 1));
    add("every second row", base.Sliced(0, 0, 6, 2));
    add("every second column", base.Sliced(1, 0, 10, 2));
    add("with an offset", base.Sliced(0, 2, 5)->Sliced(1, 3, 10));
    add("reversed rows", base.Sliced(0, 5, -1, -1));
    add("reversed columns, transposed", base.Sliced(1, 9, -1, -2)->Transposed(0, 1));
    add("expanded", TensorView::Strided(base.data(), dtype, {4, 10}, {0, 1}));
    add("one element, expanded", TensorView::Strided(base.data(), dtype, {3, 7}, {0, 0}));
    add("overlapping windows", TensorView::Strided(base.data(), dtype, {5, 4}, {1, 1}));
  }
  const std::vector<std::vector<std::byte>> before = memory_;
  for (const int64_t slot : {kSmallestSlot, int64_t{128}, int64_t{4096}}) {
    ExpectArrives(parameters, slot);
  }
  EXPECT_EQ(memory_, before) << "the source was changed";
}

TEST_F(OddTensorsTest, TensorsOfNoElementsAndScalarsCount) {
  EXPECT_EQ(ExpectArrives({Dense("none", DType::kF32, {0}), Dense("scalar", DType::kF64, {}),
                           Dense("no rows", DType::kBF16, {0, 7}),
                           Dense("hollow", DType::kI8, {3, 0, 2}), Dense("one", DType::kI8, {1})},
                          kSmallestSlot)
                .bytes,
            9);
  // Nothing but names.
  EXPECT_EQ(ExpectArrives({Dense("none", DType::kF32, {0}), Dense("hollow", DType::kI8, {3, 0, 2})},
                          kSmallestSlot)
                .bytes,
            0);
}

TEST_F(OddTensorsTest, NamesOfEveryKindArrive) {
  std::vector<HfParameter> parameters;
  for (const std::string& name :
       {std::string("with space"), std::string("schl\xC3\xBCssel"), std::string(4096, 'n'),
        std::string("../../x"), std::string("quote\"\\\n")}) {
    parameters.push_back(Dense(name, DType::kBF16, {17}));
  }
  ExpectArrives(parameters, 128);
}

TEST_F(OddTensorsTest, TwoNamesOfOneStorageBothHoldItsBytesAndFollowIt) {
  const HfParameter embed = Dense("model.embed_tokens.weight", DType::kBF16, {64, 9});
  HfParameter head = embed;
  head.name = "lm_head.weight";
  HfParameter nested = Dense("mtp.lm_head.weight", DType::kBF16, {64, 9});
  ExpectArrives({embed, head, nested}, 256);
  memory_[0][5] ^= std::byte{1};
  ExpectArrives({embed, head, nested}, 256);
}

TEST_F(OddTensorsTest, EqualBytesUnderTwoNamesAreTwoTensors) {
  const HfParameter a = Dense("a", DType::kF32, {50}), b = Dense("b", DType::kF32, {50});
  memory_[1] = memory_[0];
  const HfParameter copy = {"b", TensorView::Contiguous(memory_[1].data(), DType::kF32, {50})};
  EXPECT_EQ(ExpectArrives({a, copy}, 128).bytes, 400);
}

// Counts what reaches a service.
class Counting : public wire::RpcService {
 public:
  Counting(wire::RpcService* inner, int* messages) : inner_(inner), messages_(messages) {}
  void Handle(wire::RpcRequest request, wire::RpcResponder responder) override {
    ++*messages_;
    inner_->Handle(std::move(request), std::move(responder));
  }
  void PeerGone(const absl::Status& why) override { inner_->PeerGone(why); }

 private:
  wire::RpcService* const inner_;
  int* const messages_;
};

class MessagesTest : public OddTensorsTest {
 protected:
  // Of connecting and one sync.
  int Count(int tensors, int64_t slot_bytes) {
    std::vector<HfParameter> parameters;
    std::vector<refit::TensorSpec> specs;
    const std::byte* const memory = Memory(int64_t{64} * tensors);
    for (int i = 0; i < tensors; ++i) {
      parameters.push_back({absl::StrCat("model.layers.", i, ".weight"),
                            TensorView::Contiguous(memory + int64_t{64} * i, DType::kF32, {16})});
      specs.push_back({parameters.back().name, {16}, DType::kF32});
    }
    int messages = 0;  // the server's thread's, until that has ended
    auto engine = *FakeEngine::Create(*refit::RefitInfo::Create(specs), {});
    ipc::IpcConsumer consumer(engine.get(), {});
    native::GenerationService generation_service(engine.get());
    Counting ipc(&consumer, &messages), control(&generation_service, &messages);
    auto server =
        wire::RpcServer::Start(*base::LocalEndpoint::Claim(endpoint_),
                               {{ipc::kServicePrefix, &ipc}, {native::kServicePrefix, &control}});
    EXPECT_THAT(server, IsOk());
    HfPolicy policy(parameters);
    native::NativeGeneration generation(endpoint_);
    SynchronizerOptions options;
    options.endpoint = endpoint_;
    options.ring_slot_bytes = slot_bytes;
    ipc::IpcWeightSynchronizer synchronizer(options, &policy, &generation);
    EXPECT_THAT(synchronizer.InitCommunicator(), IsOk());
    EXPECT_THAT(synchronizer.SyncWeights(), IsOk());
    EXPECT_THAT(synchronizer.Shutdown(), IsOk());
    server->reset();
    for (size_t t = 0; t < parameters.size(); ++t) {
      EXPECT_EQ(std::memcmp(engine->table().view(static_cast<int>(t)).data(),
                            parameters[t].view.data(), 64),
                0);
    }
    return messages;
  }
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMany = 2000;  // each costs ten times as much
#else
constexpr int kMany = 20000;
#endif

TEST_F(MessagesTest, TwentyThousandTinyTensorsCostNoMoreMessagesThanOne) {
  const int one = Count(1, 1 << 20);
  EXPECT_EQ(Count(kMany, 1 << 20), one);
  // Nor do smaller slots: buckets change hands without messages.
  EXPECT_EQ(Count(kMany, 4096), one);
  EXPECT_LE(one, 10);
}

}  // namespace
}  // namespace weight_sync::fakes
