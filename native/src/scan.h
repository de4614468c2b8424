// A quick check for NaN and +inf, which spoil a result: the sum of the numbers shows them. Large numbers may
// overflow and cause false positives, so the caller must then look for the actual NaN or +inf.

#pragma once

#include "lanes.h"

namespace foveal {
namespace FOVEAL_ISA {

template <class T>
bool may_be_spoiled(const T* from, int64_t count) {
  constexpr int kSums = 4;  // independent sums, because an addition waits for the previous one
  Lanes<T> sums[kSums];
  for (auto& part : sums) part = Lanes<T>::of(T(0));
  int64_t at = 0;
  for (; at + kSums * kLanes <= count; at += kSums * kLanes) {
    for (int s = 0; s < kSums; ++s) sums[s] += Lanes<T>::load(from + at + s * kLanes);
  }
  for (; at < count; at += kLanes) sums[0] += load_first(from + at, count - at, T(0));
  return !(sum((sums[0] + sums[1]) + (sums[2] + sums[3])) < std::numeric_limits<T>::infinity());
}

}  // namespace FOVEAL_ISA
}  // namespace foveal
