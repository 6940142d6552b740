// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/malformed_files.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace weight_sync::refit {
namespace {

std::string Tensor(absl::string_view name, absl::string_view fields) {
  return absl::StrCat("{\"", name, "\":{", fields, "}}");
}

}  // namespace

std::vector<MalformedFile> MalformedSafetensors() {
  const std::string dtype = R"("dtype":"F32")";
  const std::string shape = R"("shape":[1])";
  const std::string offsets = R"("data_offsets":[0,4])";
  const std::string data = "1234";
  const auto tensor = [](absl::string_view a, absl::string_view b, absl::string_view c) {
    return Tensor("x.w", absl::StrCat(a, ",", b, ",", c));
  };
  const auto two = [](absl::string_view first, absl::string_view second) {
    return absl::StrCat(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)", first,
                        R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)", second, "}}");
  };
  const auto metadata = [](absl::string_view value) {
    return absl::StrCat("{\"__metadata__\":", value, "}");
  };
  const std::string counts_error = "is not made of whole numbers from 0 to 2^63 - 1";
  return {
      {"", "", "header: [json.exception.parse_error"},
      {"{", "", "header: [json.exception.parse_error"},
      {"{}x", "", "header: [json.exception.parse_error"},
      {"[]", "", "header: not a JSON object"},
      {"17", "", "header: not a JSON object"},
      {"{\"\xff\":1}", "", "header: not UTF-8"},
      {"\xef\xbb\xbf{}", "", "header: begins with a byte order mark"},
      {std::string("{}\0\0", 4), "", "header: holds a NUL byte"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
       R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
       "", "header: key 'a' appears twice", /*refused_by_the_library=*/false},
      {R"({"a":["U8",[1],[0,1]]})", "1", "tensor 'a': its entry is not an object",
       /*refused_by_the_library=*/false},
      {tensor(dtype, shape, absl::StrCat(offsets, ",", dtype)), data, "key 'dtype' appears twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", "", "key '__metadata__' appears twice"},
      {metadata("[]"), "", "__metadata__ is not an object"},
      {metadata("\"a\""), "", "__metadata__ is not an object"},
      {metadata(R"({"k":1})"), "", "__metadata__ entry 'k' is not a string"},
      {metadata(R"({"k":null})"), "", "__metadata__ entry 'k' is not a string"},
      {R"({"x.w":[]})", "", "tensor 'x.w': its entry is not an object"},
      {R"({"x.w":null})", "", "tensor 'x.w': its entry is not an object"},
      {Tensor("x.w", absl::StrCat(shape, ",", offsets)), data, "'x.w': its entry has no dtype"},
      {Tensor("x.w", absl::StrCat(dtype, ",", offsets)), data, "'x.w': its entry has no shape"},
      {Tensor("x.w", absl::StrCat(dtype, ",", shape)), data,
       "'x.w': its entry has no data_offsets"},
      {tensor(R"("dtype":32)", shape, offsets), data, "'x.w': dtype is not a string"},
      {tensor(R"("dtype":"F33")", shape, offsets), data, "'x.w': unknown dtype 'F33'; known: BOOL"},
      {tensor(R"("dtype":"float32")", shape, offsets), data, "unknown dtype 'float32'"},
      {tensor(R"("dtype":"f32")", shape, offsets), data, "unknown dtype 'f32'"},
      {tensor(dtype, R"("shape":1)", offsets), data, "'x.w': shape is not an array"},
      {tensor(dtype, R"("shape":null)", offsets), data, "'x.w': shape is not an array"},
      {tensor(dtype, R"("shape":[-1])", offsets), data, "'x.w': shape [-1] " + counts_error},
      {tensor(dtype, R"("shape":[-0])", offsets), data, "'x.w': shape [0] " + counts_error},
      {tensor(dtype, R"("shape":[1.0])", offsets), data, "'x.w': shape [1.0] " + counts_error},
      {tensor(dtype, R"("shape":["1"])", offsets), data, counts_error},
      {tensor(dtype, R"("shape":[9223372036854775808])", offsets), data, counts_error},
      {tensor(dtype, R"("shape":[18446744073709551616])", offsets), data, counts_error},
      {tensor(dtype, R"("shape":[4294967296,4294967296])", offsets), data,
       "'x.w': shape [4294967296, 4294967296] has more elements than 64 bits can count"},
      {tensor(dtype, R"("shape":[4611686018427387904])", offsets), data, "has too many bytes"},
      {tensor(dtype, R"("shape":[1,1,1,1,1,1,1,1,1])", offsets), data,
       "'x.w': shape [1, 1, 1, 1, 1, 1, 1, 1, 1] has 9 dimensions; at most 8",
       /*refused_by_the_library=*/false},
      {tensor(R"("dtype":"F4")", R"("shape":[3])", R"("data_offsets":[0,2])"), "12",
       "'x.w': a tensor of dtype F4 (4 bits an element) and shape [3] does not fill whole bytes"},
      {tensor(dtype, shape, R"("data_offsets":4)"), data, "'x.w': data_offsets is not an array"},
      {tensor(dtype, shape, R"("data_offsets":[0])"), data, "'x.w': data_offsets has 1 numbers"},
      {tensor(dtype, shape, R"("data_offsets":[0,4,4])"), data, "data_offsets has 3 numbers"},
      {tensor(dtype, shape, R"("data_offsets":[-4,0])"), data, "data_offsets [-4,0] "},
      {tensor(dtype, shape, R"("data_offsets":[4,0])"), data,
       "'x.w': data_offsets begin at 4, after their end 0"},
      {tensor(dtype, shape, R"("data_offsets":[0,3])"), "123",
       "'x.w': data_offsets hold 3 bytes, but dtype F32 and shape [1] need 4"},
      {tensor(dtype, R"("shape":[0])", offsets), data, "hold 4 bytes, but dtype F32 and shape [0]"},
      {tensor(dtype, shape, offsets), "123",
       "'x.w': data_offsets end at 4, past the 3 bytes of data in the file"},
      {tensor(dtype, shape, offsets), "12345", "has 1 trailing bytes after the last tensor"},
      {"{}", "1", "has 1 trailing bytes after the last tensor"},
      {tensor(dtype, shape, R"("data_offsets":[1,5])"), "12345",
       "'x.w': begins at byte 1 and leaves a hole after byte 0"},
      {two("[0,2]", "[3,5]"), "12345", "'b': begins at byte 3 and leaves a hole after byte 2"},
      {two("[0,2]", "[1,3]"), "123",
       "'b': begins at byte 1 and overlaps tensor 'a', which ends at 2"},
      {two("[0,2]", "[0,2]"), "12", "'b': begins at byte 0 and overlaps tensor 'a'"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
       "1234", "'b': begins at byte 2 and overlaps tensor 'a', which ends at 4"},
  };
}

}  // namespace weight_sync::refit
