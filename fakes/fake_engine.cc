// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/fake_engine.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "refit/tensor_digest.h"

namespace weight_sync::fakes {
namespace {

constexpr uint8_t kPoison = 0xA5;

absl::Status CarryOut(const EngineFault& fault) {
  switch (fault.action) {
    case EngineFault::Do::kFail:
      return absl::InternalError(fault.text);
    case EngineFault::Do::kKill:
      ::raise(SIGKILL);
      break;
    case EngineFault::Do::kStop:
      ::raise(SIGSTOP);
      break;
    case EngineFault::Do::kExit:
      ::syscall(SYS_exit_group, 0);  // _exit(2) is not told apart from a leak by thread sanitizers
      break;
    case EngineFault::Do::kDrop:
    case EngineFault::Do::kSwap:
      break;  // Destination()'s
  }
  return absl::OkStatus();
}

std::string NewIncarnation() {
  std::random_device random;
  return absl::StrFormat("%d-%08x%08x", ::getpid(), random(), random());
}

}  // namespace

base::Digest128 AnswerDigest(const Parameters& weights) {
  base::Digester digester;
  for (int t = 0; t < weights.info().size(); ++t) {
    const base::Digest128 digest = refit::TensorDigest(weights.info()[t].name, weights.view(t));
    digester.Add(&digest, sizeof(digest));
  }
  return digester.Finish();
}

absl::StatusOr<std::unique_ptr<FakeEngine>> FakeEngine::Create(const refit::RefitInfo& info,
                                                               std::vector<EngineFault> faults) {
  WS_ASSIGN_OR_RETURN(Parameters table, Parameters::Create(info));
  table.FillBytes(kPoison);
  return std::unique_ptr<FakeEngine>(new FakeEngine(std::move(table), std::move(faults)));
}

FakeEngine::FakeEngine(Parameters table, std::vector<EngineFault> faults)
    : table_(std::move(table)), faults_(std::move(faults)), incarnation_(NewIncarnation()) {}

absl::Status FakeEngine::Trip(EngineFault::At at) {
  for (const EngineFault& fault : faults_) {
    if (fault.at == at && (fault.update == updates_ || fault.update < 0)) {
      WS_RETURN_IF_ERROR(CarryOut(fault));
    }
  }
  return absl::OkStatus();
}

std::string FakeEngine::Describe() const {
  return absl::StrCat("the engine is ", paused_ ? "paused" : "serving", dirty_ ? ", dirty" : "",
                      update_.has_value() ? absl::StrCat(", updating to version ", *update_) : "",
                      version_.has_value() ? absl::StrCat(", at version ", *version_)
                                           : ", without a synced version");
}

absl::StatusOr<FakeEngine::Reply> FakeEngine::Answer() {
  absl::MutexLock lock(&mutex_);
  if (paused_ || dirty_ || !version_.has_value() || awake_.size() < std::size(kAllTags)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no answer: ", Describe(), awake_.size() < std::size(kAllTags) ? ", asleep" : ""));
  }
  return Reply{*version_, AnswerDigest(table_)};
}

absl::Status FakeEngine::Begin(const UpdateOptions& options, const base::CancelScope&) {
  absl::MutexLock lock(&mutex_);
  paused_ = true;
  CloseUpdate(/*published=*/false);
  ++updates_;
  WS_RETURN_IF_ERROR(Trip(EngineFault::At::kBegin));
  update_ = options.version;
  return absl::OkStatus();
}

absl::Status FakeEngine::BeginUpdate(Version version) {
  absl::MutexLock lock(&mutex_);
  if (!paused_ || update_ != version || receiving_ || awake_.count(MemoryTag::kWeights) == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("no transfer of version ", version, ": ", Describe(),
                     awake_.count(MemoryTag::kWeights) == 0 ? ", its weights asleep" : ""));
  }
  receiving_ = true;
  complete_ = false;
  loads_ = 0;
  loaded_bytes_ = 0;
  load_faults_.clear();
  for (const EngineFault& fault : faults_) {
    if (fault.at == EngineFault::At::kLoad && (fault.update == updates_ || fault.update < 0)) {
      load_faults_.push_back(fault);
    }
  }
  loading_ = true;
  return absl::OkStatus();
}

std::optional<int> FakeEngine::Destination(int tensor) const {
  const std::string& name = table_.info()[tensor].name;
  for (const EngineFault& fault : load_faults_) {
    if (fault.action == EngineFault::Do::kDrop && fault.tensor == name) return std::nullopt;
    if (fault.action != EngineFault::Do::kSwap) continue;
    if (fault.tensor == name) return table_.info().Find(fault.other);
    if (fault.other == name) return table_.info().Find(fault.tensor);
  }
  return tensor;
}

