// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/c_api/source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "refit/contribute.h"
#include "refit/device/device.h"
#include "refit/layout/box.h"
#include "refit/maps/all_families.h"
#include "refit/maps/family.h"
#include "refit/maps/manifest.h"
#include "refit/maps/model_config.h"
#include "refit/refit_info.h"
#include "refit/refit_info_json.h"
#include "refit/sharding/communicators/thread_communicator.h"
#include "refit/sharding/mesh.h"
#include "refit/tensor/shape.h"
#include "weight_sync/c_api/arrays.h"
#include "weight_sync/c_api/boundary.h"
#include "weight_sync/c_api/sized_struct.h"

namespace weight_sync::c_api {
namespace {

using refit::Bucket;
using refit::Piece;
using refit::WeightMap;

// Beyond any machine's cores: a mistake.
constexpr int kMostCopyThreads = 1024;

absl::StatusOr<refit::ModelConfig> ReadConfig(const ws_source_options& options) {
  if ((options.config_path == nullptr) == (options.config_json == nullptr)) {
    return absl::InvalidArgumentError("a source needs config_path or config_json, one of them");
  }
  if (options.config_path != nullptr) return refit::ReadModelConfig(options.config_path);
  return refit::ParseModelConfig(options.config_json);
}

absl::StatusOr<refit::LayoutOptions> ReadLayout(const ws_source_options& options) {
  WS_RETURN_IF_ERROR(CheckGiven("layout", options.layout));
  refit::LayoutOptions layout;
  layout.name = options.layout;
  if (options.scanned != 0 && options.scanned != 1) {
    return absl::InvalidArgumentError(absl::StrCat("scanned is ", options.scanned, ", not 0 or 1"));
  }
  layout.scanned = options.scanned == 1;
  if (layout.scanned) layout.scan_axis = options.scan_axis;
  if (options.scan_period != 0) layout.scan_period = options.scan_period;
  return layout;
}

// Each in a bucket of its own.
std::vector<Bucket> WholeTensors(const refit::RefitInfo& info) {
  std::vector<Bucket> buckets(static_cast<size_t>(info.size()));
  for (int t = 0; t < info.size(); ++t) {
    Bucket& bucket = buckets[static_cast<size_t>(t)];
    bucket.bytes = info[t].bytes();
    if (bucket.bytes == 0) continue;  // no piece, as from Pack()
    const refit::Shape shape = refit::StorageShape(info[t].dtype, info[t].shape);
    bucket.pieces = {{t, refit::Box::Whole(shape), /*dst=*/0, bucket.bytes}};
  }
  return buckets;
}

int CountOf(size_t count) { return static_cast<int>(count); }

}  // namespace

Source::Source(const ws_source_options& options, std::shared_ptr<refit::Communicator> communicator,
               std::unique_ptr<const refit::Checkpoint> checkpoint, WeightMap map)
    : snapshots_(options.snapshots == 1),
      communicator_(std::move(communicator)),
      checkpoint_(std::move(checkpoint)),
      map_(std::move(map)),
      names_(map_),
      dtypes_(map_.trainer().size()) {
  if (options.copy_threads > 0) copy_options_.threads = options.copy_threads;
  if (options.process_of_rank == nullptr) return;
  process_of_rank_.assign(options.process_of_rank, options.process_of_rank + options.mesh_ranks);
}

absl::StatusOr<std::shared_ptr<Source>> Source::Open(
    const ws_source_options& options, std::shared_ptr<refit::Communicator> communicator) {
  if (options.snapshots != 0 && options.snapshots != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshots is ", options.snapshots, ", not 0 or 1"));
  }
  if (options.mesh_ranks < 0 || (options.process_of_rank == nullptr && options.mesh_ranks != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("mesh_ranks is ", options.mesh_ranks, ", not the length of process_of_rank"));
  }
  if (options.copy_threads < 0 || options.copy_threads > kMostCopyThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("copy_threads is ", options.copy_threads, ", not 0 to ", kMostCopyThreads));
  }
  WS_ASSIGN_OR_RETURN(const refit::ModelConfig config, ReadConfig(options));
  WS_ASSIGN_OR_RETURN(const refit::LayoutOptions layout, ReadLayout(options));
  const refit::FamilyRegistry families = refit::AllFamilies();
  WS_ASSIGN_OR_RETURN(const refit::Family* const family, families.Find(config.model_type));

