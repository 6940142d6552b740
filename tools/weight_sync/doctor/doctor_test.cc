// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs the command itself, on machines that are made up by its environment.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/run_program.h"
#include "base/shared_memory.h"
#include "base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace weight_sync::doctor {
namespace {

using ::nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kCommand[] = "tools/weight_sync/weight_sync";
constexpr char kTwoGpus[] = "refit/device/testing/libcuda_two_gpus.so";
constexpr char kNccl[] = "tools/weight_sync/doctor/testing/libnccl_2_28_9.so";

// By the shell, after `prepare`.
base::ProgramResult RunCommand(const std::string& arguments, const std::string& prepare = "true") {
  return base::RunProgram(
      {"/bin/sh", "-c", absl::StrCat(prepare, " && exec ", kCommand, " ", arguments)});
}

// Nothing but JSON may have been printed.
json RunForJson(int status, const std::string& arguments = "",
                const std::string& prepare = "true") {
  const base::ProgramResult answer = RunCommand(absl::StrCat("doctor --json ", arguments), prepare);
  EXPECT_EQ(answer.exit_code, status) << answer.output;
  json out = json::parse(answer.output, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(out.is_object()) << answer.output;
  return out.is_object() ? out : json::object();
}

class DoctorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = absl::StrCat(::testing::TempDir(), "/", name);
    std::filesystem::create_directories(folder_ + "/bin");
    std::filesystem::create_directories(folder_ + "/peers");
    Set("PATH", folder_ + "/bin");
    Set("WEIGHT_SYNC_PEERS", folder_ + "/peers");
    Set("WEIGHT_SYNC_LIBCUDA", "/nowhere/libcuda.so.1");
    Set("WEIGHT_SYNC_LIBNCCL", "/nowhere/libnccl.so.2");
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "TEST_NCCL", "TWO_GPUS_INIT",
                             "VLLM_NCCL_SO_PATH", "WEIGHT_SYNC_CUDA_PATH"}) {
      PCHECK(::unsetenv(name) == 0);
    }
  }

  void Set(const char* name, const std::string& value) {
    PCHECK(::setenv(name, value.c_str(), 1) == 0);
  }

  // A program on PATH, in shell.
  void Program(const std::string& path, const std::string& text) {
    const std::string file = absl::StrCat(folder_, "/", path);
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << "#!/bin/sh\n" << text << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  std::string folder_;
};

json TransportOf(const json& report, const std::string& name) {
  for (const json& one : report["transports"]) {
    if (one["transport"] == name) return one;
  }
  return json::object();
}

TEST_F(DoctorTest, WithoutDevicesIpcWorksAndNcclSaysWhatIsMissing) {
  const json report = RunForJson(0);
  EXPECT_EQ(report["format"], 1);
  EXPECT_EQ(report["ready"], true);
  EXPECT_THAT(report["cuda"]["error"].get<std::string>(),
              AllOf(HasSubstr("WEIGHT_SYNC_LIBCUDA"), HasSubstr("/nowhere/libcuda.so.1")));
  EXPECT_THAT(report["nccl"]["error"].get<std::string>(),
              AllOf(HasSubstr("WEIGHT_SYNC_LIBNCCL"), HasSubstr("/nowhere/libnccl.so.2")));
  EXPECT_EQ(report["cuda"]["gpus"], json::array());
  EXPECT_EQ(TransportOf(report, "IPC")["ability"], "works");
  const json nccl = TransportOf(report, "NCCL");
  EXPECT_EQ(nccl["ability"], "missing");
  EXPECT_EQ(nccl["lacks"].size(), 2u);
  EXPECT_EQ(TransportOf(report, "HTTP")["ability"], "not_in_this_version");
}

