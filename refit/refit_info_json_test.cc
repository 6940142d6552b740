// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/refit_info_json.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/refit_info.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

RefitInfo Info(std::vector<TensorSpec> tensors) {
  return RefitInfo::Create(std::move(tensors)).value();
}

void ExpectRoundTrip(const RefitInfo& info) {
  const absl::StatusOr<std::string> text = RefitInfoToJson(info);
  ASSERT_THAT(text, IsOk());
  const absl::StatusOr<RefitInfo> back = RefitInfoFromJson(*text);
  ASSERT_THAT(back, IsOk());
  ASSERT_EQ(back->size(), info.size());
  for (int i = 0; i < info.size(); ++i) {
    EXPECT_EQ((*back)[i].name, info[i].name);
    EXPECT_EQ((*back)[i].shape, info[i].shape);
    EXPECT_EQ((*back)[i].dtype, info[i].dtype);
  }
  EXPECT_THAT(RefitInfoToJson(*back), IsOkAndHolds(*text));
}

TEST(RefitInfoJsonTest, IsOneObjectInOrder) {
  EXPECT_THAT(
      RefitInfoToJson(Info({{"z.weight", {151936, 1024}, DType::kBF16},
                            {"a", {}, DType::kF8E4M3},
                            {"empty", {0, 3}, DType::kI64}})),
      IsOkAndHolds(
          R"({"z.weight":[[151936,1024],"BF16"],"a":[[],"F8_E4M3"],"empty":[[0,3],"I64"]})"));
}

TEST(RefitInfoJsonTest, RoundTripOfEveryDTypeAndRankInOrder) {
  std::vector<TensorSpec> tensors;
  for (const DType dtype : kAllDTypes) {
    for (int rank = 1; rank <= Shape::kMaxRank; ++rank) {
      const std::vector<int64_t> dims(static_cast<size_t>(rank), 4);
      const std::string name = absl::StrCat("t", 1000 - tensors.size());  // not in name order
      tensors.push_back({name, Shape::Create(dims).value(), dtype});
    }
  }
  ExpectRoundTrip(Info(std::move(tensors)));
}

TEST(RefitInfoJsonTest, RoundTripOfNamesThatAreHardToWrite) {
  std::vector<TensorSpec> tensors;
  for (const std::string& name :
       {std::string("with space"), std::string(" "), std::string("quote\"back\\slash/"),
        std::string("line\nfeed\ttab"), std::string("nul\0inside", 10), std::string("\x7f\x01"),
        std::string("größe"), std::string("权重"), std::string("😀"), std::string("e\u0301"),
        std::string("{\"x\":[[1],\"F32\"]}"), std::string(4096, 'n'),
        std::string(4096, 'n') + "1"}) {
    tensors.push_back({name, {2}, DType::kF32});
  }
  ExpectRoundTrip(Info(std::move(tensors)));
}

RefitInfo ManyTensors(int count) {
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < count; ++i) {
    tensors.push_back({absl::StrCat("model.layers.", i, ".weight"), {i}, DType::kBF16});
  }
  return Info(std::move(tensors));
}

double ReadingSeconds(const std::string& text) {
  double best = 1e9;
  for (int i = 0; i < 2; ++i) {
    timespec begin, end;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    EXPECT_THAT(RefitInfoFromJson(text), IsOk());
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    best = std::min(best, static_cast<double>(end.tv_sec - begin.tv_sec) +
                              1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec));
  }
  return best;
}

