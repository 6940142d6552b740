// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// ProgressLine: one line of a terminal that tells how far something is, overwritten as it goes on.
// Nothing is printed where nobody sees it: into a file, a pipe or a terminal without cursor.
//
//   ProgressLine progress(stderr);
//   progress.Show("loading", done_bytes, all_bytes);   // "loading      [=========      ]  30 %"
//   progress.Clear();                                  // before anything else is printed

#ifndef WEIGHT_SYNC_TOOLS_COMMON_PROGRESS_LINE_H_
#define WEIGHT_SYNC_TOOLS_COMMON_PROGRESS_LINE_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/string_view.h"

namespace weight_sync::tools {

// Whether a person watches this stream on a terminal that can overwrite its lines.
bool OnTerminal(std::FILE* stream);

// "[=====     ]  50 %" with room for `width` marks; empty when there is nothing to do.
std::string ProgressBar(int64_t done, int64_t of, int width);

class ProgressLine {
 public:
  explicit ProgressLine(std::FILE* stream) : ProgressLine(stream, OnTerminal(stream)) {}
  ProgressLine(std::FILE* stream, bool live) : stream_(stream), live_(live) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { Clear(); }

  void Show(absl::string_view what, int64_t done, int64_t of);
  void Clear();

 private:
  std::FILE* const stream_;
  const bool live_;
  std::string shown_;
};

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_COMMON_PROGRESS_LINE_H_
