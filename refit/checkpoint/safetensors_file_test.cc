// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/safetensors_file.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/checkpoint/malformed_files.h"
#include "refit/checkpoint/test_files.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr absl::string_view kGood =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},)"
    R"("a":{"dtype":"U8","shape":[3,1],"data_offsets":[0,3]}})";

class SafetensorsFileTest : public testing::Test {
 protected:
  absl::StatusOr<SafetensorsFile> OpenBytes(absl::string_view bytes) {
    WriteTestFile(path_, bytes);
    return SafetensorsFile::Open(path_);
  }
  absl::StatusOr<SafetensorsFile> OpenHeader(absl::string_view header, absl::string_view data) {
    return OpenBytes(SafetensorsBytes(header, data));
  }

  const std::string path_ = NewTestDirectory() + "/x.safetensors";
};

TEST_F(SafetensorsFileTest, GivesTensorsInTheOrderOfTheirBytes) {
  const SafetensorsFile file = OpenHeader(kGood, "abcABCDEFGH").value();
  EXPECT_EQ(file.path(), path_);
  EXPECT_THAT(file.metadata(), ElementsAre(Pair("format", "pt")));
  ASSERT_EQ(file.tensors().size(), 2);
  const NamedTensor& a = file.tensors()[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.tensor.dtype(), DType::kU8);
  EXPECT_EQ(a.tensor.shape(), (Shape{3, 1}));
  EXPECT_EQ(LogicalBytes(a.tensor), "abc");
  const NamedTensor& b = file.tensors()[1];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.tensor.dtype(), DType::kF32);
  EXPECT_EQ(b.tensor.shape(), (Shape{2}));
  EXPECT_EQ(LogicalBytes(b.tensor), "ABCDEFGH");
}

TEST_F(SafetensorsFileTest, ViewsStayValidWhenTheFileIsMoved) {
  SafetensorsFile file = OpenHeader(kGood, "abcABCDEFGH").value();
  const TensorView view = file.tensors()[0].tensor;
  const SafetensorsFile moved = std::move(file);
  EXPECT_EQ(LogicalBytes(view), "abc");
}

TEST_F(SafetensorsFileTest, AcceptsWhatTheLibraryAccepts) {
  struct Case {
    std::string header;
    std::string data;
    size_t tensors;
  };
  const std::string long_name(4096, 'n');
  const Case cases[] = {
      {"{}", "", 0},
      {"{}      ", "", 0},
      {"\n {} ", "", 0},
      {R"({"__metadata__":{}})", "", 0},
      {R"({"__metadata__":null})", "", 0},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", "1234", 1},
      {R"({"a":{"dtype":"F32","shape":[3,0],"data_offsets":[0,0]}})", "", 1},
      {R"({"a":{"dtype":"F32","shape":[0,1099511627776,1099511627776],"data_offsets":[0,0]}})", "",
       1},
      {R"({"a":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]}})", "123", 1},
      {R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1", 1},
      {R"({"a\u0000b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1", 1},
      {"{\"\xe9\x87\x8d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "1", 1},
      {absl::StrCat("{\"", long_name, R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})"), "1",
       1},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"unknown":[{}]}})", "1", 1},
      {R"({"z":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
       R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("y":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
       "1", 3},
  };
  for (const Case& c : cases) {
    const absl::StatusOr<SafetensorsFile> file = OpenHeader(c.header, c.data);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->tensors().size(), c.tensors) << c.header;
  }
}

TEST_F(SafetensorsFileTest, KeepsUnusualNames) {
  const SafetensorsFile file =
      OpenHeader(R"({"a\u0000\"\\\u91cd":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1")
          .value();
  EXPECT_EQ(file.tensors()[0].name, std::string("a\0\"\\\xe9\x87\x8d", 7));
}

TEST_F(SafetensorsFileTest, KnowsEveryDType) {
  for (const DType dtype : kAllDTypes) {
    const std::string bytes(ByteSize(dtype, {8}).value(), 'x');
    const SafetensorsFile file =
        OpenHeader(absl::StrCat(R"({"a":{"dtype":")", SafetensorsName(dtype),
                                R"(","shape":[8],"data_offsets":[0,)", bytes.size(), "]}}"),
                   bytes)
            .value();
    EXPECT_EQ(file.tensors()[0].tensor.dtype(), dtype);
  }
}

TEST_F(SafetensorsFileTest, NamesWhatIsWrongWithAHeader) {
  for (const MalformedFile& c : MalformedSafetensors()) {
    const absl::Status status = OpenHeader(c.header, c.data).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.header;
    EXPECT_THAT(std::string(status.message()), HasSubstr("file '" + path_ + "': "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error)) << c.header;
  }
}

TEST_F(SafetensorsFileTest, NamesWhatIsWrongWithTheLengthOfAHeader) {
  struct Case {
    std::string bytes;
    std::string error;
  };
  const Case cases[] = {
      {"", "too short: 0 bytes cannot hold the 8 of the header's length"},
      {std::string(7, '\0'), "too short: 7 bytes"},
      {std::string("\x03\0\0\0\0\0\0\0{}", 10),
       "header of 3 bytes reaches past the end of the file of 10 bytes"},
      // 100,000,001, little-endian.
      {std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10),
       "header of 100000001 bytes is over the limit of 100000000"},
      {std::string(8, '\xff') + "{}", "header of 18446744073709551615 bytes is over the limit"},
  };
  for (const Case& c : cases) {
    const absl::Status status = OpenBytes(c.bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
  }
}

TEST_F(SafetensorsFileTest, MissingFileIsNamed) {
  const absl::Status status = SafetensorsFile::Open(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot open '" + path_ + "'"));
}

TEST_F(SafetensorsFileTest, EveryTruncationIsRefused) {
  const std::string bytes = SafetensorsBytes(kGood, "abcABCDEFGH");
  ASSERT_TRUE(OpenBytes(bytes).ok());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(OpenBytes(absl::string_view(bytes).substr(0, length)).ok()) << length;
  }
}

// Whatever a file holds: an error, or tensors whose bytes are all in the file.
TEST_F(SafetensorsFileTest, RandomDamageNeverReachesOutsideOfTheFile) {
  std::mt19937 random(20260502);
  const std::string good = SafetensorsBytes(kGood, "abcABCDEFGH");
  const std::string alphabet = "{}[]\",:0123456789-eE.\\u \n\xff";
  int accepted = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = good;
    for (int n = 1 + static_cast<int>(random() % 3); n > 0; --n) {
      const size_t at = random() % bytes.size();
      const char c =
          random() % 2 == 0 ? alphabet[random() % alphabet.size()] : static_cast<char>(random());
      switch (random() % 3) {
        case 0:
          bytes[at] = c;
          break;
        case 1:
          bytes.insert(at, 1, c);
          break;
        default:
          bytes.erase(at, 1);
      }
    }
    const absl::StatusOr<SafetensorsFile> file = OpenBytes(bytes);
    if (!file.ok()) {
      EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    ++accepted;
    size_t total = 0;
    for (const NamedTensor& t : file->tensors()) total += LogicalBytes(t.tensor).size();
    EXPECT_LT(total, bytes.size());
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace weight_sync::refit
