// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/process_test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/log/check.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/shared_memory.h"
#include "base/status_macros.h"
#include "fakes/answer_service.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "refit/packing/packer.h"
#include "refit/refit_info_json.h"
#include "weight_sync/ipc/ipc_link.h"
#include "weight_sync/ipc/ipc_weight_synchronizer.h"
#include "weight_sync/ipc/protocol.h"
#include "weight_sync/wire/rpc.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::IsEmpty;

constexpr char kTrainerRole[] = "--trainer";

std::vector<std::string> Names(const std::string& directory) {
  std::vector<std::string> names;
  DIR* const open = ::opendir(directory.c_str());
  if (open == nullptr) return names;
  while (const dirent* entry = ::readdir(open)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(open);
  return names;
}

int MapLines(pid_t pid, const std::string& having) {
  std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
  int lines = 0;
  for (std::string line; std::getline(maps, line);) lines += absl::StrContains(line, having);
  return lines;
}

base::CancelScope& Scope(std::optional<base::CancelScope>& scope) {
  return scope.emplace(base::Deadline::After(kLongTimeout));
}

// The signal between commit and finish.
class SignalledAtFinish : public native::NativeGeneration {
 public:
  SignalledAtFinish(const std::string& endpoint, int64_t sync, int signal)
      : NativeGeneration(endpoint), sync_(sync), signal_(signal) {}
  absl::Status Finish(Version version, const base::CancelScope& scope) override {
    if (finishes_++ == sync_) ::raise(signal_);
    return NativeGeneration::Finish(version, scope);
  }

 private:
  const int64_t sync_;
  const int signal_;
  int64_t finishes_ = 0;
};

// The hello of a trainer that gets the signal before it has unlinked its ring.
absl::Status SignalledAtHandOver(const std::string& endpoint, const refit::RefitInfo& info,
                                 int signal) {
  ipc::HelloBody hello;
  hello.ring = {/*slots=*/4, /*slot_bytes=*/4096};
  hello.geometry = refit::Geometry{hello.ring.slot_bytes};
  WS_ASSIGN_OR_RETURN(const base::SharedMemory memory,
                      base::SharedMemory::Create(hello.ring.bytes()));
  hello.ring_name = memory.name();
  ReportLine(memory.name());
  const base::CancelScope scope(base::Deadline::After(kLongTimeout));
  WS_ASSIGN_OR_RETURN(auto client, wire::RpcClient::Connect(endpoint, "engine", scope));
  WS_ASSIGN_OR_RETURN(const std::string tensors, refit::RefitInfoToJson(info));
  WS_RETURN_IF_ERROR(
      client
          ->Call(absl::StrCat(ipc::kServicePrefix, ipc::kHello), ipc::ToJson(hello), tensors, scope)
          .status());
  ::raise(signal);
  return absl::OkStatus();
}

absl::Status RunTrainer(const nlohmann::json& config) {
  const auto at = static_cast<TrainerScript::At>(config.at("at").get<int>());
  const int signal = config.at("signal").get<int>();
  const int64_t sync = config.at("sync").get<int64_t>();
  const std::string endpoint = config.at("endpoint").get<std::string>();
  WS_ASSIGN_OR_RETURN(const refit::RefitInfo info,
                      refit::RefitInfoFromJson(config.at("info").get<std::string>()));
  if (at == TrainerScript::At::kHandOver) return SignalledAtHandOver(endpoint, info, signal);

  std::vector<LinkFault> faults;
  if (at == TrainerScript::At::kBucket) {
    faults.push_back({sync, config.at("bucket").get<int64_t>(), LinkFault::Do::kCall,
                      [signal] { ::raise(signal); }});
  }
  SynchronizerOptions options = SmallRing(endpoint);
  options.sync_timeout = absl::Milliseconds(config.at("sync_timeout_ms").get<int64_t>());
  WS_ASSIGN_OR_RETURN(auto policy, SeededPolicy::Create(info, config.at("seed").get<uint64_t>()));
  SignalledAtFinish generation(endpoint, at == TrainerScript::At::kFinish ? sync : -1, signal);
  ipc::IpcWeightSynchronizer synchronizer(
      options, policy.get(), &generation,
      std::make_unique<FaultyLink>(
          std::make_unique<ipc::IpcLink>(
              endpoint, ipc::RingLayout{options.ring_slots, options.ring_slot_bytes}),
          std::move(faults)));
  WS_RETURN_IF_ERROR(synchronizer.InitCommunicator());
  ReportLine("connected");
  for (int i = 0; i < config.at("syncs").get<int>(); ++i) {
    if (i > 0) {
      policy->Step();
      synchronizer.MarkStale();
    }
    WS_ASSIGN_OR_RETURN(const SyncReport report, synchronizer.SyncWeights());
    ReportLine(absl::StrCat("synced ", report.version));
  }
  WaitForParent();
  return absl::OkStatus();
}

}  // namespace