  std::unique_ptr<const refit::Checkpoint> checkpoint;
  std::optional<refit::Manifest> manifest;
  if (options.checkpoint != nullptr) {
    WS_ASSIGN_OR_RETURN(refit::Checkpoint opened, refit::Checkpoint::Open(options.checkpoint));
    checkpoint = std::make_unique<const refit::Checkpoint>(std::move(opened));
  }
  if (options.manifest_json != nullptr) {
    auto tensors = refit::RefitInfoFromJson(options.manifest_json);
    if (!tensors.ok()) return base::Prefixed("manifest_json", tensors.status());
    manifest.emplace(*std::move(tensors));
  } else if (checkpoint != nullptr) {
    WS_ASSIGN_OR_RETURN(manifest, refit::Manifest::Record(*checkpoint));
  }

  refit::MapOptions map_options;
  if (options.target != nullptr) map_options.target = options.target;
  if (manifest.has_value()) map_options.manifest = &*manifest;
  WS_ASSIGN_OR_RETURN(WeightMap map, WeightMap::Build(*family, config, layout, map_options));
  return std::shared_ptr<Source>(
      new Source(options, std::move(communicator), std::move(checkpoint), std::move(map)));
}

std::optional<refit::DType> Source::DeclaredDType(int array) const {
  return dtypes_[static_cast<size_t>(array)];
}

absl::StatusOr<refit::RefitSource*> Source::declared() const {
  if (sharded_ != nullptr) return sharded_.get();
  if (whole_ != nullptr) return whole_.get();
  return absl::FailedPreconditionError("no arrays are declared: call ws_source_declare first");
}

absl::StatusOr<Source::Declared> Source::ReadArray(const ws_array* given) const {
  ws_array array;
  WS_RETURN_IF_ERROR(ReadSized("array", given, &array));
  if (array.name == nullptr) return absl::InvalidArgumentError("an array has no name");
  const std::string described = absl::StrCat("array '", array.name, "'");
  auto spec = ReadSpec(array.dtype, array.rank, array.shape, array.strides);
  if (!spec.ok()) return base::Prefixed(described, spec.status());
  Declared declared = {*std::move(spec), std::nullopt};
  declared.spec.name = names_.NameOf(array.name);
  if (array.sharding == nullptr) return declared;
  auto sharding = ReadSharding(array.sharding, declared.spec.shape);
  if (!sharding.ok()) return base::Prefixed(described, sharding.status());
  declared.sharding = *std::move(sharding);
  return declared;
}

absl::Status Source::Declare(const ws_array* arrays, size_t count) {
  if (declared().ok()) {
    return absl::FailedPreconditionError("the arrays are declared already: open another source");
  }
  if (count > 0) WS_RETURN_IF_ERROR(CheckSize("array", arrays));
  std::vector<Declared> read;
  bool sharded = communicator_ != nullptr && communicator_->size() > 1;
  for (size_t i = 0; i < count; ++i) {
    WS_ASSIGN_OR_RETURN(Declared array, ReadArray(At(arrays, i)));
    if (array.sharding.has_value() && array.sharding->mesh().ranks().size() > 1) sharded = true;
    read.push_back(std::move(array));
  }
  WS_RETURN_IF_ERROR(sharded ? DeclareSharded(read) : DeclareWhole(read));
  for (const Declared& array : read) {
    const std::optional<int> tensor = map_.FindTrainer(array.spec.name);  // not of a tied head
    if (tensor.has_value()) dtypes_[static_cast<size_t>(*tensor)] = array.spec.dtype;
  }
  return absl::OkStatus();
}

absl::Status Source::DeclareWhole(const std::vector<Declared>& arrays) {
  std::vector<refit::ArraySpec> specs;
  for (const Declared& array : arrays) specs.push_back(array.spec);
  WS_ASSIGN_OR_RETURN(auto made,
                      refit::MapSource::CreateUnbound(map_, specs, checkpoint_.get(), &gate_));
  made->UseCopyOptions(copy_options_);
  if (snapshots_) WS_RETURN_IF_ERROR(made->UseSnapshots());
  whole_ = std::move(made);
  return absl::OkStatus();
}

