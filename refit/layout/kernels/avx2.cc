// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Every function that uses the instructions says so itself, so that no inline function of a header
// is compiled with them and then shared with the rest of the program. What vector_rows.h has is
// compiled for operations that are private to this file.

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "refit/layout/kernels/levels.h"

#define WS_LEVEL [[gnu::target("avx2,prfchw")]]
#define WS_LEVEL_INLINE [[gnu::target("avx2,prfchw"), gnu::always_inline]] inline
#include "refit/layout/kernels/vector_rows.h"  // after what it needs

namespace weight_sync::refit {
namespace {

constexpr int64_t kVector = 32;

WS_LEVEL_INLINE __m256i Load(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
WS_LEVEL_INLINE void Store(std::byte* to, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
}
WS_LEVEL_INLINE __m128i LoadLane(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

WS_LEVEL void Copy(const std::byte* src, int64_t src_row, int64_t rows, int64_t count,
                   std::byte* dst, int64_t dst_row) {
  for (int64_t r = 0; r < rows; ++r, src += src_row, dst += dst_row) {
    if (count > kTileBytes || count % kVector != 0) {
      std::memcpy(dst, src, static_cast<size_t>(count));
      continue;
    }
    for (int64_t i = 0; i < count; i += kVector) Store(dst + i, Load(src + i));
  }
}

// FloatToBFloat16 of 8, each in the lower half of 32 bits.
WS_LEVEL_INLINE __m256i Round(__m256i bits) {
  const __m256i upper = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(
      _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
  const __m256i nan = _mm256_cmpgt_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff)),
                                         _mm256_set1_epi32(0x7f800000));
  const __m256i infinite =
      _mm256_cmpeq_epi32(_mm256_and_si256(upper, _mm256_set1_epi32(0x7f)), _mm256_setzero_si256());
  const __m256i kept = _mm256_or_si256(upper, _mm256_and_si256(infinite, _mm256_set1_epi32(0x40)));
  return _mm256_blendv_epi8(rounded, kept, nan);
}

// 16 elements, half a line of the destination.
WS_LEVEL_INLINE __m256i Narrow(const std::byte* src) {
  const __m256i low = Round(Load(src)), high = Round(Load(src + kVector));
  // Packs lane by lane, which leaves the middle quarters exchanged.
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
}

// 8 elements.
WS_LEVEL_INLINE __m256i Widen(const std::byte* src) {
  return _mm256_slli_epi32(_mm256_cvtepu16_epi32(LoadLane(src)), 16);
}

WS_LEVEL_INLINE void StoreLine(std::byte* to, __m256i low, __m256i high) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), low);
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to + kVector), high);
}

struct CopyOp {
  static constexpr int64_t kSrc = 1, kDst = 1;
  static constexpr Kernels::Rows kRows = Copy;
  WS_LEVEL_INLINE static void StreamLine(const std::byte* src, std::byte* dst) {
    StoreLine(dst, Load(src), Load(src + kVector));
  }
};

struct F32ToBF16Op {
  static constexpr int64_t kSrc = 4, kDst = 2, kElements = 16;
  static constexpr Conversion kConversion = Conversion::kF32ToBF16;
  static constexpr Kernels::Rows kRows = ConvertRows<F32ToBF16Op>;
  WS_LEVEL_INLINE static void StoreVector(const std::byte* src, std::byte* dst) {
    Store(dst, Narrow(src));
  }
  WS_LEVEL_INLINE static void StreamLine(const std::byte* src, std::byte* dst) {
    StoreLine(dst, Narrow(src), Narrow(src + 2 * kVector));
  }
};

struct BF16ToF32Op {
  static constexpr int64_t kSrc = 2, kDst = 4, kElements = 8;
  static constexpr Conversion kConversion = Conversion::kBF16ToF32;
  static constexpr Kernels::Rows kRows = ConvertRows<BF16ToF32Op>;
  WS_LEVEL_INLINE static void StoreVector(const std::byte* src, std::byte* dst) {
    Store(dst, Widen(src));
  }
  WS_LEVEL_INLINE static void StreamLine(const std::byte* src, std::byte* dst) {
    StoreLine(dst, Widen(src), Widen(src + kVector / 2));
  }
};

