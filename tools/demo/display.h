// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Display: what the demo shows to a person. On a terminal there is a live progress line under the
// lines that stay; in a log there are only lines. Not thread-safe.

#ifndef WEIGHT_SYNC_TOOLS_DEMO_DISPLAY_H_
#define WEIGHT_SYNC_TOOLS_DEMO_DISPLAY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tools/demo/trainer_events.h"

namespace weight_sync::demo {

class Display {
 public:
  enum class Mode : uint8_t { kSilent, kLog, kTerminal };

  explicit Display(Mode mode) : mode_(mode) {}

  bool live() const { return mode_ == Mode::kTerminal; }

  void Line(absl::string_view text);
  // "label        text"; without a label it continues the one above.
  void Fact(absl::string_view label, absl::string_view text);
  // Overwritten by the next line or progress.
  void Show(const Progress& progress);
  void Step(const StepReport& step);
  // `memory_copy_rate` in bytes a second; 0 when it is not known.
  void Table(const std::vector<StepReport>& steps, double memory_copy_rate);
  void Verdict(bool ok, absl::string_view word, absl::string_view text);

 private:
  void Print(absl::string_view text);

  const Mode mode_;
  bool progress_shown_ = false;
};

}  // namespace weight_sync::demo

#endif  // WEIGHT_SYNC_TOOLS_DEMO_DISPLAY_H_
