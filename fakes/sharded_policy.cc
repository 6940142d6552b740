// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/sharded_policy.h"

#include "base/status_macros.h"
#include "refit/layout/box.h"
#include "refit/maps/dense.h"
#include "refit/maps/model_config.h"
#include "refit/maps/weight_map.h"
#include "refit/sharding/mesh.h"
#include "refit/sharding/placement.h"
#include "refit/sharding/sharding.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::fakes {
namespace {

// No number of rows that three or four ranks divide.
constexpr char kConfig[] =
    R"({"model_type": "qwen3", "hidden_size": 70, "num_hidden_layers": 2, "num_attention_heads": 5,
        "num_key_value_heads": 1, "head_dim": 10, "intermediate_size": 110, "vocab_size": 130,
        "tie_word_embeddings": false, "dtype": "bfloat16"})";

refit::WeightMap Map() {
  return *refit::WeightMap::Build(refit::DenseFamily(), *refit::ParseModelConfig(kConfig),
                                  {/*name=*/"hf"}, {});
}

}  // namespace

refit::RefitInfo ShardedPolicy::Info() { return Map().hf(); }

absl::StatusOr<std::unique_ptr<ShardedPolicy>> ShardedPolicy::Create(
    refit::Communicator* communicator, uint64_t seed) {
  WS_ASSIGN_OR_RETURN(Parameters parameters, Parameters::Create(Info()));
  parameters.FillSeeded(seed);
  std::unique_ptr<ShardedPolicy> policy(new ShardedPolicy(std::move(parameters), seed));
  WS_ASSIGN_OR_RETURN(refit::Mesh ranks, refit::Mesh::Create({{"dp", communicator->size()}}));
  const auto mesh = std::make_shared<const refit::Mesh>(std::move(ranks));
  std::vector<refit::ShardedSpec> specs;
  const refit::RefitInfo& info = policy->parameters_.info();
  for (int t = 0; t < info.size(); ++t) {
    const refit::TensorView whole = policy->parameters_.view(t);
    WS_ASSIGN_OR_RETURN(
        refit::Sharding sharding,
        refit::Sharding::FromPlacements(mesh, {refit::Placement::Shard(0)}, whole.shape()));
    const refit::Box box = *sharding.LocalBox(communicator->rank());
    // Rows follow one another, so that a shard is a part of the whole.
    const int64_t offset =
        box.FirstElementIn(whole.shape()) * refit::StorageElementBytes(whole.dtype());
    policy->shards_.push_back(
        {info[t].name,
         refit::TensorView::Contiguous(whole.data() + offset, whole.dtype(), box.shape()),
         communicator->rank()});
    specs.push_back({info[t].name, whole.dtype(), std::move(sharding)});
  }
  WS_ASSIGN_OR_RETURN(policy->source_, refit::ShardedSource::Create(Map(), specs, nullptr,
                                                                    &policy->gate_, communicator));
  return policy;
}

void ShardedPolicy::Step() {
  const refit::StepGate::Step step(gate_);
  parameters_.Perturb(seed_, ++steps_);
}

}  // namespace weight_sync::fakes
