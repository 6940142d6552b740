// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/weight_map.h"

#include "gtest/gtest.h"
#include "refit/maps/all_families.h"

namespace weight_sync::refit {
namespace {

int64_t Params(const WeightMap& map) {
  int64_t n = 0;
  for (const TensorSpec& t : map.hf().tensors()) n += t.shape.num_elements();
  return n;
}

TEST(Tmp, Counts) {
  struct Case {
    const char* json;
    int tensors;
    int64_t params;
  };
  const Case cases[] = {
      {R"({"model_type":"qwen3","hidden_size":8,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":3,"intermediate_size":10,"vocab_size":11,"num_hidden_layers":2,"tie_word_embeddings":true})",
       24, 1196},
      {R"({"model_type":"qwen3","hidden_size":8,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":3,"intermediate_size":10,"vocab_size":11,"num_hidden_layers":2})",
       25, 1284},
      {R"({"model_type":"qwen2","hidden_size":8,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":3,"intermediate_size":10,"vocab_size":11,"num_hidden_layers":2,"tie_word_embeddings":true})",
       26, 1232},
      {R"({"model_type":"llama","hidden_size":8,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":3,"intermediate_size":10,"vocab_size":11,"num_hidden_layers":2})",
       21, 1272},
      {R"({"model_type":"qwen3_moe","hidden_size":8,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":3,"intermediate_size":10,"moe_intermediate_size":5,"num_experts":3,"vocab_size":11,"num_hidden_layers":2})",
       39, 1572},
      {R"({"model_type":"qwen3_next","hidden_size":8,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":6,"intermediate_size":10,"moe_intermediate_size":5,"num_experts":3,"shared_expert_intermediate_size":7,"vocab_size":11,"num_hidden_layers":4,"linear_num_key_heads":2,"linear_num_value_heads":4,"linear_key_head_dim":3,"linear_value_head_dim":2,"linear_conv_kernel_dim":4})",
       94, 4594},
      {R"({"model_type":"gemma4_text","hidden_size":8,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":4,"global_head_dim":6,"intermediate_size":10,"vocab_size":11,"vocab_size_per_layer_input":11,"num_hidden_layers":6,"layer_types":["sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention"],"hidden_size_per_layer_input":2,"num_kv_shared_layers":2,"use_double_wide_mlp":true})",
       101, 5098},
  };
  const FamilyRegistry all = AllFamilies();
  for (const Case& c : cases) {
    auto config = ParseModelConfig(c.json);
    ASSERT_TRUE(config.ok()) << config.status();
    const Family* family = *all.Find(config->model_type);
    for (const std::string& layout : family->layouts) {
      for (bool scanned : {false, true}) {
        LayoutOptions options;
        options.name = layout;
        options.scanned = scanned;
        options.scan_period = config->model_type == "qwen3_next" && scanned ? 4 : 1;
        auto map = WeightMap::Build(*family, *config, options);
        if (!map.ok()) {
          std::cout << config->model_type << " " << layout << scanned << " " << map.status()
                    << "\n";
          continue;
        }
        EXPECT_EQ(map->hf().size(), c.tensors) << c.json << layout;
        EXPECT_EQ(Params(*map), c.params) << c.json << layout;
      }
    }
  }
}

}  // namespace
}  // namespace weight_sync::refit
