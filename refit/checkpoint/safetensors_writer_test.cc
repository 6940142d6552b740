// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/safetensors_writer.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/checkpoint/safetensors_file.h"
#include "refit/checkpoint/test_files.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TensorView Bytes(absl::string_view text) {
  return TensorView::Contiguous(reinterpret_cast<const std::byte*>(text.data()), DType::kU8,
                                {static_cast<int64_t>(text.size())});
}

class SafetensorsWriterTest : public testing::Test {
 protected:
  const std::string directory_ = NewTestDirectory();
  const std::string path_ = directory_ + "/x.safetensors";
};

// The expected bytes follow the reference implementation; the peer test compares with it.
TEST_F(SafetensorsWriterTest, WritesTheBytesOfTheFormat) {
  const std::string wide = "12345678";
  const NamedTensor tensors[] = {
      {"b", Bytes("xyz")},
      {"a", Bytes("uvw")},
      {"line\n\"\x7f", TensorView::Contiguous(reinterpret_cast<const std::byte*>(wide.data()),
                                              DType::kBF16, {2, 2})},
  };
  ASSERT_EQ(WriteSafetensors(path_, tensors, {{"format", "pt"}}), absl::OkStatus());
  const std::string header =
      "{\"__metadata__\":{\"format\":\"pt\"},"
      "\"line\\n\\\"\x7f\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[0,8]},"
      "\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[11,14]}}";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(ReadTestFile(path_), SafetensorsBytes(padded, "12345678uvwxyz"));
  EXPECT_THAT(ListTestDirectory(directory_), ElementsAre("x.safetensors"));
}

TEST_F(SafetensorsWriterTest, WritesNoTensors) {
  ASSERT_EQ(WriteSafetensors(path_, {}), absl::OkStatus());
  EXPECT_EQ(ReadTestFile(path_), SafetensorsBytes("{}      ", ""));
}

TEST_F(SafetensorsWriterTest, RandomTensorsOfEveryTypeComeBack) {
  for (int seed = 0; seed < 50; ++seed) {
    TestTensors input(seed);
    const auto uniform = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(input.random());
    };
    for (const DType dtype : kAllDTypes) {
      std::vector<int64_t> dims(uniform(0, 4));
      for (int64_t& dim : dims) dim = uniform(0, 5);
      if (IsSubByte(dtype)) dims.push_back(4 * uniform(1, 3));
      TensorView tensor = input.Make(dtype, Shape::Create(dims).value());
      if (!IsSubByte(dtype) && tensor.shape().rank() >= 2) {
        tensor = tensor.Transposed(0, 1).value().Sliced(0, tensor.shape()[1] - 1, -1, -1).value();
      }
      input.Add(absl::StrCat("layers.", uniform(0, 99), ".", SafetensorsName(dtype)), tensor);
    }
    const std::map<std::string, std::string> metadata = {{"seed", absl::StrCat(seed)}, {"", ""}};
    ASSERT_EQ(WriteSafetensors(path_, input.tensors(), metadata), absl::OkStatus());

    const SafetensorsFile file = SafetensorsFile::Open(path_).value();
    EXPECT_EQ(file.metadata(), metadata);
    ASSERT_EQ(file.tensors().size(), input.tensors().size());
    for (const NamedTensor& written : input.tensors()) {
      const auto read = std::find_if(file.tensors().begin(), file.tensors().end(),
                                     [&](const NamedTensor& t) { return t.name == written.name; });
      ASSERT_NE(read, file.tensors().end()) << written.name;
      EXPECT_EQ(read->tensor.dtype(), written.tensor.dtype());
      EXPECT_EQ(read->tensor.shape(), written.tensor.shape());
      EXPECT_EQ(LogicalBytes(read->tensor), LogicalBytes(written.tensor)) << written.name;
    }
  }
}

TEST_F(SafetensorsWriterTest, LargeStridedTensorIsWrittenInPieces) {
  TestTensors input(1);
  input.Add("w", input.Make(DType::kF16, {1500, 1100}).Transposed(0, 1).value());
  ASSERT_EQ(WriteSafetensors(path_, input.tensors()), absl::OkStatus());
  const SafetensorsFile file = SafetensorsFile::Open(path_).value();
  EXPECT_EQ(LogicalBytes(file.tensors()[0].tensor), LogicalBytes(input.tensors()[0].tensor));
}

