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
#include "refit/checkpoint/test_files.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
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

struct Malformed {
  std::string header;
  std::string data;
  std::string error;
};

std::string Tensor(absl::string_view name, absl::string_view fields) {
  return absl::StrCat("{\"", name, "\":{", fields, "}}");
}

std::vector<Malformed> MalformedHeaders() {
  const std::string dtype = R"("dtype":"F32")";
  const std::string shape = R"("shape":[1])";
  const std::string offsets = R"("data_offsets":[0,4])";
  const std::string data = "1234";
  const auto tensor = [](absl::string_view a, absl::string_view b, absl::string_view c) {
    return Tensor("x.w", absl::StrCat(a, ",", b, ",", c));
  };
  const auto two = [](absl::string_view first, absl::string_view second) {
    return absl::StrCat(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)", first,
                        R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)", second, "}}");
  };
  const auto metadata = [](absl::string_view value) {
    return absl::StrCat("{\"__metadata__\":", value, "}");
  };
  const std::string counts_error = "is not made of whole numbers from 0 to 2^63 - 1";
  return {
      {"", "", "header: [json.exception.parse_error"},
      {"{", "", "header: [json.exception.parse_error"},
      {"{}x", "", "header: [json.exception.parse_error"},
      {"[]", "", "header: not a JSON object"},
      {"17", "", "header: not a JSON object"},
      {"{\"\xff\":1}", "", "header: not UTF-8"},
      {"\xef\xbb\xbf{}", "", "header: begins with a byte order mark"},
      {std::string("{}\0\0", 4), "", "header: holds a NUL byte"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
       R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
       "", "header: key 'a' appears twice"},
      {tensor(dtype, shape, absl::StrCat(offsets, ",", dtype)), data, "key 'dtype' appears twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", "", "key '__metadata__' appears twice"},
      {metadata("[]"), "", "__metadata__ is not an object"},
      {metadata("\"a\""), "", "__metadata__ is not an object"},
      {metadata(R"({"k":1})"), "", "__metadata__ entry 'k' is not a string"},
      {metadata(R"({"k":null})"), "", "__metadata__ entry 'k' is not a string"},
      {R"({"x.w":[]})", "", "tensor 'x.w': its entry is not an object"},
      {R"({"x.w":null})", "", "tensor 'x.w': its entry is not an object"},
      {Tensor("x.w", absl::StrCat(shape, ",", offsets)), data, "'x.w': its entry has no dtype"},
      {Tensor("x.w", absl::StrCat(dtype, ",", offsets)), data, "'x.w': its entry has no shape"},
      {Tensor("x.w", absl::StrCat(dtype, ",", shape)), data, "'x.w': its entry has no data_offsets"},
      {tensor(R"("dtype":32)", shape, offsets), data, "'x.w': dtype is not a string"},
      {tensor(R"("dtype":"F33")", shape, offsets), data, "'x.w': unknown dtype 'F33'; known: BOOL"},
      {tensor(R"("dtype":"float32")", shape, offsets), data, "unknown dtype 'float32'"},
      {tensor(R"("dtype":"f32")", shape, offsets), data, "unknown dtype 'f32'"},
      {tensor(dtype, R"("shape":1)", offsets), data, "'x.w': shape is not an array"},
      {tensor(dtype, R"("shape":null)", offsets), data, "'x.w': shape is not an array"},
      {tensor(dtype, R"("shape":[-1])", offsets), data, "'x.w': shape [-1] " + counts_error},
      {tensor(dtype, R"("shape":[-0])", offsets), data, "'x.w': shape [0] " + counts_error},
      {tensor(dtype, R"("shape":[1.0])", offsets), data, "'x.w': shape [1.0] " + counts_error},
      {tensor(dtype, R"("shape":["1"])", offsets), data, counts_error},
      {tensor(dtype, R"("shape":[9223372036854775808])", offsets), data, counts_error},
      {tensor(dtype, R"("shape":[18446744073709551616])", offsets), data, counts_error},
      {tensor(dtype, R"("shape":[4294967296,4294967296])", offsets), data,
       "'x.w': shape [4294967296, 4294967296] has more elements than 64 bits can count"},
      {tensor(dtype, R"("shape":[4611686018427387904])", offsets), data, "has too many bytes"},
      {tensor(dtype, R"("shape":[1,1,1,1,1,1,1,1,1])", offsets), data,
       "'x.w': shape [1, 1, 1, 1, 1, 1, 1, 1, 1] has 9 dimensions; at most 8"},
      {tensor(R"("dtype":"F4")", R"("shape":[3])", R"("data_offsets":[0,2])"), "12",
       "'x.w': a tensor of dtype F4 (4 bits an element) and shape [3] does not fill whole bytes"},
      {tensor(dtype, shape, R"("data_offsets":4)"), data, "'x.w': data_offsets is not an array"},
      {tensor(dtype, shape, R"("data_offsets":[0])"), data, "'x.w': data_offsets has 1 numbers"},
      {tensor(dtype, shape, R"("data_offsets":[0,4,4])"), data, "data_offsets has 3 numbers"},
      {tensor(dtype, shape, R"("data_offsets":[-4,0])"), data, "data_offsets [-4,0] "},
      {tensor(dtype, shape, R"("data_offsets":[4,0])"), data,
       "'x.w': data_offsets begin at 4, after their end 0"},
      {tensor(dtype, shape, R"("data_offsets":[0,3])"), "123",
       "'x.w': data_offsets hold 3 bytes, but dtype F32 and shape [1] need 4"},
      {tensor(dtype, R"("shape":[0])", offsets), data, "hold 4 bytes, but dtype F32 and shape [0]"},
      {tensor(dtype, shape, offsets), "123",
       "'x.w': data_offsets end at 4, past the 3 bytes of data in the file"},
      {tensor(dtype, shape, offsets), "12345", "has 1 trailing bytes after the last tensor"},
      {"{}", "1", "has 1 trailing bytes after the last tensor"},
      {tensor(dtype, shape, R"("data_offsets":[1,5])"), "12345",
       "'x.w': begins at byte 1 and leaves a hole after byte 0"},
      {two("[0,2]", "[3,5]"), "12345", "'b': begins at byte 3 and leaves a hole after byte 2"},
      {two("[0,2]", "[1,3]"), "123",
       "'b': begins at byte 1 and overlaps tensor 'a', which ends at 2"},
      {two("[0,2]", "[0,2]"), "12", "'b': begins at byte 0 and overlaps tensor 'a'"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
       "1234", "'b': begins at byte 2 and overlaps tensor 'a', which ends at 4"},
  };
}

TEST_F(SafetensorsFileTest, NamesWhatIsWrongWithAHeader) {
  for (const Malformed& c : MalformedHeaders()) {
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
      const char c = random() % 2 == 0 ? alphabet[random() % alphabet.size()]
                                       : static_cast<char>(random());
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
