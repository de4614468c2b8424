// A quick look for numbers that spoil a result, NaN and +inf: their sum shows them. It may be wrong in one
// way, since large numbers may overflow, so who is told that there may be one must look for it.

#pragma once

#include "lanes.h"

namespace foveal {
namespace FOVEAL_ISA {

template <class T>
bool may_be_spoiled(const T* from, int64_t count) {
  constexpr int kSums = 4;  // so that one addition does not wait for the one before
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