TEST_F(DoctorTest, ReadsThisMachine) {
  const json report = RunForJson(0);
  const json& memory = report["shared_memory"];
  EXPECT_EQ(memory["error"], "");
  EXPECT_GE(memory["ring_bytes"], 4 << 20);
  EXPECT_GE(memory["size_bytes"], memory["ring_bytes"]);
  EXPECT_GE(memory["size_bytes"], memory["free_bytes"]);
  EXPECT_EQ(report["endpoints"]["error"], "");
  EXPECT_EQ(report["endpoints"]["folder"], absl::StrCat("/tmp/weight_sync-", ::geteuid()));
  EXPECT_EQ(report["processes"]["error"], "");
  EXPECT_EQ(report["processes"]["pid_namespace"],
            std::filesystem::read_symlink("/proc/self/ns/pid").string());
  EXPECT_NE(report["processes"]["kernel"], "");
  EXPECT_EQ(report["loopback"]["error"], "");
}

TEST_F(DoctorTest, ShowsTheGpusAndNcclOfTheLibrariesThatAreNamed) {
  Set("WEIGHT_SYNC_LIBCUDA", kTwoGpus);
  Set("WEIGHT_SYNC_LIBNCCL", kNccl);
  const json report = RunForJson(0);
  const json& cuda = report["cuda"];
  EXPECT_EQ(cuda["error"], "");
  EXPECT_EQ(cuda["library"], kTwoGpus);
  EXPECT_EQ(cuda["driver_version"], "13.0");
  EXPECT_EQ(cuda["gpus"], json::parse(R"([
    {"ordinal": 0, "name": "Test GPU A", "memory_bytes": 68719476736, "compute_capability": "9.0",
     "uuid": "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff"},
    {"ordinal": 1, "name": "Test GPU B", "memory_bytes": 137438953472, "compute_capability": "9.0",
     "uuid": "GPU-f1f2f3f4-f5f6-f7f8-f9fa-fbfcfdfeff00"}])"));
  EXPECT_EQ(report["nccl"]["error"], "");
  EXPECT_EQ(report["nccl"]["version"], "2.28.9");
  EXPECT_EQ(report["nccl"]["library"], kNccl);
  EXPECT_EQ(TransportOf(report, "NCCL")["ability"], "not_in_this_version");

  const base::ProgramResult text = RunCommand("doctor");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.output, AllOf(HasSubstr("  GPU 1         Test GPU B, 128.0 GiB, sm_90  GPU-"),
                                 HasSubstr(absl::StrCat("  NCCL          2.28.9  ", kNccl, "\n"))));
}

TEST_F(DoctorTest, UsesTheLibraryThatVllmWouldUse) {
  Set("WEIGHT_SYNC_LIBNCCL", "");
  Set("VLLM_NCCL_SO_PATH", kNccl);
  EXPECT_EQ(RunForJson(0)["nccl"]["version"], "2.28.9");
  Set("WEIGHT_SYNC_LIBNCCL", "/nowhere/libnccl.so.2");  // goes before it
  EXPECT_THAT(RunForJson(0)["nccl"]["error"].get<std::string>(), HasSubstr("WEIGHT_SYNC_LIBNCCL"));
}

TEST_F(DoctorTest, ADriverWithoutAGpuIsNotAMissingDriver) {
  Set("WEIGHT_SYNC_LIBCUDA", kTwoGpus);
  Set("TWO_GPUS_INIT", "100");
  Set("CUDA_VISIBLE_DEVICES", "none");
  const json report = RunForJson(0);
  EXPECT_EQ(report["cuda"]["driver_version"], "13.0");
  EXPECT_THAT(
      report["cuda"]["error"].get<std::string>(),
      AllOf(HasSubstr("CUDA_ERROR_NO_DEVICE"), HasSubstr("CUDA_VISIBLE_DEVICES is 'none'")));
  EXPECT_EQ(TransportOf(report, "NCCL")["lacks"][0]["what"], "GPU");
}

TEST_F(DoctorTest, LibrariesThatCrashSpoilTheirOwnFindingsOnly) {
  Set("WEIGHT_SYNC_LIBCUDA", kTwoGpus);
  Set("TWO_GPUS_INIT", "abort");
  Set("WEIGHT_SYNC_LIBNCCL", kNccl);
  Set("TEST_NCCL", "abort");
  const json report = RunForJson(0);
  EXPECT_THAT(report["cuda"]["error"].get<std::string>(), HasSubstr("signal 6"));
  EXPECT_THAT(report["nccl"]["error"].get<std::string>(), HasSubstr("signal 6"));
  EXPECT_EQ(TransportOf(report, "IPC")["ability"], "works");
}

