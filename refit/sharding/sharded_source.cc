// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/sharded_source.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "refit/bucket_program.h"
#include "refit/differences.h"
#include "refit/layout/convert.h"
#include "refit/layout/region_cursor.h"
#include "refit/maps/source_checks.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/packing/packer.h"
#include "refit/sharding/plan_agreement.h"
#include "refit/tensor_digest.h"

namespace weight_sync::refit {
namespace {

// Tags of what is not a bucket.
constexpr int64_t kNextTag = -2;
constexpr int64_t kDigestTag = -3;
// What process 0 says is next: the number of a tensor to be digested, or
constexpr int64_t kEndOfSync = -1;

constexpr int64_t kDigestedAtOnce = int64_t{1} << 18;  // elements

void AddNumber(base::Digester& digester, int64_t number) { digester.Add(&number, sizeof(number)); }

void AddRegion(base::Digester& digester, const Region& region) {
  for (int axis = 0; axis < region.axes; ++axis) {
    const size_t i = static_cast<size_t>(axis);
    for (const int64_t number : {region.size[i], int64_t{region.a.dim[i]}, region.a.step[i],
                                 int64_t{region.b.dim[i]}, region.b.step[i]}) {
      AddNumber(digester, number);
    }
  }
  for (const Region::Side* side : {&region.a, &region.b}) {
    for (int dim = 0; dim < side->rank; ++dim) AddNumber(digester, side->begin[dim]);
  }
}

bool Contains(const Box& box, const std::array<int64_t, Shape::kMaxRank>& index) {
  for (int dim = 0; dim < box.rank; ++dim) {
    if (index[static_cast<size_t>(dim)] < box.begin[dim] ||
        index[static_cast<size_t>(dim)] >= box.begin[dim] + box.size[dim]) {
      return false;
    }
  }
  return true;
}

// Who holds the element. Mostly who holds the one before.
const Holding& HolderOf(const std::vector<Holding>& holdings,
                        const std::array<int64_t, Shape::kMaxRank>& index, size_t& last) {
  while (!Contains(holdings[last].box, index)) last = (last + 1) % holdings.size();
  return holdings[last];
}

}  // namespace

class ShardedSource::ShardedProgram : public Program {
 public:
  ShardedProgram(ShardedSource* source, ShardPlan plan, absl::Span<const Bucket> buckets)
      : source_(source), plan_(std::move(plan)), agreement_(source->DigestsFor(buckets)) {
    // Only process 0 writes into a slot, and only the others may have to compile again.
    if (source->communicator_->rank() == 0) {
      slot_bytes_ = BytesOf(buckets);
    } else {
      slot_bytes_.resize(buckets.size());
      buckets_.assign(buckets.begin(), buckets.end());
    }
  }

  absl::StatusOr<ReadGuard> Begin(Version version, const base::CancelScope& scope) override {
    absl::StatusOr<ReadGuard> local = source_->arrays_->Begin(version, *source_->gate_);
    Communicator& communicator = *source_->communicator_;
    WS_RETURN_IF_ERROR(communicator.BeginRound(version, local.status(), scope));
    source_->open_sync_ = &scope;
    binding_ = source_->arrays_->binding();
    auto reading = std::make_unique<ShardedReading>(source_, *std::move(local), scope);
    WS_RETURN_IF_ERROR(reading->Failed(Agree(scope)));
    return ReadGuard(std::move(reading));
  }

  absl::StatusOr<Event> Fill(int bucket, const DeviceSpan& dst, Stream&) override {
    if (source_->open_sync_ == nullptr) {
      return absl::FailedPreconditionError("no sync is open: Begin() first");
    }
    WS_RETURN_IF_ERROR(CheckSlot(bucket, slot_bytes_, dst));
    const auto bases = source_->arrays_->bases(binding_);
    if (!bases.ok()) return base::Prefixed(absl::StrCat("bucket ", bucket), bases.status());
    if (source_->communicator_->rank() == 0) plan_.own.Run(bucket, *bases, dst.data);
    WS_RETURN_IF_ERROR(source_->communicator_->Gather(
        bucket, plan_.sizes(bucket),
        [&](absl::Span<std::byte> message) { plan_.own.Run(bucket, *bases, message.data()); },
        [&](int process, absl::Span<const std::byte> message) {
          const std::byte* const base = message.data();
          plan_.from_others[static_cast<size_t>(process)].Run(bucket, {&base, 1}, dst.data);
        },
        *source_->open_sync_));
    return Event::Complete();
  }

