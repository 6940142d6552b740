// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/dynamic_library.h"

#include <stdlib.h>

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::base {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr char kLibrary[] = "base/testing/libanswer.so";

std::string TextFile() {
  const std::string path = absl::StrCat(::testing::TempDir(), "/text.so");
  std::ofstream(path) << "this is a text of more bytes than the header of an ELF file takes, which "
                         "is what the loader looks at first";
  return path;
}

TEST(DynamicLibraryTest, CallsAFunctionOfALibrary) {
  absl::StatusOr<DynamicLibrary> library = DynamicLibrary::Open({kLibrary});
  ASSERT_THAT(library, IsOk());
  EXPECT_EQ(library->path(), kLibrary);
  auto answer = library->Symbol<int(int)>("TestLibraryAnswer");
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ((*answer)(41), 42);
}

TEST(DynamicLibraryTest, FunctionsOutliveTheObject) {
  int (*answer)(int) = nullptr;
  {
    absl::StatusOr<DynamicLibrary> library = DynamicLibrary::Open({kLibrary});
    ASSERT_THAT(library, IsOk());
    answer = *library->Symbol<int(int)>("TestLibraryAnswer");
  }
  EXPECT_EQ(answer(1), 2);
}

TEST(DynamicLibraryTest, TakesTheFirstThatLoads) {
  absl::StatusOr<DynamicLibrary> library =
      DynamicLibrary::Open({"/nowhere/libanswer.so", TextFile(), kLibrary, "libm.so.6"});
  ASSERT_THAT(library, IsOk());
  EXPECT_EQ(library->path(), kLibrary);
}

TEST(DynamicLibraryTest, SaysWhichFileANameWithoutASlashWas) {
  absl::StatusOr<DynamicLibrary> library = DynamicLibrary::Open({"libm.so.6"});
  ASSERT_THAT(library, IsOk());
  EXPECT_THAT(library->path(), MatchesRegex("/.*/libm\\.so\\.6"));
}

TEST(DynamicLibraryTest, ReportsEveryNameWithTheLoadersReason) {
  const std::string text = TextFile();
  EXPECT_THAT(
      DynamicLibrary::Open({"/nowhere/lib.so", text, "libweight_sync_of_nobody.so"}),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("/nowhere/lib.so: cannot open shared object file"),
                     HasSubstr(absl::StrCat(text, ": invalid ELF header")),
                     HasSubstr("libweight_sync_of_nobody.so: cannot open shared object file"))));
}

TEST(DynamicLibraryTest, AnEmptyNameIsNotTheProgramItself) {
  EXPECT_THAT(DynamicLibrary::Open({""}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("empty")));
  EXPECT_THAT(DynamicLibrary::Open({}), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(DynamicLibraryTest, AMissingSymbolNamesTheFileAndTheSymbol) {
  absl::StatusOr<DynamicLibrary> library = DynamicLibrary::Open({kLibrary});
  ASSERT_THAT(library, IsOk());
  EXPECT_THAT(library->Symbol<int(int)>("TestLibraryQuestion"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(kLibrary), HasSubstr("TestLibraryQuestion"))));
}

TEST(ChooseLibraryTest, APathThenTheVariablesInOrderThenTheUsualNames) {
  ASSERT_EQ(::setenv("WS_TEST_FIRST", "first.so", 1), 0);
  ASSERT_EQ(::setenv("WS_TEST_SECOND", "second.so", 1), 0);
  const auto choose = [](const char* path) {
    return ChooseLibrary(path, {"WS_TEST_FIRST", "WS_TEST_SECOND"}, {"usual.so.1", "usual.so"});
  };
  LibraryNames names = choose("path.so");
  EXPECT_THAT(names.names, ElementsAre("path.so"));
  EXPECT_EQ(names.variable, "");
  EXPECT_TRUE(names.chosen);

  names = choose("");
  EXPECT_THAT(names.names, ElementsAre("first.so"));
  EXPECT_EQ(names.variable, "WS_TEST_FIRST");
  EXPECT_TRUE(names.chosen);

  ASSERT_EQ(::setenv("WS_TEST_FIRST", "", 1), 0);  // empty is not set
  names = choose("");
  EXPECT_THAT(names.names, ElementsAre("second.so"));
  EXPECT_EQ(names.variable, "WS_TEST_SECOND");

  ASSERT_EQ(::unsetenv("WS_TEST_SECOND"), 0);
  names = choose("");
  EXPECT_THAT(names.names, ElementsAre("usual.so.1", "usual.so"));
  EXPECT_EQ(names.variable, "");
  EXPECT_FALSE(names.chosen);
}

}  // namespace
}  // namespace weight_sync::base
