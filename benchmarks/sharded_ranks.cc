// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/sharded_ranks.h"

#include <cstddef>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "base/testing/socket_folder.h"
#include "benchmarks/cores.h"
#include "benchmarks/states.h"
#include "benchmarks/stopwatch.h"
#include "refit/contribute.h"
#include "refit/device/device.h"
#include "refit/layout/box.h"
#include "refit/maps/family.h"
#include "refit/maps/model_config.h"
#include "refit/maps/weight_map.h"
#include "refit/packing/bucket.h"
#include "refit/packing/packer.h"
#include "refit/read_guard.h"
#include "refit/refit_info.h"
#include "refit/refit_source.h"
#include "refit/sharding/communicator.h"
#include "refit/sharding/communicators/process_communicator.h"
#include "refit/sharding/communicators/thread_communicator.h"
#include "refit/sharding/mesh.h"
#include "refit/sharding/placement.h"
#include "refit/sharding/sharded_source.h"
#include "refit/sharding/sharding.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/version.h"

namespace weight_sync::benchmarks {
namespace {

using refit::DType;
using refit::Placement;

constexpr char kRole[] = "--gather-rank";
constexpr char kHost[] = "127.0.0.1";
constexpr refit::Version kVersion = 1;
constexpr absl::Duration kTimeout = absl::Minutes(1);
// Of a rank that waits for the next sync, while other things are measured.
constexpr absl::Duration kBetweenSyncs = absl::Minutes(10);
constexpr int kWiped = 0xA5;

// As a trainer with Hugging Face's own names and shapes has them.
absl::StatusOr<refit::WeightMap> MapOf(const ShardedWeights& weights) {
  refit::Family family;
  family.name = "sharded weights";
  family.model_types = {"sharded_weights"};
  family.layouts = {"hf"};
  family.sizes = [](const refit::ModelConfig& config, int64_t) -> refit::AxisSizes {
    return {{"h", config.hidden_size}, {"m", config.intermediate_size}};
  };
  family.groups = {
      {refit::Always,
       /*each_layer=*/true,
       {{{"layers.{i}.up_proj.weight", "m h"}}, {{"layers.{i}.down_proj.weight", "h m"}}}}};
  refit::ModelConfig config;
  config.model_type = family.model_types[0];
  config.num_hidden_layers = weights.layers;
  config.hidden_size = weights.hidden;
  config.intermediate_size = weights.intermediate;
  return refit::WeightMap::Build(family, config, {"hf"});
}

absl::StatusOr<std::vector<refit::ShardedSpec>> SpecsOf(const refit::WeightMap& map,
                                                        const ShardedWeights& weights) {
  WS_ASSIGN_OR_RETURN(refit::Mesh mesh, refit::Mesh::Create({{"dp", 2}, {"tp", 2}}));
  const auto shared = std::make_shared<const refit::Mesh>(std::move(mesh));
  std::vector<refit::ShardedSpec> specs;
  for (const refit::WeightMap::TrainerTensor& tensor : map.trainer()) {
    const std::vector<Placement> placements =
        tensor.shape[0] == weights.intermediate
            ? std::vector<Placement>{Placement::StridedShard(0, 2), Placement::Shard(0)}
            : std::vector<Placement>{Placement::Shard(0), Placement::Shard(1)};
    WS_ASSIGN_OR_RETURN(refit::Sharding sharding,
                        refit::Sharding::FromPlacements(shared, placements, tensor.shape));
    specs.push_back({tensor.name, DType::kBF16, std::move(sharding)});
  }
  return specs;
}

// Whose shard or slot it is shows in every few elements.
uint16_t ElementOf(int tensor, int64_t element) {
  return static_cast<uint16_t>(
      (static_cast<uint32_t>(element) + static_cast<uint32_t>(tensor) * 40503u) * 2654435761u >>
      16);
}

// Row by row of a matrix's box.
void FillBox(int tensor, const refit::Shape& shape, const refit::Box& box, std::byte* dst) {
  for (int64_t i = box.begin[0]; i < box.begin[0] + box.size[0]; ++i) {
    for (int64_t j = box.begin[1]; j < box.begin[1] + box.size[1]; ++j, dst += sizeof(uint16_t)) {
      const uint16_t element = ElementOf(tensor, i * shape[1] + j);
      std::memcpy(dst, &element, sizeof(element));
    }
  }
}

absl::Status CheckPiece(const refit::RefitInfo& info, const refit::Piece& piece,
                        const std::byte* slot) {
  std::vector<std::byte> want(static_cast<size_t>(piece.bytes));
  FillBox(piece.tensor, info[piece.tensor].shape, piece.box, want.data());
  if (std::memcmp(slot + piece.dst, want.data(), want.size()) == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(info[piece.tensor].name, ", ", piece.box.ToString(), ", came with other bytes"));
}

}  // namespace

class ShardedRanks::Rank {
 public:
  static absl::StatusOr<std::unique_ptr<Rank>> Create(
      std::unique_ptr<refit::Communicator> communicator, const ShardedWeights& weights,
      int64_t slot_bytes) {
    // Where there is one process it drives all ranks of the mesh.
    const bool alone = communicator->size() == 1;
    WS_ASSIGN_OR_RETURN(refit::WeightMap map, MapOf(weights));
    WS_ASSIGN_OR_RETURN(const std::vector<refit::ShardedSpec> specs, SpecsOf(map, weights));
    std::vector<refit::TensorSpec> held;
    for (const refit::ShardedSpec& spec : specs) {
      for (int r = 0; r < kRanks; ++r) {
        if (!alone && r != communicator->rank()) continue;
        held.push_back({absl::StrCat(spec.name, " of rank ", r), spec.sharding.LocalBox(r)->shape(),
                        spec.dtype});
      }
    }
    WS_ASSIGN_OR_RETURN(const refit::RefitInfo info, refit::RefitInfo::Create(std::move(held)));
    WS_ASSIGN_OR_RETURN(fakes::Parameters parameters, fakes::Parameters::Create(info));
    auto rank = std::unique_ptr<Rank>(new Rank(std::move(parameters), std::move(communicator)));
    std::vector<refit::ShardArray> shards;
    for (const refit::ShardedSpec& spec : specs) {
      for (int r = 0; r < kRanks; ++r) {
        if (!alone && r != rank->communicator_->rank()) continue;
        const refit::MutableTensorView& view =
            rank->parameters_.view(static_cast<int>(shards.size()));
        FillBox(*map.hf().Find(spec.name), spec.sharding.shape(), *spec.sharding.LocalBox(r),
                view.data());
        shards.push_back({spec.name, view, r});
      }
    }
    WS_ASSIGN_OR_RETURN(rank->source_,
                        refit::ShardedSource::Create(
                            std::move(map), specs, nullptr, &rank->gate_, rank->communicator_.get(),
                            std::vector<int>(alone ? kRanks : 0, /*process*/ 0)));
    WS_ASSIGN_OR_RETURN(rank->buckets_,
                        refit::Pack(rank->source_->info(), {slot_bytes, /*alignment=*/64}));
    WS_ASSIGN_OR_RETURN(rank->program_, rank->source_->Compile(rank->buckets_));
    WS_RETURN_IF_ERROR(rank->source_->Bind(kVersion, shards));
    rank->slot_bytes_ = slot_bytes;
    return rank;
  }