std::optional<int> MaybeRunChild(int argc, char** argv) {
  if (const std::optional<int> code = MaybeRunEngineProcess(argc, argv)) return code;
  if (argc != 2 || std::string(argv[1]) != kTrainerRole) return std::nullopt;
  const absl::Status status = RunTrainer(nlohmann::json::parse(ChildConfig()));
  if (!status.ok()) ReportLine(absl::StrCat("error: ", status.ToString()));
  return status.ok() ? 0 : 1;
}

absl::StatusOr<ChildProcess> StartTrainerProcess(const TrainerScript& script) {
  WS_ASSIGN_OR_RETURN(const std::string info, refit::RefitInfoToJson(script.info));
  return ChildProcess::Start(
      kTrainerRole,
      nlohmann::json{{"endpoint", script.endpoint},
                     {"info", info},
                     {"syncs", script.syncs},
                     {"at", static_cast<int>(script.at)},
                     {"sync", script.sync},
                     {"bucket", script.bucket},
                     {"signal", script.signal},
                     {"sync_timeout_ms", absl::ToInt64Milliseconds(script.sync_timeout)},
                     {"seed", script.seed}}
          .dump());
}

int OpenFds(pid_t pid) {
  // One of this process's own is the directory that is being read.
  return static_cast<int>(Names(absl::StrCat("/proc/", pid, "/fd")).size()) -
         (pid == ::getpid() ? 1 : 0);
}

int Mappings(pid_t pid) { return MapLines(pid, ""); }

int RingMappings(pid_t pid) { return MapLines(pid, base::SharedMemoryPrefix()); }