absl::Status Source::DeclareSharded(const std::vector<Declared>& arrays) {
  std::vector<refit::ShardedSpec> specs;
  int ranks = 1;
  for (const Declared& array : arrays) {
    specs.push_back({array.spec.name, array.spec.dtype,
                     array.sharding.has_value() ? *array.sharding
                                                : refit::Sharding::OnRankZero(array.spec.shape)});
    if (!array.sharding.has_value()) on_every_process_.insert(array.spec.name);
    for (const int rank : specs.back().sharding.mesh().ranks()) ranks = std::max(ranks, rank + 1);
  }
  if (communicator_ == nullptr) {
    WS_ASSIGN_OR_RETURN(auto alone, refit::MakeThreadCommunicators(1));
    communicator_ = std::move(alone[0]);
    if (process_of_rank_.empty()) process_of_rank_.resize(static_cast<size_t>(ranks));
  }
  WS_ASSIGN_OR_RETURN(auto made,
                      refit::ShardedSource::Create(map_, specs, checkpoint_.get(), &gate_,
                                                   communicator_.get(), process_of_rank_));
  made->UseCopyOptions(copy_options_);
  if (snapshots_) WS_RETURN_IF_ERROR(made->UseSnapshots());
  sharded_ = std::move(made);
  return absl::OkStatus();
}

void Source::GiveBack() {
  if (whole_ != nullptr) whole_->Release();
  if (sharded_ != nullptr) sharded_->Release();
  loans_ = Loans();
}

absl::Status Source::Bind(refit::Version version, const ws_binding* bindings, size_t count) {
  // Before anything else: they are ours from here on.
  absl::StatusOr<Loans> taken = Loans::Take(bindings, count);
  if (refit_open_) {
    return absl::FailedPreconditionError("a refit is open: end it before arrays are bound anew");
  }
  GiveBack();
  if (!taken.ok()) return taken.status();
  WS_RETURN_IF_ERROR(declared().status());
  WS_RETURN_IF_ERROR(sharded_ != nullptr ? BindSharded(version, *taken)
                                         : BindWhole(version, *taken));
  loans_ = *std::move(taken);
  return absl::OkStatus();
}

absl::Status Source::BindWhole(refit::Version version, const Loans& loans) {
  std::vector<refit::TrainerArray> arrays;
  arrays.reserve(loans.arrays().size());
  for (const Loans::Array& array : loans.arrays()) {
    arrays.push_back({names_.NameOf(array.name), array.view});
  }
  return whole_->Bind(version, arrays);
}

absl::Status Source::BindSharded(refit::Version version, const Loans& loans) {
  std::vector<refit::ShardArray> shards;
  shards.reserve(loans.arrays().size());
  for (const Loans::Array& array : loans.arrays()) {
    std::string name = names_.NameOf(array.name);
    // Process 0's is taken.
    if (communicator_->rank() != 0 && on_every_process_.contains(name)) continue;
    shards.push_back({std::move(name), array.view, array.mesh_rank});
  }
  return sharded_->Bind(version, shards);
}

absl::Status Source::Release() {
  if (refit_open_) return absl::FailedPreconditionError("a refit is open: it gives all back");
  GiveBack();
  return absl::OkStatus();
}

void Source::Close() {
  if (!refit_open_) GiveBack();
}

absl::StatusOr<base::Digest128> Source::Digest(int tensor) const {
  WS_ASSIGN_OR_RETURN(const refit::RefitSource* const source, declared());
  return source->ReferenceDigest(tensor);
}

absl::Status Source::BeginRefit(absl::FunctionRef<absl::Status()> begin) {
  if (refit_open_) return absl::FailedPreconditionError("another refit of this source is open");
  WS_RETURN_IF_ERROR(begin());
  refit_open_ = true;
  if (snapshots_) GiveBack();  // the copy is made
  return absl::OkStatus();
}

void Source::EndRefit() {
  refit_open_ = false;
  GiveBack();
}

absl::Status Source::Contribute(refit::Program& program, size_t buckets, refit::Version version,
                                const base::CancelScope& scope) {
  if (refit_open_) return absl::FailedPreconditionError("another refit of this source is open");
  const bool is_root = communicator_ == nullptr || communicator_->rank() == 0;
  const absl::Status contributed =
      is_root ? absl::FailedPreconditionError("process 0 does not contribute: it refits")
              : refit::Contribute(program, buckets, version, scope);
  GiveBack();
  return contributed;
}

