// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/socket_folder.h"
#include "base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/checkpoint/named_tensor.h"
#include "refit/checkpoint/safetensors_writer.h"
#include "refit/tensor/dlpack_abi.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"
#include "weight_sync/c_api/weight_sync.h"

namespace weight_sync {
namespace {

using refit::dlpack::DLDataTypeCode;
using refit::dlpack::DLDeviceType;
using Unversioned = refit::dlpack::DLManagedTensor;
using Versioned = refit::dlpack::DLManagedTensorVersioned;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kConfig[] =
    R"({"model_type": "qwen3", "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 4, "intermediate_size": 12, "vocab_size": 10,
        "tie_word_embeddings": false, "dtype": "bfloat16"})";

class Status {
 public:
  operator ws_status*() { return &status_; }  // NOLINT(google-explicit-constructor)
  std::string text() const { return text_; }

 private:
  char text_[2000] = "";
  ws_status status_ = {sizeof(status_), 0, text_, sizeof(text_), 0};
};

// EXPECT that a call returns a code, with a text that says something.
#define EXPECT_CODE(call, expected, text_matcher)        \
  do {                                                   \
    Status status;                                       \
    EXPECT_EQ(call, expected) << status.text();          \
    EXPECT_THAT(status.text(), HasSubstr(text_matcher)); \
  } while (false)
#define EXPECT_OK(call)                      \
  do {                                       \
    Status status;                           \
    EXPECT_EQ(call, WS_OK) << status.text(); \
  } while (false)
#define ASSERT_OK(call)                      \
  do {                                       \
    Status status;                           \
    ASSERT_EQ(call, WS_OK) << status.text(); \
  } while (false)

template <typename Struct>
Struct Sized() {
  Struct sized = {};
  sized.struct_size = sizeof(sized);
  return sized;
}

ws_source_options Options(const char* layout) {
  auto options = Sized<ws_source_options>();
  options.config_json = kConfig;
  options.layout = layout;
  return options;
}

ws_source* Open(const ws_source_options& options) {
  Status status;
  ws_source* source = nullptr;
  EXPECT_EQ(ws_source_open(&options, &source, status), WS_OK) << status.text();
  return source;
}

// One of the trainer's arrays, bfloat16 with values of its own.
struct Array {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::vector<uint16_t> values;
  std::atomic<int> returned{0};
};

enum class As { kVersioned, kUnversioned, kMemory };

// What a trainer has in a layout, lent in one of the ways.
class Trainer {
 public:
  explicit Trainer(ws_source* source) {
    uint16_t next = 1;
    for (int32_t i = 0; i < ws_source_array_count(source); ++i) {
      auto wanted = Sized<ws_tensor>();
      EXPECT_EQ(ws_source_array(source, i, &wanted, nullptr), WS_OK);
      auto array = std::make_unique<Array>();
      array->name = wanted.name;
      array->shape.assign(wanted.shape, wanted.shape + wanted.rank);
      array->strides.resize(array->shape.size());
      int64_t elements = 1;
      for (size_t d = array->shape.size(); d-- > 0;) {
        array->strides[d] = elements;
        elements *= array->shape[d];
      }
      for (int64_t e = 0; e < elements; ++e) array->values.push_back(next++);
      arrays_.push_back(std::move(array));
    }
  }

  std::vector<ws_array> Specs() const {
    std::vector<ws_array> specs;
    for (const auto& array : arrays_) {
      auto spec = Sized<ws_array>();
      spec.name = array->name.c_str();
      spec.dtype = "bfloat16";
      spec.rank = static_cast<int32_t>(array->shape.size());
      spec.shape = array->shape.data();
      spec.strides = array->strides.data();
      specs.push_back(spec);
    }
    return specs;
  }

  // New loans of all arrays.
  std::vector<ws_binding> Lend(As as) {
    std::vector<ws_binding> bindings;
    for (const auto& array : arrays_) bindings.push_back(LendOne(*array, as));
    return bindings;
  }

  static ws_binding LendOne(Array& array, As as) {
    auto binding = Sized<ws_binding>();
    binding.name = array.name.c_str();
    if (as == As::kVersioned) {
      auto* const lent = Tensor<Versioned>(array);
      lent->version = {1, 1};
      binding.dlpack = reinterpret_cast<::DLManagedTensorVersioned*>(lent);
    } else if (as == As::kUnversioned) {
      binding.dlpack_unversioned = reinterpret_cast<::DLManagedTensor*>(Tensor<Unversioned>(array));
    } else {
      binding.release = [](void* context) { ++static_cast<Array*>(context)->returned; };
      binding.context = &array;
      binding.data = array.values.data();
      binding.dtype = "BF16";
      binding.rank = static_cast<int32_t>(array.shape.size());
      binding.shape = array.shape.data();
      binding.strides = array.strides.data();
    }
    return binding;
  }

  // How often each array was given back, if that is one number.
  int Returned() const {
    for (const auto& array : arrays_) {
      EXPECT_EQ(array->returned, arrays_.front()->returned) << array->name;
    }
    return arrays_.front()->returned;
  }

  Array& operator[](const std::string& name) {
    for (const auto& array : arrays_) {
      if (array->name == name) return *array;
    }
    ADD_FAILURE() << name;
    return *arrays_.front();
  }
  const std::vector<std::unique_ptr<Array>>& arrays() const { return arrays_; }

 private:
  template <typename Managed>
  static Managed* Tensor(Array& array) {
    auto* const lent = new Managed();
    lent->dl_tensor = {array.values.data(),
                       {DLDeviceType::kCpu, 0},
                       static_cast<int32_t>(array.shape.size()),
                       {DLDataTypeCode::kBfloat, 16, 1},
                       array.shape.data(),
                       array.strides.data(),
                       0};
    lent->manager_ctx = &array;
    lent->deleter = [](Managed* self) {
      ++static_cast<Array*>(self->manager_ctx)->returned;
      delete self;
    };
    return lent;
  }

  std::vector<std::unique_ptr<Array>> arrays_;
};

using Table = std::map<std::string, std::vector<uint16_t>>;

// The tensors of one refit, put together from the buckets' pieces.
Table Fill(ws_source* source, ws_program* program, ws_refit* refit) {
  Table table;
  std::vector<std::string> names;
  for (int32_t t = 0; t < ws_source_tensor_count(source); ++t) {
    auto tensor = Sized<ws_tensor>();
    EXPECT_EQ(ws_source_tensor(source, t, &tensor, nullptr), WS_OK);
    names.push_back(tensor.name);
    table[tensor.name].resize(static_cast<size_t>(tensor.bytes) / 2, 0xdead);
  }
  for (int32_t b = 0; b < ws_program_bucket_count(program); ++b) {
    auto bucket = Sized<ws_bucket>();
    EXPECT_EQ(ws_program_bucket(program, b, &bucket, nullptr), WS_OK);
    std::vector<char> slot(static_cast<size_t>(bucket.bytes));  // not a byte more
    Status status;
    EXPECT_EQ(ws_refit_fill(refit, b, slot.data(), bucket.bytes, status), WS_OK) << status.text();
    for (int32_t p = 0; p < bucket.pieces; ++p) {
      auto piece = Sized<ws_piece>();
      EXPECT_EQ(ws_program_piece(program, b, p, &piece, nullptr), WS_OK);
      char* const tensor =
          reinterpret_cast<char*>(table[names[static_cast<size_t>(piece.tensor)]].data());
      std::memcpy(tensor + piece.tensor_offset, slot.data() + piece.bucket_offset,
                  static_cast<size_t>(piece.bytes));
    }
  }
  return table;
}

// By the layout's definition: q_proj is [hidden, heads, dim] there and [heads * dim, hidden] here.
void ExpectTensorsOf(Trainer& trainer, const Table& table) {
  const Array& q = trainer["layers.1.attn.q_proj.w"];
  const std::vector<uint16_t>& hf = table.at("model.layers.1.self_attn.q_proj.weight");
  ASSERT_EQ(hf.size(), q.values.size());
  for (size_t h = 0; h < 8; ++h) {
    for (size_t nd = 0; nd < 16; ++nd) {
      ASSERT_EQ(hf[nd * 8 + h], q.values[h * 16 + nd]);
    }
  }
  EXPECT_EQ(table.at("model.embed_tokens.weight"), trainer["embedder.input_embedding"].values);
  EXPECT_EQ(table.at("model.norm.weight"), trainer["final_norm.w"].values);
  for (const auto& [name, values] : table) {
    EXPECT_THAT(values, Not(::testing::Contains(0xdead))) << name;
  }
}

