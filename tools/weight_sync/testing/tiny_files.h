// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// For tests: tiny models as files, what files hold, and the weight_sync command itself.
//
//   const std::string folder = NewFolder();
//   WriteModel(TinyModel("Moe"), HfTensors(TinyModel("Moe")), folder);
//   const nlohmann::json report = RunForJson(0, "inspect " + folder);

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_TESTING_TINY_FILES_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_TESTING_TINY_FILES_H_

#include <functional>
#include <string>
#include <vector>

#include "base/run_program.h"
#include "nlohmann/json.hpp"
#include "refit/testing/elements.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::tools {

// Empty, under TEST_TMPDIR.
std::string NewFolder();

std::vector<std::string> NamesIn(const std::string& folder);

// model.safetensors with these tensors, under other names if asked for.
void WriteTensors(const std::vector<refit::testing::Elements>& tensors, const std::string& folder,
                  refit::testing::Storage storage = refit::testing::Storage::kBF16,
                  const std::function<std::string(const std::string&)>& rename = {});

// The same with the model's config.json.
void WriteModel(const refit::testing::ModelSpec& model,
                const std::vector<refit::testing::Elements>& tensors, const std::string& folder);

// Fails the test where the folder's checkpoint does not hold exactly these tensors.
void ExpectTensors(const std::string& folder, const std::vector<refit::testing::Elements>& tensors,
                   refit::testing::Storage storage = refit::testing::Storage::kBF16);

// The command, by the shell, after `prepare`. Its standard error goes into the output, too.
base::ProgramResult RunCommand(const std::string& arguments, const std::string& prepare = "true");

// With --json, and nothing but JSON printed.
nlohmann::json RunForJson(int status, const std::string& arguments,
                          const std::string& prepare = "true");

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_TESTING_TINY_FILES_H_