TEST_F(SafetensorsWriterTest, UnusualNamesComeBack) {
  const std::vector<std::string> names = {"", std::string("a\0b", 3), "\xe9\x87\x8d",
                                          std::string(4096, 'n'), "\x01\x1f\x7f\"\\/\b\f\n\r\t"};
  std::vector<NamedTensor> tensors;
  for (const std::string& name : names) tensors.push_back({name, Bytes("1")});
  ASSERT_EQ(WriteSafetensors(path_, tensors), absl::OkStatus());
  const SafetensorsFile file = SafetensorsFile::Open(path_).value();
  std::vector<std::string> read;
  for (const NamedTensor& t : file.tensors()) read.push_back(t.name);
  EXPECT_THAT(read, testing::UnorderedElementsAreArray(names));
}

TEST_F(SafetensorsWriterTest, RefusesBadInputBeforeAnyByte) {
  struct Case {
    std::vector<NamedTensor> tensors;
    std::map<std::string, std::string> metadata;
    std::string error;
  };
  const Case cases[] = {
      {{{"a", {}}, {"b", {}}, {"a", {}}}, {}, "tensor 'a': given twice"},
      {{{"__metadata__", {}}}, {}, "tensor '__metadata__': the format keeps this name"},
      {{{"a\xff", {}}}, {}, "its name is not UTF-8"},
      {{}, {{"k", "\xff"}}, "metadata entry 'k' is not UTF-8"},
      {{}, {{"\xff", "v"}}, "is not UTF-8"},
  };
  for (const Case& c : cases) {
    for (const absl::Status& status :
         {WriteSafetensors(path_, c.tensors, c.metadata),
          WriteShardedSafetensors(directory_, c.tensors, 1, c.metadata)}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
    }
    EXPECT_THAT(ListTestDirectory(directory_), IsEmpty());
  }
  EXPECT_EQ(WriteShardedSafetensors(directory_, {}, 0).code(), absl::StatusCode::kInvalidArgument);
}