TEST(RefitInfoJsonTest, TimeOfManyTensorsGrowsAboutLinearly) {
  const RefitInfo many = ManyTensors(10'000);
  ExpectRoundTrip(many);
  const double ratio = ReadingSeconds(RefitInfoToJson(many).value()) /
                       ReadingSeconds(RefitInfoToJson(ManyTensors(1'250)).value());
  RecordProperty("ratio", absl::StrCat(ratio));
  EXPECT_LT(ratio, 24);  // 8 times the tensors: quadratic time would be 64
}

TEST(RefitInfoJsonTest, ReadsOtherWritersSpacing) {
  const absl::StatusOr<RefitInfo> info =
      RefitInfoFromJson(" {\n \"b\" : [ [ 2 , 3 ] , \"F32\" ] ,\n \"\\u0061\": [[], \"U8\"]\n} \n");
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ((*info)[0].name, "b");
  EXPECT_EQ((*info)[1].name, "a");
}

TEST(RefitInfoJsonTest, NameThatIsNotUtf8IsRefusedAndShown) {
  EXPECT_THAT(RefitInfoToJson(Info({{"bad\xff", {2}, DType::kF32}})).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'bad\\xff'"), HasSubstr("UTF-8"))));
  EXPECT_THAT(RefitInfoFromJson("{\"bad\xff\":[[2],\"F32\"]}").status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(RefitInfoJsonTest, RepeatedNameIsRefused) {
  for (const char* text : {R"({"a":[[2],"F32"],"b":[[2],"F32"],"a":[[2],"F32"]})",
                           R"({"a":[[2],"F32"],"\u0061":[[3],"F32"]})"}) {
    EXPECT_THAT(
        RefitInfoFromJson(text).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("'a'"), HasSubstr("twice"))));
  }
}

TEST(RefitInfoJsonTest, MalformedTensorsAreRefusedByName) {
  for (const char* value : {R"(null)",
                            R"(7)",
                            R"("F32")",
                            R"([])",
                            R"([[2]])",
                            R"(["F32",[2]])",
                            R"([[2],"F32",1])",
                            R"([2,"F32"])",
                            R"([[2],32])",
                            R"([[2],"FP32"])",
                            R"([[2],"torch.float32"])",
                            R"([["2"],"F32"])",
                            R"([[2.5],"F32"])",
                            R"([[2.0],"F32"])",
                            R"([[true],"F32"])",
                            R"([[null],"F32"])",
                            R"([[-1],"F32"])",
                            R"([[[2]],"F32"])",
                            R"({"dims":[2],"dtype":"F32"})",
                            R"([[9223372036854775808],"U8"])",
                            R"([[18446744073709551615],"U8"])",
                            R"([[18446744073709551616],"U8"])",
                            R"([[4294967296,4294967296],"U8"])",
                            R"([[9223372036854775807],"F32"])",
                            R"([[1,1,1,1,1,1,1,1,1],"F32"])",
                            R"([[3],"F4"])"}) {
    // Wherever it stands, and also when others after it are well.
    for (const std::string& text :
         {absl::StrCat(R"({"ok":[[2],"F32"],"the name":)", value, "}"),
          absl::StrCat(R"({"the name":)", value, R"(,"ok":[[2],"F32"]})")}) {
      EXPECT_THAT(RefitInfoFromJson(text).status(),
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'the name'")))
          << text;
    }
  }
}

TEST(RefitInfoJsonTest, MalformedTextsAreRefused) {
  const std::string good = R"({"a":[[2],"F32"],"b":[[2,3],"BF16"]})";
  ASSERT_THAT(RefitInfoFromJson(good), IsOk());
  std::vector<std::string> bad = {"",
                                  " ",
                                  "null",
                                  "7",
                                  "\"a\"",
                                  "[]",
                                  R"([[[2],"F32"]])",
                                  R"([{"a":[[2],"F32"]}])",
                                  "{}",
                                  R"({"":[[2],"F32"]})",
                                  R"({"a":[[2],"F32"],})",
                                  R"({'a':[[2],'F32']})",
                                  R"({a:[[2],"F32"]})",
                                  good + good,
                                  good + "x",
                                  "//\n" + good,
                                  std::string(good).append(1, '\0'),
                                  R"({"a":[[2e999],"F32"]})",
                                  R"({"a":[[02],"F32"]})",
                                  R"({"a":[[2],"F32"]]})"};
  bad.push_back(std::string(good).append("\0x", 2));
  for (size_t size = 0; size < good.size(); ++size) bad.push_back(good.substr(0, size));
  bad.push_back(std::string(100'000, '['));
  bad.push_back(R"({"a":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}");
  for (const std::string& text : bad) {
    EXPECT_THAT(RefitInfoFromJson(text).status(), StatusIs(absl::StatusCode::kInvalidArgument))
        << text.substr(0, 80);
  }
}

}  // namespace
}  // namespace weight_sync::refit
