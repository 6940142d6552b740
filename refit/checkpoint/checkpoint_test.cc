// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/checkpoint.h"

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/checkpoint/safetensors_writer.h"
#include "refit/checkpoint/test_files.h"
#include "refit/tensor/dtype.h"

namespace weight_sync::refit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kFirst[] = "model-00001-of-00002.safetensors";
constexpr char kSecond[] = "model-00002-of-00002.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";

std::vector<std::string> Names(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const NamedTensor& t : checkpoint.tensors()) names.push_back(t.name);
  return names;
}

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    tensors_.Add("d", DType::kU8, {10});
    tensors_.Add("c", DType::kF32, {2});
    tensors_.Add("b", DType::kU8, {11});
    tensors_.Add("a", DType::kU8, {3});
  }

  // {c, d} in the first shard and {a, b} in the second.
  void WriteShards() {
    ASSERT_EQ(WriteShardedSafetensors(directory_, tensors_.tensors(), 20), absl::OkStatus());
    ASSERT_THAT(ListTestDirectory(directory_), ElementsAre(kFirst, kSecond, kIndex));
  }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  void WriteIndex(const std::string& weight_map) {
    WriteTestFile(Path(kIndex), absl::StrCat("{\"metadata\":{},\"weight_map\":", weight_map, "}"));
  }
  std::string OpenError() {
    const absl::Status status = Checkpoint::Open(directory_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  TestTensors tensors_{3};
  const std::string directory_ = NewTestDirectory();
};

TEST_F(CheckpointTest, ShardsComeInNameOrderAndTensorsInByteOrder) {
  WriteShards();
  for (const std::string& path : {directory_, directory_ + "/", Path(kIndex)}) {
    const Checkpoint checkpoint = Checkpoint::Open(path).value();
    EXPECT_THAT(Names(checkpoint), ElementsAre("c", "d", "a", "b"));
    EXPECT_EQ(checkpoint.shards().size(), 2);
    EXPECT_EQ(checkpoint.total_bytes(), 32);
  }
}

TEST_F(CheckpointTest, FindsTensorsByName) {
  WriteShards();
  Checkpoint opened = Checkpoint::Open(directory_).value();
  const Checkpoint checkpoint = std::move(opened);
  for (const NamedTensor& written : tensors_.tensors()) {
    const NamedTensor* found = checkpoint.Find(written.name);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->tensor.shape(), written.tensor.shape());
    EXPECT_EQ(LogicalBytes(found->tensor), LogicalBytes(written.tensor));
  }
  EXPECT_EQ(checkpoint.Find("e"), nullptr);
}

TEST_F(CheckpointTest, TakesASingleFileWhateverItsName) {
  ASSERT_EQ(WriteSafetensors(Path("consolidated.safetensors"), tensors_.tensors()),
            absl::OkStatus());
  EXPECT_EQ(Checkpoint::Open(directory_).value().tensors().size(), 4);
  EXPECT_EQ(Checkpoint::Open(Path("consolidated.safetensors")).value().tensors().size(), 4);
}

TEST_F(CheckpointTest, PrefersTheStandardNames) {
  WriteShards();
  ASSERT_EQ(WriteSafetensors(Path("consolidated.safetensors"), {}), absl::OkStatus());
  EXPECT_EQ(Checkpoint::Open(directory_).value().tensors().size(), 4);
  ASSERT_EQ(WriteSafetensors(Path("model.safetensors"), {}), absl::OkStatus());
  EXPECT_EQ(Checkpoint::Open(directory_).value().tensors().size(), 0);
}

TEST_F(CheckpointTest, RelativeIndexPathFindsItsShards) {
  WriteShards();
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_);
  const absl::Status status = Checkpoint::Open(kIndex).status();
  std::filesystem::current_path(before);
  EXPECT_EQ(status, absl::OkStatus());
}

TEST_F(CheckpointTest, DirectoryWithoutACheckpointIsNamed) {
  EXPECT_THAT(OpenError(), HasSubstr("'" + directory_ +
                                     "' holds neither model.safetensors nor "
                                     "model.safetensors.index.json, and no *.safetensors file"));
  ASSERT_EQ(WriteSafetensors(Path("b.safetensors"), {}), absl::OkStatus());
  ASSERT_EQ(WriteSafetensors(Path("a.safetensors"), {}), absl::OkStatus());
  EXPECT_THAT(OpenError(), HasSubstr("several *.safetensors files: a.safetensors, b.safetensors"));
  EXPECT_THAT(std::string(Checkpoint::Open(Path("absent")).status().message()),
              HasSubstr("cannot open '" + Path("absent") + "'"));
}

TEST_F(CheckpointTest, MissingShardIsNamed) {
  WriteShards();
  std::filesystem::remove(Path(kSecond));
  EXPECT_THAT(OpenError(), HasSubstr(absl::StrCat("'", Path(kIndex), "': tensor 'a': its shard '",
                                                  kSecond, "' is missing")));
}

