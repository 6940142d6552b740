// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Differences of a kind; as text the first few, and how many there are: for errors about long lists.
//
//   Differences missing("missing"), shape("of another shape");
//   for (...) missing.Add(name);
//   const std::string found = JoinDifferences({&missing, &shape});
//   if (!found.empty()) return absl::InvalidArgumentError(found);
//   // "7 missing: a, b, c, d, e, ...; 1 of another shape: f"

#ifndef WEIGHT_SYNC_REFIT_DIFFERENCES_H_
#define WEIGHT_SYNC_REFIT_DIFFERENCES_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weight_sync::refit {

class Differences {
 public:
  explicit Differences(absl::string_view kind) : kind_(kind) {}
  void Add(std::string what) { all_.push_back(std::move(what)); }
  bool empty() const { return all_.empty(); }
  const std::vector<std::string>& all() const { return all_; }
  std::string ToString() const {
    constexpr size_t kShown = 5;
    const auto shown = absl::MakeConstSpan(all_).subspan(0, kShown);
    return absl::StrCat(all_.size(), " ", kind_, ": ", absl::StrJoin(shown, ", "),
                        all_.size() > kShown ? ", ..." : "");
  }

 private:
  std::string kind_;
  std::vector<std::string> all_;
};

// Those that are not empty, one after another; "" when there is no difference.
inline std::string JoinDifferences(std::initializer_list<const Differences*> kinds) {
  std::string joined;
  for (const Differences* kind : kinds) {
    if (!kind->empty()) absl::StrAppend(&joined, joined.empty() ? "" : "; ", kind->ToString());
  }
  return joined;
}

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_DIFFERENCES_H_
