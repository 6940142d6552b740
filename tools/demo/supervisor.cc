// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/demo/supervisor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "absl/log/check.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/cancel_scope.h"
#include "base/shared_memory.h"
#include "base/status_macros.h"
#include "fakes/answer_service.h"
#include "fakes/child_process.h"
#include "fakes/engine_process.h"
#include "refit/checkpoint/checkpoint.h"
#include "tools/common/human_numbers.h"
#include "tools/common/temporary_directory.h"
#include "tools/demo/demo_checkpoint.h"
#include "tools/demo/injection.h"
#include "tools/demo/trainer.h"
#include "weight_sync/engines/native/native_generation.h"
#include "weight_sync/wire/rpc.h"

namespace weight_sync::demo {
namespace {

// What a signal handler may touch. The supervisor waits for its trainer nearly always, so a signal
// ends the trainer, and the supervisor then cleans up as it does after any end.
std::atomic<int> interrupted_by{0};
std::atomic<pid_t> trainer_to_end{0};

void OnSignal(int signal) {
  interrupted_by.store(signal);
  if (const pid_t pid = trainer_to_end.load(); pid > 0) ::kill(pid, SIGTERM);
}

void HandleSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);  // whoever read our output left: no reason to leave files behind
}

absl::Status CheckNotInterrupted() {
  if (interrupted_by.load() == 0) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("interrupted by signal ", interrupted_by.load()));
}

// Waits for a child that should be ending, and kills one that does not. As waitpid(2) gives it.
int EndOf(fakes::ChildProcess& child) {
  absl::StatusOr<int> end = child.Wait(base::Deadline::After(absl::Seconds(10)));
  if (!end.ok()) {
    child.Kill(SIGKILL);
    end = child.Wait(base::Deadline::After(absl::Minutes(1)));
  }
  CHECK_OK(end.status());  // nothing outlives SIGKILL
  return *end;
}

bool WasKilled(int wait_status) {
  return WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
}

// Entries in /dev/shm that a process of this run owns.
std::vector<std::string> SharedMemoryOf(const std::vector<pid_t>& pids) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    const std::string name = entry.path().filename();
    for (const pid_t pid : pids) {
      if (absl::StartsWith(name, base::SharedMemoryPrefix(pid))) {
        found.push_back(name);
      }
    }
  }
  return found;
}

using tools::HumanBytes;
using tools::HumanRate;
using tools::TemporaryDirectory;
using tools::WithCommas;

constexpr char kPrefix[] = "weight_sync_demo";

class Supervisor {
 public:
  Supervisor(const DemoOptions& options, Display& display) : options_(options), display_(display) {}

  DemoResult Run() {
    absl::Status status = Prepare();
    if (status.ok()) status = RunProcesses();
    if (!CheckNotInterrupted().ok()) {
      status = CheckNotInterrupted();
      result_.exit_code = 128 + interrupted_by.load();  // as a shell says it
    } else if (options_.injection != Injection::kNone && !result_.injected.empty()) {
      result_.caught = Caught(status);
      if (!result_.caught) {
        status = absl::InternalError(absl::StrCat(
            "NOT CAUGHT: the injected fault (", result_.injected, ") was not noticed as it must be",
            status.ok() ? "" : absl::StrCat("; what happened: ", status.ToString())));
        result_.exit_code = kExitNotCaught;
      }
    } else if (status.ok()) {
      result_.exit_code = kExitOk;
    }
    if (!status.ok()) {
      result_.cause = absl::StrReplaceAll(status.ToString(), {{"\n", " "}});
    }
    Report();
    return std::move(result_);
  }

