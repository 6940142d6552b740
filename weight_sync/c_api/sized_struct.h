// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Structs of the C ABI, which begin with their caller's sizeof. A caller that was built with an
// older header has smaller ones, whose missing fields are zero; one with a newer header larger
// ones, which are fine while what this library does not know is zero.
//
//   ws_geometry geometry;
//   WS_RETURN_IF_ERROR(ReadSized("geometry", given, &geometry));
//   WS_RETURN_IF_ERROR(WriteSized("bucket", filled, out));
//
// Pure functions.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_C_API_SIZED_STRUCT_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_C_API_SIZED_STRUCT_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "weight_sync/c_api/weight_sync.h"

namespace weight_sync::c_api {

// sizeof of each struct in version 1.0: no caller has a smaller one. They never change.
template <typename Struct>
inline constexpr size_t kFirstSize = 0;
template <>
inline constexpr size_t kFirstSize<ws_status> = 40;
template <>
inline constexpr size_t kFirstSize<ws_communicator_options> = 48;
template <>
inline constexpr size_t kFirstSize<ws_source_options> = 96;
template <>
inline constexpr size_t kFirstSize<ws_tensor> = 104;
template <>
inline constexpr size_t kFirstSize<ws_mesh> = 40;
template <>
inline constexpr size_t kFirstSize<ws_sharding> = 32;
template <>
inline constexpr size_t kFirstSize<ws_array> = 56;
template <>
inline constexpr size_t kFirstSize<ws_binding> = 104;
template <>
inline constexpr size_t kFirstSize<ws_geometry> = 24;
template <>
inline constexpr size_t kFirstSize<ws_bucket> = 24;
template <>
inline constexpr size_t kFirstSize<ws_piece> = 40;
template <>
inline constexpr size_t kFirstSize<ws_memory> = 64;

// Of a struct that may be larger than this library's.
template <typename Struct>
absl::Status CheckSize(absl::string_view what, const Struct* given) {
  static_assert(std::is_standard_layout_v<Struct> && std::is_trivially_copyable_v<Struct>);
  static_assert(kFirstSize<Struct> > 0 && kFirstSize<Struct> <= sizeof(Struct));
  if (given == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the ", what, " is a null pointer"));
  }
  if (given->struct_size < kFirstSize<Struct>) {
    return absl::InvalidArgumentError(absl::StrCat("the ", what, "'s struct_size is ",
                                                   given->struct_size, "; set it to its sizeof, ",
                                                   sizeof(Struct)));
  }
  return absl::OkStatus();
}

template <typename Struct>
absl::Status ReadSized(absl::string_view what, const Struct* given, Struct* read) {
  WS_RETURN_IF_ERROR(CheckSize(what, given));
  *read = {};
  std::memcpy(read, given, std::min(given->struct_size, sizeof(Struct)));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(Struct); i < given->struct_size; ++i) {
    if (bytes[i] == 0) continue;
    return absl::UnimplementedError(
        absl::StrCat("the ", what, " sets a field behind byte ", sizeof(Struct),
                     ", which this library does not know: use a newer libweight_sync.so"));
  }
  return absl::OkStatus();
}

// All but the struct_size of `out`.
template <typename Struct>
absl::Status WriteSized(absl::string_view what, Struct value, Struct* out) {
  WS_RETURN_IF_ERROR(CheckSize(what, out));
  value.struct_size = out->struct_size;
  std::memcpy(out, &value, std::min(out->struct_size, sizeof(Struct)));
  return absl::OkStatus();
}

// The index-th of structs that follow one another, each as large as the first says.
template <typename Struct>
const Struct* At(const Struct* first, size_t index) {
  return reinterpret_cast<const Struct*>(reinterpret_cast<const std::byte*>(first) +
                                         index * first->struct_size);
}

}  // namespace weight_sync::c_api

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_C_API_SIZED_STRUCT_H_
