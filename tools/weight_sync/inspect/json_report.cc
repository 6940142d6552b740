// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include <string>

#include "nlohmann/json.hpp"
#include "tools/weight_sync/inspect/report.h"

namespace weight_sync::inspect {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DTypeCount, dtype, tensors, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Unmatched, unknown, missing, shape)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LayoutVerdict, layout, exact, reason)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RowCount, hf_name, hf_axes, trainer_name, trainer_axes, regions)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HfTensor, name, dtype, shape, bytes, passes_through, part)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainerTensor, name, shape, padded, sent)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LayoutDetails, layout, error, hf_tensors, trainer_tensors, rows)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Inspection, checkpoint, config, model_type, family, form, layers,
                                   files, tensors, elements, bytes, dtypes, tied_head,
                                   tied_head_written, shared_kv_written, language_model_prefix,
                                   unmatched, layouts, details)

std::string JsonReport(const Inspection& found) {
  nlohmann::json out = found;
  out["format"] = 1;
  out["ok"] = Ok(found);
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace weight_sync::inspect
