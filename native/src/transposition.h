// Rows in memory to lanes and back: number e of the row of lane l is lane l of register e.

#pragma once

#include "lanes.h"

namespace foveal {
namespace FOVEAL_ISA {

// One round of a transposition: rows `apart` from each other swap the halves of their blocks.
template <class T, int apart>
FOVEAL_INLINE void swap_blocks(typename Lanes<T>::Register* rows) {
  constexpr int width = Lanes<T>::width;
  typename Format<T>::Bits upper{}, lower{};
  for (int l = 0; l < width; ++l) {
    upper[l] = (l & apart) == 0 ? l : width + l - apart;
    lower[l] = (l & apart) == 0 ? l + apart : width + l;
  }
  for (int r = 0; r < width; ++r) {
    if (r & apart) continue;
    const auto a = rows[r], b = rows[r + apart];
    rows[r] = shuffle(a, b, upper);
    rows[r + apart] = shuffle(a, b, lower);
  }
}

// A square of registers, rows to columns.
template <class T>
FOVEAL_INLINE void transpose(typename Lanes<T>::Register* rows) {
  swap_blocks<T, 1>(rows);
  if constexpr (Lanes<T>::width > 2) swap_blocks<T, 2>(rows);
  if constexpr (Lanes<T>::width > 4) swap_blocks<T, 4>(rows);
  if constexpr (Lanes<T>::width > 8) swap_blocks<T, 8>(rows);
}

// out[e] lane l = rows[l][e], for `count` numbers; every lane has a row.
template <class T>
void gather(const T* const* rows, int64_t count, Lanes<T>* out) {
  constexpr int width = Lanes<T>::width;
  int64_t e = 0;
  for (; e + width <= count; e += width) {
    for (int p = 0; p < Lanes<T>::parts; ++p) {
      typename Lanes<T>::Register square[width];
      for (int l = 0; l < width; ++l) {
        square[l] = *reinterpret_cast<const typename Lanes<T>::Unaligned*>(rows[p * width + l] + e);
      }
      transpose<T>(square);
      for (int k = 0; k < width; ++k) out[e + k].part[p] = square[k];
    }
  }
  T* numbers = reinterpret_cast<T*>(out);
  for (; e < count; ++e) {
    for (int l = 0; l < kLanes; ++l) numbers[e * kLanes + l] = rows[l][e];
  }
}

// The same for rows that are `stride` apart; the lanes beyond `lanes` repeat the first row.
template <class T>
void gather(const T* from, int64_t stride, int lanes, int64_t count, Lanes<T>* out) {
  if (stride == 0) {
    for (int64_t e = 0; e < count; ++e) out[e] = Lanes<T>::of(from[e]);
    return;
  }
  const T* rows[kLanes];
  for (int l = 0; l < kLanes; ++l) rows[l] = from + (l < lanes ? l : 0) * stride;
  gather(rows, count, out);
}

// rows[l][e] = from[e] lane l
template <class T>
void scatter(const Lanes<T>* from, int lanes, int64_t count, T* const* rows) {
  constexpr int width = Lanes<T>::width;
  int64_t e = 0;
  for (; e + width <= count; e += width) {
    for (int p = 0; p * width < lanes; ++p) {
      typename Lanes<T>::Register square[width];
      for (int k = 0; k < width; ++k) square[k] = from[e + k].part[p];
      transpose<T>(square);
      for (int l = 0; l < width && p * width + l < lanes; ++l) {
        *reinterpret_cast<typename Lanes<T>::Unaligned*>(rows[p * width + l] + e) = square[l];
      }
    }
  }
  const T* numbers = reinterpret_cast<const T*>(from);
  for (; e < count; ++e) {
    for (int l = 0; l < lanes; ++l) rows[l][e] = numbers[e * kLanes + l];
  }
}

template <class T>
void scatter(const Lanes<T>* from, int64_t stride, int lanes, int64_t count, T* to) {
  T* rows[kLanes];
  for (int l = 0; l < lanes; ++l) rows[l] = to + l * stride;
  scatter(from, lanes, count, rows);
}

}  // namespace FOVEAL_ISA
}  // namespace foveal
