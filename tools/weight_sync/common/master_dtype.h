// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The option --master-dtype: whether a trainer keeps float32 copies of bfloat16 parameters.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_MASTER_DTYPE_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_MASTER_DTYPE_H_

#include <string>

#include "CLI/CLI.hpp"

namespace weight_sync::tools {

class MasterDType {
 public:
  // This object must stay where it is while `command` parses.
  void AddTo(CLI::App& command) {
    command
        .add_option("--master-dtype", dtype_,
                    "float32: the trainer's tensors are float32 where the checkpoint's are "
                    "bfloat16, as masters are. Default: the checkpoint's types")
        ->check(CLI::IsMember({"float32"}))
        ->option_text("float32");
  }

  bool float32() const { return !dtype_.empty(); }

 private:
  std::string dtype_;
};

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_MASTER_DTYPE_H_
