// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/inspect/report.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace weight_sync::inspect {
namespace {

using ::nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Inspection Found() {
  Inspection found;
  found.checkpoint = "/models/Tiny";
  found.config = "/models/Tiny/config.json";
  found.model_type = "qwen3_next";
  found.family = "qwen3_next";
  found.form = "hf";
  found.layers = 4;
  found.files = 2;
  found.tensors = 1234;
  found.elements = 5'000'000;
  found.bytes = 10'000'000;
  found.dtypes = {{"BF16", 1233, 9'999'996}, {"F32", 1, 4}};
  found.layouts = {{"tunix", false, "no such model"}, {"maxtext", true, ""}};
  found.details.layout = "maxtext";
  found.details.hf_tensors = {
      {"model.norm.weight", "BF16", {8}, 16, false, ""},
      {"mtp.layers.0.fc.weight", "BF16", {8, 8}, 128, true, "mtp."},
      {"mtp.layers.1.fc.weight", "BF16", {8, 8}, 128, true, "mtp."},
      {"model.layers.0.o_proj.bias", "BF16", {8}, 16, true, ""},
      {"model.layers.11.o_proj.bias", "BF16", {8}, 16, true, ""},
  };
  found.details.trainer_tensors = {{"params-norm", {8}, {0}, true}, {"spare", {2}, {}, false}};
  found.details.rows = {{"model.norm.weight", "h", "params-norm", "h", 1},
                        {"", "", "spare", "g", 0}};
  return found;
}

// The members are a promise: programs read them.
TEST(InspectReportTest, JsonHasTheDocumentedForm) {
  EXPECT_EQ(json::parse(JsonReport(Found())), json::parse(R"({
    "format": 1, "ok": true,
    "checkpoint": "/models/Tiny", "config": "/models/Tiny/config.json",
    "model_type": "qwen3_next", "family": "qwen3_next", "form": "hf", "layers": 4,
    "files": 2, "tensors": 1234, "elements": 5000000, "bytes": 10000000,
    "dtypes": [{"dtype": "BF16", "tensors": 1233, "bytes": 9999996},
               {"dtype": "F32", "tensors": 1, "bytes": 4}],
    "tied_head": false, "tied_head_written": false, "shared_kv_written": false,
    "language_model_prefix": false,
    "unmatched": {"unknown": [], "missing": [], "shape": []},
    "layouts": [{"layout": "tunix", "exact": false, "reason": "no such model"},
                {"layout": "maxtext", "exact": true, "reason": ""}],
    "details": {
      "layout": "maxtext", "error": "",
      "hf_tensors": [
        {"name": "model.norm.weight", "dtype": "BF16", "shape": [8], "bytes": 16,
         "passes_through": false, "part": ""},
        {"name": "mtp.layers.0.fc.weight", "dtype": "BF16", "shape": [8, 8], "bytes": 128,
         "passes_through": true, "part": "mtp."},
        {"name": "mtp.layers.1.fc.weight", "dtype": "BF16", "shape": [8, 8], "bytes": 128,
         "passes_through": true, "part": "mtp."},
        {"name": "model.layers.0.o_proj.bias", "dtype": "BF16", "shape": [8], "bytes": 16,
         "passes_through": true, "part": ""},
        {"name": "model.layers.11.o_proj.bias", "dtype": "BF16", "shape": [8], "bytes": 16,
         "passes_through": true, "part": ""}],
      "trainer_tensors": [{"name": "params-norm", "shape": [8], "padded": [0], "sent": true},
                          {"name": "spare", "shape": [2], "padded": [], "sent": false}],
      "rows": [{"hf_name": "model.norm.weight", "hf_axes": "h", "trainer_name": "params-norm",
                "trainer_axes": "h", "regions": 1},
               {"hf_name": "", "hf_axes": "", "trainer_name": "spare", "trainer_axes": "g",
                "regions": 0}]}})"));
}

TEST(InspectReportTest, TextShowsWhatMatters) {
  EXPECT_EQ(TextReport(Found()), R"(Checkpoint
  path          /models/Tiny
  model         qwen3_next (family qwen3_next), 4 layers
  form          hf: the published names
  size          1,234 tensors, 5,000,000 elements, 10.0 MB in 2 files
  BF16          1,233 tensors, 10.0 MB
  F32           1 tensor, 4 bytes
  head          untied

Layouts of trainers
                tunix: refused. no such model
                maxtext: exact

Layout maxtext
  trainer       2 tensors
  engine        5 tensors
  not sent      1 tensor that the trainer holds and no engine gets: spare
  from files    parts that no trainer holds; a refit takes them from these files:
                2 tensors      256 bytes  mtp.*
  not held      of the model and not of this layout: a refit takes them from these files as they
                are, whatever was trained:
                2 tensors      32 bytes   model.layers.*.o_proj.bias

Rows: engine's tensor | trainer's tensor, and how many tensors (or stacked parts)
  1             model.norm.weight  h | params-norm  h
  0             (none)               | spare        g
)");
}

TEST(InspectReportTest, TextNamesAllThatIsUnmatchedAndNothingOfLayouts) {
  Inspection found = Found();
  found.layouts.clear();
  found.details = {};
  found.details.layout = "maxtext";
  found.details.error = "config and checkpoint disagree";
  found.unmatched.unknown = {"a"};
  found.unmatched.missing = {"b", "c", "d", "e", "f", "g"};
  found.unmatched.shape = {"'h' [1], by the config [2]"};
  EXPECT_THAT(TextReport(found),
              AllOf(HasSubstr("1 tensor of the files that no such model has:\n                a\n"),
                    HasSubstr("6 tensors of such a model that the files lack:\n"),
                    HasSubstr("                g\n"), HasSubstr("'h' [1], by the config [2]\n"),
                    Not(HasSubstr("Layout"))));
  EXPECT_EQ(json::parse(JsonReport(found))["ok"], false);
}

TEST(InspectReportTest, TextGivesTheReasonOfARefusal) {
  Inspection found = Found();
  found.details = {};
  found.details.layout = "tunix";
  found.details.error = "no such model";
  EXPECT_THAT(TextReport(found), HasSubstr("Layout tunix\n  refused       no such model\n"));
}

}  // namespace
}  // namespace weight_sync::inspect