 private:
  // The sync as this process reads for it; ends the round however it ends.
  class ShardedReading : public ReadGuard::Reading {
   public:
    ShardedReading(ShardedSource* source, ReadGuard local, const base::CancelScope& scope)
        : source_(source), local_(std::move(local)), scope_(scope) {}
    ~ShardedReading() override {
      Failed(absl::AbortedError("gave the sync up")).IgnoreError();
      source_->open_sync_ = nullptr;
    }

    absl::Status Unchanged() override {
      if (answer_.has_value()) return *answer_;
      Communicator& communicator = *source_->communicator_;
      WS_RETURN_IF_ERROR(Failed(communicator.rank() == 0
                                    ? communicator.Broadcast(kNextTag, kEndOfSync, scope_).status()
                                    : source_->GiveDigests(scope_)));
      answer_ = communicator.EndRound(local_.Unchanged(), scope_);
      return *answer_;
    }

    bool blocks_trainer() const override { return local_.blocks_trainer(); }

    // An error ends the round: the other processes hear of it.
    absl::Status Failed(const absl::Status& status) {
      if (!status.ok() && !answer_.has_value()) {
        answer_ = source_->communicator_->EndRound(status, scope_);
      }
      return status;
    }

   private:
    ShardedSource* const source_;
    const ReadGuard local_;
    const base::CancelScope& scope_;
    std::optional<absl::Status> answer_;
  };

  absl::Status Agree(const base::CancelScope& scope) {
    WS_ASSIGN_OR_RETURN(
        const std::vector<int> left,
        agreement_.Agree(
            *source_->communicator_,
            [this](int trainer, int process) { return source_->IsOnMesh(trainer, process); },
            [this](int trainer) {
              return source_->map_.trainer()[static_cast<size_t>(trainer)].name;
            },
            scope));
    if (left.empty()) return absl::OkStatus();
    for (const int trainer : left) {
      const size_t t = static_cast<size_t>(trainer);
      source_->holdings_.by_trainer[t] = {
          Holding{/*process=*/0, Box::Whole(source_->shardings_[t].shape())}};
    }
    WS_ASSIGN_OR_RETURN(plan_, source_->PlanFor(buckets_));
    return absl::OkStatus();
  }