template <int kElement>
WS_LEVEL_INLINE __m256i InterleaveLow(__m256i a, __m256i b) {
  if constexpr (kElement == 1) return _mm256_unpacklo_epi8(a, b);
  if constexpr (kElement == 2) return _mm256_unpacklo_epi16(a, b);
  if constexpr (kElement == 4) return _mm256_unpacklo_epi32(a, b);
  if constexpr (kElement == 8) return _mm256_unpacklo_epi64(a, b);
}

template <int kElement>
WS_LEVEL_INLINE __m256i InterleaveHigh(__m256i a, __m256i b) {
  if constexpr (kElement == 1) return _mm256_unpackhi_epi8(a, b);
  if constexpr (kElement == 2) return _mm256_unpackhi_epi16(a, b);
  if constexpr (kElement == 4) return _mm256_unpackhi_epi32(a, b);
  if constexpr (kElement == 8) return _mm256_unpackhi_epi64(a, b);
}

// A lane of 16 bytes holds k elements. Vector i gets the lanes of columns i and i + k; interleaving
// the first half of the vectors with the second, as often as k is halved, transposes the k x k
// elements of each lane place. Then vector i is half a line of row i.
template <int kElement>
WS_LEVEL_INLINE void TransposeHalves(const std::byte* tile, std::byte* dst, int64_t dst_row) {
  constexpr int kLane = 16 / kElement;
  __m256i x[kLane], y[kLane];
#pragma GCC unroll 16
  for (int i = 0; i < kLane; ++i) {
    const std::byte* const lane = tile + i * kTileBytes;
    x[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(LoadLane(lane)),
                                   LoadLane(lane + kLane * kTileBytes), 1);
  }
#pragma GCC unroll 4
  for (int half = kLane / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kLane / 2; ++i) {
      y[2 * i] = InterleaveLow<kElement>(x[i], x[i + kLane / 2]);
      y[2 * i + 1] = InterleaveHigh<kElement>(x[i], x[i + kLane / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLane; ++i) x[i] = y[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLane; ++i) Store(dst + i * dst_row, x[i]);
}

template <int kElement>
WS_LEVEL void Transpose(const std::byte* tile, int64_t rows, int64_t columns, std::byte* dst,
                        int64_t dst_row) {
  constexpr int kLane = 16 / kElement;
  constexpr int kLine = 64 / kElement;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; c += kLine) _m_prefetchw(dst + r * dst_row + c * kElement);
  }
  for (int64_t r = 0; r < rows; r += kLane) {
    for (int64_t c = 0; c < columns; c += kLine) {
      const std::byte* const from = tile + c * kTileBytes + r * kElement;
      std::byte* const to = dst + r * dst_row + c * kElement;
      TransposeHalves<kElement>(from, to, dst_row);
      TransposeHalves<kElement>(from + int64_t{2} * kLane * kTileBytes, to + kVector, dst_row);
    }
  }
}

// Both halves of a line have to leave one after the other, or it goes out twice.
template <int kElement>
WS_LEVEL void TransposeStream(const std::byte* tile, int64_t rows, int64_t columns, std::byte* dst,
                              int64_t dst_row) {
  constexpr int kLane = 16 / kElement;
  constexpr int kLine = 64 / kElement;
  alignas(kLineBytes) std::byte lines[kLane * kLineBytes];
  for (int64_t r = 0; r < rows; r += kLane) {
    for (int64_t c = 0; c < columns; c += kLine) {
      const std::byte* const from = tile + c * kTileBytes + r * kElement;
      TransposeHalves<kElement>(from, lines, kLineBytes);
      TransposeHalves<kElement>(from + int64_t{2} * kLane * kTileBytes, lines + kVector,
                                kLineBytes);
      std::byte* to = dst + r * dst_row + c * kElement;
      for (int i = 0; i < kLane; ++i, to += dst_row) {
        const std::byte* const line = lines + i * kLineBytes;
        StoreLine(to, Load(line), Load(line + kVector));
      }
    }
  }
}

void Fence() { _mm_sfence(); }

}  // namespace

const Kernels kAvx2Kernels = {
    Copy,
    ConvertRows<F32ToBF16Op>,
    ConvertRows<BF16ToF32Op>,
    StreamRows<CopyOp>,
    StreamRows<F32ToBF16Op>,
    StreamRows<BF16ToF32Op>,
    {Transpose<1>, Transpose<2>, Transpose<4>, Transpose<8>},
    {TransposeStream<1>, TransposeStream<2>, TransposeStream<4>, TransposeStream<8>},
    Fence,
};

}  // namespace weight_sync::refit

#endif  // defined(__x86_64__)
