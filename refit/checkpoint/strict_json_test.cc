// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/strict_json.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::testing::HasSubstr;

TEST(StrictJsonTest, ReadsOrdinaryJson) {
  const nlohmann::json value =
      ParseStrictJson(" {\"a\": [1, {\"a\": \"\\u0000x\"}], \"b\": {\"a\": null}} \n").value();
  EXPECT_EQ(value["a"][0], 1);
  EXPECT_EQ(value["a"][1]["a"], std::string("\0x", 2));
  EXPECT_TRUE(value["b"]["a"].is_null());
}

TEST(StrictJsonTest, RefusesWhatReadersMayUnderstandDifferently) {
  struct Case {
    absl::string_view text;
    absl::string_view error;
  };
  const std::string deep = std::string(128, '[') + std::string(128, ']');
  const Case cases[] = {
      {"", "parse error"},
      {"{", "parse error"},
      {"{}x", "parse error"},
      {"{} {}", "parse error"},
      {"{\"a\": 1,}", "parse error"},
      {"{\"a\": 01}", "parse error"},
      {"{\"a\": NaN}", "parse error"},
      {"// {}", "parse error"},
      {"\"\\ud800\"", "parse error"},
      {"\"tab\there\"", "parse error"},
      {"[1e999]", "number overflow"},
      {"{\"a\": 1, \"b\": 2, \"a\": 1}", "key 'a' appears twice"},
      {"[{\"x\": {\"a\": 1, \"\\u0061\": 2}}]", "key 'a' appears twice"},
      {"\xef\xbb\xbf{}", "byte order mark"},
      {absl::string_view("{}\0", 3), "NUL byte"},
      {"{\"\xff\": 1}", "not UTF-8"},
      {deep, "nested more than 127 levels deep"},
  };
  for (const Case& c : cases) {
    const absl::Status status = ParseStrictJson(c.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(c.error))) << c.text;
  }
}

TEST(StrictJsonTest, TakesAsManyLevelsAsTheLimit) {
  EXPECT_TRUE(ParseStrictJson(std::string(127, '[') + std::string(127, ']')).ok());
}

}  // namespace
}  // namespace weight_sync::refit
