// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor/dlpack_export.h"

#include <array>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/tensor/dlpack_dtype.h"
#include "refit/tensor/dlpack_tensor.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Memory = std::array<std::byte, 256>;

MutableTensorView Matrix(Memory& memory, DType dtype) {
  return MutableTensorView::Contiguous(memory.data(), dtype, {2, 4});
}

TEST(DlpackExportTest, EveryDTypeComesBackAsTheSameView) {
  for (const DType dtype : kAllDTypes) {
    if (dtype == DType::kC64) continue;
    SCOPED_TRACE(SafetensorsName(dtype));
    const auto memory = std::make_shared<Memory>();
    const MutableTensorView view = Matrix(*memory, dtype);
    const auto versioned = ExportDlpack(view, memory);
    const auto read_only = ExportReadOnlyDlpack(view, memory);
    const auto unversioned = ExportUnversionedDlpack(view, memory);
    ASSERT_THAT(versioned, IsOk());
    ASSERT_THAT(read_only, IsOk());
    ASSERT_THAT(unversioned, IsOk());
    const DlpackTensor tensors[] = {DlpackTensor::Import("a", *versioned).value(),
                                    DlpackTensor::Import("b", *read_only).value(),
                                    DlpackTensor::Import("c", *unversioned).value()};
    for (const DlpackTensor& tensor : tensors) {
      EXPECT_EQ(tensor.view().data(), memory->data());
      EXPECT_EQ(tensor.view().dtype(), dtype);
      EXPECT_EQ(tensor.view().shape(), (Shape{2, 4}));
      EXPECT_THAT(tensor.view().strides(), ElementsAre(4, 1));
    }
    EXPECT_FALSE(tensors[0].read_only());
    EXPECT_TRUE(tensors[1].read_only());
    EXPECT_EQ(memory.use_count(), 4);
  }
}

TEST(DlpackExportTest, FillsInEveryField) {
  const auto memory = std::make_shared<Memory>();
  const auto transposed = Matrix(*memory, DType::kBF16).Transposed(0, 1);
  ASSERT_THAT(transposed, IsOk());
  dlpack::DLManagedTensorVersioned* const lent = *ExportDlpack(*transposed, memory);
  EXPECT_EQ(lent->version.major, 1u);
  EXPECT_EQ(lent->version.minor, 3u);
  EXPECT_EQ(lent->flags, 0u);
  const dlpack::DLTensor& tensor = lent->dl_tensor;
  EXPECT_EQ(tensor.data, memory->data());
  EXPECT_EQ(tensor.device.device_type, dlpack::DLDeviceType::kCpu);
  EXPECT_EQ(tensor.device.device_id, 0);
  EXPECT_EQ(tensor.dtype.code, dlpack::DLDataTypeCode::kBfloat);
  EXPECT_EQ(tensor.dtype.bits, 16);
  EXPECT_EQ(tensor.dtype.lanes, 1);
  EXPECT_EQ(tensor.byte_offset, 0u);
  ASSERT_EQ(tensor.ndim, 2);
  EXPECT_EQ(tensor.shape[0], 4);
  EXPECT_EQ(tensor.shape[1], 2);
  EXPECT_EQ(tensor.strides[0], 1);
  EXPECT_EQ(tensor.strides[1], 4);
  lent->deleter(lent);
}

TEST(DlpackExportTest, TheOwnerLivesUntilTheDeleterIsCalledOnWhateverThread) {
  auto memory = std::make_shared<Memory>();
  const std::weak_ptr<Memory> watched = memory;
  const MutableTensorView view = Matrix(*memory, DType::kF32);
  dlpack::DLManagedTensorVersioned* const versioned = *ExportDlpack(view, memory);
  dlpack::DLManagedTensor* const unversioned = *ExportUnversionedDlpack(view, std::move(memory));
  versioned->deleter(versioned);
  EXPECT_FALSE(watched.expired());
  std::thread([unversioned] { unversioned->deleter(unversioned); }).join();
  EXPECT_TRUE(watched.expired());
}

TEST(DlpackExportTest, AScalarAndATensorWithoutElements) {
  const auto memory = std::make_shared<Memory>();
  for (const Shape& shape : {Shape{}, Shape{0, 5}}) {
    const auto lent =
        ExportDlpack(MutableTensorView::Contiguous(memory->data(), DType::kI64, shape), memory);
    ASSERT_THAT(lent, IsOk());
    const auto tensor = DlpackTensor::Import("t", *lent);
    ASSERT_THAT(tensor, IsOk());
    EXPECT_EQ(tensor->view().shape(), shape);
  }
}

TEST(DlpackExportTest, ComplexElementsAreRefusedAndNothingIsKept) {
  const auto memory = std::make_shared<Memory>();
  const auto view = MutableTensorView::Contiguous(memory->data(), DType::kC64, {2});
  EXPECT_THAT(ExportDlpack(view, memory),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("C64")));
  EXPECT_THAT(ExportReadOnlyDlpack(view, memory), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(ExportUnversionedDlpack(view, memory), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_EQ(memory.use_count(), 1);
}

}  // namespace
}  // namespace weight_sync::refit
