// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The reader and the writer against the Python safetensors library, which is another
// implementation of the format (in Rust) and the one that everybody has. The environment is made by
// `tools/peers/setup safetensors`; without it the tests are skipped.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/run_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "refit/checkpoint/checkpoint.h"
#include "refit/checkpoint/malformed_files.h"
#include "refit/checkpoint/named_tensor.h"
#include "refit/checkpoint/safetensors_file.h"
#include "refit/checkpoint/safetensors_writer.h"
#include "refit/checkpoint/test_files.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"
#include "tools/peers/peer_environment.h"

namespace weight_sync::refit {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A tensor as some reader saw it.
struct SeenTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

std::vector<SeenTensor> SeenByUs(const std::vector<NamedTensor>& tensors) {
  std::vector<SeenTensor> seen;
  for (const NamedTensor& t : tensors) {
    const absl::Span<const int64_t> dims = t.tensor.shape().dims();
    seen.push_back({t.name, std::string(SafetensorsName(t.tensor.dtype())),
                    std::vector<int64_t>(dims.begin(), dims.end()), LogicalBytes(t.tensor)});
  }
  return seen;
}

// The names of the tensors in which two readers differ.
std::vector<std::string> Differences(std::vector<SeenTensor> a, std::vector<SeenTensor> b) {
  std::vector<std::string> differences;
  const auto by_name = [](const SeenTensor& x, const SeenTensor& y) { return x.name < y.name; };
  std::sort(a.begin(), a.end(), by_name);
  std::sort(b.begin(), b.end(), by_name);
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size() || i >= b.size()) {
      differences.push_back("(another number of tensors)");
      break;
    }
    if (a[i].name != b[i].name || a[i].dtype != b[i].dtype || a[i].shape != b[i].shape ||
        a[i].bytes != b[i].bytes) {
      differences.push_back(a[i].name);
    }
  }
  return differences;
}

class SafetensorsPeerTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<std::string> found = peers::FindPeerEnvironment("safetensors");
    if (!found.ok()) GTEST_SKIP() << found.status();
    environment_ = *found;
  }

  void Python(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {environment_ + "/bin/python", "-I",
                                        "refit/checkpoint/safetensors_peer.py"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const base::ProgramResult result = base::RunProgram(command);
    ASSERT_EQ(result.exit_code, 0) << absl::StrJoin(command, " ") << "\n" << result.output;
  }

  std::vector<SeenTensor> SeenByTheLibrary(const std::string& file) {
    Python({"dump", file, Path("dump")});
    const std::string bytes = ReadTestFile(Path("dump.bin"));
    std::vector<SeenTensor> seen;
    size_t offset = 0;
    for (const nlohmann::json& t : nlohmann::json::parse(ReadTestFile(Path("dump.json")))) {
      seen.push_back({t["name"], t["dtype"], t["shape"], bytes.substr(offset, t["bytes"])});
      offset += seen.back().bytes.size();
    }
    EXPECT_EQ(offset, bytes.size());
    return seen;
  }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  const std::string directory_ = NewTestDirectory();
  std::string environment_;
};

// Tensors of every type, or of every type that the library's writer has a name for (all but the
// F6).
void AddOfEveryType(TestTensors& tensors, bool f6) {
  for (const DType dtype : kAllDTypes) {
    if (DTypeBits(dtype) == 6 && !f6) continue;
    const auto name = [&](const char* kind) {
      return absl::StrCat("layers.", tensors.random()() % 10, ".", SafetensorsName(dtype), ".",
                          kind);
    };
    tensors.Add(name("matrix"), dtype, {3, 8});
    tensors.Add(name("large"), dtype, {5, 7, 64});
    tensors.Add(name("empty"), dtype, {0, 4});
    if (IsSubByte(dtype)) continue;
    tensors.Add(name("scalar"), dtype, {});
    tensors.Add(name("transposed"), tensors.Make(dtype, {4, 5}).Transposed(0, 1).value());
  }
}

TEST_F(SafetensorsPeerTest, LibraryReadsWhatWeWrite) {
  TestTensors tensors(1);
  AddOfEveryType(tensors, /*f6=*/true);
  ASSERT_EQ(WriteSafetensors(Path("ours"), tensors.tensors()), absl::OkStatus());
  EXPECT_THAT(Differences(SeenByUs(tensors.tensors()), SeenByTheLibrary(Path("ours"))), IsEmpty());
}

