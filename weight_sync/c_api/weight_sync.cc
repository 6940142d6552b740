// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/c_api/weight_sync.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "base/digest.h"
#include "base/local_endpoint.h"
#include "base/status_macros.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/maps/weight_map.h"
#include "refit/packing/packer.h"
#include "refit/read_guard.h"
#include "refit/refit_info.h"
#include "refit/refit_info_json.h"
#include "refit/sharding/communicator.h"
#include "refit/sharding/communicators/process_communicator.h"
#include "refit/tensor/dlpack_abi.h"
#include "refit/tensor/dlpack_export.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"
#include "refit/tensor_digest.h"
#include "weight_sync/c_api/arrays.h"
#include "weight_sync/c_api/boundary.h"
#include "weight_sync/c_api/loans.h"
#include "weight_sync/c_api/sized_struct.h"
#include "weight_sync/c_api/source.h"

using weight_sync::base::Deadline;
using weight_sync::base::Digest128;
using weight_sync::c_api::Answer;
using weight_sync::c_api::CheckGiven;
using weight_sync::c_api::CompiledProgram;
using weight_sync::c_api::GivenBackBy;
using weight_sync::c_api::ReadSized;
using weight_sync::c_api::ReadSpec;
using weight_sync::c_api::Refit;
using weight_sync::c_api::Source;
using weight_sync::c_api::ViewMemory;
using weight_sync::c_api::WriteSized;
using weight_sync::refit::ByteSize;
using weight_sync::refit::DType;
using weight_sync::refit::Shape;
using weight_sync::refit::StepGate;

// The handles. Each keeps what it needs, so that they may be closed in any order.
struct ws_communicator {
  std::shared_ptr<weight_sync::refit::Communicator> communicator;
};
struct ws_source {
  std::shared_ptr<Source> source;
};
struct ws_program {
  std::shared_ptr<CompiledProgram> program;
};
struct ws_refit {
  std::unique_ptr<Refit> refit;
};
struct ws_step {
  std::shared_ptr<Source> source;
  StepGate::Step step;
};

namespace {

static_assert(WS_MAX_RANK == Shape::kMaxRank);

// A number of seconds from now.
absl::StatusOr<Deadline> DeadlineAfter(double seconds) {
  if (std::isnan(seconds) || seconds < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a timeout of ", seconds, " seconds"));
  }
  return Deadline::After(absl::Seconds(seconds));
}

absl::StatusOr<std::unique_ptr<weight_sync::refit::Communicator>> Connect(
    const ws_communicator_options& options, const Deadline& deadline) {
  const weight_sync::base::CancelScope scope(deadline);
  const weight_sync::refit::JobRank me = {options.job, options.rank, options.size};
  if (options.host == nullptr) {
    return ConnectOnHost(me,
                         options.endpoint != nullptr
                             ? options.endpoint
                             : weight_sync::base::DefaultEndpointPath(me.job, "trainer"),
                         scope);
  }
  if (options.endpoint != nullptr) {
    return absl::InvalidArgumentError("a communicator has an endpoint or a host, not both");
  }
  if (me.rank != 0) return ConnectOverTcp(me, options.host, options.port, scope);
  WS_ASSIGN_OR_RETURN(auto host, weight_sync::refit::TcpHost::Listen(options.host, options.port));
  return std::move(host).Connect(me, scope);
}

absl::Status CheckIndex(absl::string_view what, int32_t index, int32_t count) {
  if (index >= 0 && index < count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no ", what, " ", index, " of ", count));
}

void Describe(const std::string& name, std::optional<DType> dtype, const Shape& shape,
              ws_tensor* out) {
  *out = {};
  out->name = name.c_str();
  out->rank = shape.rank();
  std::copy(shape.dims().begin(), shape.dims().end(), out->shape);
  if (!dtype.has_value()) return;
  out->dtype = SafetensorsName(*dtype).data();  // of a literal
  out->bytes = ByteSize(*dtype, shape).value_or(0);
}

void WriteDigest(const Digest128& digest, char out[WS_DIGEST_TEXT]) {
  const std::string hex = digest.Hex();
  std::memcpy(out, hex.c_str(), WS_DIGEST_TEXT);
}

int32_t BeginStep(ws_source* source, std::optional<double> timeout_seconds, ws_step** step,
                  ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("source", source));
    WS_RETURN_IF_ERROR(CheckGiven("place for the step", step));
    StepGate& gate = source->source->gate();
    if (!timeout_seconds.has_value()) {
      *step = new ws_step{source->source, StepGate::Step(gate)};
      return absl::OkStatus();
    }
    WS_ASSIGN_OR_RETURN(const Deadline deadline, DeadlineAfter(*timeout_seconds));
    WS_ASSIGN_OR_RETURN(StepGate::Step opened, StepGate::Step::AfterSyncs(gate, deadline));
    *step = new ws_step{source->source, std::move(opened)};
    return absl::OkStatus();
  });
}

