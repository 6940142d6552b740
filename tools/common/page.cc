// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/common/page.h"

#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace weight_sync::tools {
namespace {

constexpr size_t kColumns = 100;
constexpr size_t kTextColumn = 16;

}  // namespace

void Page::Title(absl::string_view title) {
  absl::StrAppend(&text_, text_.empty() ? "" : "\n", title, "\n");
}

void Page::Line(absl::string_view label, absl::string_view text) {
  absl::StrAppendFormat(&text_, "  %-13s %s\n", label, absl::StripTrailingAsciiWhitespace(text));
}

void Page::Fact(absl::string_view label, absl::string_view text) {
  std::string line;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!line.empty() && kTextColumn + line.size() + 1 + word.size() > kColumns) {
      Line(label, line);
      label = "";
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  Line(label, line);
}

}  // namespace weight_sync::tools