  ShardedSource* const source_;
  ShardPlan plan_;
  std::vector<Bucket> buckets_;      // at processes other than 0
  std::vector<int64_t> slot_bytes_;  // by bucket: what Fill() writes into
  PlanAgreement agreement_;
  uint64_t binding_ = 0;  // of the sync that is open
};

absl::StatusOr<std::unique_ptr<ShardedSource>> ShardedSource::Create(
    WeightMap map, absl::Span<const ShardedSpec> specs, const Checkpoint* source,
    const StepGate* gate, Communicator* communicator, std::vector<int> process_of_rank) {
  if (gate == nullptr) return absl::InvalidArgumentError("the source has no StepGate");
  if (communicator == nullptr) return absl::InvalidArgumentError("the source has no Communicator");
  std::vector<ArraySpec> wholes;
  wholes.reserve(specs.size());
  for (const ShardedSpec& spec : specs) {
    wholes.push_back({spec.name, spec.dtype, spec.sharding.shape(), {}});
  }
  WS_RETURN_IF_ERROR(MatchSpecs(map, wholes).status());

  auto made = std::unique_ptr<ShardedSource>(new ShardedSource(std::move(map), gate, communicator));
  made->process_of_rank_ = std::move(process_of_rank);
  WS_RETURN_IF_ERROR(made->Declare(specs));
  WS_RETURN_IF_ERROR(CheckConversions(made->map_, made->holdings_.dtypes));
  if (communicator->rank() == 0) {
    WS_ASSIGN_OR_RETURN(const std::vector<const NamedTensor*> passed,
                        FindPassed(made->map_, source));
    for (const NamedTensor* tensor : passed) {
      made->holdings_.passed.push_back(
          tensor == nullptr ? -1 : static_cast<int>(made->holdings_.views.size()));
      if (tensor != nullptr) made->holdings_.views.push_back(tensor->tensor);
    }
  }
  made->arrays_ = std::make_unique<BoundArrays>(made->holdings_.views, made->view_of_.size());
  return made;
}

absl::Status ShardedSource::Declare(absl::Span<const ShardedSpec> specs) {
  std::vector<const ShardedSpec*> ordered(map_.trainer().size());
  const ShardedSpec* head = nullptr;
  for (const ShardedSpec& spec : specs) {
    const std::optional<int> trainer = map_.FindTrainer(spec.name);
    (trainer.has_value() ? ordered[static_cast<size_t>(*trainer)] : head) = &spec;
  }
  if (head != nullptr) {
    const Sharding& original =
        ordered[static_cast<size_t>(*map_.FindTrainer(map_.tied_to()))]->sharding;
    for (const int rank : head->sharding.mesh().ranks()) {
      if (head->sharding.LocalBox(rank) != original.LocalBox(rank)) {
        return absl::InvalidArgumentError(absl::StrCat("'", head->name, "' is tied to '",
                                                       map_.tied_to(), "' and sharded otherwise"));
      }
    }
  }
  holdings_.processes = communicator_->size();
  for (size_t trainer = 0; trainer < ordered.size(); ++trainer) {
    const ShardedSpec& spec = *ordered[trainer];
    holdings_.dtypes.push_back(spec.dtype);
    shardings_.push_back(spec.sharding);
    std::vector<Holding>& holders = holdings_.by_trainer.emplace_back();
    for (const int rank : spec.sharding.mesh().ranks()) {
      const int process = ProcessOf(rank);
      if (process < 0 || process >= holdings_.processes) {
        return absl::InvalidArgumentError(absl::StrCat("'", spec.name, "' is on mesh rank ", rank,
                                                       ", which is none of the ",
                                                       holdings_.processes, " processes'"));
      }
      const Box box = *spec.sharding.LocalBox(rank);
      if (!spec.sharding.Contributes(rank) || box.num_elements() == 0) continue;
      Holding& holding = holders.emplace_back(Holding{process, box});
      if (process != communicator_->rank()) continue;
      holding.view = static_cast<int>(holdings_.views.size());
      view_of_[{static_cast<int>(trainer), rank}] = holding.view;
      holdings_.views.push_back(TensorView::Contiguous(nullptr, spec.dtype, box.shape()));
    }
  }
  return absl::OkStatus();
}

// A mesh rank without a process: -1.
int ShardedSource::ProcessOf(int mesh_rank) const {
  if (process_of_rank_.empty()) return mesh_rank;
  const size_t rank = static_cast<size_t>(mesh_rank);
  return rank < process_of_rank_.size() ? process_of_rank_[rank] : -1;
}

absl::Status ShardedSource::Bind(Version version, absl::Span<const ShardArray> shards) {
  Release();
  Differences unread("that no HF tensor is made of"),
      elsewhere("of mesh ranks that this process does not hold"), twice("given twice"),
      other("of another shape or dtype, or not row-major"), empty("without memory"),
      missing("missing"), untied("different from what they are tied to");
  std::vector<const std::byte*> bases(view_of_.size());
  std::set<std::pair<std::string, int>> seen;
  std::vector<const ShardArray*> heads;
  for (const ShardArray& shard : shards) {
    const std::string what = absl::StrCat("'", shard.name, "' (mesh rank ", shard.mesh_rank, ")");
    std::optional<int> trainer = map_.FindTrainer(shard.name);
    const bool head = !trainer.has_value() && shard.name == map_.tied_head();
    if (head) trainer = map_.FindTrainer(map_.tied_to());
    if (!trainer.has_value()) {
      unread.Add(what);
      continue;
    }
    const size_t t = static_cast<size_t>(*trainer);
    const std::optional<Box> box = shardings_[t].LocalBox(shard.mesh_rank);
    if (!box.has_value() || ProcessOf(shard.mesh_rank) != communicator_->rank()) {
      elsewhere.Add(what);
      continue;
    }
    if (!seen.emplace(shard.name, shard.mesh_rank).second) twice.Add(what);
    if (shard.view.dtype() != holdings_.dtypes[t] || shard.view.shape() != box->shape() ||
        !shard.view.is_contiguous()) {
      other.Add(absl::StrCat(what, " ", shard.view.dtype(), " ", shard.view.shape(), " for ",
                             holdings_.dtypes[t], " ", box->shape()));
      continue;
    }
    if (shard.view.data() == nullptr && shard.view.num_bytes() > 0) empty.Add(what);
    const auto view = view_of_.find({*trainer, shard.mesh_rank});
    if (view == view_of_.end()) continue;  // a replica, or no elements
    if (head) {
      heads.push_back(&shard);
    } else {
      bases[static_cast<size_t>(view->second)] = shard.view.data();
    }
  }
  for (const auto& [place, view] : view_of_) {
    const std::string& name = map_.trainer()[static_cast<size_t>(place.first)].name;
    if (seen.find({name, place.second}) == seen.end()) {
      missing.Add(absl::StrCat("'", name, "' (mesh rank ", place.second, ")"));
    }
  }
  std::string found = JoinDifferences({&missing, &unread, &elsewhere, &twice, &other, &empty});
  if (found.empty()) {
    for (const ShardArray* head : heads) {
      const int trainer = *map_.FindTrainer(map_.tied_to());
      const size_t view = static_cast<size_t>(view_of_.at({trainer, head->mesh_rank}));
      const TensorView original = TensorView::Contiguous(
          bases[view], holdings_.dtypes[static_cast<size_t>(trainer)], head->view.shape());
      if (!SameValues(head->view, original)) untied.Add(absl::StrCat("'", head->name, "'"));
    }
    found = JoinDifferences({&untied});
  }
  if (!found.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the shards that process ",
                                                   communicator_->rank(), " holds of version ",
                                                   version, ": ", found));
  }
  arrays_->Bind(version, bases);
  return absl::OkStatus();
}

