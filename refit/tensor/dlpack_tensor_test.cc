// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor/dlpack_tensor.h"

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/tensor/dlpack_dtype.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using Code = dlpack::DLDataTypeCode;
using Device = dlpack::DLDeviceType;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

static_assert(!std::is_copy_constructible_v<DlpackTensor>);
static_assert(std::is_nothrow_move_constructible_v<DlpackTensor>);

// A producer of one tensor, [2, 3] of float32 unless a test changes it, that counts how often it gets
// it back.
template <typename Managed>
class Producer {
 public:
  Producer() {
    managed_->dl_tensor = {memory_.data(), {Device::kCpu, 0}, 2, {Code::kFloat, 32, 1},
                           shape_.data(),  strides_.data(),   0};
    managed_->manager_ctx = &returned_;
    managed_->deleter = [](Managed* self) {
      ++*static_cast<int*>(self->manager_ctx);
      delete self;  // what is looked at after it is seen by the address sanitizer
    };
    if constexpr (kVersioned) managed_->version = {1, 0};
  }
  ~Producer() {
    if (returned_ == 0) delete managed_;
  }

  absl::StatusOr<DlpackTensor> Import() { return DlpackTensor::Import("layers.0.w", managed_); }

  static constexpr bool kVersioned = std::is_same_v<Managed, dlpack::DLManagedTensorVersioned>;

  Managed& managed() { return *managed_; }
  dlpack::DLTensor& tensor() { return managed_->dl_tensor; }
  void SetShape(std::vector<int64_t> shape, std::vector<int64_t> strides) {
    shape_ = std::move(shape);
    strides_ = std::move(strides);
    tensor().ndim = static_cast<int32_t>(shape_.size());
    tensor().shape = shape_.data();
    tensor().strides = strides_.empty() ? nullptr : strides_.data();
  }
  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(memory_.data()); }
  int returned() const { return returned_; }

 private:
  alignas(64) std::array<float, 64> memory_ = {};
  std::vector<int64_t> shape_ = {2, 3};
  std::vector<int64_t> strides_ = {3, 1};
  int returned_ = 0;
  Managed* managed_ = new Managed();
};

template <typename Managed>
class DlpackTensorTest : public ::testing::Test {
 protected:
  // The producer's tensor, changed, is refused with this, and given back once.
  void Refused(absl::StatusCode code, const std::string& text,
               const std::function<void(Producer<Managed>&)>& change) {
    Producer<Managed> producer;
    change(producer);
    EXPECT_THAT(producer.Import(),
                StatusIs(code, AllOf(HasSubstr("'layers.0.w'"), HasSubstr(text))));
    EXPECT_EQ(producer.returned(), 1) << text;
  }
};

using BothStructs = ::testing::Types<dlpack::DLManagedTensorVersioned, dlpack::DLManagedTensor>;
TYPED_TEST_SUITE(DlpackTensorTest, BothStructs);

TYPED_TEST(DlpackTensorTest, ViewsTheProducersMemory) {
  Producer<TypeParam> producer;
  const auto tensor = producer.Import();
  ASSERT_THAT(tensor, IsOk());
  EXPECT_EQ(tensor->view().data(), producer.bytes());
  EXPECT_EQ(tensor->view().dtype(), DType::kF32);
  EXPECT_EQ(tensor->view().shape(), (Shape{2, 3}));
  EXPECT_THAT(tensor->view().strides(), ElementsAre(3, 1));
  EXPECT_FALSE(tensor->read_only());
}

TYPED_TEST(DlpackTensorTest, IsGivenBackOnceWhenItGoes) {
  Producer<TypeParam> producer;
  {
    auto tensor = producer.Import();
    ASSERT_THAT(tensor, IsOk());
    EXPECT_EQ(producer.returned(), 0);
    DlpackTensor moved = *std::move(tensor);
    DlpackTensor again = std::move(moved);
    EXPECT_EQ(producer.returned(), 0);
  }
  EXPECT_EQ(producer.returned(), 1);
}

TYPED_TEST(DlpackTensorTest, AssignmentGivesBackWhatWasHeld) {
  Producer<TypeParam> first, second;
  auto held = first.Import();
  auto other = second.Import();
  ASSERT_THAT(held, IsOk());
  ASSERT_THAT(other, IsOk());
  *held = *std::move(other);
  EXPECT_EQ(first.returned(), 1);
  EXPECT_EQ(second.returned(), 0);
  EXPECT_EQ(held->view().data(), second.bytes());
}

TYPED_TEST(DlpackTensorTest, IsGivenBackOnAnyThread) {
  Producer<TypeParam> producer;
  auto tensor = producer.Import();
  ASSERT_THAT(tensor, IsOk());
  std::thread([held = *std::move(tensor)] {}).join();
  EXPECT_EQ(producer.returned(), 1);
}