// Lends memory by `lend`, which takes a view, whether it may only be read, and the owner.
template <typename Theirs, typename Lend>
int32_t LendMemory(const ws_memory* given, Theirs** tensor, ws_status* status, Lend lend) {
  return Answer(status, [&]() -> absl::Status {
    ws_memory memory;
    absl::Status read = ReadSized("memory", given, &memory);
    if (absl::IsInvalidArgument(read)) return read;  // nobody knows what is there
    // Given back when this returns, unless the consumer has it then.
    const std::shared_ptr<const void> owner = GivenBackBy(memory.release, memory.context);
    WS_RETURN_IF_ERROR(read);
    WS_RETURN_IF_ERROR(CheckGiven("place for the tensor", tensor));
    WS_ASSIGN_OR_RETURN(const auto spec,
                        ReadSpec(memory.dtype, memory.rank, memory.shape, memory.strides));
    WS_ASSIGN_OR_RETURN(const auto view, ViewMemory(memory.data, /*byte_offset=*/0, spec));
    WS_ASSIGN_OR_RETURN(auto* const lent, lend(view, memory.read_only != 0, owner));
    *tensor = reinterpret_cast<Theirs*>(lent);
    return absl::OkStatus();
  });
}

}  // namespace

uint32_t ws_abi_version(void) { return (uint32_t{WS_ABI_MAJOR} << 16) | WS_ABI_MINOR; }

int32_t ws_communicator_connect(const ws_communicator_options* options, double timeout_seconds,
                                ws_communicator** communicator, ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("place for the communicator", communicator));
    ws_communicator_options read;
    WS_RETURN_IF_ERROR(ReadSized("communicator options", options, &read));
    WS_RETURN_IF_ERROR(CheckGiven("job", read.job));
    WS_ASSIGN_OR_RETURN(const Deadline deadline, DeadlineAfter(timeout_seconds));
    WS_ASSIGN_OR_RETURN(auto connected, Connect(read, deadline));
    *communicator = new ws_communicator{std::move(connected)};
    return absl::OkStatus();
  });
}

void ws_communicator_close(ws_communicator* communicator) { delete communicator; }

int32_t ws_source_open(const ws_source_options* options, ws_source** source, ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("place for the source", source));
    ws_source_options read;
    WS_RETURN_IF_ERROR(ReadSized("source options", options, &read));
    std::shared_ptr<weight_sync::refit::Communicator> communicator;
    if (read.communicator != nullptr) communicator = read.communicator->communicator;
    WS_ASSIGN_OR_RETURN(std::shared_ptr<Source> opened,
                        Source::Open(read, std::move(communicator)));
    *source = new ws_source{std::move(opened)};
    return absl::OkStatus();
  });
}

void ws_source_close(ws_source* source) {
  if (source == nullptr) return;
  source->source->Close();
  delete source;
}

int32_t ws_source_tensor_count(const ws_source* source) {
  return source == nullptr ? 0 : source->source->map().hf().size();
}

