// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/device/cuda_api.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/log/check.h"
#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/run_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kVariable[] = "WEIGHT_SYNC_LIBCUDA";
constexpr char kTwoGpus[] = "refit/device/testing/libcuda_two_gpus.so";

std::vector<std::string> Symbols() {
  return {
#define WS_SYMBOL_(member, cuda_name, symbol, parameters) symbol,
      WS_CUDA_FUNCTIONS(WS_SYMBOL_)
#undef WS_SYMBOL_
  };
}

CudaLoadOptions Named(const std::string& library) {
  CudaLoadOptions options;
  options.library = library;
  return options;
}

std::string Folder(const std::string& name) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/", name);
  std::filesystem::create_directories(path);
  return path;
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string TwoGpusBytes() {
  std::ifstream file(kTwoGpus, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A copy of the library in which `symbol` is called something else. Its hash table still has the
// old name's hash, so the loader finds the entry and then that the names differ.
std::string LibraryWithout(const std::string& symbol) {
  std::string bytes = TwoGpusBytes();
  const std::string entry = absl::StrCat(std::string(1, '\0'), symbol, std::string(1, '\0'));
  int found = 0;
  for (size_t at = 0; (at = bytes.find(entry, at)) != std::string::npos; at += symbol.size()) {
    bytes[at + 1] = 'x';
    ++found;
  }
  CHECK_GT(found, 0) << symbol;
  std::string path = absl::StrCat(::testing::TempDir(), "/without_", symbol, ".so");
  WriteFile(path, bytes);
  return path;
}

// What Load() answers, without options, in a new process: the loader reads LD_LIBRARY_PATH only
// when a process starts.
std::string LoadWith(const std::string& environment) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const base::ProgramResult loaded =
      base::RunProgram({"/bin/sh", "-c", absl::StrCat(environment, " '", self, "' --load")},
                       {/*directory=*/"", /*errors=*/false});
  EXPECT_EQ(loaded.exit_code, 0);
  return std::string(absl::StripSuffix(loaded.output, "\n"));
}

class CudaApiTest : public ::testing::Test {
 protected:
  void SetUp() override { PCHECK(::unsetenv(kVariable) == 0); }
  void TearDown() override { PCHECK(::unsetenv(kVariable) == 0); }
};

TEST_F(CudaApiTest, FillsEveryMemberFromTheNamedLibrary) {
  absl::StatusOr<CudaApi> api = CudaApi::Load(Named(kTwoGpus));
  ASSERT_THAT(api, IsOk());
  EXPECT_EQ(api->library, kTwoGpus);
  void* handle = ::dlopen(kTwoGpus, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(handle, nullptr);
#define WS_EXPECT_(member, cuda_name, symbol, parameters) \
  EXPECT_NE(api->member, nullptr) << symbol;              \
  EXPECT_EQ(reinterpret_cast<void*>(api->member), ::dlsym(handle, symbol)) << symbol;
  WS_CUDA_FUNCTIONS(WS_EXPECT_)
#undef WS_EXPECT_
  ::dlclose(handle);
}

TEST_F(CudaApiTest, CallsTheDriver) {
  absl::StatusOr<CudaApi> api = CudaApi::Load(Named(kTwoGpus));
  ASSERT_THAT(api, IsOk());
  int count = 0;
  char name[32];
  size_t bytes = 0;
  EXPECT_THAT(api->Check(api->init(0), "cuInit"), IsOk());
  EXPECT_THAT(api->Check(api->device_get_count(&count), "cuDeviceGetCount"), IsOk());
  EXPECT_EQ(count, 2);
  EXPECT_THAT(api->Check(api->device_get_name(name, sizeof(name), 1), "cuDeviceGetName"), IsOk());
  EXPECT_STREQ(name, "Test GPU B");
  EXPECT_THAT(api->Check(api->device_total_mem(&bytes, 1), "cuDeviceTotalMem"), IsOk());
  EXPECT_EQ(bytes, size_t{2} << 36);
}

TEST_F(CudaApiTest, LooksForEveryFunctionAndNamesTheOneThatIsMissing) {
  for (const std::string& symbol : Symbols()) {
    const std::string library = LibraryWithout(symbol);
    EXPECT_THAT(CudaApi::Load(Named(library)),
                StatusIs(absl::StatusCode::kNotFound,
                         AllOf(HasSubstr(library), HasSubstr(absl::StrCat("symbol ", symbol)),
                               HasSubstr("CudaLoadOptions::library"))));
  }
}

TEST_F(CudaApiTest, ANamedLibraryThatDoesNotLoadIsNotReplacedByAnother) {
  ASSERT_EQ(::setenv(kVariable, kTwoGpus, 1), 0);
  const std::string text = absl::StrCat(::testing::TempDir(), "/text.so");
  WriteFile(text, "no library, and longer than the header of an ELF file, of 64 bytes at least");
  const std::string folder = Folder("folder.so");
  for (const std::string& library : {std::string("/nowhere/libcuda.so.1"), text, folder}) {
    EXPECT_THAT(
        CudaApi::Load(Named(library)),
        StatusIs(absl::StatusCode::kUnavailable, AllOf(HasSubstr("CudaLoadOptions::library"),
                                                       HasSubstr(absl::StrCat(library, ": ")),
                                                       Not(HasSubstr("libcuda_two_gpus")))));
  }
}

TEST_F(CudaApiTest, TheVariableNamesTheLibrary) {
  ASSERT_EQ(::setenv(kVariable, kTwoGpus, 1), 0);
  absl::StatusOr<CudaApi> api = CudaApi::Load();
  ASSERT_THAT(api, IsOk());
  EXPECT_EQ(api->library, kTwoGpus);
}

TEST_F(CudaApiTest, TheOptionGoesBeforeTheVariable) {
  ASSERT_EQ(::setenv(kVariable, "/nowhere/libcuda.so.1", 1), 0);
  EXPECT_THAT(CudaApi::Load(Named(kTwoGpus)), IsOk());
}

TEST_F(CudaApiTest, ALibraryNamedByTheVariableIsNotReplacedByAnother) {
  const std::string folder = Folder("usual");
  WriteFile(absl::StrCat(folder, "/libcuda.so.1"), TwoGpusBytes());
  const std::string answer = LoadWith(
      absl::StrCat("LD_LIBRARY_PATH='", folder, "' ", kVariable, "=/nowhere/libcuda.so.1"));
  EXPECT_THAT(answer,
              AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("named by WEIGHT_SYNC_LIBCUDA"),
                    HasSubstr("/nowhere/libcuda.so.1: cannot open"), Not(HasSubstr(folder))));
}

TEST_F(CudaApiTest, TriesTheUsualNamesInOrder) {
  const std::string folder = Folder("both");
  WriteFile(absl::StrCat(folder, "/libcuda.so"), TwoGpusBytes());
  WriteFile(absl::StrCat(folder, "/libcuda.so.1"), TwoGpusBytes());
  const std::string search = absl::StrCat("LD_LIBRARY_PATH='", folder, "'");
  EXPECT_EQ(LoadWith(search), absl::StrCat(folder, "/libcuda.so.1"));
  EXPECT_EQ(LoadWith(absl::StrCat(search, " ", kVariable, "=")),
            absl::StrCat(folder, "/libcuda.so.1"));
  // Not taken as "not here" by the loader, which would go on to the system's own.
  WriteFile(absl::StrCat(folder, "/libcuda.so.1"), std::string(128, '-'));
  EXPECT_EQ(LoadWith(search), absl::StrCat(folder, "/libcuda.so"));
}

TEST_F(CudaApiTest, WithoutADriverSaysWhatWasLookedForAndWhatToDo) {
  const std::string folder = Folder("neither");
  WriteFile(absl::StrCat(folder, "/libcuda.so"), std::string(128, '-'));
  WriteFile(absl::StrCat(folder, "/libcuda.so.1"), std::string(128, '-'));
  EXPECT_THAT(LoadWith(absl::StrCat("LD_LIBRARY_PATH='", folder, "'")),
              AllOf(HasSubstr("UNAVAILABLE: CUDA driver: "),
                    HasSubstr(absl::StrCat(folder, "/libcuda.so.1: invalid ELF header")),
                    HasSubstr(absl::StrCat(folder, "/libcuda.so: invalid ELF header")),
                    HasSubstr("install the NVIDIA driver"), HasSubstr("WEIGHT_SYNC_LIBCUDA")));
}

TEST_F(CudaApiTest, GivesEachResultItsMeaning) {
  absl::StatusOr<CudaApi> api = CudaApi::Load(Named(kTwoGpus));
  ASSERT_THAT(api, IsOk());
  EXPECT_THAT(api->Check(CudaResult::kSuccess, "nothing"), IsOk());
  const std::vector<std::pair<int, absl::StatusCode>> meanings = {
      {1, absl::StatusCode::kInvalidArgument},
      {2, absl::StatusCode::kResourceExhausted},
      {3, absl::StatusCode::kFailedPrecondition},
      {4, absl::StatusCode::kFailedPrecondition},
      {34, absl::StatusCode::kUnavailable},
      {46, absl::StatusCode::kUnavailable},
      {100, absl::StatusCode::kUnavailable},
      {101, absl::StatusCode::kInvalidArgument},
      {201, absl::StatusCode::kFailedPrecondition},
      {209, absl::StatusCode::kUnimplemented},
      {217, absl::StatusCode::kUnimplemented},
      {222, absl::StatusCode::kUnimplemented},
      {304, absl::StatusCode::kUnavailable},
      {600, absl::StatusCode::kFailedPrecondition},
      {702, absl::StatusCode::kDeadlineExceeded},
      {709, absl::StatusCode::kFailedPrecondition},
      {801, absl::StatusCode::kUnimplemented},
      {802, absl::StatusCode::kUnavailable},
      {803, absl::StatusCode::kUnavailable},
      {804, absl::StatusCode::kUnavailable},
      {700, absl::StatusCode::kInternal},
      {719, absl::StatusCode::kInternal},
      {999, absl::StatusCode::kInternal}};
  for (const auto& [number, code] : meanings) {
    EXPECT_THAT(api->Check(static_cast<CudaResult>(number), "the operation"), StatusIs(code))
        << number;
  }
  size_t known = 1;  // success
  for (const auto& [number, code] : meanings) known += code != absl::StatusCode::kInternal;
  size_t listed = 0;
#define WS_COUNT_(name, cuda_name, value) ++listed;
  WS_CUDA_RESULTS(WS_COUNT_)
#undef WS_COUNT_
  EXPECT_EQ(known, listed) << "a result was added to the list and not to this test";
}

TEST_F(CudaApiTest, AnErrorNamesTheOperationTheErrorAndTheLibrary) {
  absl::StatusOr<CudaApi> api = CudaApi::Load(Named(kTwoGpus));
  ASSERT_THAT(api, IsOk());
  EXPECT_EQ(
      api->Check(CudaResult::kOutOfMemory, "cuMemAlloc of 8 bytes").message(),
      absl::StrCat("cuMemAlloc of 8 bytes: CUDA_ERROR_OUT_OF_MEMORY (2): what the driver says "
                   "about it [",
                   kTwoGpus, "]"));
  EXPECT_EQ(api->Check(static_cast<CudaResult>(12345), "cuInit").message(),
            absl::StrCat("cuInit: unknown CUDA error (12345): no text [", kTwoGpus, "]"));
}

}  // namespace
}  // namespace weight_sync::refit

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string("--load")) {
    const auto api = weight_sync::refit::CudaApi::Load();
    std::puts(api.ok() ? api->library.c_str() : api.status().ToString().c_str());
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