TYPED_TEST(DlpackTensorTest, ANullDeleterIsNothingToDo) {
  Producer<TypeParam> producer;
  producer.managed().deleter = nullptr;
  EXPECT_THAT(producer.Import(), IsOk());
  EXPECT_EQ(producer.returned(), 0);
}

TYPED_TEST(DlpackTensorTest, ANullPointerIsRefused) {
  EXPECT_THAT(DlpackTensor::Import("w", static_cast<TypeParam*>(nullptr)),
              StatusIs(kInvalid, HasSubstr("'w': it is a null pointer")));
}

TYPED_TEST(DlpackTensorTest, NullStridesAreRowMajor) {
  Producer<TypeParam> producer;
  producer.tensor().strides = nullptr;
  const auto tensor = producer.Import();
  ASSERT_THAT(tensor, IsOk());
  EXPECT_THAT(tensor->view().strides(), ElementsAre(3, 1));
}

TYPED_TEST(DlpackTensorTest, StridesMayBeAnyNumbers) {
  const std::vector<std::vector<int64_t>> cases = {{1, 2}, {0, 1}, {0, 0}, {30, -1}, {-4, 5}};
  for (const std::vector<int64_t>& strides : cases) {
    Producer<TypeParam> producer;
    producer.SetShape({2, 3}, strides);
    const auto tensor = producer.Import();
    ASSERT_THAT(tensor, IsOk());
    EXPECT_EQ(tensor->view().data(), producer.bytes());
    EXPECT_THAT(tensor->view().strides(), ::testing::ElementsAreArray(strides));
  }
}

TYPED_TEST(DlpackTensorTest, TheByteOffsetCounts) {
  Producer<TypeParam> producer;
  producer.tensor().byte_offset = 8;
  const auto tensor = producer.Import();
  ASSERT_THAT(tensor, IsOk());
  EXPECT_EQ(tensor->view().data(), producer.bytes() + 8);
}

TYPED_TEST(DlpackTensorTest, AnOffsetThatOverflowsIsRefused) {
  this->Refused(kInvalid, "byte offset 18446744073709551608 overflows", [](auto& producer) {
    producer.tensor().byte_offset = std::numeric_limits<uint64_t>::max() - 7;
  });
}

TYPED_TEST(DlpackTensorTest, PinnedMemoryIsHostMemory) {
  Producer<TypeParam> producer;
  producer.tensor().device = {Device::kCudaHost, 0};
  EXPECT_THAT(producer.Import(), IsOk());
}

TYPED_TEST(DlpackTensorTest, EveryOtherDeviceIsRefusedByName) {
  const std::vector<std::pair<int, std::string>> devices = {
      {2, "kDLCUDA 3"},         {4, "kDLOpenCL 3"},  {7, "kDLVulkan 3"},
      {8, "kDLMetal 3"},        {9, "kDLVPI 3"},     {10, "kDLROCM 3"},
      {11, "kDLROCMHost 3"},    {12, "kDLExtDev 3"}, {14, "kDLOneAPI 3"},
      {13, "kDLCUDAManaged 3"}, {15, "kDLWebGPU 3"}, {16, "kDLHexagon 3"},
      {17, "kDLMAIA 3"},        {18, "kDLTrn 3"},    {0, "device type 0 3"},
      {99, "device type 99 3"},
  };
  for (const auto& [type, name] : devices) {
    this->Refused(kUnimplemented, "in the memory of " + name, [type = type](auto& producer) {
      producer.tensor().device = {static_cast<Device>(type), 3};
    });
  }
}

TYPED_TEST(DlpackTensorTest, EveryDTypeButTheComplexOneIsTaken) {
  for (const DType dtype : kAllDTypes) {
    if (dtype == DType::kC64) continue;
    SCOPED_TRACE(SafetensorsName(dtype));
    Producer<TypeParam> producer;
    producer.SetShape({2, 4}, {4, 1});
    producer.tensor().dtype = *DTypeToDlpack(dtype);
    const auto tensor = producer.Import();
    ASSERT_THAT(tensor, IsOk());
    EXPECT_EQ(tensor->view().dtype(), dtype);
    EXPECT_EQ(tensor->view().num_bytes(), DTypeBits(dtype));  // 8 elements
  }
}

