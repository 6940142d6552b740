// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Every declaration of dlpack_abi.h against the dlpack.h that torch ships, by a compiler. Needs
// `tools/peers/setup torch`.

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/run_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/peers/peer_environment.h"

namespace weight_sync::refit {
namespace {

constexpr char kProgram[] = R"(
#include <cstddef>
#include <type_traits>
#include "torch/include/ATen/dlpack.h"
#include "refit/tensor/dlpack_abi.h"

namespace ours = weight_sync::refit::dlpack;

static_assert(ours::kMajorVersion == DLPACK_MAJOR_VERSION);
static_assert(ours::kMinorVersion == DLPACK_MINOR_VERSION);
static_assert(ours::kReadOnly == DLPACK_FLAG_BITMASK_READ_ONLY);
static_assert(ours::kIsCopied == DLPACK_FLAG_BITMASK_IS_COPIED);
static_assert(ours::kIsSubbyteTypePadded == DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);

#define SAME_DEVICE(name, theirs, value) \
  static_assert(value == theirs && static_cast<int>(ours::DLDeviceType::name) == theirs);
WS_DLPACK_DEVICE_TYPES(SAME_DEVICE)
static_assert(sizeof(ours::DLDeviceType) == sizeof(DLDeviceType));
#define SAME_CODE(name, theirs, value) \
  static_assert(value == theirs && static_cast<int>(ours::DLDataTypeCode::name) == theirs);
WS_DLPACK_TYPE_CODES(SAME_CODE)

#define SAME_SIZE(type) \
  static_assert(sizeof(ours::type) == sizeof(::type) && alignof(ours::type) == alignof(::type));
#define SAME_PLACE(type, member)                                                        \
  static_assert(offsetof(ours::type, member) == offsetof(::type, member) &&             \
                sizeof(ours::type::member) == sizeof(::type::member) &&                 \
                std::is_pointer_v<decltype(ours::type::member)> ==                      \
                    std::is_pointer_v<decltype(::type::member)>);
#define SAME_MEMBER(type, member) \
  SAME_PLACE(type, member)        \
  static_assert(std::is_same_v<decltype(ours::type::member), decltype(::type::member)>);
SAME_SIZE(DLPackVersion)
SAME_MEMBER(DLPackVersion, major)
SAME_MEMBER(DLPackVersion, minor)
SAME_SIZE(DLDevice)
SAME_PLACE(DLDevice, device_type)
SAME_MEMBER(DLDevice, device_id)
SAME_SIZE(DLDataType)
SAME_PLACE(DLDataType, code)
SAME_MEMBER(DLDataType, bits)
SAME_MEMBER(DLDataType, lanes)
SAME_SIZE(DLTensor)
SAME_MEMBER(DLTensor, data)
SAME_PLACE(DLTensor, device)
SAME_MEMBER(DLTensor, ndim)
SAME_PLACE(DLTensor, dtype)
SAME_MEMBER(DLTensor, shape)
SAME_MEMBER(DLTensor, strides)
SAME_MEMBER(DLTensor, byte_offset)
SAME_SIZE(DLManagedTensor)
SAME_PLACE(DLManagedTensor, dl_tensor)
SAME_MEMBER(DLManagedTensor, manager_ctx)
SAME_PLACE(DLManagedTensor, deleter)
SAME_SIZE(DLManagedTensorVersioned)
SAME_PLACE(DLManagedTensorVersioned, version)
SAME_MEMBER(DLManagedTensorVersioned, manager_ctx)
SAME_PLACE(DLManagedTensorVersioned, deleter)
SAME_MEMBER(DLManagedTensorVersioned, flags)
SAME_PLACE(DLManagedTensorVersioned, dl_tensor)
)";

class DlpackHeaderPeerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto environment = peers::FindPeerEnvironment("torch");
    if (!environment.ok()) GTEST_SKIP() << environment.status();
    const auto folder =
        base::RunProgram({*environment + "/bin/python", "-Ic",
                          "import sysconfig; print(sysconfig.get_path('purelib'), end='')"});
    ASSERT_EQ(folder.exit_code, 0) << folder.output;
    packages_ = folder.output;
  }

  base::ProgramResult Compile(const std::string& program) const {
    const std::string path = ::testing::TempDir() + "/compare.cc";
    std::ofstream(path) << program;
    return base::RunProgram({"/usr/bin/env", "g++", "-std=c++17", "-fsyntax-only", "-I.",
                             absl::StrCat("-I", packages_), path});
  }

  std::string packages_;
};

TEST_F(DlpackHeaderPeerTest, EveryDeclarationIsThatOfDlpackH) {
  const auto result = Compile(kProgram);
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

// A negative control: the compiler sees a difference.
TEST_F(DlpackHeaderPeerTest, ADifferenceDoesNotCompile) {
  const auto result = Compile(absl::StrCat(kProgram,
                                           "static_assert(offsetof(ours::DLTensor, ndim) == "
                                           "offsetof(::DLTensor, shape));"));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.output, ::testing::HasSubstr("static assertion failed"));
}

}  // namespace
}  // namespace weight_sync::refit
