// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/utf8.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

TEST(Utf8Test, AcceptsTheFirstAndLastCodePointOfEveryLength) {
  for (const absl::string_view text :
       {absl::string_view(""), absl::string_view("\0", 1), absl::string_view("a\x7f"),
        absl::string_view("\xc2\x80\xdf\xbf"), absl::string_view("\xe0\xa0\x80\xef\xbf\xbf"),
        absl::string_view("\xed\x9f\xbf\xee\x80\x80"),
        absl::string_view("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
  }
}

TEST(Utf8Test, RefusesWhatIsNotUtf8) {
  for (const absl::string_view text :
       {absl::string_view("\x80"), absl::string_view("\xff"), absl::string_view("\xc1\xbf"),
        absl::string_view("\xe0\x9f\xbf"), absl::string_view("\xed\xa0\x80"),
        absl::string_view("\xed\xbf\xbf"), absl::string_view("\xf0\x8f\xbf\xbf"),
        absl::string_view("\xf4\x90\x80\x80"), absl::string_view("\xf8\x88\x80\x80\x80"),
        absl::string_view("a\xc2"), absl::string_view("\xe2\x82"), absl::string_view("\xc2z"),
        absl::string_view("\xf0\x90\x80z")}) {
    EXPECT_FALSE(IsValidUtf8(text)) << text;
  }
}

}  // namespace
}  // namespace weight_sync::refit