absl::Status FakeEngine::Load(int tensor, const refit::Box& box,
                              absl::Span<const std::byte> bytes) {
  if (!loading_) {
    absl::MutexLock lock(&mutex_);
    return absl::FailedPreconditionError(absl::StrCat("no transfer is open: ", Describe()));
  }
  const int64_t load = loads_;
  loads_.store(load + 1, std::memory_order_relaxed);
  loaded_bytes_.store(loaded_bytes_ + static_cast<int64_t>(bytes.size()),
                      std::memory_order_relaxed);
  if (!load_faults_.empty()) {
    for (const EngineFault& fault : load_faults_) {
      if (fault.load == load) WS_RETURN_IF_ERROR(CarryOut(fault));
    }
    const std::optional<int> destination = Destination(tensor);
    if (!destination.has_value()) return absl::OkStatus();
    tensor = *destination;
  }
  refit::StoreBox(bytes.data(), box, table_.view(tensor));
  return absl::OkStatus();
}

absl::Status FakeEngine::EndUpdate(Version version) {
  absl::MutexLock lock(&mutex_);
  if (!receiving_ || update_ != version) {
    return absl::FailedPreconditionError(
        absl::StrCat("no end of version ", version, ": ", Describe()));
  }
  loading_ = false;
  if (loaded_bytes_ != table_.info().total_bytes()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no end of version ", version, ": ", loaded_bytes_.load(), " of ",
                     table_.info().total_bytes(), " bytes were loaded"));
  }
  WS_RETURN_IF_ERROR(Trip(EngineFault::At::kEnd));
  complete_ = true;
  return absl::OkStatus();
}

void FakeEngine::AbortUpdate(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (!receiving_) return;  // published, or never begun
  last_abort_ = why;
  CloseUpdate(/*published=*/false);
}

void FakeEngine::CloseUpdate(bool published) {
  // loads_ counts what may have changed the table.
  if (receiving_ && loads_ > 0) dirty_ = !published;
  update_.reset();
  receiving_ = complete_ = false;
  loading_ = false;
}

absl::Status FakeEngine::Finish(Version version, const base::CancelScope&) {
  absl::MutexLock lock(&mutex_);
  if (update_ != version || !complete_) {
    return absl::FailedPreconditionError(
        absl::StrCat("version ", version, " is not complete: ", Describe()));
  }
  WS_RETURN_IF_ERROR(Trip(EngineFault::At::kFinish));
  CloseUpdate(/*published=*/true);
  dirty_ = false;
  version_ = version;
  return absl::OkStatus();
}

absl::Status FakeEngine::Resume(const base::CancelScope&) {
  absl::MutexLock lock(&mutex_);
  if (dirty_ || (receiving_ && loads_ > 0)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no resume before a full sync: the table may hold mixed weights; ", Describe()));
  }
  WS_RETURN_IF_ERROR(Trip(EngineFault::At::kResume));
  CloseUpdate(/*published=*/false);
  paused_ = false;
  return absl::OkStatus();
}

absl::Status FakeEngine::PrepareForGeneration(absl::Span<const MemoryTag> tags,
                                              const base::CancelScope&) {
  absl::MutexLock lock(&mutex_);
  awake_.insert(tags.begin(), tags.end());
  return absl::OkStatus();
}

absl::Status FakeEngine::Sleep(absl::Span<const MemoryTag> tags, const base::CancelScope&) {
  absl::MutexLock lock(&mutex_);
  if (update_.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat("no sleep: ", Describe()));
  }
  for (const MemoryTag tag : tags) {
    awake_.erase(tag);
    if (tag == MemoryTag::kWeights) {
      table_.FillBytes(kPoison);
      version_.reset();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<EngineState> FakeEngine::State(const base::CancelScope&) {
  absl::MutexLock lock(&mutex_);
  EngineState state;
  state.version = version_;
  state.paused = paused_;
  state.dirty = dirty_;
  state.awake.assign(awake_.begin(), awake_.end());
  state.incarnation = incarnation_;
  return state;
}

absl::StatusOr<std::vector<NamedDigest>> FakeEngine::TableDigests(const base::CancelScope&) {
  absl::MutexLock lock(&mutex_);
  if (receiving_ && !complete_) {
    return absl::FailedPreconditionError(absl::StrCat("no digests: ", Describe()));
  }
  WS_RETURN_IF_ERROR(Trip(EngineFault::At::kDigests));
  std::vector<NamedDigest> digests;
  for (int t = 0; t < table_.info().size(); ++t) {
    digests.push_back(
        {table_.info()[t].name, refit::TensorDigest(table_.info()[t].name, table_.view(t))});
  }
  return digests;
}

absl::Status FakeEngine::last_abort() const {
  absl::MutexLock lock(&mutex_);
  return last_abort_;
}

}  // namespace weight_sync::fakes
