// Shared code of the kernel tests.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "kernels.h"

namespace foveal {

inline int failures = 0;

inline void expect(const char* what, double found, double expected, double tolerance) {
  const bool equal = found == expected || std::abs(found - expected) <= tolerance * (1 + std::abs(expected));
  if (equal) return;
  ++failures;
  std::printf("  %s: found %.9g, expected %.9g\n", what, found, expected);
}

inline std::vector<const Kernels*> tables() {
  std::vector<const Kernels*> found{&baseline_kernels};
#if defined(FOVEAL_X86)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&avx2_kernels);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    found.push_back(&avx512_kernels);
  }
#endif
  return found;
}

// Random scores; optionally, a fifth of them are forbidden.
template <class T>
std::vector<T> scores(std::mt19937& random, int64_t count, bool forbid) {
  std::normal_distribution<double> normal(0, 2);
  std::uniform_real_distribution<double> uniform;
  std::vector<T> out(static_cast<std::size_t>(count));
  for (T& score : out) {
    const bool never = forbid && uniform(random) < 0.2;
    score = never ? -std::numeric_limits<T>::infinity() : static_cast<T>(normal(random));
  }
  return out;
}

// std::vector<bool> does not store an array of bools.
struct Mask {
  std::vector<char> bits;
  const bool* data() const { return bits.empty() ? nullptr : reinterpret_cast<const bool*>(bits.data()); }
};

inline Mask random_mask(std::mt19937& random, int64_t count) {
  Mask mask;
  for (int64_t i = 0; i < count; ++i) mask.bits.push_back(random() % 3 != 0);
  return mask;
}

// The items of a batch from the last to the first, to test another order.
inline std::vector<int64_t> reversed(int64_t items) {
  std::vector<int64_t> order;
  for (int64_t item = items - 1; item >= 0; --item) order.push_back(item);
  return order;
}

// The number of sentences for which the kept values need room.
inline int64_t kept_items(int64_t items, bool together) {
  return together ? (items + kGrain - 1) / kGrain * kGrain : items;
}

}  // namespace foveal