TEST_F(CheckpointTest, DamagedShardIsNamed) {
  WriteShards();
  std::filesystem::resize_file(Path(kSecond), std::filesystem::file_size(Path(kSecond)) - 1);
  EXPECT_THAT(OpenError(), HasSubstr("file '" + Path(kSecond) + "': tensor 'b'"));
}

TEST_F(CheckpointTest, IndexAndShardsMustAgree) {
  WriteShards();
  const std::string first = absl::StrCat("\"", kFirst, "\"");
  const std::string second = absl::StrCat("\"", kSecond, "\"");
  const auto map = [](const std::string& a, const std::string& d, const std::string& more = "") {
    return absl::StrCat("{\"a\":", a, ",\"b\":\"", kSecond, "\",\"c\":\"", kFirst, "\",\"d\":", d,
                        more, "}");
  };
  WriteIndex(map(second, first));
  EXPECT_EQ(Checkpoint::Open(directory_).status(), absl::OkStatus());

  WriteIndex(map(first, first));
  EXPECT_THAT(OpenError(), HasSubstr(absl::StrCat("tensor 'a': is in shard '", kSecond,
                                                  "' but the index maps it to '", kFirst, "'")));
  WriteIndex(map(second, first, ",\"e\":" + first));
  EXPECT_THAT(OpenError(),
              HasSubstr(absl::StrCat("tensor 'e': is not in its shard '", kFirst, "'")));
  WriteIndex(absl::StrCat("{\"a\":", second, ",\"b\":", second, ",\"d\":", first, "}"));
  EXPECT_THAT(OpenError(), HasSubstr(absl::StrCat("tensor 'c': is in shard '", kFirst,
                                                  "' but not in the index")));
  WriteIndex(map(second, first, ",\"a\":" + second));
  EXPECT_THAT(OpenError(), HasSubstr("key 'a' appears twice"));
}

TEST_F(CheckpointTest, TensorInTwoShardsIsNamed) {
  WriteShards();
  TestTensors more(4);
  more.Add("a", DType::kU8, {1});
  more.Add("b", DType::kU8, {1});
  more.Add("c", DType::kU8, {1});
  ASSERT_EQ(WriteSafetensors(Path(kSecond), more.tensors()), absl::OkStatus());
  EXPECT_THAT(OpenError(), HasSubstr("file '" + Path(kSecond) + "': tensor 'c': is also in '" +
                                     Path(kFirst) + "'"));
}

TEST_F(CheckpointTest, ShardsStayInTheDirectory) {
  WriteShards();
  for (const std::string shard :
       {"", ".", "..", "../x.safetensors", "/etc/passwd", "sub/x", "x\\u0000"}) {
    WriteIndex(absl::StrCat("{\"a\":\"", shard, "\"}"));
    EXPECT_THAT(OpenError(), HasSubstr("tensor 'a': its shard '")) << shard;
    EXPECT_THAT(OpenError(), HasSubstr("is not a plain file name")) << shard;
  }
}

TEST_F(CheckpointTest, BadIndexIsNamed) {
  WriteShards();
  const std::pair<std::string, std::string> cases[] = {
      {"", "parse error"},
      {"{", "parse error"},
      {"[]", "has no weight_map object"},
      {"{\"metadata\":{}}", "has no weight_map object"},
      {"{\"weight_map\":[]}", "has no weight_map object"},
      {"{\"weight_map\":{\"a\":1}}", "tensor 'a': its shard is not a string"},
  };
  for (const auto& [text, error] : cases) {
    WriteTestFile(Path(kIndex), text);
    EXPECT_THAT(OpenError(), HasSubstr("file '" + Path(kIndex) + "': ")) << text;
    EXPECT_THAT(OpenError(), HasSubstr(error)) << text;
  }
}

TEST_F(CheckpointTest, OfTensorsThatLieInMemory) {
  TestTensors input(3);
  input.Add("b", DType::kBF16, {3});
  input.Add("a", DType::kF32, {2, 2});
  const Checkpoint checkpoint = Checkpoint::OfTensors(input.tensors()).value();
  ASSERT_EQ(checkpoint.tensors().size(), 2);
  EXPECT_EQ(checkpoint.tensors()[0].name, "b");
  EXPECT_EQ(checkpoint.total_bytes(), 22);
  ASSERT_NE(checkpoint.Find("a"), nullptr);
  EXPECT_EQ(checkpoint.Find("a")->tensor.data(), input.tensors()[1].tensor.data());
  EXPECT_EQ(checkpoint.Find("c"), nullptr);
  EXPECT_EQ(checkpoint.shards().size(), 0);
  input.Add("b", DType::kBF16, {3});
  EXPECT_EQ(Checkpoint::OfTensors(input.tensors()).status(),
            absl::InvalidArgumentError("tensor 'b': given twice"));
}

}  // namespace
}  // namespace weight_sync::refit