  // A sync at rank 0, into kSlots slots at `slots` in turn.
  template <typename Before, typename After>
  absl::Status Sync(std::byte* slots, Before before, After after) {
    const base::CancelScope scope(base::Deadline::After(kTimeout));
    WS_ASSIGN_OR_RETURN(const refit::ReadGuard guard, program_->Begin(kVersion, scope));
    refit::Stream stream = refit::Stream::Host();
    for (size_t b = 0; b < buckets_.size(); ++b) {
      std::byte* const slot = slots + static_cast<int64_t>(b % kSlots) * slot_bytes_;
      before(slot);
      WS_RETURN_IF_ERROR(
          program_->Fill(static_cast<int>(b), {slot, slot_bytes_, refit::Device::Host()}, stream)
              .status());
      WS_RETURN_IF_ERROR(after(buckets_[b], slot));
    }
    return guard.Unchanged();
  }

  // The other ranks' part of it.
  absl::Status Contribute() {
    const base::CancelScope scope(base::Deadline::After(kBetweenSyncs));
    return refit::Contribute(*program_, buckets_.size(), kVersion, scope);
  }

  const refit::RefitInfo& info() const { return source_->info(); }
  int64_t slot_bytes() const { return slot_bytes_; }

 private:
  Rank(fakes::Parameters parameters, std::unique_ptr<refit::Communicator> communicator)
      : parameters_(std::move(parameters)), communicator_(std::move(communicator)) {}

  fakes::Parameters parameters_;
  refit::StepGate gate_;
  std::unique_ptr<refit::Communicator> communicator_;
  std::unique_ptr<refit::ShardedSource> source_;
  std::vector<refit::Bucket> buckets_;
  std::unique_ptr<refit::Program> program_;
  int64_t slot_bytes_ = 0;
};

namespace {

// What a rank other than 0 is told, as words. Rank 0 is met at `port`, or at `endpoint` if that is 0.
struct RankConfig {
  int rank = 0;
  int core = kAnyCore;
  int port = 0;
  std::string endpoint = "-";
  ShardedWeights weights;
  int64_t slot_bytes = 0;