TEST_F(DoctorTest, WhatHangsIsReportedAtTheTimeout) {
  Set("WEIGHT_SYNC_LIBCUDA", kTwoGpus);
  Set("TWO_GPUS_INIT", "hang");
  Program("bin/g++", "while :; do :; done");
  const absl::Time start = absl::Now();
  const json report = RunForJson(0, "--timeout 6");
  EXPECT_LT(absl::Now() - start, absl::Seconds(40));
  EXPECT_THAT(report["cuda"]["error"].get<std::string>(), HasSubstr("6s"));
  EXPECT_THAT(report["toolchain"]["error"].get<std::string>(), HasSubstr("6s"));
  EXPECT_EQ(TransportOf(report, "IPC")["ability"], "works");
}

TEST_F(DoctorTest, NamesTheToolsAndTheirVersions) {
  Program("bin/bazel", "[ \"$1\" = --version ] && echo bazel 7.4.1");
  Program("bin/g++", "echo 'g++ (Test) 12.2.0'; echo Copyright");
  Program("cuda/bin/nvcc", "echo 'nvcc: NVIDIA'; echo 'Cuda tools, release 13.0, V13.0.88'");
  Set("WEIGHT_SYNC_CUDA_PATH", folder_ + "/cuda");
  const json report = RunForJson(0);
  EXPECT_EQ(report["toolchain"]["error"], "");
  EXPECT_EQ(
      report["toolchain"]["tools"],
      (json::array(
          {{{"name", "bazel"}, {"path", folder_ + "/bin/bazel"}, {"version", "bazel 7.4.1"}},
           {{"name", "g++"}, {"path", folder_ + "/bin/g++"}, {"version", "g++ (Test) 12.2.0"}},
           {{"name", "clang++"}, {"path", ""}, {"version", ""}},
           {{"name", "nvcc"},
            {"path", folder_ + "/cuda/bin/nvcc"},
            {"version", "Cuda tools, release 13.0, V13.0.88"}}})));
}

TEST_F(DoctorTest, AsksDebiansPackageWhichBazelItIs) {
  Program("bin/bazel", "echo bazel no_version");
  Program("bin/dpkg-query", "printf 'bazel-bootstrap\\t4.2.3+ds-9\\n'");
  EXPECT_EQ(RunForJson(0)["toolchain"]["tools"][0]["version"], "bazel 4.2.3+ds-9 (Debian's)");
}

TEST_F(DoctorTest, AToolThatDoesNotSayItsVersionIsAProblem) {
  Program("bin/clang++", "exit 1");
  Set("WEIGHT_SYNC_CUDA_PATH", "/nowhere");
  EXPECT_THAT(
      RunForJson(0)["toolchain"]["error"].get<std::string>(),
      AllOf(HasSubstr("bin/clang++ does not say"), HasSubstr("/nowhere/bin/nvcc does not")));
}

TEST_F(DoctorTest, ListsEnvironmentsAndTheEnginesOfPython) {
  std::filesystem::create_directories(folder_ + "/peers/vllm-0.32.0-1");
  std::ofstream(folder_ + "/peers/vllm-0.32.0-1/.complete").flush();
  std::filesystem::create_directories(folder_ + "/peers/sglang-0.5.23-1");
  std::filesystem::create_directories(folder_ + "/peers/notes-1");
  std::ofstream(folder_ + "/peers/vllm.lock").flush();
  Program("bin/python3", "[ \"$1\" = -c ] && printf 'vllm 0.32.0\\ntorch 2.13.0+cu130\\n'");
  const json engines = RunForJson(0)["engines"];
  EXPECT_EQ(engines["folder"], folder_ + "/peers");
  EXPECT_EQ(engines["environments"], (json::array({{{"name", "sglang"},
                                                    {"version", "0.5.23-1"},
                                                    {"path", folder_ + "/peers/sglang-0.5.23-1"},
                                                    {"complete", false}},
                                                   {{"name", "vllm"},
                                                    {"version", "0.32.0-1"},
                                                    {"path", folder_ + "/peers/vllm-0.32.0-1"},
                                                    {"complete", true}}})));
  EXPECT_EQ(engines["python"], folder_ + "/bin/python3");
  EXPECT_EQ(engines["packages"], (json::array({{{"name", "vllm"}, {"version", "0.32.0"}},
                                               {{"name", "torch"}, {"version", "2.13.0+cu130"}}})));
}