// Each quote of the name takes two bytes of the header.
TEST_F(SafetensorsWriterTest, RefusesAHeaderOverTheLimitOfTheFormat) {
  const absl::Status status = WriteSafetensors(path_, {{std::string(50'000'000, '"'), {}}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the format's limit is 100000000"));
  EXPECT_THAT(ListTestDirectory(directory_), IsEmpty());
}

TEST_F(SafetensorsWriterTest, ReplacesAFileUnderAnOpenReader) {
  ASSERT_EQ(WriteSafetensors(path_, {{"a", Bytes("old")}}), absl::OkStatus());
  const SafetensorsFile old = SafetensorsFile::Open(path_).value();
  ASSERT_EQ(WriteSafetensors(path_, {{"a", Bytes("")}}), absl::OkStatus());
  EXPECT_EQ(LogicalBytes(old.tensors()[0].tensor), "old");
  EXPECT_EQ(SafetensorsFile::Open(path_).value().tensors()[0].tensor.num_bytes(), 0);
}

TEST_F(SafetensorsWriterTest, NamesThePathThatCannotBeWritten) {
  const std::string path = directory_ + "/absent/x.safetensors";
  const absl::Status status = WriteSafetensors(path, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  EXPECT_THAT(std::string(WriteShardedSafetensors(directory_ + "/absent", {}, 1).message()),
              HasSubstr(directory_ + "/absent"));
}

// A file size limit stands for a full disk: write() fails in the middle of a tensor.
TEST_F(SafetensorsWriterTest, FailedWriteLeavesNothingBehind) {
  TestTensors input(1);
  for (int i = 0; i < 4; ++i) input.Add(absl::StrCat("t", i), DType::kF32, {1 << 16});
  ASSERT_EQ(WriteSafetensors(path_, {{"a", Bytes("old")}}), absl::OkStatus());
  const std::string old = ReadTestFile(path_);
  const std::string shards = NewTestDirectory();

  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  absl::Status single, sharded;
  {
    const absl::Cleanup restore = [&] {
      setrlimit(RLIMIT_FSIZE, &before);
      signal(SIGXFSZ, old_handler);
    };
    struct rlimit low = before;
    low.rlim_cur = 600'000;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
    single = WriteSafetensors(path_, input.tensors());
    // Two shards of two tensors fit, the third does not.
    std::vector<NamedTensor> tensors = input.tensors();
    tensors.push_back({"big", input.Make(DType::kF32, {1 << 18})});
    sharded = WriteShardedSafetensors(shards, tensors, 2 << 18);
  }
  EXPECT_EQ(single.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(single.message()), HasSubstr("cannot write '" + path_ + "'"));
  EXPECT_EQ(ReadTestFile(path_), old);
  EXPECT_THAT(ListTestDirectory(directory_), ElementsAre("x.safetensors"));
  EXPECT_EQ(sharded.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(sharded.message()), HasSubstr("model-00003-of-00003.safetensors"));
  EXPECT_THAT(ListTestDirectory(shards), IsEmpty());
}

TEST_F(SafetensorsWriterTest, OneShardIsAPlainFile) {
  ASSERT_EQ(WriteShardedSafetensors(directory_, {{"b", Bytes("12")}, {"a", Bytes("34")}}, 4),
            absl::OkStatus());
  EXPECT_THAT(ListTestDirectory(directory_), ElementsAre("model.safetensors"));
}

TEST_F(SafetensorsWriterTest, ShardsFollowTheGivenOrderAndTheIndexNamesThem) {
  const NamedTensor tensors[] = {{"b", Bytes("12")},
                                 {"a", Bytes("34")},
                                 {"large", Bytes("123456789")},
                                 {"\xe9\x87\x8d\x7f", Bytes("5")},
                                 {"empty", Bytes("")}};
  ASSERT_EQ(WriteShardedSafetensors(directory_, tensors, 4, {{"format", "pt"}}), absl::OkStatus());
  EXPECT_THAT(ListTestDirectory(directory_),
              ElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                          "model-00003-of-00003.safetensors", "model.safetensors.index.json"));
  EXPECT_EQ(ReadTestFile(directory_ + "/model.safetensors.index.json"),
            R"({
  "metadata": {
    "total_size": 14
  },
  "weight_map": {
    "a": "model-00001-of-00003.safetensors",
    "b": "model-00001-of-00003.safetensors",
    "empty": "model-00003-of-00003.safetensors",
    "large": "model-00002-of-00003.safetensors",
    "\u91cd\u007f": "model-00003-of-00003.safetensors"
  }
}
)");
  const SafetensorsFile first =
      SafetensorsFile::Open(directory_ + "/model-00001-of-00003.safetensors").value();
  EXPECT_EQ(first.tensors().size(), 2);
  EXPECT_EQ(first.metadata().at("format"), "pt");
}

TEST_F(SafetensorsWriterTest, SameInputMakesSameBytes) {
  TestTensors input(7);
  for (int i = 0; i < 20; ++i) input.Add(absl::StrCat("t", i * 7 % 20), DType::kBF16, {3, i});
  const std::string other = NewTestDirectory();
  ASSERT_EQ(WriteShardedSafetensors(directory_, input.tensors(), 200), absl::OkStatus());
  ASSERT_EQ(WriteShardedSafetensors(other, input.tensors(), 200), absl::OkStatus());
  const std::vector<std::string> names = ListTestDirectory(directory_);
  EXPECT_GT(names.size(), 3);
  EXPECT_EQ(ListTestDirectory(other), names);
  for (const std::string& name : names) {
    EXPECT_EQ(ReadTestFile(absl::StrCat(directory_, "/", name)),
              ReadTestFile(absl::StrCat(other, "/", name)));
  }
}

TEST_F(SafetensorsWriterTest, ShardsAreNotMixedWithAnotherCheckpoint) {
  ASSERT_EQ(WriteShardedSafetensors(directory_, {{"a", Bytes("1")}}, 1), absl::OkStatus());
  const absl::Status status = WriteShardedSafetensors(directory_, {{"a", Bytes("1")}}, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'" + directory_ + "' holds a checkpoint already ('model.safetensors')"));
}

}  // namespace
}  // namespace weight_sync::refit