TEST_F(SafetensorsPeerTest, LibraryWritesTheSameBytes) {
  for (int seed = 0; seed < 5; ++seed) {
    TestTensors tensors(seed);
    AddOfEveryType(tensors, /*f6=*/false);
    for (const char* name :
         {"", "\xe9\x87\x8d", "quote\"\\/", "\x01\t\n\x1f\x7f", "Z", "a", "a.b"}) {
      tensors.Add(name, DType::kBF16, {static_cast<int64_t>(tensors.random()() % 9)});
    }
    tensors.Add(std::string("nul\0", 4), DType::kU8, {1});
    tensors.Add(std::string(4096 + seed, 'n'), DType::kU8, {1});
    std::map<std::string, std::string> metadata;
    if (seed % 2 == 0) metadata["format\n\xe9\x87\x8d"] = "p\"t";
    ASSERT_EQ(WriteSafetensors(Path("ours"), tensors.tensors(), metadata), absl::OkStatus());
    Python({"rewrite", Path("ours"), Path("theirs")});
    EXPECT_TRUE(ReadTestFile(Path("ours")) == ReadTestFile(Path("theirs"))) << "seed " << seed;
  }
}

TEST_F(SafetensorsPeerTest, WeReadAndRewriteWhatTheLibraryWrites) {
  Python({"save", Path("theirs")});
  const SafetensorsFile file = SafetensorsFile::Open(Path("theirs")).value();
  EXPECT_EQ(file.tensors().size(), 4 * 13);  // four shapes of numpy's 13 types
  EXPECT_THAT(Differences(SeenByUs(file.tensors()), SeenByTheLibrary(Path("theirs"))), IsEmpty());
  ASSERT_EQ(WriteSafetensors(Path("ours"), file.tensors(), file.metadata()), absl::OkStatus());
  EXPECT_TRUE(ReadTestFile(Path("ours")) == ReadTestFile(Path("theirs")));
}

TEST_F(SafetensorsPeerTest, StridedViewsAreWhatNumpyMakesOfThem) {
  TestTensors tensors(2);
  const TensorView w = tensors.Make(DType::kI32, {6, 5, 4});
  tensors.Add("w", w);
  tensors.Add("w.transpose(2, 1, 0)", w.Transposed(0, 2).value());
  tensors.Add("w.transpose(1, 0, 2)[::-1]",
              w.Transposed(0, 1).value().Sliced(0, 4, -1, -1).value());
  tensors.Add("w[1:6:2]", w.Sliced(0, 1, 6, 2).value());
  tensors.Add("w[:, :, 3:0:-2]", w.Sliced(2, 3, 0, -2).value());
  tensors.Add("np.broadcast_to(w[:1], (3, 5, 4))",
              TensorView::Strided(w.data(), DType::kI32, {3, 5, 4}, {0, 4, 1}).value());
  ASSERT_EQ(WriteSafetensors(Path("ours"), tensors.tensors()), absl::OkStatus());
  Python({"check-views", Path("ours")});
}

TEST_F(SafetensorsPeerTest, IndexIsFormattedAsHuggingFaceDoes) {
  TestTensors tensors(3);
  for (const char* name :
       {"b", "a", "\xe9\x87\x8d", "\xf0\x9f\x98\x80", "quote\"\\/\x7f\x01", "B"}) {
    tensors.Add(name, DType::kF32, {4});
  }
  ASSERT_EQ(WriteShardedSafetensors(directory_, tensors.tensors(), 32), absl::OkStatus());
  const std::string index = Path("model.safetensors.index.json");
  Python({"format-index", index, Path("formatted")});
  EXPECT_EQ(ReadTestFile(index), ReadTestFile(Path("formatted")));
}

TEST_F(SafetensorsPeerTest, PublishedCheckpointIsReadAsTheLibraryReadsIt) {
  const Checkpoint checkpoint = Checkpoint::Open(environment_ + "/checkpoint").value();
  EXPECT_EQ(checkpoint.tensors().size(), 104);
  EXPECT_GT(checkpoint.total_bytes(), 90'000'000);
  const std::string path = checkpoint.shards()[0].path();
  EXPECT_THAT(Differences(SeenByUs(checkpoint.tensors()), SeenByTheLibrary(path)), IsEmpty());

  ASSERT_EQ(WriteSafetensors(Path("ours"), checkpoint.tensors(), checkpoint.shards()[0].metadata()),
            absl::OkStatus());
  Python({"rewrite", path, Path("theirs")});
  EXPECT_TRUE(ReadTestFile(Path("ours")) == ReadTestFile(Path("theirs")));
}