  std::string ToString() const {
    return absl::StrCat(rank, " ", core, " ", port, " ", endpoint, " ", weights.layers, " ",
                        weights.hidden, " ", weights.intermediate, " ", slot_bytes);
  }
  static RankConfig Parse(const std::string& text) {
    RankConfig config;
    std::istringstream words(text);
    words >> config.rank >> config.core >> config.port >> config.endpoint >>
        config.weights.layers >> config.weights.hidden >> config.weights.intermediate >>
        config.slot_bytes;
    return config;
  }
};

refit::JobRank Job(int rank) { return {"gather benchmark", rank, ShardedRanks::kRanks}; }

absl::Status RunRank(const RankConfig& config) {
  WS_RETURN_IF_ERROR(KeepThisThreadOff(config.core));
  const base::CancelScope scope(base::Deadline::After(kTimeout));
  WS_ASSIGN_OR_RETURN(auto communicator,
                      config.port != 0
                          ? refit::ConnectOverTcp(Job(config.rank), kHost, config.port, scope)
                          : refit::ConnectOnHost(Job(config.rank), config.endpoint, scope));
  WS_ASSIGN_OR_RETURN(
      const auto rank,
      ShardedRanks::Rank::Create(std::move(communicator), config.weights, config.slot_bytes));
  absl::Status status;
  while (status.ok()) status = rank->Contribute();
  // Rank 0 leaves when all is measured.
  return absl::IsUnavailable(status) ? absl::OkStatus() : status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardedRanks>> ShardedRanks::Start(Meeting meeting,
                                                                  const ShardedWeights& weights,
                                                                  int64_t slot_bytes, int core) {
  const base::testing::SocketFolder folder;
  const base::CancelScope scope(base::Deadline::After(kTimeout));
  std::vector<fakes::ChildProcess> others;
  const auto start_others = [&](int port) -> absl::Status {
    for (int r = 1; r < kRanks; ++r) {
      const RankConfig config = {r, core, port, folder.endpoint(), weights, slot_bytes};
      WS_ASSIGN_OR_RETURN(fakes::ChildProcess child,
                          fakes::ChildProcess::Start(kRole, config.ToString()));
      others.push_back(std::move(child));
    }
    return absl::OkStatus();
  };
  std::unique_ptr<refit::Communicator> communicator;
  switch (meeting) {
    case Meeting::kAlone: {
      WS_ASSIGN_OR_RETURN(auto one, refit::MakeThreadCommunicators(1));
      communicator = std::move(one[0]);
      break;
    }
    case Meeting::kSharedMemory: {
      WS_RETURN_IF_ERROR(start_others(/*port=*/0));
      WS_ASSIGN_OR_RETURN(communicator, refit::ConnectOnHost(Job(0), folder.endpoint(), scope));
      break;
    }
    case Meeting::kTcp: {
      WS_ASSIGN_OR_RETURN(refit::TcpHost host, refit::TcpHost::Listen(kHost, /*port=*/0));
      WS_RETURN_IF_ERROR(start_others(host.port()));
      WS_ASSIGN_OR_RETURN(communicator, std::move(host).Connect(Job(0), scope));
      break;
    }
  }
  WS_ASSIGN_OR_RETURN(auto rank, Rank::Create(std::move(communicator), weights, slot_bytes));
  WS_ASSIGN_OR_RETURN(fakes::Parameters slots,
                      fakes::Parameters::Create(Vectors(kSlots, slot_bytes)));
  return std::unique_ptr<ShardedRanks>(
      new ShardedRanks(std::move(others), std::move(rank), std::move(slots)));
}

ShardedRanks::ShardedRanks(std::vector<fakes::ChildProcess> others, std::unique_ptr<Rank> rank,
                           fakes::Parameters slots)
    : others_(std::move(others)), rank_(std::move(rank)), slots_(std::move(slots)) {}

ShardedRanks::~ShardedRanks() = default;

absl::StatusOr<double> ShardedRanks::Gather() {
  const Stopwatch watch;
  WS_RETURN_IF_ERROR(rank_->Sync(
      slots_.view(0).data(), [](std::byte*) {},
      [](const refit::Bucket&, const std::byte*) { return absl::OkStatus(); }));
  return watch.seconds();
}

absl::Status ShardedRanks::Verify() {
  return rank_->Sync(
      slots_.view(0).data(),
      [&](std::byte* slot) { std::memset(slot, kWiped, static_cast<size_t>(rank_->slot_bytes())); },
      [&](const refit::Bucket& bucket, const std::byte* slot) {
        for (const refit::Piece& piece : bucket.pieces) {
          WS_RETURN_IF_ERROR(CheckPiece(rank_->info(), piece, slot));
        }
        return absl::OkStatus();
      });
}

std::optional<int> MaybeRunRank(int argc, char** argv) {
  if (argc != 2 || std::string(argv[1]) != kRole) return std::nullopt;
  const RankConfig config = RankConfig::Parse(fakes::ChildConfig());
  const absl::Status status = RunRank(config);
  if (!status.ok()) std::cerr << "rank " << config.rank << ": " << status << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace weight_sync::benchmarks
