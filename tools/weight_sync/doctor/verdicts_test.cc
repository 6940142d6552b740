// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/verdicts.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/weight_sync/doctor/findings.h"

namespace weight_sync::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A machine with everything.
Findings Complete() {
  Findings out;
  out.cuda.library = "/usr/lib/libcuda.so.1";
  out.cuda.gpus.resize(2);
  out.processes.file_size_bytes = -1;
  return out;
}

std::vector<std::string> Lacking(const Verdict& verdict) {
  std::vector<std::string> out;
  for (const Lack& lack : verdict.lacks) out.push_back(lack.what);
  return out;
}

TEST(JudgeTest, ACompleteMachineLacksNothing) {
  const std::vector<Verdict> verdicts = Judge(Complete());
  ASSERT_EQ(verdicts.size(), 4u);
  EXPECT_EQ(verdicts[0].transport, "IPC");
  EXPECT_EQ(verdicts[0].topology, "colocated vLLM");
  EXPECT_EQ(verdicts[0].ability, Ability::kWorks);
  EXPECT_EQ(verdicts[1].transport, "NCCL");
  EXPECT_EQ(verdicts[1].topology, "non-colocated vLLM");
  EXPECT_EQ(verdicts[1].ability, Ability::kNotInThisVersion);
  EXPECT_EQ(verdicts[2].transport, "HTTP");
  EXPECT_EQ(verdicts[2].topology, "colocated SGLang");
  EXPECT_EQ(verdicts[2].ability, Ability::kNotInThisVersion);
  EXPECT_EQ(verdicts[3].transport, "none");
  EXPECT_EQ(verdicts[3].topology, "non-colocated SGLang");
  EXPECT_EQ(verdicts[3].ability, Ability::kNoTransport);
  for (const Verdict& verdict : verdicts) EXPECT_THAT(verdict.lacks, IsEmpty());
  EXPECT_TRUE(Ready(verdicts));
}

TEST(JudgeTest, IpcNeedsSharedMemory) {
  Findings findings = Complete();
  findings.shared_memory.error = "shared memory of 4198400 bytes does not fit /dev/shm";
  const std::vector<Verdict> verdicts = Judge(findings);
  EXPECT_EQ(verdicts[0].ability, Ability::kMissing);
  ASSERT_THAT(Lacking(verdicts[0]), ElementsAre("shared memory"));
  EXPECT_THAT(verdicts[0].lacks[0].why, HasSubstr("does not fit"));
  EXPECT_THAT(verdicts[0].lacks[0].fix, HasSubstr("--shm-size"));
  EXPECT_FALSE(Ready(verdicts));
  EXPECT_EQ(verdicts[1].ability, Ability::kNotInThisVersion);
}

TEST(JudgeTest, ALimitOfFileSizesIsNotCuredByMoreMemory) {
  Findings findings = Complete();
  findings.shared_memory.error = "files may have 1024 bytes here";
  findings.shared_memory.ring_bytes = 4 << 20;
  findings.processes.file_size_bytes = 1024;
  EXPECT_THAT(Judge(findings)[0].lacks[0].fix, HasSubstr("ulimit -f"));
  findings.processes.file_size_bytes = -1;  // unlimited
  EXPECT_THAT(Judge(findings)[0].lacks[0].fix, HasSubstr("--shm-size"));
}

TEST(JudgeTest, IpcNeedsAnEndpointFolder) {
  Findings findings = Complete();
  findings.endpoints.error = "it is of user 7";
  const std::vector<Verdict> verdicts = Judge(findings);
  EXPECT_THAT(Lacking(verdicts[0]), ElementsAre("endpoint folder"));
  EXPECT_FALSE(Ready(verdicts));
}

TEST(JudgeTest, IpcNeedsToWatchProcesses) {
  Findings findings = Complete();
  findings.processes.error = "cannot watch: Function not implemented";
  const std::vector<Verdict> verdicts = Judge(findings);
  EXPECT_THAT(Lacking(verdicts[0]), ElementsAre("watching a peer process"));
  EXPECT_THAT(verdicts[0].lacks[0].fix, HasSubstr("pidfd_open"));
  EXPECT_FALSE(Ready(verdicts));
}

TEST(JudgeTest, IpcLacksAreAllListed) {
  Findings findings = Complete();
  findings.shared_memory.error = findings.endpoints.error = findings.processes.error = "no";
  EXPECT_THAT(Lacking(Judge(findings)[0]),
              ElementsAre("shared memory", "endpoint folder", "watching a peer process"));
}

TEST(JudgeTest, NcclNeedsADriverAndALibrary) {
  Findings findings = Complete();
  findings.cuda = Cuda();
  findings.cuda.error = "cannot load";
  findings.nccl.error = "cannot load";
  const std::vector<Verdict> verdicts = Judge(findings);
  EXPECT_EQ(verdicts[1].ability, Ability::kMissing);
  ASSERT_THAT(Lacking(verdicts[1]), ElementsAre("CUDA driver", "NCCL"));
  EXPECT_THAT(verdicts[1].lacks[0].fix, HasSubstr("WEIGHT_SYNC_LIBCUDA"));
  EXPECT_THAT(verdicts[1].lacks[1].fix, HasSubstr("WEIGHT_SYNC_LIBNCCL"));
  EXPECT_TRUE(Ready(verdicts)) << "NCCL is not in this version";
}

TEST(JudgeTest, ADriverWithoutGpusLacksTheGpu) {
  Findings findings = Complete();
  findings.cuda.gpus.clear();
  findings.cuda.error = "cuInit: CUDA_ERROR_NO_DEVICE (100)";
  const Verdict nccl = Judge(findings)[1];
  ASSERT_THAT(Lacking(nccl), ElementsAre("GPU"));
  EXPECT_THAT(nccl.lacks[0].fix, HasSubstr("CUDA_VISIBLE_DEVICES"));
}

TEST(JudgeTest, HttpNeedsALoopbackPort) {
  Findings findings = Complete();
  findings.loopback.error = "cannot listen";
  const std::vector<Verdict> verdicts = Judge(findings);
  EXPECT_THAT(Lacking(verdicts[2]), ElementsAre("loopback port"));
  EXPECT_TRUE(Ready(verdicts)) << "HTTP is not in this version";
}

TEST(JudgeTest, WhatNoTransportNeedsChangesNoVerdict) {
  Findings findings = Complete();
  findings.toolchain.error = findings.engines.error = "no";
  for (const Verdict& verdict : Judge(findings)) EXPECT_THAT(verdict.lacks, IsEmpty());
}

}  // namespace
}  // namespace weight_sync::doctor