// Negative controls: the comparisons above see one byte, and two tensors that are exchanged.
TEST_F(SafetensorsPeerTest, DamageIsSeen) {
  TestTensors tensors(4);
  AddOfEveryType(tensors, /*f6=*/false);
  ASSERT_EQ(WriteSafetensors(Path("ours"), tensors.tensors()), absl::OkStatus());
  std::string flipped = ReadTestFile(Path("ours"));
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  WriteTestFile(Path("flipped"), flipped);
  const std::vector<SeenTensor> seen = SeenByUs(tensors.tensors());
  EXPECT_EQ(Differences(seen, SeenByTheLibrary(Path("flipped"))).size(), 1);
  Python({"rewrite", Path("flipped"), Path("theirs")});
  EXPECT_FALSE(ReadTestFile(Path("ours")) == ReadTestFile(Path("theirs")));

  std::vector<NamedTensor> swapped = tensors.tensors();
  std::swap(swapped[0].name, swapped[1].name);
  ASSERT_EQ(WriteSafetensors(Path("swapped"), swapped), absl::OkStatus());
  EXPECT_EQ(Differences(seen, SeenByTheLibrary(Path("swapped"))).size(), 2);
  Python({"rewrite", Path("swapped"), Path("theirs")});
  EXPECT_FALSE(ReadTestFile(Path("ours")) == ReadTestFile(Path("theirs")));
}

TEST_F(SafetensorsPeerTest, BadFilesAreRefusedByBoth) {
  std::vector<std::string> paths;
  std::vector<std::string> expected;
  for (const MalformedFile& file : MalformedSafetensors()) {
    paths.push_back(Path(absl::StrCat(paths.size())));
    WriteTestFile(paths.back(), SafetensorsBytes(file.header, file.data));
    expected.push_back(
        absl::StrCat(file.header, file.refused_by_the_library ? " refused" : " accepted"));
  }
  WriteTestFile(Path("list"), absl::StrJoin(paths, "\n"));
  Python({"verdicts", Path("list"), Path("verdicts")});
  std::vector<std::string> actual =
      absl::StrSplit(ReadTestFile(Path("verdicts")), '\n', absl::SkipEmpty());
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(absl::StrCat(MalformedSafetensors()[i].header, " ", actual[i]), expected[i]);
  }
}

// What the library accepts we accept and what it refuses we refuse, but for the exceptions that
// safetensors_file.h names.
TEST_F(SafetensorsPeerTest, RandomlyDamagedFilesGetTheSameVerdict) {
  const std::string header =
      R"({"__metadata__":{"f":"pt"},"b":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},)"
      R"("a":{"dtype":"U8","shape":[3,1],"data_offsets":[0,3]},)"
      R"("c":{"dtype":"U8","shape":[0,7],"data_offsets":[11,11]}})";
  const std::string good = SafetensorsBytes(header, "abcABCDEFGH");
  const std::string alphabet = "{}[]\",:0123456789-eE.\\u \n\xff";
  std::mt19937 random(20260503);
  std::vector<std::string> paths;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = good;
    for (int n = static_cast<int>(random() % 3); n >= 0; --n) {
      // Mostly in the header, whose length is then corrected.
      const size_t at = random() % (header.size() + 8);
      const char c =
          random() % 2 == 0 ? alphabet[random() % alphabet.size()] : good[random() % good.size()];
      const uint32_t kind = random() % 4;
      if (kind == 0) bytes.insert(at, 1, c);
      if (kind == 1) bytes.erase(at, 1);
      if (kind >= 2) bytes[at] = c;
      if (at >= 8 && kind == 0) ++bytes[0];
      if (at >= 8 && kind == 1) --bytes[0];
    }
    paths.push_back(Path(absl::StrCat(i)));
    WriteTestFile(paths.back(), bytes);
  }
  WriteTestFile(Path("list"), absl::StrJoin(paths, "\n"));
  Python({"verdicts", Path("list"), Path("verdicts")});
  const std::vector<std::string> verdicts =
      absl::StrSplit(ReadTestFile(Path("verdicts")), '\n', absl::SkipEmpty());
  ASSERT_EQ(verdicts.size(), paths.size());
  int accepted = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    const absl::Status ours = SafetensorsFile::Open(paths[i]).status();
    if (ours.ok()) {
      ++accepted;
      EXPECT_EQ(verdicts[i], "accepted") << ReadTestFile(paths[i]);
    } else if (verdicts[i] == "accepted") {
      EXPECT_THAT(std::string(ours.message()),
                  AnyOf(HasSubstr("appears twice"), HasSubstr("its entry is not an object"),
                        HasSubstr("2^63"), HasSubstr("at most 8")))
          << ReadTestFile(paths[i]);
    }
  }
  EXPECT_GT(accepted, 30);
  EXPECT_LT(accepted, 2970);
}

}  // namespace
}  // namespace weight_sync::refit
