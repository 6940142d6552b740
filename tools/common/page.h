// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Page: a report for a person, in titled blocks of labelled facts, at most 100 columns wide where
// the words allow it.
//
//   Page page;
//   page.Title("Devices");
//   page.Fact("GPU 0", "NVIDIA H200, 139 GiB");
//   std::fputs(page.text().c_str(), stdout);

#ifndef WEIGHT_SYNC_TOOLS_COMMON_PAGE_H_
#define WEIGHT_SYNC_TOOLS_COMMON_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weight_sync::tools {

class Page {
 public:
  void Title(absl::string_view title);
  // Never broken.
  void Line(absl::string_view label, absl::string_view text);
  // Goes on under its text's first column where it is too long for a line.
  void Fact(absl::string_view label, absl::string_view text);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_COMMON_PAGE_H_