TYPED_TEST(DlpackTensorTest, TypesWithoutADTypeAreRefused) {
  const std::vector<std::pair<dlpack::DLDataType, std::string>> types = {
      {{Code::kComplex, 64, 1}, "kDLComplex, 64 bits"},
      {{Code::kOpaqueHandle, 64, 1}, "kDLOpaqueHandle, 64 bits"},
      {{Code::kFloat, 32, 4}, "kDLFloat, 32 bits, 4 lanes"},
      {{Code::kFloat, 32, 0}, "kDLFloat, 32 bits, 0 lanes"},
      {{Code::kInt, 4, 1}, "kDLInt, 4 bits"},
      {{Code::kFloat, 128, 1}, "kDLFloat, 128 bits"},
      {{Code::kFloat8E4M3, 8, 1}, "kDLFloat8_e4m3, 8 bits"},
      {{Code::kFloat4E2M1Fn, 4, 4}, "kDLFloat4_e2m1fn, 4 bits, 4 lanes"},
      {{static_cast<Code>(200), 8, 1}, "type code 200, 8 bits"},
  };
  for (const auto& [type, text] : types) {
    this->Refused(kUnimplemented, text,
                  [type = type](auto& producer) { producer.tensor().dtype = type; });
  }
}

TYPED_TEST(DlpackTensorTest, SubByteElementsMustBeContiguous) {
  this->Refused(kInvalid, "must be contiguous", [](auto& producer) {
    producer.tensor().dtype = {Code::kFloat4E2M1Fn, 4, 1};
    producer.SetShape({2, 4}, {8, 1});
  });
  this->Refused(kInvalid, "does not fill whole bytes", [](auto& producer) {
    producer.tensor().dtype = {Code::kFloat4E2M1Fn, 4, 1};
    producer.SetShape({3}, {1});
  });
}

TYPED_TEST(DlpackTensorTest, PairsOfF4AreTwiceAsManyElements) {
  const std::vector<std::vector<int64_t>> cases = {{4, 1}, {}};
  for (const std::vector<int64_t>& strides : cases) {
    Producer<TypeParam> producer;
    producer.tensor().dtype = {Code::kFloat4E2M1Fn, 4, 2};
    producer.SetShape({2, 4}, strides);
    const auto tensor = producer.Import();
    ASSERT_THAT(tensor, IsOk());
    EXPECT_EQ(tensor->view().dtype(), DType::kF4);
    EXPECT_EQ(tensor->view().shape(), (Shape{2, 8}));
    EXPECT_TRUE(tensor->view().is_contiguous());
    EXPECT_EQ(tensor->view().num_bytes(), 8);
  }
  Producer<TypeParam> column;  // whose only step in a row is of no meaning
  column.tensor().dtype = {Code::kFloat4E2M1Fn, 4, 2};
  column.SetShape({3, 1}, {1, 77});
  EXPECT_THAT(column.Import(), IsOk());
}

TYPED_TEST(DlpackTensorTest, PairsOfF4WithGapsAreRefused) {
  const std::vector<std::vector<int64_t>> cases = {
      {5, 1}, {1, 2}, {8, 2}, {std::numeric_limits<int64_t>::max(), 1}};
  for (const std::vector<int64_t>& strides : cases) {
    this->Refused(kInvalid, strides[0] > 8 ? "overflows" : "must be contiguous",
                  [&strides](auto& producer) {
                    producer.tensor().dtype = {Code::kFloat4E2M1Fn, 4, 2};
                    producer.SetShape({2, 4}, strides);
                  });
  }
  this->Refused(kInvalid, "no dimension", [](auto& producer) {
    producer.tensor().dtype = {Code::kFloat4E2M1Fn, 4, 2};
    producer.SetShape({}, {});
  });
  this->Refused(kInvalid, "size overflows", [](auto& producer) {
    producer.tensor().dtype = {Code::kFloat4E2M1Fn, 4, 2};
    producer.SetShape({std::numeric_limits<int64_t>::max()}, {1});
  });
}

TYPED_TEST(DlpackTensorTest, AScalarNeedsNoShape) {
  Producer<TypeParam> producer;
  producer.tensor().ndim = 0;
  producer.tensor().shape = nullptr;
  producer.tensor().strides = nullptr;
  const auto tensor = producer.Import();
  ASSERT_THAT(tensor, IsOk());
  EXPECT_EQ(tensor->view().shape(), Shape());
  EXPECT_EQ(tensor->view().num_bytes(), 4);
}

