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

#define WS_LEVEL [[gnu::target("avx512f,avx512bw,prfchw")]]
#define WS_LEVEL_INLINE [[gnu::target("avx512f,avx512bw,prfchw"), gnu::always_inline]] inline
#include "refit/layout/kernels/vector_rows.h"  // after what it needs

namespace weight_sync::refit {
namespace {

constexpr int64_t kVector = 64;

WS_LEVEL_INLINE __m512i Load(const std::byte* from) { return _mm512_loadu_si512(from); }
WS_LEVEL_INLINE void Store(std::byte* to, __m512i value) { _mm512_storeu_si512(to, value); }
WS_LEVEL_INLINE void StoreLine(std::byte* to, __m512i value) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), value);
}
WS_LEVEL_INLINE __m128i LoadLane(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// Fewer bytes than a vector has.
WS_LEVEL_INLINE void CopyRest(const std::byte* src, int64_t bytes, std::byte* dst) {
  const __mmask64 mask = (uint64_t{1} << bytes) - 1;
  _mm512_mask_storeu_epi8(dst, mask, _mm512_maskz_loadu_epi8(mask, src));
}

WS_LEVEL void Copy(const std::byte* src, int64_t src_row, int64_t rows, int64_t count,
                   std::byte* dst, int64_t dst_row) {
  for (int64_t r = 0; r < rows; ++r, src += src_row, dst += dst_row) {
    if (count > kTileBytes) {
      std::memcpy(dst, src, static_cast<size_t>(count));
      continue;
    }
    int64_t i = 0;
    for (; i + kVector <= count; i += kVector) Store(dst + i, Load(src + i));
    if (i < count) CopyRest(src + i, count - i, dst + i);
  }
}

// FloatToBFloat16 of 16.
WS_LEVEL_INLINE __m256i Round(__m512i bits) {
  const __m512i upper = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_srli_epi32(
      _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
  const __mmask16 nan = _mm512_cmpgt_epi32_mask(
      _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff)), _mm512_set1_epi32(0x7f800000));
  const __mmask16 infinite = _mm512_testn_epi32_mask(upper, _mm512_set1_epi32(0x7f));
  const __m512i kept = _mm512_mask_or_epi32(upper, infinite, upper, _mm512_set1_epi32(0x40));
  return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, nan, kept));
}

// 32 elements, a line of the destination.
WS_LEVEL_INLINE __m512i Narrow(const std::byte* src) {
  const __m256i low = Round(Load(src)), high = Round(Load(src + kVector));
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

// 16 elements.
WS_LEVEL_INLINE __m512i Widen(const std::byte* src) {
  const __m256i narrow = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src));
  return _mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16);
}

struct CopyOp {
  static constexpr int64_t kSrc = 1, kDst = 1;
  static constexpr Kernels::Rows kRows = Copy;
  WS_LEVEL_INLINE static void StreamLine(const std::byte* src, std::byte* dst) {
    StoreLine(dst, Load(src));
  }
};

struct F32ToBF16Op {
  static constexpr int64_t kSrc = 4, kDst = 2, kElements = 32;
  static constexpr Conversion kConversion = Conversion::kF32ToBF16;
  static constexpr Kernels::Rows kRows = ConvertRows<F32ToBF16Op>;
  WS_LEVEL_INLINE static void StoreVector(const std::byte* src, std::byte* dst) {
    Store(dst, Narrow(src));
  }
  WS_LEVEL_INLINE static void StreamLine(const std::byte* src, std::byte* dst) {
    StoreLine(dst, Narrow(src));
  }
};

struct BF16ToF32Op {
  static constexpr int64_t kSrc = 2, kDst = 4, kElements = 16;
  static constexpr Conversion kConversion = Conversion::kBF16ToF32;
  static constexpr Kernels::Rows kRows = ConvertRows<BF16ToF32Op>;
  WS_LEVEL_INLINE static void StoreVector(const std::byte* src, std::byte* dst) {
    Store(dst, Widen(src));
  }
  WS_LEVEL_INLINE static void StreamLine(const std::byte* src, std::byte* dst) {
    StoreLine(dst, Widen(src));
  }
};

template <int kElement>
WS_LEVEL_INLINE __m512i InterleaveLow(__m512i a, __m512i b) {
  if constexpr (kElement == 1) return _mm512_unpacklo_epi8(a, b);
  if constexpr (kElement == 2) return _mm512_unpacklo_epi16(a, b);
  if constexpr (kElement == 4) return _mm512_unpacklo_epi32(a, b);
  if constexpr (kElement == 8) return _mm512_unpacklo_epi64(a, b);
}

template <int kElement>
WS_LEVEL_INLINE __m512i InterleaveHigh(__m512i a, __m512i b) {
  if constexpr (kElement == 1) return _mm512_unpackhi_epi8(a, b);
  if constexpr (kElement == 2) return _mm512_unpackhi_epi16(a, b);
  if constexpr (kElement == 4) return _mm512_unpackhi_epi32(a, b);
  if constexpr (kElement == 8) return _mm512_unpackhi_epi64(a, b);
}

// A lane of 16 bytes holds k elements. Vector i gets the lanes of columns i, i + k, i + 2k and
// i + 3k; interleaving the first half of the vectors with the second, as often as k is halved,
// transposes the k x k elements of each lane place. Then vector i is a whole line of row i.
template <int kElement, bool kStream>
WS_LEVEL void Transpose(const std::byte* tile, int64_t rows, int64_t columns, std::byte* dst,
                        int64_t dst_row) {
  constexpr int kLane = 16 / kElement;
  constexpr int kLine = 64 / kElement;
  if constexpr (!kStream) {
    // Rows that are a power of two apart share few sets of the nearest cache: asked for all at once
    // they come sooner than a store at a time.
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; c += kLine) _m_prefetchw(dst + r * dst_row + c * kElement);
    }
  }
  for (int64_t r = 0; r < rows; r += kLane) {
    for (int64_t c = 0; c < columns; c += kLine) {
      const std::byte* const from = tile + c * kTileBytes + r * kElement;
      __m512i x[kLane], y[kLane];
#pragma GCC unroll 16
      for (int i = 0; i < kLane; ++i) {
        const std::byte* const lane = from + i * kTileBytes;
        x[i] = _mm512_castsi128_si512(LoadLane(lane));
        x[i] = _mm512_inserti32x4(x[i], LoadLane(lane + kLane * kTileBytes), 1);
        x[i] = _mm512_inserti32x4(x[i], LoadLane(lane + int64_t{2} * kLane * kTileBytes), 2);
        x[i] = _mm512_inserti32x4(x[i], LoadLane(lane + int64_t{3} * kLane * kTileBytes), 3);
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
      std::byte* to = dst + r * dst_row + c * kElement;
#pragma GCC unroll 16
      for (int i = 0; i < kLane; ++i, to += dst_row) {
        if constexpr (kStream) {
          StoreLine(to, x[i]);
        } else {
          Store(to, x[i]);
        }
      }
    }
  }
}

void Fence() { _mm_sfence(); }

}  // namespace

const Kernels kAvx512Kernels = {
    Copy,
    ConvertRows<F32ToBF16Op>,
    ConvertRows<BF16ToF32Op>,
    StreamRows<CopyOp>,
    StreamRows<F32ToBF16Op>,
    StreamRows<BF16ToF32Op>,
    {Transpose<1, false>, Transpose<2, false>, Transpose<4, false>, Transpose<8, false>},
    {Transpose<1, true>, Transpose<2, true>, Transpose<4, true>, Transpose<8, true>},
    Fence,
};

}  // namespace weight_sync::refit

#endif  // defined(__x86_64__)
