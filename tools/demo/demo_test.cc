// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The demo's binary on small checkpoints: what it proves, and every fault that it must catch.

#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/log/check.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "fakes/parameters.h"
#include "fakes/qwen3_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/checkpoint/safetensors_writer.h"
#include "tools/demo/demo_process.h"

namespace weight_sync::demo {
namespace {

using ::nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Arguments = std::vector<std::string>;

std::string NewDirectory() {
  std::string path = absl::StrCat(testing::TempDir(), "/checkpointXXXXXX");
  PCHECK(::mkdtemp(path.data()) != nullptr);
  return path;
}

std::string WriteCheckpoint(const std::vector<refit::TensorSpec>& specs, int64_t shard_bytes) {
  const std::string directory = NewDirectory();
  fakes::Parameters parameters =
      fakes::Parameters::Create(refit::RefitInfo::Create(specs).value()).value();
  parameters.FillSeeded(7);
  std::vector<refit::NamedTensor> tensors;
  for (int t = 0; t < parameters.info().size(); ++t) {
    tensors.push_back({parameters.info()[t].name, parameters.view(t)});
  }
  CHECK_OK(refit::WriteShardedSafetensors(directory, tensors, shard_bytes));
  return directory;
}

// Two layers of Qwen3 in small, in shards; with slots of kSlotBytes in many buckets.
std::string SmallModel() {
  fakes::Qwen3Config config;
  config.layers = 2;
  config.vocabulary = 300;
  config.hidden = 64;
  config.intermediate = 96;
  config.attention_heads = 4;
  config.key_value_heads = 2;
  config.head_dim = 16;
  return WriteCheckpoint(fakes::Qwen3Tensors(config), 40'000);
}
const Arguments kSmallSlots = {"--slot-bytes", "4096"};

Arguments With(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void ExpectNothingLeft(const json& result) {
  EXPECT_THAT(result.at("left_behind"), IsEmpty());
  for (const json& pid : result.at("processes")) {
    EXPECT_NE(pid.get<pid_t>(), 0);
    EXPECT_FALSE(LeftSomething(pid.get<pid_t>()));
  }
}

TEST(DemoTest, EveryStepOfTheHandshakeIsProved) {
  int exit_code;
  const json result = RunDemoForJson(With({"--checkpoint", SmallModel()}, kSmallSlots), &exit_code);
  ASSERT_EQ(exit_code, 0) << result;
  EXPECT_EQ(result.at("ok"), true);
  EXPECT_EQ(result.at("cause"), "");
  EXPECT_GT(result.at("memory_copy_bytes_per_second"), 1e8);
  ExpectNothingLeft(result);
  const json& steps = result.at("steps");
  ASSERT_EQ(steps.size(), 5);
  const int versions[] = {0, 1, 1, 3, 4};
  for (size_t i = 0; i < 5; ++i) {
    const json& step = steps[i];
    const bool trained_or_new = i != 2;  // the third step trains nothing
    EXPECT_EQ(step.at("version"), versions[i]);
    EXPECT_EQ(step.at("stale_before"), trained_or_new);
    EXPECT_EQ(step.at("stale_after"), false);
    EXPECT_EQ(step.at("answered"), true);
    ASSERT_EQ(step.at("sync").is_object(), trained_or_new);
    if (!trained_or_new) continue;
    const json& sync = step.at("sync");
    EXPECT_EQ(sync.at("version"), versions[i]);
    EXPECT_EQ(sync.at("verified"), "equal");
    EXPECT_EQ(sync.at("tensors"), 24);
    EXPECT_EQ(sync.at("bytes"), result.at("checkpoint").at("bytes"));
    for (const char* measured : {"seconds", "trainer_blocked_seconds", "engine_paused_seconds",
                                 "bytes_per_second", "memory_copy_share"}) {
      EXPECT_GT(sync.at(measured), 0) << measured;
    }
  }
}

TEST(DemoTest, AnyDtypesEmptyTensorsAndTiedCopiesInOneFile) {
  std::vector<refit::TensorSpec> specs;
  for (const refit::DType dtype : refit::kAllDTypes) {
    specs.push_back({absl::StrCat(refit::SafetensorsName(dtype), ".matrix"), {3, 8}, dtype});
    specs.push_back({absl::StrCat(refit::SafetensorsName(dtype), ".empty"), {0, 4}, dtype});
  }
  specs.push_back({"scalar", {}, refit::DType::kF32});
  const std::string directory = NewDirectory();
  fakes::Parameters parameters =
      fakes::Parameters::Create(refit::RefitInfo::Create(specs).value()).value();
  parameters.FillSeeded(3);
  std::vector<refit::NamedTensor> tensors = {{"lm_head.weight", parameters.view(0)}};
  for (int t = 0; t < parameters.info().size(); ++t) {
    tensors.push_back({parameters.info()[t].name, parameters.view(t)});
  }
  CHECK_OK(refit::WriteSafetensors(directory + "/any-name.safetensors", tensors));
  int exit_code;
  const json result = RunDemoForJson({"--checkpoint", directory}, &exit_code);
  EXPECT_EQ(exit_code, 0) << result;
  EXPECT_EQ(result.at("checkpoint").at("tensors"), tensors.size());
  ExpectNothingLeft(result);
}

TEST(DemoTest, ACheckpointWithoutAnyElementIsSynced) {
  int exit_code;
  const std::string directory = WriteCheckpoint({{"empty", {0}, refit::DType::kF32}}, 1000);
  const json result = RunDemoForJson({"--checkpoint", directory, "--steps", "1"}, &exit_code);
  EXPECT_EQ(exit_code, 0) << result;
  const json refused =
      RunDemoForJson({"--checkpoint", directory, "--inject", "bitflip"}, &exit_code);
  EXPECT_EQ(exit_code, 1) << refused;
  EXPECT_THAT(refused.at("cause"), HasSubstr("needs a tensor with elements"));
}

struct InjectionCase {
  const char* name;
  Arguments arguments;
  const char* cause;
};

class InjectionTest : public testing::TestWithParam<InjectionCase> {};

TEST_P(InjectionTest, IsCaughtAndItsCauseNamed) {
  int exit_code;
  const json result = RunDemoForJson(
      With(With({"--checkpoint", SmallModel(), "--inject"}, GetParam().arguments), kSmallSlots),
      &exit_code);
  ASSERT_EQ(exit_code, 1) << result;
  EXPECT_EQ(result.at("ok"), false);
  EXPECT_EQ(result.at("injected").at("fault"), GetParam().arguments[0]);
  EXPECT_EQ(result.at("injected").at("caught"), true);
  EXPECT_THAT(result.at("cause"), AllOf(HasSubstr(GetParam().cause), HasSubstr("step 2")));
  // The sync before was good, and the broken one did not count.
  EXPECT_EQ(result.at("steps")[0].at("answered"), true);
  for (size_t i = 1; i < result.at("steps").size(); ++i) {
    EXPECT_EQ(result.at("steps")[i].at("answered"), false);
    EXPECT_EQ(result.at("steps")[i].at("stale_after"), true);
  }
  ExpectNothingLeft(result);
  const json& engine = result.at("engine_after_failure");
  if (GetParam().arguments[0] == "kill-engine") {
    EXPECT_TRUE(engine.is_null());
    return;
  }
  EXPECT_EQ(engine.at("dirty"), true);
  EXPECT_EQ(engine.at("answers"), false);
}

constexpr char kWireDigest[] = "digests of 1 of";
constexpr char kDeepVerification[] = "deep verification:";

INSTANTIATE_TEST_SUITE_P(
    All, InjectionTest,
    testing::Values(
        InjectionCase{"Bitflip", {"bitflip"}, kWireDigest},
        InjectionCase{"BitflipByDeepVerificationAlone",
                      {"bitflip", "--without-wire-digest"},
                      kDeepVerification},
        InjectionCase{"Drop", {"drop"}, kWireDigest},
        InjectionCase{
            "DropByDeepVerificationAlone", {"drop", "--without-wire-digest"}, kDeepVerification},
        InjectionCase{"Swap", {"swap"}, "2 of 24 tensors differ"},
        InjectionCase{"SwapWithoutWireDigest",
                      {"swap", "--without-wire-digest"},
                      "layers.0.self_attn.k_proj.weight, model.layers.1.self_attn.k_proj.weight"},
        InjectionCase{"Torn", {"torn"}, "an optimizer step overlapped the sync"},
        InjectionCase{"TornWithoutReadGuard", {"torn", "--without-read-guard"}, kDeepVerification},
        InjectionCase{"TornByDeepVerificationAlone",
                      {"torn", "--without-read-guard", "--without-wire-digest"},
                      kDeepVerification},
        InjectionCase{"KillEngine", {"kill-engine"}, "the engine process"},
        InjectionCase{"KillTrainer", {"kill-trainer"}, "the trainer process"}),
    [](const auto& info) { return info.param.name; });

// With one sync of one bucket there is no good sync before, and no byte before a kill.
TEST(DemoTest, InjectsIntoTheOnlySync) {
  const std::string model = SmallModel();
  for (const char* fault : {"bitflip", "drop", "swap", "torn", "kill-engine", "kill-trainer"}) {
    int exit_code;
    const json result =
        RunDemoForJson({"--checkpoint", model, "--steps", "1", "--inject", fault}, &exit_code);
    EXPECT_EQ(exit_code, 1) << result;
    EXPECT_EQ(result.at("injected").at("caught"), true) << result;
    ExpectNothingLeft(result);
  }
}

TEST(DemoTest, SwapNeedsTwoTensorsThatDiffer) {
  int exit_code;
  const std::string directory =
      WriteCheckpoint({{"a", {3}, refit::DType::kF32}, {"b", {4}, refit::DType::kF32}}, 1'000);
  const json result = RunDemoForJson({"--checkpoint", directory, "--inject", "swap"}, &exit_code);
  EXPECT_EQ(exit_code, 1);
  EXPECT_THAT(result.at("cause"), HasSubstr("two tensors of one shape"));
  EXPECT_TRUE(result.at("injected").is_null());
}

TEST(DemoTest, ALogHasPlainLinesAndEndsWithTableAndVerdict) {
  const DemoRun run = RunDemoBinary(With({"--checkpoint", SmallModel()}, kSmallSlots));
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.output, Not(HasSubstr("\x1b")));
  EXPECT_THAT(run.output, Not(HasSubstr("\r")));
  for (const char* expected :
       {"memory copy ", "step 3    nothing trained", "not stale, no sync", "trainer  engine",
        "verified", "no sync", "\nOK: 5 steps, 4 syncs"}) {
    EXPECT_THAT(run.output, HasSubstr(expected));
  }
}

TEST(DemoTest, ATerminalHasALiveProgressLine) {
  DemoProcess demo(With({"--checkpoint", SmallModel()}, kSmallSlots),
                   DemoProcess::Output::kTerminal);
  EXPECT_EQ(demo.Wait(), 0);
  for (const char* expected :
       {"\r\x1b[Kstep 1    transferring", "] 100 %", "not stale, no sync", "\x1b[1;32mOK"}) {
    EXPECT_THAT(demo.output(), HasSubstr(expected));
  }
}

TEST(DemoTest, ACaughtFaultEndsWithOneLineThatNamesIt) {
  const DemoRun run =
      RunDemoBinary(With({"--checkpoint", SmallModel(), "--inject", "kill-trainer"}, kSmallSlots));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("engine       paused, dirty; gives no answer\n"));
  EXPECT_THAT(run.output, HasSubstr("left behind  no process, no shared memory\n"));
  EXPECT_THAT(run.output, HasSubstr("\nCAUGHT: UNAVAILABLE: the trainer process"));
}

TEST(DemoTest, NamesTheFolderThatHoldsNoCheckpoint) {
  int exit_code;
  const std::string empty = NewDirectory();
  for (const std::string& path : {empty, empty + "/missing"}) {
    const json result = RunDemoForJson({"--checkpoint", path}, &exit_code);
    EXPECT_EQ(exit_code, 1);
    EXPECT_THAT(result.at("cause"), AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(path)));
  }
}

TEST(DemoTest, NamesTheFileThatIsTruncated) {
  int exit_code;
  const std::string directory = WriteCheckpoint({{"a", {100}, refit::DType::kF32}}, 1'000);
  std::filesystem::resize_file(directory + "/model.safetensors", 300);
  const json result = RunDemoForJson({"--checkpoint", directory}, &exit_code);
  EXPECT_EQ(exit_code, 1);
  EXPECT_THAT(result.at("cause"), HasSubstr(directory + "/model.safetensors"));
}

// A file with a hole of more bytes than the machine has memory.
TEST(DemoTest, SaysHowMuchMemoryACheckpointNeeds) {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  meminfo >> key >> kib;
  ASSERT_EQ(key, "MemTotal:");
  const int64_t bytes = (kib + (1 << 20)) * 1024;
  const std::string header = absl::StrCat(R"({"big":{"dtype":"U8","shape":[)", bytes,
                                          R"(],"data_offsets":[0,)", bytes, "]}}");
  const std::string path = NewDirectory() + "/model.safetensors";
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < 8; ++i) file.put(static_cast<char>(header.size() >> (8 * i) & 0xff));
  file << header;
  file.close();
  std::filesystem::resize_file(path, 8 + header.size() + static_cast<size_t>(bytes));
  int exit_code;
  const json result = RunDemoForJson({"--checkpoint", path}, &exit_code);
  EXPECT_EQ(exit_code, 1);
  EXPECT_THAT(result.at("cause"), AllOf(HasSubstr("RESOURCE_EXHAUSTED"),
                                        HasSubstr(absl::StrCat(bytes, " bytes do not fit"))));
}

TEST(DemoTest, AnInterruptEndsBothProcessesAndRemovesEverything) {
  for (const int signal : {SIGINT, SIGTERM}) {
    DemoProcess demo({"--checkpoint", SmallModel(), "--steps", "1000000"});
    ASSERT_TRUE(demo.AwaitText("step 5 ")) << demo.output();
    demo.Kill(signal);
    EXPECT_EQ(demo.Wait(), 128 + signal);
    EXPECT_THAT(demo.output(), HasSubstr(absl::StrCat("interrupted by signal ", signal)));
    int engine = 0, trainer = 0;
    const size_t processes = demo.output().find("processes ");
    ASSERT_NE(processes, std::string::npos) << demo.output();
    // NOLINTNEXTLINE(bugprone-unchecked-string-to-number-conversion): the demo prints pid_t values
    ASSERT_EQ(std::sscanf(demo.output().c_str() + processes, "processes engine %d, trainer %d",
                          &engine, &trainer),
              2);
    EXPECT_FALSE(LeftSomething(engine));
    EXPECT_FALSE(LeftSomething(trainer));
  }
}

TEST(DemoTest, NamesTheSettingThatIsWrong) {
  int exit_code;
  const std::string model = SmallModel();
  const auto cause = [&](const char* setting, const char* value) {
    return RunDemoForJson({"--checkpoint", model, setting, value}, &exit_code).at("cause");
  };
  EXPECT_THAT(cause("--slot-bytes", "100"), HasSubstr("ring_slot_bytes is 100"));
  EXPECT_EQ(exit_code, 1);
  EXPECT_THAT(cause("--slots", "0"), HasSubstr("ring_slots is 0"));
  EXPECT_EQ(exit_code, 1);
  for (const Arguments& wrong :
       {Arguments{"--inject", "gremlins"}, {"--steps", "0"}, {"--timeout", "0"}, {"--nonsense"}}) {
    const DemoRun run = RunDemoBinary(wrong);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.output, HasSubstr(wrong[0]));
  }
  EXPECT_EQ(RunDemoBinary({"--help"}).exit_code, 0);
}

}  // namespace
}  // namespace weight_sync::demo