TYPED_TEST(DlpackTensorTest, WrongShapesAreRefused) {
  this->Refused(kInvalid, "-1 dimensions", [](auto& p) { p.tensor().ndim = -1; });
  this->Refused(kInvalid, "9 dimensions", [](auto& p) {
    p.SetShape(std::vector<int64_t>(9, 1), std::vector<int64_t>(9, 1));
  });
  this->Refused(kInvalid, "2147483647 dimensions",
                [](auto& p) { p.tensor().ndim = std::numeric_limits<int32_t>::max(); });
  this->Refused(kInvalid, "shape is a null pointer", [](auto& p) { p.tensor().shape = nullptr; });
  this->Refused(kInvalid, "negative dimension -3", [](auto& p) { p.SetShape({2, -3}, {3, 1}); });
  this->Refused(kInvalid, "more elements than 64 bits can count",
                [](auto& p) { p.SetShape({int64_t{1} << 40, int64_t{1} << 40}, {}); });
  this->Refused(kInvalid, "too many bytes", [](auto& p) { p.SetShape({int64_t{1} << 60}, {}); });
  this->Refused(kInvalid, "farther than 64 bits can address",
                [](auto& p) { p.SetShape({2, 3}, {int64_t{1} << 62, 1}); });
}

TYPED_TEST(DlpackTensorTest, EightDimensionsAreTaken) {
  Producer<TypeParam> producer;
  producer.SetShape({1, 1, 1, 1, 1, 1, 2, 3}, {});
  const auto tensor = producer.Import();
  ASSERT_THAT(tensor, IsOk());
  EXPECT_EQ(tensor->view().shape().rank(), 8);
}

TYPED_TEST(DlpackTensorTest, DataMustBeThereAndAligned) {
  this->Refused(kInvalid, "6 elements and a null pointer",
                [](auto& producer) { producer.tensor().data = nullptr; });
  this->Refused(kInvalid, "not aligned to its elements of 4 bytes",
                [](auto& producer) { producer.tensor().byte_offset = 2; });
  this->Refused(kInvalid, "not aligned to its elements of 4 bytes", [](auto& producer) {
    producer.tensor().data = static_cast<std::byte*>(producer.tensor().data) + 1;
  });
  Producer<TypeParam> both;  // neither alone is aligned
  both.tensor().data = static_cast<std::byte*>(both.tensor().data) + 1;
  both.tensor().byte_offset = 3;
  EXPECT_THAT(both.Import(), IsOk());
}

TYPED_TEST(DlpackTensorTest, WithoutElementsThereIsNoData) {
  for (const bool null : {false, true}) {
    Producer<TypeParam> producer;
    producer.SetShape({0, 3}, {3, 1});
    if (null) producer.tensor().data = nullptr;
    const auto tensor = producer.Import();
    ASSERT_THAT(tensor, IsOk());
    EXPECT_EQ(tensor->view().shape(), (Shape{0, 3}));
    EXPECT_EQ(tensor->view().data(), nullptr);
    EXPECT_EQ(tensor->view().num_bytes(), 0);
  }
}

using Versioned = Producer<dlpack::DLManagedTensorVersioned>;

TEST(VersionedDlpackTensorTest, AnyMinorVersionIsTaken) {
  for (const uint32_t minor : {0u, 3u, 77u}) {
    Versioned producer;
    producer.managed().version.minor = minor;
    EXPECT_THAT(producer.Import(), IsOk());
  }
}

// Nothing of it is looked at but the version and the deleter.
TEST(VersionedDlpackTensorTest, AnotherMajorVersionIsGivenBackUnread) {
  for (const uint32_t major : {0u, 2u}) {
    Versioned producer;
    producer.managed().version.major = major;
    producer.tensor().ndim = -5;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): nobody may follow it.
    producer.tensor().shape = reinterpret_cast<int64_t*>(uintptr_t{8});
    EXPECT_THAT(producer.Import(), StatusIs(kUnimplemented, HasSubstr("1.x is understood")));
    EXPECT_EQ(producer.returned(), 1);
  }
}

TEST(VersionedDlpackTensorTest, SaysWhetherItMayBeWritten) {
  Versioned producer;
  producer.managed().flags = dlpack::kReadOnly | dlpack::kIsCopied;
  const auto tensor = producer.Import();
  ASSERT_THAT(tensor, IsOk());
  EXPECT_TRUE(tensor->read_only());
}

TEST(VersionedDlpackTensorTest, PaddedSubByteElementsAreRefused) {
  Versioned producer;
  producer.managed().flags = dlpack::kIsSubbyteTypePadded;
  producer.tensor().dtype = {Code::kFloat4E2M1Fn, 4, 1};
  producer.SetShape({2, 4}, {4, 1});
  EXPECT_THAT(producer.Import(), StatusIs(kUnimplemented, HasSubstr("F4 in a byte each")));
  EXPECT_EQ(producer.returned(), 1);

  Versioned whole;  // the flag says nothing of other types
  whole.managed().flags = dlpack::kIsSubbyteTypePadded;
  EXPECT_THAT(whole.Import(), IsOk());
}

}  // namespace
}  // namespace weight_sync::refit