int64_t ResidentBytes(pid_t pid) {
  std::ifstream statm(absl::StrCat("/proc/", pid, "/statm"));
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

bool LeftNoSharedMemory(pid_t pid) {
  const std::string prefix = base::SharedMemoryPrefix(pid);
  return WaitUntil([&prefix] {
    for (const std::string& name : Names("/dev/shm")) {
      if (absl::StartsWith(name, prefix)) return false;
    }
    return true;
  });
}

bool WaitUntil(const std::function<bool()>& done) {
  const base::Deadline deadline = base::Deadline::After(absl::Minutes(1));
  while (!done()) {
    if (deadline.expired()) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

void AwaitStopped(pid_t child) {
  siginfo_t info;
  PCHECK(::waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOWAIT) == 0);
}

SynchronizerOptions SmallRing(const std::string& endpoint) {
  SynchronizerOptions options;
  options.endpoint = endpoint;
  options.ring_slots = 4;
  options.ring_slot_bytes = 4096;
  options.deep_verification_every = 1;
  options.connect_timeout = options.sync_timeout = options.cleanup_timeout = kLongTimeout;
  return options;
}

refit::RefitInfo SmallTensors(int count) {
  std::vector<refit::TensorSpec> tensors;
  for (int i = 0; i < count; ++i) {
    tensors.push_back({absl::StrCat("t", i), {1024}, refit::DType::kF32});
  }
  return *refit::RefitInfo::Create(tensors);
}

Trainer::Trainer(const TrainerOptions& options)
    : endpoint_(options.sync.endpoint),
      policy_(*SeededPolicy::Create(options.info, options.seed)),
      generation_(endpoint_) {
  CHECK_OK(CheckOptions(options.sync));
  synchronizer_ = std::make_unique<ipc::IpcWeightSynchronizer>(
      options.sync, policy_.get(), &generation_,
      std::make_unique<FaultyLink>(
          std::make_unique<ipc::IpcLink>(
              endpoint_, ipc::RingLayout{options.sync.ring_slots, options.sync.ring_slot_bytes}),
          options.faults));
}

void Trainer::Step() {
  policy_->Step();
  synchronizer_->MarkStale();
}

absl::StatusOr<FakeEngine::Reply> Trainer::Ask() {
  std::optional<base::CancelScope> scope;
  WS_ASSIGN_OR_RETURN(auto client, wire::RpcClient::Connect(endpoint_, "engine", Scope(scope)));
  return AskForAnswer(*client, *scope);
}

absl::StatusOr<EngineState> Trainer::State() {
  std::optional<base::CancelScope> scope;
  return generation_.State(Scope(scope));
}

void ExpectWholeSync(Trainer& trainer) {
  const absl::StatusOr<SyncReport> report = trainer.synchronizer().SyncWeights();
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->verification, Verification::kEqual);
  EXPECT_FALSE(trainer.synchronizer().is_stale());
  const absl::StatusOr<FakeEngine::Reply> answer = trainer.Ask();
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->version, report->version);
  EXPECT_EQ(answer->weights, AnswerDigest(trainer.policy().parameters()));
}

void ExpectDirty(Trainer& trainer) {
  EXPECT_TRUE(trainer.synchronizer().is_stale());
  EXPECT_THAT(trainer.Ask(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      ::testing::HasSubstr("paused, dirty")));
  const absl::StatusOr<EngineState> state = trainer.State();
  ASSERT_THAT(state, IsOk());
  EXPECT_TRUE(state->dirty);
  EXPECT_TRUE(state->paused);
}

ProcessTest::ProcessTest() {
  ::signal(SIGPIPE, SIG_IGN);
  fds_before_ = OpenFds(::getpid());
}

void ProcessTest::TearDown() {
  engine_.reset();
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child process is left";
  EXPECT_THAT(Names(directory()), IsEmpty());
  children_.push_back(::getpid());
  for (const pid_t pid : children_) {
    EXPECT_TRUE(LeftNoSharedMemory(pid)) << pid;
  }
  // Sockets close on ZeroMQ's own thread.
  EXPECT_TRUE(WaitUntil([this] { return OpenFds(::getpid()) <= fds_before_; }))
      << OpenFds(::getpid()) << " open, " << fds_before_ << " before";
}

std::string ProcessTest::Endpoint(const std::string& name) const {
  return absl::StrCat(directory(), "/", name);
}

void ProcessTest::StartEngine(const refit::RefitInfo& info, std::vector<EngineFault> faults) {
  absl::StatusOr<EngineProcess> engine =
      EngineProcess::Start({Endpoint(), info, std::move(faults)});
  CHECK_OK(engine);
  engine_.emplace(*std::move(engine));
  RememberChild(engine_->process().pid());
}

std::string ProcessTest::ReapEngine() {
  const absl::StatusOr<int> status = engine_->process().Wait(base::Deadline::After(kLongTimeout));
  CHECK_OK(status);
  engine_.reset();
  return DescribeWaitStatus(*status);
}

std::unique_ptr<Trainer> ProcessTest::StartTrainer(const refit::RefitInfo& info,
                                                   std::vector<LinkFault> faults) {
  auto trainer =
      std::make_unique<Trainer>(TrainerOptions{info, SmallRing(Endpoint()), std::move(faults)});
  CHECK_OK(trainer->synchronizer().InitCommunicator());
  return trainer;
}

}  // namespace weight_sync::fakes
