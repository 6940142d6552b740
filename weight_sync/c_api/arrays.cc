// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/c_api/arrays.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "refit/sharding/mesh.h"
#include "refit/sharding/placement.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "weight_sync/c_api/boundary.h"
#include "weight_sync/c_api/sized_struct.h"

namespace weight_sync::c_api {
namespace {

using refit::Mesh;
using refit::Placement;
using refit::Shape;
using refit::Sharding;

absl::StatusOr<Mesh> ReadMesh(const ws_mesh* given) {
  ws_mesh mesh;
  WS_RETURN_IF_ERROR(ReadSized("mesh", given, &mesh));
  WS_RETURN_IF_ERROR(CheckGiven("names of the mesh", mesh.names));
  WS_RETURN_IF_ERROR(CheckGiven("sizes of the mesh", mesh.sizes));
  std::vector<Mesh::Dim> dims;
  size_t places = 1;
  for (int32_t d = 0; d < mesh.rank; ++d) {
    WS_RETURN_IF_ERROR(CheckGiven("name of a mesh dimension", mesh.names[d]));
    dims.push_back({mesh.names[d], mesh.sizes[d]});
    if (mesh.sizes[d] < 1) break;  // Mesh::Create says so
    if (__builtin_mul_overflow(places, static_cast<size_t>(mesh.sizes[d]), &places)) {
      return absl::InvalidArgumentError("the mesh has too many places");
    }
  }
  std::vector<int> ranks;
  if (mesh.ranks != nullptr) ranks.assign(mesh.ranks, mesh.ranks + places);
  return Mesh::Create(std::move(dims), std::move(ranks));
}

}  // namespace

absl::StatusOr<refit::ArraySpec> ReadSpec(const char* dtype, int32_t rank, const int64_t* shape,
                                          const int64_t* strides) {
  WS_RETURN_IF_ERROR(CheckGiven("dtype", dtype));
  refit::ArraySpec spec;
  WS_ASSIGN_OR_RETURN(spec.dtype, refit::ParseDType(dtype));
  if (rank < 0 || rank > WS_MAX_RANK) {
    return absl::InvalidArgumentError(
        absl::StrCat("the rank is ", rank, "; 0 to ", WS_MAX_RANK, " are supported"));
  }
  if (rank > 0) WS_RETURN_IF_ERROR(CheckGiven("shape", shape));
  const size_t dims = static_cast<size_t>(rank);
  WS_ASSIGN_OR_RETURN(spec.shape, Shape::Create(absl::MakeConstSpan(shape, dims)));
  if (strides != nullptr) spec.strides.assign(strides, strides + dims);
  return spec;
}

absl::StatusOr<refit::MutableTensorView> ViewMemory(void* data, int64_t byte_offset,
                                                    const refit::ArraySpec& spec) {
  WS_RETURN_IF_ERROR(refit::ByteSize(spec.dtype, spec.shape).status());
  std::byte* first = static_cast<std::byte*>(data);
  if (spec.shape.num_elements() > 0) {
    WS_RETURN_IF_ERROR(CheckGiven("data", data));
    if (byte_offset < 0) {
      return absl::InvalidArgumentError(absl::StrCat("the byte offset is ", byte_offset));
    }
    first += byte_offset;
    const uintptr_t alignment = static_cast<uintptr_t>(refit::StorageElementBytes(spec.dtype));
    if (reinterpret_cast<uintptr_t>(first) % alignment != 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the data at %p is not aligned to its elements of %d bytes: copy it", first, alignment));
    }
  }
  if (spec.strides.empty()) {
    return refit::MutableTensorView::Contiguous(first, spec.dtype, spec.shape);
  }
  return refit::MutableTensorView::Strided(first, spec.dtype, spec.shape, spec.strides);
}

absl::StatusOr<Sharding> ReadSharding(const ws_sharding* given, const Shape& shape) {
  ws_sharding sharding;
  WS_RETURN_IF_ERROR(ReadSized("sharding", given, &sharding));
  if ((sharding.placements == nullptr) == (sharding.partition_spec == nullptr)) {
    return absl::InvalidArgumentError(
        "a sharding needs placements or a partition_spec, one of them");
  }
  WS_ASSIGN_OR_RETURN(Mesh mesh_read, ReadMesh(sharding.mesh));
  const auto mesh = std::make_shared<const Mesh>(std::move(mesh_read));

  if (sharding.placements != nullptr) {
    std::vector<Placement> placements;
    for (size_t d = 0; d < mesh->dims().size(); ++d) {
      WS_RETURN_IF_ERROR(CheckGiven("placement", sharding.placements[d]));
      WS_ASSIGN_OR_RETURN(const Placement placement, Placement::Parse(sharding.placements[d]));
      placements.push_back(placement);
    }
    return Sharding::FromPlacements(mesh, placements, shape);
  }
  std::vector<std::vector<std::string>> spec;
  for (int d = 0; d < shape.rank(); ++d) {
    const char* const names = sharding.partition_spec[d];
    spec.push_back(absl::StrSplit(names == nullptr ? "" : names, ',', absl::SkipEmpty()));
  }
  return Sharding::FromPartitionSpec(mesh, spec, shape);
}

}  // namespace weight_sync::c_api
