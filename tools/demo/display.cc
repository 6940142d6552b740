// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/demo/display.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/common/human_numbers.h"
#include "tools/common/progress_line.h"

namespace weight_sync::demo {
namespace {

constexpr char kClearLine[] = "\r\x1b[K";
constexpr char kGreen[] = "\x1b[1;32m";
constexpr char kRed[] = "\x1b[1;31m";
constexpr char kPlain[] = "\x1b[0m";

std::string YesNo(bool value) { return value ? "yes" : "no"; }

std::string TrainedText(const StepReport& step) {
  if (step.trained == 0) return step.step == 1 ? "the checkpoint as it is" : "nothing trained";
  return step.trained == 1 ? "trained and marked" : "trained and marked twice";
}

// The mean over the transfer alone: from the first bucket to the engine's commit.
double TransferRate(const SyncReport& sync) {
  if (sync.transfer_seconds <= 0) return 0;
  return static_cast<double>(sync.bytes) / sync.transfer_seconds;
}

using tools::HumanBytes;
using tools::HumanRate;
using tools::WithCommas;

using Row = std::vector<std::string>;

Row RowOf(const StepReport& step, double memory_copy_rate) {
  Row row = {absl::StrCat(step.step), absl::StrCat(step.version), YesNo(step.stale_before),
             YesNo(step.stale_after)};
  if (!step.sync.has_value()) {
    row.resize(11, "-");
    row.push_back(!step.answered ? "FAILED" : "no sync");
    return row;
  }
  const SyncReport& sync = *step.sync;
  const double rate = TransferRate(sync);
  row.push_back(WithCommas(sync.tensors));
  row.push_back(WithCommas(sync.bytes));
  for (const double seconds :
       {sync.seconds, sync.trainer_blocked_seconds, sync.engine_paused_seconds}) {
    row.push_back(absl::StrFormat("%.3f", seconds));
  }
  row.push_back(HumanRate(rate));
  row.push_back(memory_copy_rate > 0 ? absl::StrFormat("%.0f %%", 100 * rate / memory_copy_rate)
                                     : "-");
  row.push_back(step.answered ? "equal" : "FAILED");
  return row;
}

}  // namespace

void Display::Print(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // a log is read while it grows
}

void Display::Line(absl::string_view text) {
  if (mode_ == Mode::kSilent) return;
  Print(absl::StrCat(std::exchange(progress_shown_, false) ? kClearLine : "", text, "\n"));
}

void Display::Fact(absl::string_view label, absl::string_view text) {
  Line(absl::StrFormat("%-13s%s", label, text));
}

void Display::Show(const Progress& progress) {
  if (!live()) return;
  constexpr int kWidth = 30;
  Print(absl::StrFormat("%sstep %-3d  %-12s  %s", kClearLine, progress.step, progress.phase,
                        tools::ProgressBar(progress.done, progress.of, kWidth)));
  progress_shown_ = true;
}

void Display::Step(const StepReport& step) {
  std::string what;
  if (!step.stale_before) {
    what = "not stale, no sync";
  } else if (!step.sync.has_value()) {
    what = "stale, the sync failed";
  } else {
    what = absl::StrFormat("stale, synced %s in %.2f s, verified", HumanBytes(step.sync->bytes),
                           step.sync->seconds);
  }
  if (step.answered) absl::StrAppend(&what, ", answered as version ", step.version);
  Line(absl::StrFormat("step %-3d  %-24s  %s", step.step, TrainedText(step), what));
}

void Display::Table(const std::vector<StepReport>& steps, double memory_copy_rate) {
  if (steps.empty()) return;
  std::vector<Row> rows = {
      {"", "", "stale", "stale", "", "", "", "trainer", "engine", "", "of memory", ""},
      {"step", "version", "before", "after", "tensors", "bytes", "seconds", "blocked", "paused",
       "GB/s", "copy", "verified"}};
  for (const StepReport& step : steps) rows.push_back(RowOf(step, memory_copy_rate));
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  Line("");
  for (const Row& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      absl::StrAppend(&line, c == 0 ? "" : "  ", std::string(widths[c] - row[c].size(), ' '),
                      row[c]);
    }
    Line(absl::StripTrailingAsciiWhitespace(line));
  }
  Line("");
  Line("GB/s: the transfer, from the first bucket to the engine's commit. The seconds are of the");
  Line("whole sync, with deep verification (the engine digests its own table, the trainer its own");
  Line("parameters, every tensor is compared).");
}

void Display::Verdict(bool ok, absl::string_view word, absl::string_view text) {
  Line("");
  Line(live() ? absl::StrCat(ok ? kGreen : kRed, word, kPlain, ": ", text)
              : absl::StrCat(word, ": ", text));
}

}  // namespace weight_sync::demo