// A source of the layout tunix with its trainer, declared and compiled.
class CApiTest : public ::testing::Test {
 public:
  ~CApiTest() override {
    ws_program_close(program_);
    ws_source_close(source_);
  }

 protected:
  CApiTest() : source_(Open(Options("tunix"))), trainer_(source_) {
    const auto specs = trainer_.Specs();
    Status status;
    EXPECT_EQ(ws_source_declare(source_, specs.data(), specs.size(), status), WS_OK)
        << status.text();
    program_ = Compile(source_, 256);
  }

  static ws_program* Compile(ws_source* source, int64_t bucket_bytes) {
    auto geometry = Sized<ws_geometry>();
    geometry.bucket_bytes = bucket_bytes;
    Status status;
    ws_program* program = nullptr;
    EXPECT_EQ(ws_source_compile(source, &geometry, &program, status), WS_OK) << status.text();
    return program;
  }

  void BindAll(int64_t version, As as = As::kVersioned) {
    const auto bindings = trainer_.Lend(as);
    Status status;
    EXPECT_EQ(ws_source_bind(source_, version, bindings.data(), bindings.size(), status), WS_OK)
        << status.text();
  }

  ws_refit* Begin(int64_t version) {
    Status status;
    ws_refit* refit = nullptr;
    EXPECT_EQ(ws_refit_begin(program_, version, 10, &refit, status), WS_OK) << status.text();
    return refit;
  }

  void ExpectTensors(const Table& table) { ExpectTensorsOf(trainer_, table); }

  ws_source* source_;
  Trainer trainer_;
  ws_program* program_ = nullptr;
};

TEST(CApiVersionTest, IsTheHeaders) {
  EXPECT_EQ(ws_abi_version(), (uint32_t{WS_ABI_MAJOR} << 16) + WS_ABI_MINOR);
}

TEST(CApiOpenTest, RefusesWhatItCannotOpen) {
  ws_source* source = nullptr;
  const auto refused = [&source](int32_t code, const std::string& text,
                                 const std::function<void(ws_source_options&)>& change) {
    ws_source_options options = Options("tunix");
    change(options);
    EXPECT_CODE(ws_source_open(&options, &source, status), code, text);
    EXPECT_EQ(source, nullptr);
  };
  refused(WS_INVALID_ARGUMENT, "struct_size is 8", [](auto& o) { o.struct_size = 8; });
  refused(WS_INVALID_ARGUMENT, "config_path or config_json",
          [](auto& o) { o.config_json = nullptr; });
  refused(WS_INVALID_ARGUMENT, "config_path or config_json",
          [](auto& o) { o.config_path = "config.json"; });
  refused(WS_NOT_FOUND, "/nowhere/config.json", [](auto& o) {
    o.config_json = nullptr;
    o.config_path = "/nowhere/config.json";
  });
  refused(WS_INVALID_ARGUMENT, "", [](auto& o) { o.config_json = "{"; });
  refused(WS_NOT_FOUND, "'bert'", [](auto& o) {
    o.config_json = R"({"model_type": "bert",
      "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 12,
      "vocab_size": 10})";
  });
  refused(WS_INVALID_ARGUMENT, "layout is a null pointer", [](auto& o) { o.layout = nullptr; });
  refused(WS_INVALID_ARGUMENT, "megatron", [](auto& o) { o.layout = "megatron"; });
  refused(WS_INVALID_ARGUMENT, "scanned is 2", [](auto& o) { o.scanned = 2; });
  refused(WS_INVALID_ARGUMENT, "gguf", [](auto& o) { o.target = "gguf"; });
  refused(WS_INVALID_ARGUMENT, "manifest_json", [](auto& o) { o.manifest_json = "[]"; });
  refused(WS_INVALID_ARGUMENT, "/nowhere/model", [](auto& o) { o.checkpoint = "/nowhere/model"; });
  EXPECT_CODE(ws_source_open(nullptr, &source, status), WS_INVALID_ARGUMENT, "null pointer");
  const ws_source_options options = Options("tunix");
  EXPECT_CODE(ws_source_open(&options, nullptr, status), WS_INVALID_ARGUMENT, "null pointer");
}

TEST(CApiOpenTest, ReadsAConfigFile) {
  const std::string path = ::testing::TempDir() + "/config.json";
  FILE* const file = std::fopen(path.c_str(), "w");
  std::fputs(kConfig, file);
  std::fclose(file);
  ws_source_options options = Options("hf");
  options.config_json = nullptr;
  options.config_path = path.c_str();
  ws_source* const source = Open(options);
  EXPECT_EQ(ws_source_tensor_count(source), 25);
  ws_source_close(source);
}

TEST(CApiOpenTest, ScannedLayersAreStacked) {
  ws_source_options options = Options("maxtext");
  options.scanned = 1;
  options.scan_axis = 1;
  ws_source* const source = Open(options);
  EXPECT_EQ(ws_source_tensor_count(source), 25);
  EXPECT_EQ(ws_source_array_count(source), 14);
  bool found = false;
  for (int32_t i = 0; i < ws_source_array_count(source); ++i) {
    auto array = Sized<ws_tensor>();
    EXPECT_OK(ws_source_array(source, i, &array, status));
    if (std::string(array.name) == "params-decoder-layers-self_attention-query-kernel") {
      found = true;
      EXPECT_EQ(array.rank, 4);
      EXPECT_THAT(array.shape, ElementsAre(8, 2, 4, 4, 0, 0, 0, 0));
    }
    if (std::string(array.name) == "params-token_embedder-embedding") {
      EXPECT_EQ(array.padded, 1);  // its rows
    }
  }
  EXPECT_TRUE(found);
  ws_source_close(source);
}

// The manifest and what no trainer holds come from the published checkpoint.
TEST(CApiOpenTest, TakesTheManifestOfACheckpointOrAsText) {
  std::string tied = kConfig;
  tied.replace(tied.find("\"tie_word_embeddings\": false"), 28, "\"tie_word_embeddings\": true");
  ws_source_options options = Options("hf");
  ws_source* source = Open(options);  // untied, with a head
  const std::vector<std::byte> zeros(1024);
  std::vector<refit::NamedTensor> tensors;
  for (int32_t i = 0; i < ws_source_tensor_count(source); ++i) {
    auto tensor = Sized<ws_tensor>();
    EXPECT_OK(ws_source_tensor(source, i, &tensor, status));
    const auto shape = refit::Shape::Create({tensor.shape, static_cast<size_t>(tensor.rank)});
    tensors.push_back({tensor.name, refit::TensorView::Contiguous(
                                        zeros.data(), *refit::ParseDType(tensor.dtype), *shape)});
  }
  const std::string path = ::testing::TempDir() + "/published.safetensors";
  ASSERT_TRUE(refit::WriteSafetensors(path, tensors).ok());
  size_t length = 0;
  EXPECT_OK(ws_source_info_json(source, nullptr, 0, &length, status));
  std::string json(length + 1, '?');
  EXPECT_OK(ws_source_info_json(source, json.data(), json.size(), &length, status));
  ws_source_close(source);

  options.config_json = tied.c_str();
  source = Open(options);
  EXPECT_EQ(ws_source_tensor_count(source), 24);
  ws_source_close(source);
  options.checkpoint = path.c_str();
  source = Open(options);
  EXPECT_EQ(ws_source_tensor_count(source), 25);  // the head is written all the same
  ws_source_close(source);
  options.checkpoint = nullptr;
  options.manifest_json = json.c_str();
  source = Open(options);
  EXPECT_EQ(ws_source_tensor_count(source), 25);
  ws_source_close(source);
}