void ShardedSource::Release() { arrays_->Release(); }

absl::Status ShardedSource::UseSnapshots() { return arrays_->UseSnapshots(); }

absl::StatusOr<std::unique_ptr<Program>> ShardedSource::Compile(absl::Span<const Bucket> buckets) {
  WS_ASSIGN_OR_RETURN(ShardPlan plan, PlanFor(buckets));
  return std::make_unique<ShardedProgram>(this, std::move(plan), buckets);
}

absl::StatusOr<ShardPlan> ShardedSource::PlanFor(absl::Span<const Bucket> buckets) const {
  return CompileShardPlan(map_, holdings_, buckets, communicator_->rank(), copy_options_);
}

PlanAgreement::Digests ShardedSource::DigestsFor(absl::Span<const Bucket> buckets) const {
  PlanAgreement::Digests digests;
  base::Digester digester;
  for (const TensorSpec& tensor : info().tensors()) {
    digester.AddSized(tensor.name);
    AddNumber(digester, static_cast<int64_t>(tensor.dtype));
    digester.AddSized(tensor.shape.ToString());
  }
  for (int t = 0; t < info().size(); ++t) {
    for (const WeightMap::MappedRegion& mapped : map_.regions(t)) {
      AddNumber(digester, mapped.trainer);
      AddRegion(digester, mapped.region);
    }
  }
  for (size_t trainer = 0; trainer < holdings_.by_trainer.size(); ++trainer) {
    digester.AddSized(map_.trainer()[trainer].name);
    AddNumber(digester, static_cast<int64_t>(holdings_.dtypes[trainer]));
    base::Digester holders;
    for (const Holding& holding : holdings_.by_trainer[trainer]) {
      AddNumber(holders, holding.process);
      holders.AddSized(holding.box.ToString());
    }
    digests.by_trainer.push_back(holders.Finish());
  }
  const base::Digest128 plan = PlanDigest(buckets);
  digester.Add(&plan, sizeof(plan));
  digests.frame = digester.Finish();
  return digests;
}

