// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The first few of a kind of difference, and how many there are: for errors about long lists.
//
//   Differences missing("missing");
//   for (...) missing.Add(name);
//   if (!missing.empty()) return absl::InvalidArgumentError(missing.ToString());
//   // "7 missing: a, b, c, d, e, ..."

#ifndef WEIGHT_SYNC_REFIT_DIFFERENCES_H_
#define WEIGHT_SYNC_REFIT_DIFFERENCES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace weight_sync::refit {

class Differences {
 public:
  explicit Differences(absl::string_view kind) : kind_(kind) {}
  void Add(std::string what) {
    constexpr size_t kShown = 5;
    if (shown_.size() < kShown) shown_.push_back(std::move(what));
    ++count_;
  }
  bool empty() const { return count_ == 0; }
  std::string ToString() const {
    return absl::StrCat(count_, " ", kind_, ": ", absl::StrJoin(shown_, ", "),
                        count_ > static_cast<int>(shown_.size()) ? ", ..." : "");
  }

 private:
  std::string kind_;
  std::vector<std::string> shown_;
  int count_ = 0;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_DIFFERENCES_H_