 private:
  absl::Status Prepare() {
    WS_ASSIGN_OR_RETURN(TemporaryDirectory run, TemporaryDirectory::Create("/tmp", kPrefix));
    run_directory_.emplace(std::move(run));  // a unix socket's path is short
    endpoint_ = absl::StrCat(run_directory_->path(), "/engine.sock");
    WS_RETURN_IF_ERROR(CheckOptions(SynchronizerOptionsOf(options_, endpoint_)));
    if (options_.checkpoint.empty()) WS_RETURN_IF_ERROR(Make());
    WS_RETURN_IF_ERROR(CheckNotInterrupted());
    WS_ASSIGN_OR_RETURN(const refit::Checkpoint checkpoint,
                        refit::Checkpoint::Open(options_.checkpoint));
    WS_ASSIGN_OR_RETURN(info_, InfoOf(checkpoint));
    result_.checkpoint = options_.checkpoint;
    result_.tensors = info_->size();
    result_.bytes = info_->total_bytes();
    display_.Fact(result_.made_checkpoint ? "" : "checkpoint", options_.checkpoint);
    display_.Fact("", absl::StrFormat("%s tensors, %s, %d file%s", WithCommas(result_.tensors),
                                      HumanBytes(result_.bytes), checkpoint.shards().size(),
                                      checkpoint.shards().size() == 1 ? "" : "s"));
    WS_ASSIGN_OR_RETURN(injection_, PlanInjection(options_, checkpoint));
    return absl::OkStatus();
  }

  absl::Status Make() {
    WS_ASSIGN_OR_RETURN(TemporaryDirectory made,
                        TemporaryDirectory::Create(tools::TemporaryParent(), kPrefix));
    checkpoint_directory_.emplace(std::move(made));
    display_.Fact("checkpoint",
                  absl::StrCat("made for this run: ", kMadeCheckpoint, ", seed ", options_.seed));
    WS_RETURN_IF_ERROR(MakeCheckpoint(checkpoint_directory_->path(), options_.seed));
    options_.checkpoint = checkpoint_directory_->path();
    result_.made_checkpoint = true;
    return absl::OkStatus();
  }

  absl::Status RunProcesses() {
    WS_ASSIGN_OR_RETURN(fakes::EngineProcess engine,
                        fakes::EngineProcess::Start({endpoint_, *info_, injection_.engine_faults}));
    WS_ASSIGN_OR_RETURN(
        fakes::ChildProcess trainer,
        StartTrainer({options_, endpoint_, display_.live(), injection_.sync, injection_.bucket}));
    result_.engine_pid = engine.process().pid();
    result_.trainer_pid = trainer.pid();
    trainer_to_end.store(trainer.pid());
    // One that came before the line above has ended nobody.
    if (!CheckNotInterrupted().ok()) trainer.Kill(SIGTERM);
    display_.Fact(
        "processes",
        absl::StrFormat("engine %d, trainer %d; a ring of %d slots of %s bytes between them",
                        result_.engine_pid, result_.trainer_pid, options_.slots,
                        WithCommas(options_.slot_bytes)));
    if (!injection_.text.empty()) display_.Fact("to inject", injection_.text);
    result_.injected = injection_.text;

    const absl::Status seen = FollowTrainer(trainer);
    trainer_to_end.store(0);
    trainer_end_ = EndOf(trainer);
    // An engine that died was seen dead by the trainer before the trainer ended.
    const absl::StatusOr<int> early =
        engine.process().Wait(base::Deadline::After(absl::ZeroDuration()));
    if (early.ok()) engine_end_ = *early;

    absl::Status status = Cause(seen);
    if (!status.ok() && !engine_end_.has_value() && CheckNotInterrupted().ok()) AskEngine();
    if (!engine_end_.has_value()) {
      engine.process().CloseInput();
      const int end = EndOf(engine.process());
      if (status.ok() && end != 0) {
        status = absl::InternalError(
            absl::StrCat("asked to end, the engine process ", fakes::DescribeWaitStatus(end)));
      }
    }
    result_.left_behind = SharedMemoryOf({result_.engine_pid, result_.trainer_pid, ::getpid()});
    if (status.ok() && !result_.left_behind.empty()) {
      status = absl::InternalError(
          absl::StrCat("left behind in /dev/shm: ", absl::StrJoin(result_.left_behind, ", ")));
    }
    return status;
  }