bool ShardedSource::IsOnMesh(int trainer, int process) const {
  const absl::Span<const int> ranks = shardings_[static_cast<size_t>(trainer)].mesh().ranks();
  return std::any_of(ranks.begin(), ranks.end(),
                     [&](int rank) { return ProcessOf(rank) == process; });
}

// Element by element from the map's definition, without the plan. All processes go through the same
// chunks of the same regions; each sends process 0 its elements of a chunk.
class ShardedSource::ElementReader {
 public:
  // `bases` are those of this process's views.
  ElementReader(const ShardedSource& source, absl::Span<const std::byte* const> bases,
                const TensorSpec& spec, const WeightMap::MappedRegion& mapped)
      : source_(source),
        bases_(bases),
        holdings_(source.holdings_.by_trainer[static_cast<size_t>(mapped.trainer)]),
        from_(source.holdings_.dtypes[static_cast<size_t>(mapped.trainer)]),
        element_(StorageElementBytes(spec.dtype)),
        conversion_(*ConversionBetween(from_, spec.dtype)),
        cursor_(mapped.region, spec.shape),
        left_(mapped.region.num_elements()),
        sizes_(static_cast<size_t>(source.holdings_.processes)),
        received_(sizes_.size()) {}

  bool done() const { return left_ == 0; }

  // The next chunk. At process 0, `use` gets each element and its place in the HF tensor.
  template <typename Use>
  absl::Status Next(const Use& use) {
    const int64_t count = std::min(left_, kDigestedAtOnce);
    left_ -= count;
    const RegionCursor begin = cursor_;
    std::fill(sizes_.begin(), sizes_.end(), 0);
    for (int64_t i = 0; i < count; ++i, cursor_.Advance()) {
      const Holding& holding = HolderOf(holdings_, cursor_.b_index(), last_);
      if (holding.process != 0) sizes_[static_cast<size_t>(holding.process)] += element_;
    }
    Communicator& communicator = *source_.communicator_;
    WS_RETURN_IF_ERROR(communicator.Gather(
        kDigestTag, sizes_,
        [&](absl::Span<std::byte> message) {
          std::byte* to = message.data();
          RegionCursor cursor = begin;
          for (int64_t i = 0; i < count; ++i, cursor.Advance()) {
            const Holding& holding = HolderOf(holdings_, cursor.b_index(), last_);
            if (holding.process != communicator.rank()) continue;
            ReadLocal(holding, cursor.b_index(), to);
            to += element_;
          }
        },
        [&](int process, absl::Span<const std::byte> message) {
          received_[static_cast<size_t>(process)].assign(message.begin(), message.end());
        },
        *source_.open_sync_));
    if (communicator.rank() != 0) return absl::OkStatus();
    std::vector<size_t> at(received_.size());
    std::array<std::byte, 8> own;
    RegionCursor cursor = begin;
    for (int64_t i = 0; i < count; ++i, cursor.Advance()) {
      const Holding& holding = HolderOf(holdings_, cursor.b_index(), last_);
      const size_t process = static_cast<size_t>(holding.process);
      const std::byte* from = own.data();
      if (process == 0) {
        ReadLocal(holding, cursor.b_index(), own.data());
      } else {
        from = received_[process].data() + at[process];
        at[process] += static_cast<size_t>(element_);
      }
      use(cursor.a_place(), from);
    }
    return absl::OkStatus();
  }

 private:
  void ReadLocal(const Holding& holding, const std::array<int64_t, Shape::kMaxRank>& index,
                 std::byte* to) const {
    int64_t at = 0;
    for (int dim = 0; dim < holding.box.rank; ++dim) {
      at = at * holding.box.size[dim] + index[static_cast<size_t>(dim)] - holding.box.begin[dim];
    }
    const int64_t bytes = StorageElementBytes(from_);
    ConvertElement(conversion_, bases_[static_cast<size_t>(holding.view)] + at * bytes, bytes, to);
  }

