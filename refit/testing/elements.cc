// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/testing/elements.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/log/absl_check.h"

namespace weight_sync::refit::testing {
namespace {

uint16_t BF16Bits(uint32_t id) {
  ABSL_CHECK(id < 0x4000) << "more elements than normal bfloat16 numbers are set aside for";
  return static_cast<uint16_t>(0x3c00 + id);
}

uint32_t F32Bits(uint32_t id) { return 0x3f000001 + id * 0x101; }

// Up to half the distance to the next bfloat16 on either side; the very middle goes to the even one.
uint32_t MasterBits(uint32_t id) {
  const uint32_t exact = static_cast<uint32_t>(BF16Bits(id)) << 16;
  if (id % 4 == 0) return exact + 0x8000;
  if (id % 4 == 2) return exact - 0x8000;
  return exact + id * 2654435761u % 0xffffu - 0x7fffu;
}

template <typename T>
void Append(T value, std::vector<std::byte>& out) {
  const size_t at = out.size();
  out.resize(at + sizeof(T));
  std::memcpy(out.data() + at, &value, sizeof(T));
}

}  // namespace

int64_t Elements::size() const {
  int64_t n = 1;
  for (const int64_t dim : shape) n *= dim;
  return n;
}

uint32_t Elements::at(const Index& index) const {
  ABSL_CHECK(index.size() == shape.size()) << name;
  int64_t offset = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    ABSL_CHECK(index[dim] >= 0 && index[dim] < shape[dim]) << name;
    offset = offset * shape[dim] + index[dim];
  }
  return ids[static_cast<size_t>(offset)];
}

Elements FromFormula(std::vector<int64_t> shape, const std::function<uint32_t(const Index&)>& at) {
  Elements made;
  made.shape = std::move(shape);
  Index index(made.shape.size());
  for (int64_t n = 0; n < made.size(); ++n) {
    int64_t rest = n;
    for (size_t dim = index.size(); dim-- > 0;) {
      index[dim] = rest % made.shape[dim];
      rest /= made.shape[dim];
    }
    made.ids.push_back(at(index));
  }
  return made;
}

Elements Same(const Elements& hf) {
  return FromFormula(hf.shape, [&](const Index& x) { return hf.at(x); });
}

Elements Transposed(const Elements& hf) {
  return FromFormula({hf.shape[1], hf.shape[0]}, [&](const Index& x) {
    const int64_t i = x[0], o = x[1];
    return hf.at({o, i});
  });
}

Elements Heads(const Elements& hf, int64_t heads) {
  const int64_t D = hf.shape[0] / heads, H = hf.shape[1];
  return FromFormula({H, heads, D}, [&](const Index& x) {
    const int64_t h = x[0], n = x[1], d = x[2];
    return hf.at({n * D + d, h});
  });
}

Elements OutHeads(const Elements& hf, int64_t heads) {
  const int64_t H = hf.shape[0], D = hf.shape[1] / heads;
  return FromFormula({heads, D, H}, [&](const Index& x) {
    const int64_t n = x[0], d = x[1], h = x[2];
    return hf.at({h, n * D + d});
  });
}

Elements HeadsFirst(const Elements& hf, int64_t heads) {
  const int64_t D = hf.shape[0] / heads, H = hf.shape[1];
  return FromFormula({heads, H, D}, [&](const Index& x) {
    const int64_t n = x[0], h = x[1], d = x[2];
    return hf.at({n * D + d, h});
  });
}

Elements SplitBias(const Elements& hf, int64_t heads) {
  const int64_t D = hf.shape[0] / heads;
  return FromFormula({heads, D}, [&](const Index& x) {
    const int64_t n = x[0], d = x[1];
    return hf.at({n * D + d});
  });
}

Elements ConvKernel(const Elements& hf) {
  return FromFormula({hf.shape[2], 1, hf.shape[0]}, [&](const Index& x) {
    const int64_t t = x[0], channel = x[2];
    return hf.at({channel, 0, t});
  });
}

Elements StackedAt(int axis, const std::vector<Elements>& parts) {
  std::vector<int64_t> shape = parts[0].shape;
  shape.insert(shape.begin() + axis, static_cast<int64_t>(parts.size()));
  return FromFormula(shape, [&](const Index& x) {
    Index inner = x;
    inner.erase(inner.begin() + axis);
    return parts[static_cast<size_t>(x[static_cast<size_t>(axis)])].at(inner);
  });
}

Elements PaddedAt(int axis, int64_t size, const Elements& part) {
  std::vector<int64_t> shape = part.shape;
  shape[static_cast<size_t>(axis)] = size;
  return FromFormula(shape, [&](const Index& x) {
    const size_t dim = static_cast<size_t>(axis);
    return x[dim] < part.shape[dim] ? part.at(x) : kNoId;
  });
}

std::vector<std::byte> Bytes(const Elements& tensor, Storage storage, std::byte padding) {
  std::vector<std::byte> out;
  const size_t element = storage == Storage::kBF16 ? 2 : 4;
  for (const uint32_t id : tensor.ids) {
    if (id == kNoId) {
      out.insert(out.end(), element, padding);
    } else if (storage == Storage::kBF16) {
      Append(BF16Bits(id), out);
    } else if (storage == Storage::kF32) {
      Append(F32Bits(id), out);
    } else if (storage == Storage::kBF16AsF32) {
      Append(static_cast<uint32_t>(BF16Bits(id)) << 16, out);
    } else {
      Append(MasterBits(id), out);
    }
  }
  return out;
}

}  // namespace weight_sync::refit::testing