  // Shows what the trainer reports until it has ended. Returns the failure that it reported itself.
  absl::Status FollowTrainer(fakes::ChildProcess& trainer) {
    // Longer than anything that the trainer does without a report, which has deadlines of its own.
    const absl::Duration patience = 2 * options_.timeout + absl::Minutes(1);
    for (;;) {
      const absl::StatusOr<std::string> line = trainer.ReadLine(base::Deadline::After(patience));
      if (absl::IsUnavailable(line.status())) return failed_;
      if (!line.ok()) {
        trainer.Kill(SIGKILL);
        return base::Prefixed("the trainer process hangs", line.status());
      }
      WS_ASSIGN_OR_RETURN(const TrainerEvent event, EventFromLine(*line));
      std::visit([this](const auto& e) { Take(e); }, event);
    }
  }

  void Take(const TrainerSetup& setup) {
    result_.setup = setup;
    display_.Fact("memory copy", absl::StrFormat("%s GB/s (memcpy of %s, one thread, best of "
                                                 "several)",
                                                 HumanRate(setup.memory_copy_rate),
                                                 HumanBytes(setup.memory_copy_bytes)));
    display_.Line("");
  }
  void Take(const Progress& progress) { display_.Show(progress); }
  void Take(const StepReport& step) {
    result_.steps.push_back(step);
    display_.Step(step);
  }
  void Take(const absl::Status& status) { failed_ = status; }

  // Why the run failed, from how both processes ended and what the trainer said.
  absl::Status Cause(const absl::Status& seen) const {
    const std::string step = absl::StrCat("step ", result_.steps.size() + (seen.ok() ? 1 : 0));
    if (engine_end_.has_value()) {
      return absl::UnavailableError(
          absl::StrCat("the engine process (pid ", result_.engine_pid, ") ended in ", step, ": ",
                       fakes::DescribeWaitStatus(*engine_end_),
                       seen.ok() ? "" : absl::StrCat("; the trainer saw: ", seen.message())));
    }
    WS_RETURN_IF_ERROR(seen);
    if (trainer_end_ != 0) {
      return absl::UnavailableError(absl::StrCat("the trainer process (pid ", result_.trainer_pid,
                                                 ") ended in ", step, ": ",
                                                 fakes::DescribeWaitStatus(trainer_end_)));
    }
    if (static_cast<int64_t>(result_.steps.size()) != options_.steps) {
      return absl::InternalError(absl::StrCat("the trainer ended after ", result_.steps.size(),
                                              " of ", options_.steps, " steps"));
    }
    for (const StepReport& report : result_.steps) {
      if (!report.answered || (report.stale_before && !report.sync.has_value())) {
        return absl::InternalError(absl::StrCat("step ", report.step, " is not proved"));
      }
    }
    return absl::OkStatus();
  }

  // An engine that may hold mixed weights must say so and refuse to answer.
  void AskEngine() {
    const base::CancelScope scope(base::Deadline::After(options_.timeout));
    EngineAfterFailure after;
    native::NativeGeneration generation(endpoint_);
    const absl::StatusOr<EngineState> state = generation.State(scope);
    if (!state.ok()) return;
    after.state = *state;
    const auto client = wire::RpcClient::Connect(endpoint_, "engine", scope);
    if (!client.ok()) return;
    const absl::StatusOr<fakes::FakeEngine::Reply> reply = fakes::AskForAnswer(**client, scope);
    after.answers = reply.ok();
    after.reply = reply.ok() ? absl::StrCat("version ", reply->version)
                             : std::string(reply.status().message());
    result_.engine_after_failure = after;
  }

  bool Caught(const absl::Status& status) const {
    if (status.ok() || !result_.left_behind.empty()) return false;
    if (options_.injection == Injection::kKillEngine) {
      return engine_end_.has_value() && WasKilled(*engine_end_);
    }
    if (!result_.engine_after_failure.has_value() || result_.engine_after_failure->answers) {
      return false;
    }
    // Only a trainer killed before the ring had to be drained once may leave a clean engine.
    const bool may_be_clean =
        options_.injection == Injection::kKillTrainer && injection_.bucket < options_.slots;
    if (!result_.engine_after_failure->state.dirty && !may_be_clean) return false;
    switch (options_.injection) {
      case Injection::kKillTrainer:
        return WasKilled(trainer_end_);
      case Injection::kTorn:
        return absl::IsAborted(status) || absl::IsDataLoss(status);
      default:
        return absl::IsDataLoss(status);
    }
  }