int32_t ws_source_tensor(const ws_source* source, int32_t index, ws_tensor* tensor,
                         ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("source", source));
    WS_RETURN_IF_ERROR(CheckIndex("tensor", index, ws_source_tensor_count(source)));
    const auto& spec = source->source->map().hf()[index];
    ws_tensor found;
    Describe(spec.name, spec.dtype, spec.shape, &found);
    return WriteSized("tensor", found, tensor);
  });
}

int32_t ws_source_array_count(const ws_source* source) {
  return source == nullptr ? 0 : static_cast<int32_t>(source->source->map().trainer().size());
}

int32_t ws_source_array(const ws_source* source, int32_t index, ws_tensor* array,
                        ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("source", source));
    WS_RETURN_IF_ERROR(CheckIndex("array", index, ws_source_array_count(source)));
    const auto& wanted = source->source->map().trainer()[static_cast<size_t>(index)];
    ws_tensor found;
    Describe(wanted.name, source->source->DeclaredDType(index), wanted.shape, &found);
    for (int d = 0; d < wanted.shape.rank(); ++d) {
      if (wanted.padded[static_cast<size_t>(d)]) found.padded |= 1 << d;
    }
    return WriteSized("array", found, array);
  });
}

int32_t ws_source_info_json(const ws_source* source, char* text, size_t capacity, size_t* length,
                            ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("source", source));
    WS_RETURN_IF_ERROR(CheckGiven("place for the length", length));
    if (capacity > 0) WS_RETURN_IF_ERROR(CheckGiven("text", text));
    WS_ASSIGN_OR_RETURN(const std::string json,
                        weight_sync::refit::RefitInfoToJson(source->source->map().hf()));
    *length = json.size();
    if (capacity == 0) return absl::OkStatus();
    const size_t written = std::min(json.size(), capacity - 1);
    std::memcpy(text, json.data(), written);
    text[written] = '\0';
    return absl::OkStatus();
  });
}

int32_t ws_source_declare(ws_source* source, const ws_array* arrays, size_t count,
                          ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("source", source));
    return source->source->Declare(arrays, count);
  });
}

int32_t ws_source_bind(ws_source* source, int64_t version, const ws_binding* bindings, size_t count,
                       ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    if (source != nullptr) return source->source->Bind(version, bindings, count);
    WS_RETURN_IF_ERROR(weight_sync::c_api::Loans::Take(bindings, count).status());
    return CheckGiven("source", source);
  });
}

int32_t ws_source_release(ws_source* source, ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("source", source));
    return source->source->Release();
  });
}

int32_t ws_source_compile(ws_source* source, const ws_geometry* geometry, ws_program** program,
                          ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("source", source));
    WS_RETURN_IF_ERROR(CheckGiven("place for the program", program));
    std::optional<weight_sync::refit::Geometry> wanted;
    if (geometry != nullptr) {
      ws_geometry read;
      WS_RETURN_IF_ERROR(ReadSized("geometry", geometry, &read));
      wanted.emplace();
      wanted->bucket_bytes = read.bucket_bytes;
      if (read.alignment != 0) wanted->alignment = read.alignment;
    }
    WS_ASSIGN_OR_RETURN(auto compiled, CompiledProgram::Compile(source->source, wanted));
    *program = new ws_program{std::move(compiled)};
    return absl::OkStatus();
  });
}

void ws_program_close(ws_program* program) { delete program; }

int32_t ws_program_bucket_count(const ws_program* program) {
  return program == nullptr ? 0 : static_cast<int32_t>(program->program->buckets().size());
}

int32_t ws_program_bucket(const ws_program* program, int32_t index, ws_bucket* bucket,
                          ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("program", program));
    WS_ASSIGN_OR_RETURN(const auto* const wanted, program->program->BucketAt(index));
    ws_bucket found = {};
    found.bytes = wanted->bytes;
    found.pieces = static_cast<int32_t>(wanted->pieces.size());
    return WriteSized("bucket", found, bucket);
  });
}

int32_t ws_program_piece(const ws_program* program, int32_t bucket, int32_t index, ws_piece* piece,
                         ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("program", program));
    WS_ASSIGN_OR_RETURN(const ws_piece found, program->program->PieceAt(bucket, index));
    return WriteSized("piece", found, piece);
  });
}

