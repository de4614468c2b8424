// Products in the matrix unit of x86 CPUs (AMX), which multiplies bfloat16 numbers and adds in float32.

#include "search_kernels.h"

#if defined(FOVEAL_X86) && defined(__linux__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#pragma GCC target("amx-tile,amx-bf16,avx512bf16,avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")

namespace foveal {
namespace {

constexpr int64_t kDepth = 32, kTile = 16 * kDepth;  // bfloat16 numbers in a row of a tile, and in a tile

int64_t depths(int64_t width) { return (width + kDepth - 1) / kDepth; }

int64_t block_size(int64_t width) { return depths(width) * 4 * kTile / 2; }
int64_t rows_size(int64_t width) { return depths(width) * 2 * kTile / 2; }

// Rounds 32 numbers to bfloat16.
inline void store_rounded(uint16_t* to, __m512 low, __m512 high) {
  _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

// The tiles of a block, in the order of their use: two halves of 32 columns, depths, two tiles. Row r of a
// tile has the numbers 2 r and 2 r + 1 of each of 16 columns.
void pack(const float* weight, int64_t width, int64_t columns, int64_t first, float* to) {
  auto* tiles = reinterpret_cast<uint16_t*>(to);
  for (int64_t side = 0; side < 2; ++side) {
    for (int64_t depth = 0; depth < depths(width); ++depth, tiles += 2 * kTile) {
      for (int64_t tile = 0; tile < 2; ++tile) {
        for (int64_t row = 0; row < 16; ++row) {
          float numbers[32];
          for (int64_t i = 0; i < 32; ++i) {
            const int64_t k = depth * kDepth + 2 * row + i % 2, column = first + side * 32 + tile * 16 + i / 2;
            numbers[i] = k < width && column < columns ? weight[k * columns + column] : 0.0f;
          }
          store_rounded(tiles + tile * kTile + row * 32, _mm512_loadu_ps(numbers), _mm512_loadu_ps(numbers + 16));
        }
      }
    }
  }
}

// Arranged rows: 16 rows at a time, then depths.
void arrange(const float* const* rows, int64_t count, int64_t width, float* to) {
  const int64_t size = depths(width) * kTile;
  for (int64_t row = 0; row < count; ++row) {
    uint16_t* tiles = reinterpret_cast<uint16_t*>(to) + row / 16 * size + row % 16 * kDepth;
    for (int64_t k = 0; k < width; k += kDepth, tiles += kTile) {
      const uint32_t mask = width - k >= kDepth ? ~0u : (1u << (width - k)) - 1;
      store_rounded(tiles, _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), rows[row] + k),
                    _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), rows[row] + k + 16));
    }
  }
}

struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};
};

thread_local int64_t configured = 0;  // the number of rows for which the tiles are configured

// Tiles 0 and 1 are sums of the first 16 rows, 2 and 3 of the others; 4 and 5 are rows, 6 and 7 are weights.
void configure(int64_t count) {
  if (configured == count) return;
  Configuration wanted;
  const auto upper = static_cast<uint8_t>(std::min<int64_t>(count, 16));
  const auto lower = static_cast<uint8_t>(std::max<int64_t>(count - 16, 1));
  for (const int tile : {0, 1, 4}) wanted.rows[tile] = upper;
  for (const int tile : {2, 3, 5}) wanted.rows[tile] = lower;
  wanted.rows[6] = wanted.rows[7] = 16;
  for (int tile = 0; tile < 8; ++tile) wanted.bytes[tile] = 64;
  asm volatile("" : : "r"(&wanted) : "memory");  // g++ 12 stores only the first bytes for the next line
  _tile_loadconfig(&wanted);
  configured = count;
}

template <bool both>
void multiply_side(const uint16_t* rows, int64_t width, const uint16_t* weights, float* to) {
  const uint16_t* below = rows + depths(width) * kTile;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t depth = 0; depth < depths(width); ++depth, weights += 2 * kTile) {
    _tile_loadd(4, rows + depth * kTile, 64);
    _tile_loadd(6, weights, 64);
    _tile_loadd(7, weights + kTile, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (both) {
      _tile_loadd(5, below + depth * kTile, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  constexpr int64_t stride = kColumns * sizeof(float);
  _tile_stored(0, to, stride);
  _tile_stored(1, to + 16, stride);
  if (both) {
    _tile_stored(2, to + 16 * kColumns, stride);
    _tile_stored(3, to + 16 * kColumns + 16, stride);
  }
}

void multiply(const float* rows, int64_t count, int64_t width, const float* block, float* to) {
  configure(count);
  const auto* left = reinterpret_cast<const uint16_t*>(rows);
  const auto* right = reinterpret_cast<const uint16_t*>(block);
  for (int64_t side = 0; side < 2; ++side, right += depths(width) * 2 * kTile) {
    (count > 16 ? multiply_side<true> : multiply_side<false>)(left, width, right, to + side * 32);
  }
}

void finish() {
  if (configured == 0) return;
  _tile_release();
  configured = 0;
}

bool is_supported() {
  unsigned a, b, c, d, a1, b1, c1, d1;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !__get_cpuid_count(7, 1, &a1, &b1, &c1, &d1)) return false;
  const bool tiles = (d >> 22 & 1) != 0 && (d >> 24 & 1) != 0, conversions = (a1 >> 5 & 1) != 0;
  constexpr long request_permission = 0x1023, tile_data = 18;  // Linux grants the registers on request
  return tiles && conversions && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

constexpr Products products = {block_size, rows_size, pack, arrange, multiply, finish};

}  // namespace

const Products* tile_products() {
  static const bool supported = is_supported();
  return supported ? &products : nullptr;
}

}  // namespace foveal

#else

namespace foveal {

const Products* tile_products() { return nullptr; }

}  // namespace foveal

#endif