  const ShardedSource& source_;
  const absl::Span<const std::byte* const> bases_;
  const std::vector<Holding>& holdings_;
  const DType from_;
  const int64_t element_;
  const Conversion conversion_;
  RegionCursor cursor_;
  int64_t left_;
  size_t last_ = 0;
  std::vector<int64_t> sizes_;
  std::vector<std::vector<std::byte>> received_;  // by process, of the chunk
};

absl::StatusOr<base::Digest128> ShardedSource::ReferenceDigest(int tensor) const {
  if (tensor < 0 || tensor >= info().size()) {
    return absl::InvalidArgumentError(absl::StrCat("no tensor ", tensor, " of ", info().size()));
  }
  if (communicator_->rank() != 0) {
    return absl::FailedPreconditionError("only process 0 has digests; the others take part");
  }
  if (open_sync_ == nullptr) {
    return absl::FailedPreconditionError("digests are taken inside of a sync, from all processes");
  }
  const TensorSpec& spec = info()[tensor];
  if (map_.passes_through(tensor)) {
    const int view = holdings_.passed[static_cast<size_t>(tensor)];
    return TensorDigest(spec.name, holdings_.views[static_cast<size_t>(view)]);
  }
  WS_ASSIGN_OR_RETURN(const auto bases, arrays_->bases());
  WS_RETURN_IF_ERROR(communicator_->Broadcast(kNextTag, tensor, *open_sync_).status());
  const absl::Span<const WeightMap::MappedRegion> regions = map_.regions(tensor);
  const int64_t element = StorageElementBytes(spec.dtype);
  if (regions.size() == 1) {  // all of the tensor, so in its order
    ElementReader reader(*this, bases, spec, regions[0]);
    std::vector<std::byte> chunk;
    size_t used = 0;
    absl::Status status;
    const base::Digest128 digest = TensorDigest(
        spec.name, spec.dtype, spec.shape, [&](int64_t begin, int64_t end, std::byte* dst) {
          for (int64_t left = (end - begin) * element; left > 0 && status.ok();) {
            if (used == chunk.size()) {
              chunk.clear();
              used = 0;
              status = reader.Next([&](int64_t, const std::byte* from) {
                chunk.insert(chunk.end(), from, from + element);
              });
              continue;
            }
            const size_t bytes = std::min(static_cast<size_t>(left), chunk.size() - used);
            std::memcpy(dst, chunk.data() + used, bytes);
            dst += bytes;
            used += bytes;
            left -= static_cast<int64_t>(bytes);
          }
        });
    WS_RETURN_IF_ERROR(status);
    return digest;
  }
  std::vector<std::byte> bytes(static_cast<size_t>(spec.bytes()));
  for (const WeightMap::MappedRegion& mapped : regions) {
    ElementReader reader(*this, bases, spec, mapped);
    while (!reader.done()) {
      WS_RETURN_IF_ERROR(reader.Next([&](int64_t place, const std::byte* from) {
        std::memcpy(bytes.data() + place * element, from, static_cast<size_t>(element));
      }));
    }
  }
  return TensorDigest(spec.name, TensorView::Contiguous(bytes.data(), spec.dtype, spec.shape));
}

absl::Status ShardedSource::GiveDigests(const base::CancelScope& scope) const {
  for (;;) {
    WS_ASSIGN_OR_RETURN(const int64_t next, communicator_->Broadcast(kNextTag, 0, scope));
    if (next == kEndOfSync) return absl::OkStatus();
    if (next < 0 || next >= info().size()) {
      return absl::InternalError(
          absl::StrCat("process 0 asks for tensor ", next, " of ", info().size()));
    }
    const int tensor = static_cast<int>(next);
    WS_ASSIGN_OR_RETURN(const auto bases, arrays_->bases());
    for (const WeightMap::MappedRegion& mapped : map_.regions(tensor)) {
      ElementReader reader(*this, bases, info()[tensor], mapped);
      while (!reader.done()) {
        WS_RETURN_IF_ERROR(reader.Next([](int64_t, const std::byte*) {}));
      }
    }
  }
}

}  // namespace weight_sync::refit