int32_t ws_refit_begin(ws_program* program, int64_t version, double timeout_seconds,
                       ws_refit** refit, ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("program", program));
    WS_RETURN_IF_ERROR(CheckGiven("place for the refit", refit));
    WS_ASSIGN_OR_RETURN(const Deadline deadline, DeadlineAfter(timeout_seconds));
    WS_ASSIGN_OR_RETURN(auto begun, Refit::Begin(program->program, version, deadline));
    *refit = new ws_refit{std::move(begun)};
    return absl::OkStatus();
  });
}

int32_t ws_refit_fill(ws_refit* refit, int32_t bucket, void* memory, int64_t bytes,
                      ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("refit", refit));
    return refit->refit->Fill(bucket, memory, bytes);
  });
}

int32_t ws_refit_unchanged(ws_refit* refit, ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("refit", refit));
    return refit->refit->Unchanged();
  });
}

void ws_refit_end(ws_refit* refit) { delete refit; }

int32_t ws_refit_contribute(ws_program* program, int64_t version, double timeout_seconds,
                            ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("program", program));
    WS_ASSIGN_OR_RETURN(const Deadline deadline, DeadlineAfter(timeout_seconds));
    return program->program->Contribute(version, deadline);
  });
}

int32_t ws_step_begin(ws_source* source, ws_step** step, ws_status* status) {
  return BeginStep(source, std::nullopt, step, status);
}

int32_t ws_step_begin_after_refits(ws_source* source, double timeout_seconds, ws_step** step,
                                   ws_status* status) {
  return BeginStep(source, timeout_seconds, step, status);
}

void ws_step_end(ws_step* step) { delete step; }

int32_t ws_source_digest(const ws_source* source, int32_t tensor, char digest[WS_DIGEST_TEXT],
                         ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("source", source));
    WS_RETURN_IF_ERROR(CheckGiven("place for the digest", digest));
    WS_ASSIGN_OR_RETURN(const Digest128 found, source->source->Digest(tensor));
    WriteDigest(found, digest);
    return absl::OkStatus();
  });
}

int32_t ws_tensor_digest(const ws_tensor* tensor, const void* data, char digest[WS_DIGEST_TEXT],
                         ws_status* status) {
  return Answer(status, [&]() -> absl::Status {
    WS_RETURN_IF_ERROR(CheckGiven("place for the digest", digest));
    ws_tensor read;
    WS_RETURN_IF_ERROR(ReadSized("tensor", tensor, &read));
    WS_RETURN_IF_ERROR(CheckGiven("tensor's name", read.name));
    WS_ASSIGN_OR_RETURN(const auto spec,
                        ReadSpec(read.dtype, read.rank, read.shape, /*strides=*/nullptr));
    // It is only read.
    WS_ASSIGN_OR_RETURN(const auto view,
                        ViewMemory(const_cast<void*>(data), /*byte_offset=*/0, spec));
    WriteDigest(weight_sync::refit::TensorDigest(read.name, view), digest);
    return absl::OkStatus();
  });
}

int32_t ws_lend(const ws_memory* memory, struct DLManagedTensorVersioned** tensor,
                ws_status* status) {
  return LendMemory(memory, tensor, status, [](const auto& view, bool read_only, auto owner) {
    return read_only ? weight_sync::refit::ExportReadOnlyDlpack(view, std::move(owner))
                     : weight_sync::refit::ExportDlpack(view, std::move(owner));
  });
}

int32_t ws_lend_unversioned(const ws_memory* memory, struct DLManagedTensor** tensor,
                            ws_status* status) {
  using Lent = absl::StatusOr<weight_sync::refit::dlpack::DLManagedTensor*>;
  return LendMemory(memory, tensor, status,
                    [](const auto& view, bool read_only, auto owner) -> Lent {
                      if (read_only) {
                        return absl::InvalidArgumentError(
                            "memory that may not be written needs a DLPack tensor with a version");
                      }
                      return weight_sync::refit::ExportUnversionedDlpack(view, std::move(owner));
                    });
}