TEST_F(CApiTest, SaysWhichArraysAndTensorsThereAre) {
  EXPECT_EQ(ws_source_array_count(source_), 25);
  EXPECT_EQ(ws_source_tensor_count(source_), 25);
  EXPECT_EQ(ws_source_array_count(nullptr), 0);
  EXPECT_EQ(ws_source_tensor_count(nullptr), 0);
  EXPECT_EQ(ws_program_bucket_count(nullptr), 0);

  auto tensor = Sized<ws_tensor>();
  EXPECT_OK(ws_source_tensor(source_, 0, &tensor, status));
  EXPECT_STREQ(tensor.name, "model.embed_tokens.weight");
  EXPECT_STREQ(tensor.dtype, "BF16");
  EXPECT_EQ(tensor.rank, 2);
  EXPECT_EQ(tensor.padded, 0);
  EXPECT_THAT(tensor.shape, ElementsAre(10, 8, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(tensor.bytes, 160);

  EXPECT_CODE(ws_source_tensor(source_, 25, &tensor, status), WS_INVALID_ARGUMENT,
              "no tensor 25 of 25");
  EXPECT_CODE(ws_source_tensor(source_, -1, &tensor, status), WS_INVALID_ARGUMENT, "no tensor -1");
  EXPECT_CODE(ws_source_array(source_, 25, &tensor, status), WS_INVALID_ARGUMENT, "no array 25");
  EXPECT_CODE(ws_source_tensor(source_, 0, nullptr, status), WS_INVALID_ARGUMENT, "null pointer");
}

TEST(CApiDeclareTest, AnArraysTypeIsKnownOnceItIsDeclared) {
  ws_source* const source = Open(Options("tunix"));
  const Trainer trainer(source);
  auto array = Sized<ws_tensor>();
  EXPECT_OK(ws_source_array(source, 0, &array, status));
  EXPECT_EQ(array.dtype, nullptr);
  EXPECT_EQ(array.bytes, 0);
  const auto specs = trainer.Specs();
  EXPECT_OK(ws_source_declare(source, specs.data(), specs.size(), status));
  EXPECT_OK(ws_source_array(source, 0, &array, status));
  EXPECT_STREQ(array.dtype, "BF16");
  EXPECT_EQ(array.bytes, 160);
  ws_source_close(source);
}

TEST_F(CApiTest, WritesTheRefitInfoAsJson) {
  size_t length = 0;
  EXPECT_OK(ws_source_info_json(source_, nullptr, 0, &length, status));
  std::string json(length + 1, '?');
  EXPECT_OK(ws_source_info_json(source_, json.data(), json.size(), &length, status));
  EXPECT_EQ(json.size(), length + 1);
  EXPECT_EQ(std::strlen(json.c_str()), length);
  EXPECT_THAT(json, HasSubstr(R"("model.norm.weight":[[8],"BF16"])"));
  char cut[8];
  EXPECT_OK(ws_source_info_json(source_, cut, sizeof(cut), &length, status));
  EXPECT_EQ(length + 1, json.size());
  EXPECT_EQ(std::string(cut), json.substr(0, 7));
}

TEST_F(CApiTest, RefitsArraysHoweverTheyAreLent) {
  int version = 0;
  for (const As as : {As::kVersioned, As::kUnversioned, As::kMemory}) {
    ++version;
    BindAll(version, as);
    ws_refit* const refit = Begin(version);
    ExpectTensors(Fill(source_, program_, refit));
    EXPECT_OK(ws_refit_unchanged(refit, status));
    EXPECT_EQ(trainer_.Returned(), version - 1);
    ws_refit_end(refit);
    EXPECT_EQ(trainer_.Returned(), version);
  }
}

TEST_F(CApiTest, BucketsMayBeOfAnySize) {
  for (const int64_t bytes : {64, 4096, 1 << 20}) {
    ws_program* const program = Compile(source_, bytes);
    BindAll(1);
    ws_refit* refit = nullptr;
    ASSERT_OK(ws_refit_begin(program, 1, 10, &refit, status));
    ExpectTensors(Fill(source_, program, refit));
    ws_refit_end(refit);
    ws_program_close(program);
  }
}

TEST_F(CApiTest, WithoutAGeometryEachTensorIsWholeInABucketOfItsOwn) {
  ws_program* program = nullptr;
  ASSERT_OK(ws_source_compile(source_, nullptr, &program, status));
  ASSERT_EQ(ws_program_bucket_count(program), ws_source_tensor_count(source_));
  for (int32_t t = 0; t < ws_source_tensor_count(source_); ++t) {
    auto tensor = Sized<ws_tensor>();
    auto bucket = Sized<ws_bucket>();
    auto piece = Sized<ws_piece>();
    EXPECT_OK(ws_source_tensor(source_, t, &tensor, status));
    EXPECT_OK(ws_program_bucket(program, t, &bucket, status));
    EXPECT_EQ(bucket.bytes, tensor.bytes);
    EXPECT_EQ(bucket.pieces, 1);
    EXPECT_OK(ws_program_piece(program, t, 0, &piece, status));
    EXPECT_EQ(piece.tensor, t);
    EXPECT_EQ(piece.tensor_offset, 0);
    EXPECT_EQ(piece.bytes, tensor.bytes);
  }
  BindAll(1);
  ws_refit* refit = nullptr;
  ASSERT_OK(ws_refit_begin(program, 1, 10, &refit, status));
  ExpectTensors(Fill(source_, program, refit));
  ws_refit_end(refit);
  ws_program_close(program);
}

TEST_F(CApiTest, EachVersionsOwnArraysAreRead) {
  for (int version = 1; version <= 3; ++version) {
    for (uint16_t& value : trainer_["final_norm.w"].values) value += 100;
    Array& q = trainer_["layers.1.attn.q_proj.w"];
    std::vector<uint16_t> moved(q.values.rbegin(), q.values.rend());
    q.values.swap(moved);  // elsewhere
    BindAll(version);
    ws_refit* const refit = Begin(version);
    ExpectTensors(Fill(source_, program_, refit));
    ws_refit_end(refit);
  }
}

TEST(CApiDeclareTest, PathsOfTheTrainersTreeAreNames) {
  ws_source* const source = Open(Options("tunix"));
  Trainer trainer(source);
  for (const auto& array : trainer.arrays()) {
    for (char& c : array->name) c = c == '.' ? '/' : c;
    array->name += "/value";
  }
  const auto specs = trainer.Specs();
  EXPECT_OK(ws_source_declare(source, specs.data(), specs.size(), status));
  const auto bindings = trainer.Lend(As::kMemory);
  EXPECT_OK(ws_source_bind(source, 1, bindings.data(), bindings.size(), status));
  EXPECT_OK(ws_source_release(source, status));
  EXPECT_EQ(trainer.Returned(), 1);
  ws_source_close(source);
}

TEST(CApiDeclareTest, StridesAreTakenAndMustStay) {
  ws_source* const source = Open(Options("tunix"));
  Trainer trainer(source);
  // Lies with its dimensions the other way round.
  Array& q = trainer["layers.0.attn.q_proj.w"];
  q.strides = {1, 8, 32};
  const auto specs = trainer.Specs();
  ASSERT_OK(ws_source_declare(source, specs.data(), specs.size(), status));
  ws_program* program = nullptr;
  auto geometry = Sized<ws_geometry>();
  geometry.bucket_bytes = 1 << 16;
  ASSERT_OK(ws_source_compile(source, &geometry, &program, status));
  auto bindings = trainer.Lend(As::kVersioned);
  ASSERT_OK(ws_source_bind(source, 1, bindings.data(), bindings.size(), status));
  ws_refit* refit = nullptr;
  ASSERT_OK(ws_refit_begin(program, 1, 10, &refit, status));
  const Table table = Fill(source, program, refit);
  ws_refit_end(refit);
  const auto& hf = table.at("model.layers.0.self_attn.q_proj.weight");
  for (size_t h = 0; h < 8; ++h) {
    for (size_t n = 0; n < 4; ++n) {
      for (size_t d = 0; d < 4; ++d) {
        EXPECT_EQ(hf[(n * 4 + d) * 8 + h], q.values[h + n * 8 + d * 32]);
      }
    }
  }
  q.strides = {16, 4, 1};
  bindings = trainer.Lend(As::kVersioned);
  EXPECT_CODE(ws_source_bind(source, 2, bindings.data(), bindings.size(), status),
              WS_INVALID_ARGUMENT, "layers.0.attn.q_proj.w");
  EXPECT_EQ(trainer.Returned(), 2);
  ws_program_close(program);
  ws_source_close(source);
}

TEST(CApiDeclareTest, RefusesArraysThatAreNotTheLayouts) {
  ws_source* const source = Open(Options("tunix"));
  const Trainer trainer(source);
  const auto refused = [&](int32_t code, const std::string& text,
                           const std::function<void(std::vector<ws_array>&)>& change) {
    auto specs = trainer.Specs();
    change(specs);
    EXPECT_CODE(ws_source_declare(source, specs.data(), specs.size(), status), code, text);
  };
  const int64_t shape[] = {10, -8};
  refused(WS_INVALID_ARGUMENT, "missing", [](auto& s) { s.pop_back(); });
  refused(WS_INVALID_ARGUMENT, "missing", [](auto& s) { s.clear(); });
  refused(WS_INVALID_ARGUMENT, "given twice", [](auto& s) { s.push_back(s.back()); });
  refused(WS_INVALID_ARGUMENT, "lora", [](auto& s) { s[0].name = "layers.0.lora"; });
  refused(WS_INVALID_ARGUMENT, "no name", [](auto& s) { s[0].name = nullptr; });
  refused(WS_INVALID_ARGUMENT, "embedder.input_embedding", [](auto& s) { s[0].rank = 1; });
  refused(WS_INVALID_ARGUMENT, "the rank is 9", [](auto& s) { s[0].rank = 9; });
  refused(WS_INVALID_ARGUMENT, "the rank is -1", [](auto& s) { s[0].rank = -1; });
  refused(WS_INVALID_ARGUMENT, "negative dimension", [&](auto& s) { s[0].shape = shape; });
  refused(WS_INVALID_ARGUMENT, "shape is a null pointer", [](auto& s) { s[0].shape = nullptr; });
  refused(WS_INVALID_ARGUMENT, "bfloat17", [](auto& s) { s[0].dtype = "bfloat17"; });
  refused(WS_INVALID_ARGUMENT, "dtype is a null pointer", [](auto& s) { s[0].dtype = nullptr; });
  refused(WS_INVALID_ARGUMENT, "embedder.input_embedding", [](auto& s) { s[0].dtype = "int64"; });
  refused(WS_INVALID_ARGUMENT, "struct_size is 0", [](auto& s) { s[3].struct_size = 0; });
  EXPECT_CODE(ws_source_declare(source, nullptr, 3, status), WS_INVALID_ARGUMENT, "null pointer");
  EXPECT_CODE(ws_source_declare(nullptr, nullptr, 0, status), WS_INVALID_ARGUMENT, "null pointer");

  const auto specs = trainer.Specs();
  EXPECT_OK(ws_source_declare(source, specs.data(), specs.size(), status));
  EXPECT_CODE(ws_source_declare(source, specs.data(), specs.size(), status), WS_FAILED_PRECONDITION,
              "declared already");
  ws_source_close(source);
}

// torch's and jax's way of saying it.
TEST(CApiDeclareTest, ShardsAreDeclaredByPlacementsOrAPartitionSpec) {
  const char* const names[] = {"dp", "tp"};
  const int32_t one[] = {1, 1}, four[] = {2, 2};
  auto mesh = Sized<ws_mesh>();
  mesh.rank = 2;
  mesh.names = names;
  mesh.sizes = one;
  const char* const placements[] = {"_S(0, 2)", "Shard(dim=0)"};
  const char* const one_of_each[] = {"R", "S(1)"};
  const char* const partial[] = {"P(sum)", "R"};
  const char* const spec[] = {"dp", "tp"};
  const char* const uneven[] = {"dp,tp", nullptr};
  const char* const unknown[] = {"fsdp", ""};
  auto sharding = Sized<ws_sharding>();

  const auto declare = [&sharding](Status& status) {
    ws_source* const source = Open(Options("tunix"));
    const Trainer trainer(source);
    auto specs = trainer.Specs();
    EXPECT_STREQ(specs[0].name, "embedder.input_embedding");  // [10, 8]
    specs[0].sharding = &sharding;
    const int32_t code = ws_source_declare(source, specs.data(), specs.size(), status);
    ws_source_close(source);
    return code;
  };
  sharding.mesh = &mesh;
  sharding.placements = one_of_each;
  EXPECT_OK(declare(status));
  mesh.sizes = four;
  EXPECT_OK(declare(status));
  sharding.placements = placements;
  EXPECT_OK(declare(status));
  sharding.placements = partial;
  EXPECT_CODE(declare(status), WS_INVALID_ARGUMENT, "embedder.input_embedding");

  sharding.placements = nullptr;
  sharding.partition_spec = spec;
  EXPECT_OK(declare(status));
  sharding.partition_spec = uneven;
  EXPECT_CODE(declare(status), WS_INVALID_ARGUMENT, "embedder.input_embedding");
  sharding.partition_spec = unknown;
  EXPECT_CODE(declare(status), WS_INVALID_ARGUMENT, "fsdp");
  sharding.placements = placements;
  EXPECT_CODE(declare(status), WS_INVALID_ARGUMENT, "one of them");
  sharding.placements = sharding.partition_spec = nullptr;
  EXPECT_CODE(declare(status), WS_INVALID_ARGUMENT, "one of them");
  sharding.partition_spec = spec;
  sharding.mesh = nullptr;
  EXPECT_CODE(declare(status), WS_INVALID_ARGUMENT, "mesh is a null pointer");
}

// Every way in which binding fails gives everything back, once.
TEST_F(CApiTest, ABindingThatFailsGivesEverythingBackOnce) {
  int times = 0;
  for (const As as : {As::kVersioned, As::kUnversioned, As::kMemory}) {
    const auto refused = [&](int32_t code, const std::string& text,
                             const std::function<void(std::vector<ws_binding>&)>& change) {
      auto bindings = trainer_.Lend(as);
      change(bindings);
      EXPECT_CODE(ws_source_bind(source_, 1, bindings.data(), bindings.size(), status), code, text);
      EXPECT_EQ(trainer_.Returned(), ++times) << text;
      EXPECT_CODE(ws_refit_begin(program_, 1, 1, std::make_unique<ws_refit*>().get(), status),
                  WS_FAILED_PRECONDITION, "no arrays are bound");
    };
    refused(WS_INVALID_ARGUMENT, "no HF tensor is made of", [](auto& b) { b[2].name = "lora"; });
    refused(WS_INVALID_ARGUMENT, "without a name", [](auto& b) { b[2].name = nullptr; });
    refused(WS_INVALID_ARGUMENT, "given twice", [](auto& b) { b[2].name = b[3].name; });
    refused(WS_INVALID_ARGUMENT, "is not the first's", [](auto& b) { b[5].struct_size -= 8; });
    refused(WS_INVALID_ARGUMENT, "choose one", [&](auto& b) {
      // The same array in another way as well.
      const ws_binding other =
          Trainer::LendOne(*trainer_.arrays()[4], as == As::kMemory ? As::kVersioned : As::kMemory);
      trainer_.arrays()[4]->returned -= 1;
      if (as == As::kMemory) {
        b[4].dlpack = other.dlpack;
      } else {
        b[4].release = other.release;
        b[4].context = other.context;
        b[4].data = other.data;
      }
    });
    EXPECT_CODE(ws_source_bind(nullptr, 1, trainer_.Lend(as).data(), 25, status),
                WS_INVALID_ARGUMENT, "source is a null pointer");
    EXPECT_EQ(trainer_.Returned(), ++times);
  }
}

TEST_F(CApiTest, AnArrayThatIsNotThereIsListedAndTheOthersGivenBack) {
  auto bindings = trainer_.Lend(As::kVersioned);
  const ws_binding left = bindings.back();
  bindings.pop_back();
  EXPECT_CODE(ws_source_bind(source_, 1, bindings.data(), bindings.size(), status),
              WS_INVALID_ARGUMENT, left.name);
  EXPECT_EQ(trainer_.arrays().back()->returned, 0);
  EXPECT_EQ(trainer_.arrays().front()->returned, 1);
  bindings = {left};
  EXPECT_CODE(ws_source_bind(source_, 1, bindings.data(), 1, status), WS_INVALID_ARGUMENT,
              "missing");
  EXPECT_EQ(trainer_.Returned(), 1);
}

TEST_F(CApiTest, ATensorThatIsBoundTwiceIsGivenBackOnce) {
  for (const As as : {As::kVersioned, As::kUnversioned}) {
    auto bindings = trainer_.Lend(as);
    bindings.push_back(bindings[3]);
    const int before = trainer_.Returned();
    EXPECT_CODE(ws_source_bind(source_, 1, bindings.data(), bindings.size(), status),
                WS_INVALID_ARGUMENT, "it is bound twice");
    EXPECT_EQ(trainer_.Returned(), before + 1);
  }
}

TEST_F(CApiTest, WhatIsWrongWithADlpackTensorIsSaidByName) {
  const auto refused = [&](int32_t code, const std::string& text,
                           const std::function<void(Versioned&)>& change) {
    auto bindings = trainer_.Lend(As::kVersioned);
    change(*reinterpret_cast<Versioned*>(bindings[7].dlpack));
    const int before = trainer_.Returned();
    EXPECT_CODE(ws_source_bind(source_, 1, bindings.data(), bindings.size(), status), code, text);
    EXPECT_EQ(trainer_.Returned(), before + 1);
  };
  const std::string name = "'" + trainer_.arrays()[7]->name + "'";
  refused(WS_UNIMPLEMENTED, name + ": it is in the memory of kDLCUDA 1",
          [](auto& t) { t.dl_tensor.device = {DLDeviceType::kCuda, 1}; });
  refused(WS_UNIMPLEMENTED, name + ": it is of DLPack 2.0", [](auto& t) { t.version = {2, 0}; });
  refused(WS_UNIMPLEMENTED, "lanes", [](auto& t) { t.dl_tensor.dtype.lanes = 4; });
  refused(WS_INVALID_ARGUMENT, name, [](auto& t) { t.dl_tensor.data = nullptr; });
  refused(WS_INVALID_ARGUMENT, name, [](auto& t) { t.dl_tensor.byte_offset = 1; });
  refused(WS_INVALID_ARGUMENT, trainer_.arrays()[7]->name,
          [](auto& t) { t.dl_tensor.dtype = {DLDataTypeCode::kFloat, 16, 1}; });
}

TEST_F(CApiTest, WhatIsWrongWithMemoryIsSaidByName) {
  const auto refused = [&](int32_t code, const std::string& text,
                           const std::function<void(ws_binding&)>& change) {
    auto bindings = trainer_.Lend(As::kMemory);
    change(bindings[7]);
    const int before = trainer_.Returned();
    EXPECT_CODE(ws_source_bind(source_, 1, bindings.data(), bindings.size(), status), code,
                trainer_.arrays()[7]->name);
    EXPECT_CODE(ws_source_bind(source_, 1, nullptr, 0, status), WS_INVALID_ARGUMENT, "missing");
    EXPECT_EQ(trainer_.Returned(), before + 1) << text;
  };
  refused(WS_INVALID_ARGUMENT, "null", [](auto& b) { b.data = nullptr; });
  refused(WS_INVALID_ARGUMENT, "dtype", [](auto& b) { b.dtype = nullptr; });
  refused(WS_INVALID_ARGUMENT, "dtype", [](auto& b) { b.dtype = "F32"; });
  refused(WS_INVALID_ARGUMENT, "shape", [](auto& b) { b.shape = nullptr; });
  refused(WS_INVALID_ARGUMENT, "offset", [](auto& b) { b.byte_offset = -2; });
  refused(WS_INVALID_ARGUMENT, "aligned", [](auto& b) { b.byte_offset = 1; });
}

TEST_F(CApiTest, AByteOffsetIsAdded) {
  auto bindings = trainer_.Lend(As::kMemory);
  for (ws_binding& binding : bindings) {
    binding.data = static_cast<const char*>(binding.data) - 64;
    binding.byte_offset = 64;
    if (binding.rank == 1) binding.strides = nullptr;  // row-major, as it is
  }
  ASSERT_OK(ws_source_bind(source_, 1, bindings.data(), bindings.size(), status));
  ws_refit* const refit = Begin(1);
  ExpectTensors(Fill(source_, program_, refit));
  ws_refit_end(refit);
}

// Whose pointers could be anywhere.
TEST_F(CApiTest, NothingIsTakenOfStructsThatAreTooSmall) {
  auto bindings = trainer_.Lend(As::kMemory);
  bindings[0].struct_size = 16;
  EXPECT_CODE(ws_source_bind(source_, 1, bindings.data(), bindings.size(), status),
              WS_INVALID_ARGUMENT, "struct_size is 16");
  EXPECT_EQ(trainer_.Returned(), 0);
}

TEST_F(CApiTest, BindingAnewReleasingAndClosingGiveBack) {
  BindAll(1);
  BindAll(2);
  EXPECT_EQ(trainer_.Returned(), 1);
  EXPECT_OK(ws_source_release(source_, status));
  EXPECT_EQ(trainer_.Returned(), 2);
  EXPECT_OK(ws_source_release(source_, status));
  EXPECT_EQ(trainer_.Returned(), 2);
  BindAll(3);
  ws_source_close(std::exchange(source_, nullptr));  // the program is there still
  EXPECT_EQ(trainer_.Returned(), 3);
}

TEST_F(CApiTest, WhileARefitIsOpenArraysStay) {
  BindAll(1);
  ws_refit* const refit = Begin(1);
  EXPECT_CODE(ws_source_release(source_, status), WS_FAILED_PRECONDITION, "a refit is open");
  const auto more = trainer_.Lend(As::kMemory);
  EXPECT_CODE(ws_source_bind(source_, 2, more.data(), more.size(), status), WS_FAILED_PRECONDITION,
              "a refit is open");
  EXPECT_EQ(trainer_.Returned(), 1);  // what was not bound
  EXPECT_CODE(ws_refit_begin(program_, 1, 1, std::make_unique<ws_refit*>().get(), status),
              WS_FAILED_PRECONDITION, "another refit");
  ExpectTensors(Fill(source_, program_, refit));
  EXPECT_OK(ws_refit_unchanged(refit, status));
  ws_refit_end(refit);
  EXPECT_EQ(trainer_.Returned(), 2);
}

TEST_F(CApiTest, HandlesMayBeClosedInAnyOrder) {
  BindAll(1);
  ws_refit* const refit = Begin(1);
  ws_step* step = nullptr;
  EXPECT_OK(ws_step_begin(source_, &step, status));
  ws_source_close(std::exchange(source_, nullptr));
  EXPECT_EQ(trainer_.Returned(), 0);
  ws_program_close(std::exchange(program_, nullptr));
  std::vector<char> slot(4096);
  EXPECT_OK(ws_refit_fill(refit, 0, slot.data(), 4096, status));
  ws_refit_end(refit);
  EXPECT_EQ(trainer_.Returned(), 1);
  ws_step_end(step);
  ws_source_close(nullptr);
  ws_program_close(nullptr);
  ws_refit_end(nullptr);
  ws_step_end(nullptr);
}

TEST_F(CApiTest, ARefitNeedsTheArraysOfItsVersion) {
  ws_refit* refit = nullptr;
  EXPECT_CODE(ws_refit_begin(program_, 1, 1, &refit, status), WS_FAILED_PRECONDITION,
              "no arrays are bound");
  BindAll(1);
  EXPECT_CODE(ws_refit_begin(program_, 2, 1, &refit, status), WS_FAILED_PRECONDITION,
              "of version 1");
  EXPECT_EQ(refit, nullptr);
  EXPECT_EQ(trainer_.Returned(), 0);  // still bound
  ws_refit_end(Begin(1));
  EXPECT_CODE(ws_refit_begin(program_, 1, 1, &refit, status), WS_FAILED_PRECONDITION,
              "no arrays are bound");
  BindAll(3);
  for (const double timeout : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_CODE(ws_refit_begin(program_, 3, timeout, &refit, status), WS_INVALID_ARGUMENT,
                "a timeout of");
  }
  ws_refit_end(Begin(3));
}

TEST_F(CApiTest, AStepThatOverlapsFailsTheRefit) {
  ws_step* step = nullptr;
  BindAll(1);
  ws_refit* refit = Begin(1);
  EXPECT_OK(ws_refit_unchanged(refit, status));
  EXPECT_OK(ws_step_begin(source_, &step, status));
  ws_step_end(step);
  EXPECT_CODE(ws_refit_unchanged(refit, status), WS_ABORTED, "step");
  ws_refit_end(refit);
  EXPECT_EQ(trainer_.Returned(), 1);

  BindAll(2);
  EXPECT_OK(ws_step_begin(source_, &step, status));
  EXPECT_CODE(ws_refit_begin(program_, 2, 1, &refit, status), WS_ABORTED, "step");
  ws_step_end(step);
  EXPECT_EQ(trainer_.Returned(), 1);  // still bound: it may begin now
  refit = Begin(2);
  EXPECT_OK(ws_refit_unchanged(refit, status));
  ws_refit_end(refit);
  EXPECT_EQ(trainer_.Returned(), 2);
}

TEST_F(CApiTest, AStepMayWaitForTheRefitToEnd) {
  BindAll(1);
  ws_refit* const refit = Begin(1);
  ws_step* step = nullptr;
  EXPECT_CODE(ws_step_begin_after_refits(source_, 0.01, &step, status), WS_DEADLINE_EXCEEDED, "");
  EXPECT_CODE(ws_step_begin_after_refits(source_, -3, &step, status), WS_INVALID_ARGUMENT,
              "a timeout of -3");
  EXPECT_EQ(step, nullptr);
  std::atomic<bool> stepped{false};
  std::thread trainer([&] {
    ws_step* waited = nullptr;
    EXPECT_OK(ws_step_begin_after_refits(source_, 60, &waited, status));
    stepped = true;
    ws_step_end(waited);
  });
  ExpectTensors(Fill(source_, program_, refit));
  EXPECT_OK(ws_refit_unchanged(refit, status));
  EXPECT_FALSE(stepped);
  ws_refit_end(refit);
  trainer.join();
  EXPECT_TRUE(stepped);
}

TEST_F(CApiTest, WrongCallsOfARefitAreRefused) {
  BindAll(1);
  ws_refit* const refit = Begin(1);
  const int32_t buckets = ws_program_bucket_count(program_);
  std::vector<char> slot(4096);
  EXPECT_CODE(ws_refit_fill(refit, buckets, slot.data(), 4096, status), WS_INVALID_ARGUMENT,
              "no bucket");
  EXPECT_CODE(ws_refit_fill(refit, -1, slot.data(), 4096, status), WS_INVALID_ARGUMENT,
              "no bucket -1");
  EXPECT_CODE(ws_refit_fill(refit, 0, slot.data(), 100, status), WS_INVALID_ARGUMENT,
              "and there are 100");
  EXPECT_CODE(ws_refit_fill(refit, 0, nullptr, 4096, status), WS_INVALID_ARGUMENT, "null pointer");
  EXPECT_CODE(ws_refit_fill(nullptr, 0, slot.data(), 4096, status), WS_INVALID_ARGUMENT,
              "null pointer");
  EXPECT_CODE(ws_refit_unchanged(nullptr, status), WS_INVALID_ARGUMENT, "null pointer");
  auto bucket = Sized<ws_bucket>();
  auto piece = Sized<ws_piece>();
  EXPECT_CODE(ws_program_bucket(program_, buckets, &bucket, status), WS_INVALID_ARGUMENT,
              "no bucket");
  EXPECT_CODE(ws_program_piece(program_, 0, 10000, &piece, status), WS_INVALID_ARGUMENT,
              "no piece 10000");
  ws_refit_end(refit);
}

TEST_F(CApiTest, WrongGeometriesAreRefused) {
  ws_program* program = nullptr;
  auto geometry = Sized<ws_geometry>();
  EXPECT_CODE(ws_source_compile(source_, &geometry, &program, status), WS_INVALID_ARGUMENT,
              "bucket_bytes is 0");
  geometry.bucket_bytes = 64;
  geometry.alignment = 3;
  EXPECT_CODE(ws_source_compile(source_, &geometry, &program, status), WS_INVALID_ARGUMENT,
              "alignment is 3");
  ws_source* const other = Open(Options("hf"));
  EXPECT_CODE(ws_source_compile(other, &geometry, &program, status), WS_FAILED_PRECONDITION,
              "no arrays are declared");
  const auto bindings = trainer_.Lend(As::kVersioned);
  EXPECT_CODE(ws_source_bind(other, 1, bindings.data(), bindings.size(), status),
              WS_FAILED_PRECONDITION, "no arrays are declared");
  EXPECT_EQ(trainer_.Returned(), 1);
  EXPECT_EQ(program, nullptr);
  ws_source_close(other);
}

TEST_F(CApiTest, DigestsOfBothEndsAgree) {
  char mine[WS_DIGEST_TEXT], theirs[WS_DIGEST_TEXT];
  EXPECT_CODE(ws_source_digest(source_, 0, mine, status), WS_FAILED_PRECONDITION, "");
  BindAll(1);
  ws_refit* const refit = Begin(1);
  Table table = Fill(source_, program_, refit);
  for (int32_t t = 0; t < ws_source_tensor_count(source_); ++t) {
    auto tensor = Sized<ws_tensor>();
    EXPECT_OK(ws_source_tensor(source_, t, &tensor, status));
    std::vector<uint16_t>& values = table.at(tensor.name);
    EXPECT_OK(ws_source_digest(source_, t, mine, status));
    EXPECT_OK(ws_tensor_digest(&tensor, values.data(), theirs, status));
    EXPECT_STREQ(mine, theirs) << tensor.name;
    EXPECT_EQ(std::strlen(mine), 32u);
    values.back() ^= 1;
    EXPECT_OK(ws_tensor_digest(&tensor, values.data(), theirs, status));
    EXPECT_STRNE(mine, theirs) << tensor.name;
  }
  EXPECT_CODE(ws_source_digest(source_, 25, mine, status), WS_INVALID_ARGUMENT, "no tensor 25");
  auto tensor = Sized<ws_tensor>();
  EXPECT_CODE(ws_tensor_digest(&tensor, nullptr, mine, status), WS_INVALID_ARGUMENT, "name");
  ws_refit_end(refit);
}

TEST(CApiStatusTest, TheTextIsCutToFitBetweenCharacters) {
  char text[16];
  std::memset(text, '?', sizeof(text));
  ws_status status = {sizeof(status), 77, text, 9, 77};
  ws_source_options options = Options("tunix");
  options.layout = "\xc3\xa4\xc3\xa4\xc3\xa4";
  ws_source* source;
  EXPECT_EQ(ws_source_open(&options, &source, &status), WS_INVALID_ARGUMENT);
  EXPECT_EQ(status.code, WS_INVALID_ARGUMENT);
  EXPECT_GT(status.text_length, 20u);
  EXPECT_EQ(std::strlen(text), 8u);
  EXPECT_EQ(text[9], '?');
  const size_t whole = status.text_length;
  std::string all(whole + 1, '?');
  status.text = all.data();
  status.text_capacity = all.size();
  EXPECT_EQ(ws_source_open(&options, &source, &status), WS_INVALID_ARGUMENT);
  EXPECT_EQ(std::strlen(all.c_str()), whole);
  // At every length what is there is whole characters.
  for (size_t capacity = 0; capacity <= all.size(); ++capacity) {
    std::string cut(capacity, '?');
    status.text = cut.data();
    status.text_capacity = capacity;
    EXPECT_EQ(ws_source_open(&options, &source, &status), WS_INVALID_ARGUMENT);
    EXPECT_EQ(status.text_length, whole);
    if (capacity == 0) continue;
    const std::string kept = cut.c_str();
    EXPECT_EQ(kept, all.substr(0, kept.size()));
    EXPECT_NE(static_cast<unsigned char>(all[kept.size()]) & 0xc0, 0x80);
    EXPECT_GE(kept.size() + 2, capacity);
  }
}

TEST(CApiStatusTest, AStatusMayBeLeftOutOrHaveNoText) {
  ws_source_options options = Options("nothing");
  ws_source* source;
  EXPECT_EQ(ws_source_open(&options, &source, nullptr), WS_INVALID_ARGUMENT);
  ws_status without_text = {sizeof(without_text), 0, nullptr, 100, 0};
  EXPECT_EQ(ws_source_open(&options, &source, &without_text), WS_INVALID_ARGUMENT);
  EXPECT_EQ(without_text.code, WS_INVALID_ARGUMENT);
  EXPECT_GT(without_text.text_length, 0u);
  ws_status too_small = {8, 77, nullptr, 0, 0};
  EXPECT_EQ(ws_source_open(&options, &source, &too_small), WS_INVALID_ARGUMENT);
  EXPECT_EQ(too_small.code, 77);
  // On success too.
  options.layout = "tunix";
  char text[8] = "before";
  ws_status status = {sizeof(status), 77, text, sizeof(text), 9};
  EXPECT_EQ(ws_source_open(&options, &source, &status), WS_OK);
  EXPECT_EQ(status.code, WS_OK);
  EXPECT_EQ(status.text_length, 0u);
  EXPECT_STREQ(text, "");
  ws_source_close(source);
}

// The trainer's arrays, each cut along its first dimension over the ranks of a mesh.
class ShardedTrainer {
 public:
  ShardedTrainer(const Trainer& trainer, int32_t ranks) : trainer_(trainer), ranks_(ranks) {
    mesh_.rank = 1;
    mesh_.names = &dp_;
    mesh_.sizes = &ranks_;
    sharding_.mesh = &mesh_;
    sharding_.placements = &placement_;
    for (const auto& array : trainer_.arrays()) {
      for (int32_t rank = 0; rank < ranks; ++rank) {
        const int64_t chunk = (array->shape[0] + ranks - 1) / ranks;
        const int64_t begin = std::min(rank * chunk, array->shape[0]);
        Shard shard = {array->shape, begin * array->strides[0]};
        shard.shape[0] = std::min(begin + chunk, array->shape[0]) - begin;
        shards_.push_back(std::move(shard));
      }
    }
  }

  int32_t Declare(ws_source* source, Status& status) const {
    auto specs = trainer_.Specs();
    for (ws_array& spec : specs) spec.sharding = &sharding_;
    return ws_source_declare(source, specs.data(), specs.size(), status);
  }

  // The shards of one rank, or of all.
  std::vector<ws_binding> Lend(int32_t rank = -1) const {
    std::vector<ws_binding> bindings;
    size_t next = 0;
    for (const auto& array : trainer_.arrays()) {
      for (int32_t r = 0; r < ranks_; ++r, ++next) {
        if (rank != -1 && r != rank) continue;
        const Shard& shard = shards_[next];
        ws_binding binding = Trainer::LendOne(*array, As::kMemory);
        binding.mesh_rank = r;
        binding.byte_offset = shard.first * 2;
        binding.shape = shard.shape.data();
        bindings.push_back(binding);
      }
    }
    return bindings;
  }

 private:
  struct Shard {
    std::vector<int64_t> shape;
    int64_t first;  // element of the array
  };

  const Trainer& trainer_;
  const int32_t ranks_;
  const char* const dp_ = "dp";
  const char* const placement_ = "S(0)";
  ws_mesh mesh_ = Sized<ws_mesh>();
  ws_sharding sharding_ = Sized<ws_sharding>();
  std::vector<Shard> shards_;
};

// As a jax program that drives several devices.
TEST(CApiShardedTest, OneProcessMayHoldAllShards) {
  ws_source* const whole = Open(Options("tunix"));
  Trainer trainer(whole);
  ws_source_close(whole);
  const ShardedTrainer shards(trainer, 3);  // divides nothing
  ws_source* const source = Open(Options("tunix"));
  ASSERT_OK(shards.Declare(source, status));
  auto geometry = Sized<ws_geometry>();
  geometry.bucket_bytes = 256;
  ws_program* program = nullptr;
  ASSERT_OK(ws_source_compile(source, &geometry, &program, status));
  auto bindings = shards.Lend();
  ASSERT_OK(ws_source_bind(source, 1, bindings.data(), bindings.size(), status));
  ws_refit* refit = nullptr;
  ASSERT_OK(ws_refit_begin(program, 1, 10, &refit, status));
  ExpectTensorsOf(trainer, Fill(source, program, refit));
  char digest[WS_DIGEST_TEXT];
  EXPECT_OK(ws_source_digest(source, 0, digest, status));
  EXPECT_OK(ws_refit_unchanged(refit, status));
  EXPECT_EQ(trainer.Returned(), 0);
  ws_refit_end(refit);
  EXPECT_EQ(trainer.Returned(), 3);  // three shards each
  EXPECT_CODE(ws_refit_contribute(program, 1, 10, status), WS_FAILED_PRECONDITION, "process 0");

  bindings = shards.Lend();
  bindings[0].mesh_rank = 7;
  EXPECT_CODE(ws_source_bind(source, 2, bindings.data(), bindings.size(), status),
              WS_INVALID_ARGUMENT, "mesh rank 7");
  EXPECT_EQ(trainer.Returned(), 6);
  ws_program_close(program);
  ws_source_close(source);
}

// A port of 127.0.0.1 that is given to nobody else while this lives, and where rank 0 can listen.
class ReservedPort {
 public:
  ReservedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    EXPECT_EQ(::bind(socket_.get(), any, length), 0);
    EXPECT_EQ(::getsockname(socket_.get(), any, &length), 0);
    number_ = ntohs(address.sin_port);
  }
  int number() const { return number_; }

 private:
  const base::UniqueFd socket_;
  int number_ = 0;
};

enum class Over { kHostSocket, kTcp };

// A trainer of two processes, which are threads here.
class TwoProcesses {
 public:
  explicit TwoProcesses(Over over)
      : whole_(Open(Options("tunix"))), trainer_(whole_), shards_(trainer_, 2) {
    // No other job's of this machine, as the folder's name is no other's.
    const base::testing::SocketFolder folder;
    const std::string job = "c_api_test " + folder.path();
    OnBoth([&](int rank) {
      auto options = Sized<ws_communicator_options>();
      options.job = job.c_str();
      options.rank = rank;
      options.size = 2;
      if (over == Over::kTcp) {
        options.host = "127.0.0.1";
        options.port = port_.number();
      }
      ws_communicator* communicator = nullptr;
      EXPECT_OK(ws_communicator_connect(&options, 60, &communicator, status));
      auto source_options = Options("tunix");
      source_options.communicator = communicator;
      source[rank] = Open(source_options);
      ws_communicator_close(communicator);
      EXPECT_OK(shards_.Declare(source[rank], status));
      auto geometry = Sized<ws_geometry>();
      geometry.bucket_bytes = 256;
      EXPECT_OK(ws_source_compile(source[rank], &geometry, &program[rank], status));
    });
  }
  ~TwoProcesses() {
    for (int rank : {0, 1}) {
      ws_program_close(program[rank]);
      ws_source_close(source[rank]);
    }
    ws_source_close(whole_);
  }

  static void OnBoth(const std::function<void(int rank)>& run) {
    std::thread other([&run] { run(1); });
    run(0);
    other.join();
  }

  void Bind(int rank, int64_t version) {
    const auto bindings = shards_.Lend(rank);
    EXPECT_OK(ws_source_bind(source[rank], version, bindings.data(), bindings.size(), status));
  }

  Trainer& trainer() { return trainer_; }

  ws_source* source[2] = {};
  ws_program* program[2] = {};

 private:
  ws_source* whole_;
  Trainer trainer_;
  ShardedTrainer shards_;
  ReservedPort port_;
};

class CApiProcessesTest : public ::testing::TestWithParam<Over> {};
INSTANTIATE_TEST_SUITE_P(, CApiProcessesTest, ::testing::Values(Over::kHostSocket, Over::kTcp),
                         [](const auto& info) {
                           return info.param == Over::kTcp ? "OverTcp" : "OnHost";
                         });

TEST_P(CApiProcessesTest, ProcessesRefitTogether) {
  TwoProcesses two(GetParam());
  for (const int rank : {0, 1}) two.Bind(rank, 1);
  TwoProcesses::OnBoth([&](int rank) {
    if (rank == 1) {
      EXPECT_OK(ws_refit_contribute(two.program[1], 1, 60, status));
      return;
    }
    ws_refit* refit = nullptr;
    ASSERT_OK(ws_refit_begin(two.program[0], 1, 60, &refit, status));
    ExpectTensorsOf(two.trainer(), Fill(two.source[0], two.program[0], refit));
    EXPECT_OK(ws_refit_unchanged(refit, status));
    ws_refit_end(refit);
  });
  EXPECT_EQ(two.trainer().Returned(), 2);
  EXPECT_CODE(ws_refit_contribute(two.program[0], 1, 60, status), WS_FAILED_PRECONDITION,
              "process 0");
}

TEST_P(CApiProcessesTest, AStepOnOneProcessFailsTheRefitOnAll) {
  TwoProcesses two(GetParam());
  for (const int rank : {0, 1}) two.Bind(rank, 1);
  TwoProcesses::OnBoth([&](int rank) {
    if (rank == 1) {
      ws_step* step = nullptr;
      EXPECT_OK(ws_step_begin(two.source[1], &step, status));
      EXPECT_CODE(ws_refit_contribute(two.program[1], 1, 60, status), WS_ABORTED, "step");
      ws_step_end(step);
      return;
    }
    ws_refit* refit = nullptr;
    EXPECT_CODE(ws_refit_begin(two.program[0], 1, 60, &refit, status), WS_ABORTED, "step");
    EXPECT_OK(ws_source_release(two.source[0], status));
  });
  EXPECT_EQ(two.trainer().Returned(), 2);
}

TEST_P(CApiProcessesTest, AProcessWithoutArraysFailsTheRefitOnAll) {
  TwoProcesses two(GetParam());
  two.Bind(0, 1);
  TwoProcesses::OnBoth([&](int rank) {
    ws_refit* refit = nullptr;
    EXPECT_CODE(rank == 1 ? ws_refit_contribute(two.program[1], 1, 60, status)
                          : ws_refit_begin(two.program[0], 1, 60, &refit, status),
                WS_FAILED_PRECONDITION, "no arrays are bound");
  });
}

TEST(CApiShardedTest, WrongCommunicatorsAreRefused) {
  auto options = Sized<ws_communicator_options>();
  ws_communicator* communicator = nullptr;
  options.size = 2;
  EXPECT_CODE(ws_communicator_connect(&options, 1, &communicator, status), WS_INVALID_ARGUMENT,
              "job is a null pointer");
  options.job = "c_api_test";
  options.rank = 2;
  EXPECT_CODE(ws_communicator_connect(&options, 1, &communicator, status), WS_INVALID_ARGUMENT,
              "2");
  options.rank = 0;
  options.host = "127.0.0.1";
  options.endpoint = "/tmp/weight_sync-endpoint";
  EXPECT_CODE(ws_communicator_connect(&options, 1, &communicator, status), WS_INVALID_ARGUMENT,
              "not both");
  options.endpoint = nullptr;
  EXPECT_CODE(ws_communicator_connect(&options, 0.1, &communicator, status), WS_DEADLINE_EXCEEDED,
              "1");
  EXPECT_EQ(communicator, nullptr);
  ws_communicator_close(nullptr);

  ws_source* source = nullptr;
  ws_source_options wrong = Options("tunix");
  wrong.mesh_ranks = 3;
  EXPECT_CODE(ws_source_open(&wrong, &source, status), WS_INVALID_ARGUMENT, "mesh_ranks is 3");
  wrong = Options("tunix");
  wrong.snapshots = 2;
  EXPECT_CODE(ws_source_open(&wrong, &source, status), WS_INVALID_ARGUMENT, "snapshots is 2");
  wrong = Options("tunix");
  for (const int32_t threads : {-1, 1025}) {
    wrong.copy_threads = threads;
    EXPECT_CODE(ws_source_open(&wrong, &source, status), WS_INVALID_ARGUMENT, "copy_threads");
  }
}

// The trainer is free again once a refit has begun.
TEST(CApiSnapshotTest, ARefitReadsItsCopy) {
  ws_source_options options = Options("tunix");
  options.snapshots = 1;
  ws_source* const source = Open(options);
  Trainer trainer(source);
  const auto specs = trainer.Specs();
  ASSERT_OK(ws_source_declare(source, specs.data(), specs.size(), status));
  ws_program* program = nullptr;
  ASSERT_OK(ws_source_compile(source, nullptr, &program, status));
  for (int version = 1; version <= 2; ++version) {
    const auto bindings = trainer.Lend(As::kVersioned);
    ASSERT_OK(ws_source_bind(source, version, bindings.data(), bindings.size(), status));
    ws_refit* refit = nullptr;
    ASSERT_OK(ws_refit_begin(program, version, 10, &refit, status));
    EXPECT_EQ(trainer.Returned(), version);
    Array& norm = trainer["final_norm.w"];
    const std::vector<uint16_t> before = norm.values;
    ws_step* step = nullptr;
    ASSERT_OK(ws_step_begin_after_refits(source, 10, &step, status));
    for (uint16_t& value : norm.values) value += 7;
    ws_step_end(step);
    EXPECT_EQ(Fill(source, program, refit).at("model.norm.weight"), before);
    EXPECT_OK(ws_refit_unchanged(refit, status));
    ws_refit_end(refit);
    EXPECT_EQ(trainer.Returned(), version);
  }
  ws_program_close(program);
  ws_source_close(source);
}

template <typename Struct>
struct Newer {
  Struct known;
  uint64_t unknown;
};

TEST_F(CApiTest, CallersWithANewerHeaderAreServedWhileTheyUseNothingNew) {
  Newer<ws_source_options> options = {Options("tunix"), 0};
  options.known.struct_size = sizeof(options);
  ws_source* source = nullptr;
  EXPECT_OK(ws_source_open(&options.known, &source, status));
  ws_source_close(source);
  options.unknown = 1;
  EXPECT_CODE(ws_source_open(&options.known, &source, status), WS_UNIMPLEMENTED,
              "does not know: use a newer");

  Newer<ws_tensor> tensor = {{}, 0x1234};
  tensor.known.struct_size = sizeof(tensor);
  EXPECT_OK(ws_source_tensor(source_, 0, &tensor.known, status));
  EXPECT_EQ(tensor.known.bytes, 160);
  EXPECT_EQ(tensor.known.struct_size, sizeof(tensor));
  EXPECT_EQ(tensor.unknown, 0x1234u);  // not written

  // Arrays of them too, each after the other by its own size.
  std::vector<Newer<ws_binding>> bindings;
  for (const ws_binding& binding : trainer_.Lend(As::kVersioned)) {
    bindings.push_back({binding, 0});
    bindings.back().known.struct_size = sizeof(bindings.back());
  }
  EXPECT_OK(ws_source_bind(source_, 1, &bindings[0].known, bindings.size(), status));
  EXPECT_OK(ws_source_release(source_, status));
  EXPECT_EQ(trainer_.Returned(), 1);

  const auto again = trainer_.Lend(As::kVersioned);
  for (size_t i = 0; i < again.size(); ++i) bindings[i].known.dlpack = again[i].dlpack;
  bindings[9].unknown = 5;
  EXPECT_CODE(ws_source_bind(source_, 1, &bindings[0].known, bindings.size(), status),
              WS_UNIMPLEMENTED, "does not know");
  EXPECT_EQ(trainer_.Returned(), 2);
}

struct Owner {
  int released = 0;
  static void Release(void* owner) { ++static_cast<Owner*>(owner)->released; }
};

ws_memory Memory(std::vector<float>& values, const int64_t* shape, Owner& owner) {
  auto memory = Sized<ws_memory>();
  memory.data = values.data();
  memory.dtype = "float32";
  memory.rank = 2;
  memory.shape = shape;
  memory.release = Owner::Release;
  memory.context = &owner;
  return memory;
}

TEST(CApiLendTest, LendsMemoryUntilTheConsumerIsDone) {
  std::vector<float> values(6);
  const int64_t shape[] = {2, 3}, strides[] = {1, 2};
  Owner owner;
  ws_memory memory = Memory(values, shape, owner);
  memory.strides = strides;
  ::DLManagedTensorVersioned* opaque = nullptr;
  for (const int32_t read_only : {0, 1}) {
    memory.read_only = read_only;
    ASSERT_OK(ws_lend(&memory, &opaque, status));
    auto* const lent = reinterpret_cast<Versioned*>(opaque);
    EXPECT_EQ(lent->version.major, 1u);
    EXPECT_EQ(lent->flags, read_only == 1 ? refit::dlpack::kReadOnly : 0);
    EXPECT_EQ(lent->dl_tensor.data, values.data());
    EXPECT_EQ(lent->dl_tensor.strides[1], 2);
    EXPECT_EQ(owner.released, read_only);
    lent->deleter(lent);
    EXPECT_EQ(owner.released, read_only + 1);
  }
  memory.read_only = 0;
  memory.strides = nullptr;
  ::DLManagedTensor* unversioned = nullptr;
  ASSERT_OK(ws_lend_unversioned(&memory, &unversioned, status));
  auto* const lent = reinterpret_cast<Unversioned*>(unversioned);
  EXPECT_EQ(lent->dl_tensor.strides[0], 3);
  lent->deleter(lent);
  EXPECT_EQ(owner.released, 3);
}

TEST(CApiLendTest, MemoryThatCannotBeLentIsReleasedOnce) {
  std::vector<float> values(6);
  const int64_t shape[] = {2, 3};
  const auto refused = [&](int32_t code, const std::string& text,
                           const std::function<void(ws_memory&)>& change) {
    for (const bool versioned : {true, false}) {
      Owner owner;
      ws_memory memory = Memory(values, shape, owner);
      change(memory);
      ::DLManagedTensorVersioned* with = nullptr;
      ::DLManagedTensor* without = nullptr;
      EXPECT_CODE(versioned ? ws_lend(&memory, &with, status)
                            : ws_lend_unversioned(&memory, &without, status),
                  code, text);
      EXPECT_EQ(owner.released, 1) << text;
    }
  };
  refused(WS_INVALID_ARGUMENT, "data is a null pointer", [](auto& m) { m.data = nullptr; });
  refused(WS_INVALID_ARGUMENT, "dtype", [](auto& m) { m.dtype = "complex"; });
  refused(WS_UNIMPLEMENTED, "C64", [](auto& m) { m.dtype = "complex64"; });
  refused(WS_INVALID_ARGUMENT, "the rank is 9", [](auto& m) { m.rank = 9; });
  refused(WS_INVALID_ARGUMENT, "aligned", [](auto& m) { m.data = static_cast<char*>(m.data) + 2; });
  Owner owner;
  ws_memory memory = Memory(values, shape, owner);
  EXPECT_CODE(ws_lend(&memory, nullptr, status), WS_INVALID_ARGUMENT, "null pointer");
  EXPECT_EQ(owner.released, 1);
  memory.read_only = 1;
  ::DLManagedTensor* without = nullptr;
  EXPECT_CODE(ws_lend_unversioned(&memory, &without, status), WS_INVALID_ARGUMENT,
              "needs a DLPack tensor with a version");
  EXPECT_EQ(owner.released, 2);
  memory.struct_size = 8;  // nobody knows what is in it
  EXPECT_CODE(ws_lend_unversioned(&memory, &without, status), WS_INVALID_ARGUMENT, "struct_size");
  EXPECT_EQ(owner.released, 2);
}

}  // namespace
}  // namespace weight_sync
