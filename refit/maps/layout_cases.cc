// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The layout cases of tree_check.h.

#include <string>
#include <utility>
#include <vector>

#include "absl/log/log.h"
#include "absl/strings/str_cat.h"
#include "refit/maps/tree_check.h"
#include "refit/testing/family_trees.h"

namespace weight_sync::refit::testing {
namespace {

bool NeedsManifest(const ModelSpec& m) {
  return m.lm_head_on_disk || m.shared_kv_on_disk || m.mtp || m.towers.vision_layers > 0;
}

bool IsSharedKv(const ModelSpec& m, const std::string& name) {
  for (int64_t i = m.layers - m.shared_kv_layers; i < m.layers; ++i) {
    for (const char* tensor : {"k_proj.weight", "v_proj.weight", "k_norm.weight"}) {
      if (name == absl::StrCat(m.prefix(), "layers.", i, ".self_attn.", tensor)) return true;
    }
  }
  return false;
}

// What a trainer holds that uses HF names. `module`: in transformers' own module, which lacks what
// no layer reads.
std::vector<Elements> HeldUnderHfNames(const ModelSpec& m, const std::vector<Elements>& hf,
                                       bool module) {
  std::vector<Elements> held;
  for (const Elements& tensor : hf) {
    if (tensor.passes_through) continue;
    if (m.tied && tensor.name == "lm_head.weight") continue;
    if (module && m.is_gemma() && IsSharedKv(m, tensor.name)) continue;
    held.push_back(tensor);
  }
  return held;
}

}  // namespace

std::vector<LayoutCase> LayoutCases(const ModelSpec& m) {
  const std::vector<Elements> hf = HfTensors(m), fused = HfFused(m, hf);
  std::vector<LayoutCase> forms;
  const auto add = [&](const std::string& layout, std::vector<Elements> tree) -> LayoutCase& {
    LayoutCase& c = forms.emplace_back();
    c.label = c.layout.name = layout;
    c.tree = std::move(tree);
    return c;
  };
  add("hf", HeldUnderHfNames(m, hf, /*module=*/false));
  add("hf-fused", HeldUnderHfNames(m, fused, /*module=*/true));
  const bool known = m.dense_layers.empty();  // neither trainer has layers of both kinds
  if (known && !m.is_next()) add("tunix", TunixTree(m, hf));
  if (known && !m.is_gemma() && m.model_type != "llama") {
    add("maxtext", MaxTextTree(m, hf, {}));
    for (const int axis : {0, 1}) {
      LayoutCase& scanned = add("maxtext", MaxTextTree(m, hf, {/*scanned=*/true, axis}));
      scanned.label = absl::StrCat("maxtext scanned at ", axis);
      scanned.layout.scanned = true;
      scanned.layout.scan_axis = axis;
      scanned.layout.scan_period = m.is_next() ? m.interval : 1;
    }
    if (!m.is_next()) {
      for (const bool scanned : {false, true}) {
        LayoutCase& padded =
            add("maxtext", MaxTextTree(m, hf, {scanned, /*scan_axis=*/1, m.vocab + 5}));
        padded.label = absl::StrCat("maxtext padded", scanned ? ", scanned" : "");
        padded.layout.scanned = scanned;
      }
    }
  }

  std::vector<LayoutCase> cases;
  for (const LayoutCase& form : forms) {
    for (const char* target : {"hf", "hf-fused"}) {
      // Gemma 4 has one form of experts, and its released files hold more than the module.
      const bool is_fused = std::string(target) == "hf-fused";
      if (is_fused && m.is_gemma() && m.shared_kv_on_disk) continue;
      for (const bool manifest : {false, true}) {
        if (!manifest && NeedsManifest(m)) continue;
        // Neither trainer holds every bias: the others pass through.
        const bool hf_names = form.layout.name == "hf" || form.layout.name == "hf-fused";
        if (!manifest && m.o_bias && !hf_names) continue;
        LayoutCase c = form;
        c.target = target;
        c.manifest = manifest;
        c.hf = is_fused ? fused : hf;
        absl::StrAppend(&c.label, " to ", target, manifest ? " by manifest" : "");
        if (is_fused && form.layout.name == "hf") continue;  // no trainer's form for that engine
        cases.push_back(std::move(c));
      }
    }
  }
  return cases;
}

LayoutCase PlainCase(const ModelSpec& model, const std::string& layout) {
  for (LayoutCase& c : LayoutCases(model)) {
    if (c.layout.name == layout && c.target == "hf" && !c.layout.scanned) return std::move(c);
  }
  LOG(FATAL) << "the model has no layout '" << layout << "'";
}

}  // namespace weight_sync::refit::testing
