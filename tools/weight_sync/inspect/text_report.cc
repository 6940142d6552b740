// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tools/common/human_numbers.h"
#include "tools/common/page.h"
#include "tools/weight_sync/inspect/report.h"

namespace weight_sync::inspect {
namespace {

using tools::HumanBytes;
using tools::Page;
using tools::WithCommas;

std::string Tensors(int64_t count) {
  return absl::StrCat(WithCommas(count), count == 1 ? " tensor" : " tensors");
}

void Files(Page& page, const Inspection& found) {
  page.Title("Checkpoint");
  page.Line("path", found.checkpoint);
  page.Fact("model", absl::StrCat(found.model_type, " (family ", found.family, "), ", found.layers,
                                  " layers"));
  page.Fact("form", found.form == "hf" ? "hf: the published names"
                                       : "hf-fused: stacked experts, as transformers holds them");
  page.Fact("size", absl::StrCat(Tensors(found.tensors), ", ", WithCommas(found.elements),
                                 " elements, ", HumanBytes(found.bytes), " in ", found.files,
                                 found.files == 1 ? " file" : " files"));
  for (const DTypeCount& one : found.dtypes) {
    page.Fact(one.dtype, absl::StrCat(Tensors(one.tensors), ", ", HumanBytes(one.bytes)));
  }
  page.Fact("head", !found.tied_head          ? "untied"
                    : found.tied_head_written ? "tied to the embedding, and written all the same"
                                              : "tied to the embedding, and not written");
  if (found.shared_kv_written) {
    page.Fact("shared K, V", "layers that use an earlier layer's K and V have theirs all the same");
  }
  if (found.language_model_prefix) page.Fact("prefix", "model.language_model.* for the text model");
}

void NamesOf(Page& page, absl::string_view label, absl::string_view what,
             const std::vector<std::string>& names) {
  if (names.empty()) return;
  page.Fact(label, absl::StrCat(Tensors(static_cast<int64_t>(names.size())), " ", what));
  for (const std::string& name : names) page.Line("", name);
}

bool AllMatched(const Inspection& found) {
  const auto& [unknown, missing, shape] = found.unmatched;
  return unknown.empty() && missing.empty() && shape.empty();
}

void Mismatches(Page& page, const Inspection& found) {
  if (AllMatched(found)) return;
  const auto& [unknown, missing, shape] = found.unmatched;
  page.Title("Unmatched: config.json and the files disagree");
  NamesOf(page, "unknown", "of the files that no such model has:", unknown);
  NamesOf(page, "missing", "of such a model that the files lack:", missing);
  NamesOf(page, "shape", "of another shape:", shape);
}

void Layouts(Page& page, const Inspection& found) {
  if (found.layouts.empty()) return;
  page.Title("Layouts of trainers");
  for (const LayoutVerdict& one : found.layouts) {
    page.Fact("", absl::StrCat(one.layout, ": ", one.exact ? "exact" : "refused. ", one.reason));
  }
}

// Names that differ in their numbers only, with * for these.
std::string PatternOf(const std::string& name) {
  std::vector<std::string> words = absl::StrSplit(name, '.');
  for (std::string& word : words) {
    if (std::all_of(word.begin(), word.end(), absl::ascii_isdigit)) word = "*";
  }
  return absl::StrJoin(words, ".");
}

void PassingThrough(Page& page, const LayoutDetails& details) {
  std::map<std::string, std::pair<int64_t, int64_t>> parts, unheld;  // tensors and bytes
  for (const HfTensor& tensor : details.hf_tensors) {
    if (!tensor.passes_through) continue;
    auto& [count, bytes] =
        tensor.part.empty() ? unheld[PatternOf(tensor.name)] : parts[tensor.part + "*"];
    ++count;
    bytes += tensor.bytes;
  }
  const auto list = [&page](absl::string_view label, absl::string_view what, const auto& groups) {
    if (groups.empty()) return;
    page.Fact(label, what);
    for (const auto& [pattern, sum] : groups) {
      page.Line("", absl::StrFormat("%-13s  %-9s  %s", Tensors(sum.first), HumanBytes(sum.second),
                                    pattern));
    }
  };
  list("from files", "parts that no trainer holds; a refit takes them from these files:", parts);
  list("not held",
       "of the model and not of this layout: a refit takes them from these files as they are, "
       "whatever was trained:",
       unheld);
}

void Rows(Page& page, const LayoutDetails& details) {
  const auto or_none = [](const std::string& name) { return name.empty() ? "(none)" : name; };
  size_t hf = 0, hf_axes = 0, trainer = 0;
  for (const RowCount& row : details.rows) {
    hf = std::max(hf, or_none(row.hf_name).size());
    hf_axes = std::max(hf_axes, row.hf_axes.size());
    trainer = std::max(trainer, or_none(row.trainer_name).size());
  }
  page.Title("Rows: engine's tensor | trainer's tensor, and how many tensors (or stacked parts)");
  for (const RowCount& row : details.rows) {
    page.Line(WithCommas(row.regions),
              absl::StrFormat("%-*s  %-*s | %-*s  %s", static_cast<int>(hf), or_none(row.hf_name),
                              static_cast<int>(hf_axes), row.hf_axes, static_cast<int>(trainer),
                              or_none(row.trainer_name), row.trainer_axes));
  }
}

void Details(Page& page, const LayoutDetails& details) {
  page.Title(absl::StrCat("Layout ", details.layout));
  if (!details.error.empty()) return page.Fact("refused", details.error);
  std::vector<std::string> unsent;
  for (const TrainerTensor& tensor : details.trainer_tensors) {
    if (!tensor.sent) unsent.push_back(tensor.name);
  }
  page.Fact("trainer", Tensors(static_cast<int64_t>(details.trainer_tensors.size())));
  page.Fact("engine", Tensors(static_cast<int64_t>(details.hf_tensors.size())));
  if (!unsent.empty()) {
    page.Fact("not sent", absl::StrCat(Tensors(static_cast<int64_t>(unsent.size())),
                                       " that the trainer holds and no engine gets: ",
                                       absl::StrJoin(unsent, ", ")));
  }
  PassingThrough(page, details);

  Rows(page, details);
}

}  // namespace

std::string TextReport(const Inspection& found) {
  Page page;
  Files(page, found);
  Mismatches(page, found);
  Layouts(page, found);
  if (AllMatched(found)) Details(page, found.details);
  return page.text();
}

}  // namespace weight_sync::inspect