  void Report() {
    display_.Table(result_.steps, result_.setup.memory_copy_rate);
    if (result_.cause.empty()) {
      int64_t syncs = 0;
      for (const StepReport& step : result_.steps) syncs += step.sync.has_value() ? 1 : 0;
      display_.Verdict(true, "OK",
                       absl::StrFormat("%d steps, %d syncs: after each the engine held exactly the "
                                       "trainer's weights and answered as the right version",
                                       result_.steps.size(), syncs));
      return;
    }
    display_.Line("");
    if (!result_.injected.empty()) display_.Fact("injected", result_.injected);
    if (result_.engine_after_failure.has_value()) {
      const EngineAfterFailure& after = *result_.engine_after_failure;
      display_.Fact(
          "engine",
          absl::StrCat(
              after.state.paused ? "paused" : "serving", after.state.dirty ? ", dirty" : ", clean",
              after.answers ? absl::StrCat("; answers as ", after.reply) : "; gives no answer"));
    }
    if (result_.trainer_pid != 0) {
      display_.Fact("left behind", result_.left_behind.empty()
                                       ? "no process, no shared memory"
                                       : absl::StrJoin(result_.left_behind, ", "));
    }
    display_.Verdict(result_.caught, result_.caught ? "CAUGHT" : "FAILED", result_.cause);
  }

  DemoOptions options_;
  Display& display_;
  DemoResult result_;
  std::optional<TemporaryDirectory> run_directory_;
  std::optional<TemporaryDirectory> checkpoint_directory_;
  std::string endpoint_;
  std::optional<refit::RefitInfo> info_;
  InjectionPlan injection_;
  absl::Status failed_;            // the trainer's own last word
  int trainer_end_ = 0;            // as waitpid(2) gives them
  std::optional<int> engine_end_;  // only if it ended before it was asked to
};

}  // namespace

DemoResult RunDemo(const DemoOptions& options, Display& display) {
  HandleSignals();
  return Supervisor(options, display).Run();
}

nlohmann::json ToJson(const DemoOptions& options, const DemoResult& result) {
  nlohmann::json steps = nlohmann::json::array();
  for (const StepReport& step : result.steps) {
    nlohmann::json entry = ToJson(step);
    if (step.sync.has_value() && step.sync->transfer_seconds > 0) {
      const double rate = static_cast<double>(step.sync->bytes) / step.sync->transfer_seconds;
      entry["sync"]["bytes_per_second"] = rate;
      entry["sync"]["memory_copy_share"] = rate / result.setup.memory_copy_rate;
    }
    steps.push_back(std::move(entry));
  }
  nlohmann::json injected, engine;
  if (!result.injected.empty()) {
    injected = {{"fault", InjectionName(options.injection)},
                {"text", result.injected},
                {"caught", result.caught}};
  }
  if (result.engine_after_failure.has_value()) {
    const EngineAfterFailure& after = *result.engine_after_failure;
    engine = {{"paused", after.state.paused},
              {"dirty", after.state.dirty},
              {"answers", after.answers},
              {"reply", after.reply}};
  }
  return {{"ok", result.exit_code == kExitOk},
          {"cause", result.cause},
          {"checkpoint",
           {{"path", result.checkpoint},
            {"made", result.made_checkpoint},
            {"tensors", result.tensors},
            {"bytes", result.bytes},
            {"load_seconds", result.setup.load_seconds}}},
          {"processes", {{"engine", result.engine_pid}, {"trainer", result.trainer_pid}}},
          {"slots", options.slots},
          {"slot_bytes", options.slot_bytes},
          {"seed", options.seed},
          {"memory_copy_bytes_per_second", result.setup.memory_copy_rate},
          {"steps", std::move(steps)},
          {"injected", std::move(injected)},
          {"engine_after_failure", std::move(engine)},
          {"left_behind", result.left_behind}};
}

}  // namespace weight_sync::demo