CompiledProgram::CompiledProgram(std::shared_ptr<Source> source, std::vector<Bucket> buckets,
                                 std::unique_ptr<refit::Program> program)
    : source_(std::move(source)), buckets_(std::move(buckets)), program_(std::move(program)) {}

absl::StatusOr<std::shared_ptr<CompiledProgram>> CompiledProgram::Compile(
    std::shared_ptr<Source> source, const std::optional<refit::Geometry>& geometry) {
  WS_ASSIGN_OR_RETURN(refit::RefitSource* const declared, source->declared());
  std::vector<Bucket> buckets;
  if (geometry.has_value()) {
    WS_ASSIGN_OR_RETURN(buckets, refit::Pack(declared->info(), *geometry));
  } else {
    buckets = WholeTensors(declared->info());
  }
  WS_ASSIGN_OR_RETURN(std::unique_ptr<refit::Program> program, declared->Compile(buckets));
  return std::shared_ptr<CompiledProgram>(
      new CompiledProgram(std::move(source), std::move(buckets), std::move(program)));
}

absl::StatusOr<const Bucket*> CompiledProgram::BucketAt(int32_t index) const {
  if (index < 0 || index >= CountOf(buckets_.size())) {
    return absl::InvalidArgumentError(absl::StrCat("no bucket ", index, " of ", buckets_.size()));
  }
  return &buckets_[static_cast<size_t>(index)];
}

absl::StatusOr<ws_piece> CompiledProgram::PieceAt(int32_t bucket, int32_t index) const {
  WS_ASSIGN_OR_RETURN(const Bucket* const in, BucketAt(bucket));
  if (index < 0 || index >= CountOf(in->pieces.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("no piece ", index, " of ", in->pieces.size(), " in bucket ", bucket));
  }
  const Piece& piece = in->pieces[static_cast<size_t>(index)];
  // Pack() cuts tensors into boxes whose elements follow one another.
  const refit::TensorSpec& tensor = source_->map().hf()[piece.tensor];
  const refit::Shape shape = refit::StorageShape(tensor.dtype, tensor.shape);
  ws_piece found = {};
  found.tensor = piece.tensor;
  found.tensor_offset = piece.box.FirstElementIn(shape) * refit::StorageElementBytes(tensor.dtype);
  found.bucket_offset = piece.dst;
  found.bytes = piece.bytes;
  return found;
}

absl::Status CompiledProgram::Contribute(refit::Version version, const base::Deadline& deadline) {
  const base::CancelScope scope(deadline);
  return source_->Contribute(*program_, buckets_.size(), version, scope);
}

Refit::Refit(std::shared_ptr<CompiledProgram> program, const base::Deadline& deadline)
    : program_(std::move(program)), scope_(deadline) {}

absl::StatusOr<std::unique_ptr<Refit>> Refit::Begin(std::shared_ptr<CompiledProgram> program,
                                                    refit::Version version,
                                                    const base::Deadline& deadline) {
  Source& source = *program->source_;
  std::unique_ptr<Refit> refit(new Refit(std::move(program), deadline));
  WS_RETURN_IF_ERROR(source.BeginRefit([&]() -> absl::Status {
    WS_ASSIGN_OR_RETURN(refit::ReadGuard guard,
                        refit->program_->program_->Begin(version, refit->scope_));
    refit->guard_.emplace(std::move(guard));
    return absl::OkStatus();
  }));
  return refit;
}

Refit::~Refit() {
  if (!guard_.has_value()) return;  // it never began
  guard_.reset();
  program_->source_->EndRefit();
}

absl::Status Refit::Fill(int32_t bucket, void* memory, int64_t bytes) {
  WS_ASSIGN_OR_RETURN(const Bucket* const wanted, program_->BucketAt(bucket));
  if (bytes < wanted->bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("bucket ", bucket, " takes ", wanted->bytes, " bytes, and there are ", bytes));
  }
  if (wanted->bytes > 0) WS_RETURN_IF_ERROR(CheckGiven("memory", memory));
  refit::Stream stream = refit::Stream::Host();
  WS_ASSIGN_OR_RETURN(
      const refit::Event filled,
      program_->program_->Fill(
          bucket, {static_cast<std::byte*>(memory), bytes, refit::Device::Host()}, stream));
  return filled.Wait(scope_.deadline());
}

}  // namespace weight_sync::c_api
