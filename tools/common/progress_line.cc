// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/common/progress_line.h"

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weight_sync::tools {
namespace {

constexpr char kClearLine[] = "\r\x1b[K";

}  // namespace

bool OnTerminal(std::FILE* stream) {
  const char* kind = std::getenv("TERM");
  return ::isatty(::fileno(stream)) == 1 && kind != nullptr && std::string(kind) != "dumb";
}

std::string ProgressBar(int64_t done, int64_t of, int width) {
  if (of <= 0) return "";
  const double part = static_cast<double>(done) / static_cast<double>(of);
  const size_t full = static_cast<size_t>(part * width);
  return absl::StrFormat("[%s%s] %3d %%", std::string(full, '='),
                         std::string(static_cast<size_t>(width) - full, ' '),
                         static_cast<int>(100 * part));
}

void ProgressLine::Show(absl::string_view what, int64_t done, int64_t of) {
  if (!live_) return;
  constexpr int kWidth = 30;
  std::string line = absl::StrFormat("%-12s  %s", what, ProgressBar(done, of, kWidth));
  if (line == shown_) return;
  absl::FPrintF(stream_, "%s%s", kClearLine, line);
  std::fflush(stream_);
  shown_ = std::move(line);
}

void ProgressLine::Clear() {
  if (shown_.empty()) return;
  absl::FPrintF(stream_, "%s", kClearLine);
  std::fflush(stream_);
  shown_.clear();
}

}  // namespace weight_sync::tools