TEST_F(DoctorTest, ARealPythonSaysWhatIsInstalledWithoutImportingIt) {
  std::filesystem::create_directories(folder_ + "/site/vllm-9.8.7.dist-info");
  std::ofstream(folder_ + "/site/vllm-9.8.7.dist-info/METADATA")
      << "Metadata-Version: 2.1\nName: vllm\nVersion: 9.8.7\n";
  std::ofstream(folder_ + "/site/vllm.py") << "raise SystemExit(1)\n";
  Set("PATH", "/usr/local/bin:/usr/bin:/bin");
  Set("PYTHONPATH", folder_ + "/site");
  const json engines = RunForJson(0)["engines"];
  PCHECK(::unsetenv("PYTHONPATH") == 0);
  EXPECT_THAT(engines["python"].get<std::string>(), HasSubstr("/python3"));
  const json expected = {{"name", "vllm"}, {"version", "9.8.7"}};
  EXPECT_THAT(engines["packages"], Contains(expected)) << engines.dump();
}

TEST_F(DoctorTest, CountsWhatDeadProcessesLeftInSharedMemory) {
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  // Locked by this test, so that no sweep of another one removes it meanwhile.
  const std::string name = absl::StrCat("/", base::SharedMemoryPrefix(dead), "0");
  const base::UniqueFd left(::shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_TRUE(left.valid());
  ASSERT_EQ(::flock(left.get(), LOCK_EX | LOCK_NB), 0);
  ASSERT_EQ(::posix_fallocate(left.get(), 0, 8192), 0);
  auto living = base::SharedMemory::Create(4096);
  ASSERT_TRUE(living.ok());

  const json memory = RunForJson(0)["shared_memory"];
  ::shm_unlink(name.c_str());
  EXPECT_GE(memory["segments"], 2);
  EXPECT_EQ(memory["leftovers"], 1);
  EXPECT_EQ(memory["leftover_bytes"], 8192);
}

TEST_F(DoctorTest, WithoutRoomForARingTheStatusIsOne) {
  const json report = RunForJson(1, "", "ulimit -f 1024");
  EXPECT_EQ(report["ready"], false);
  EXPECT_EQ(report["processes"]["file_size_bytes"].get<int64_t>() % 1024, 0);
  EXPECT_GT(report["processes"]["file_size_bytes"], 0);
  const json ipc = TransportOf(report, "IPC");
  EXPECT_EQ(ipc["ability"], "missing");
  EXPECT_EQ(ipc["lacks"][0]["what"], "shared memory");
  EXPECT_THAT(ipc["lacks"][0]["why"].get<std::string>(), HasSubstr("RLIMIT_FSIZE"));
  EXPECT_THAT(ipc["lacks"][0]["fix"].get<std::string>(), HasSubstr("ulimit -f"));

  const base::ProgramResult text = RunCommand("doctor", "ulimit -f 1024");
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.output, HasSubstr("  IPC           colocated vLLM        missing"));
}

TEST_F(DoctorTest, HelpAndWrongUsage) {
  EXPECT_EQ(RunCommand("").exit_code, 2);
  EXPECT_EQ(RunCommand("surgeon").exit_code, 2);
  EXPECT_EQ(RunCommand("doctor --timeout 0").exit_code, 2);
  EXPECT_EQ(RunCommand("doctor --timeout soon").exit_code, 2);
  const base::ProgramResult help = RunCommand("doctor --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, AllOf(HasSubstr("--json"), HasSubstr("Exit status")));
  EXPECT_THAT(RunCommand("--help").output, HasSubstr("doctor"));
}

}  // namespace
}  // namespace weight_sync::doctor
