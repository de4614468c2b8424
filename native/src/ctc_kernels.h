// The kernels of CTC, as plain functions on pointers; see kernels.h.

#pragma once

#include <cstdint>

namespace foveal {

// Log-probabilities of V symbols in T frames, and L labels: B items. Labels of real positions must be symbols
// other than the blank.
template <class T>
struct Spellings {
  int64_t frames, symbols, labels, blank;
  const T* log_probs;      // (B, T, V)
  const int64_t* label;    // (B, L)
  const bool* frame_mask;  // (B, T), true on real frames; or null
  const bool* label_mask;  // (B, L), true on real labels; or null
};

template <class T>
struct SpellingMarginals {
  T* log_partition;  // (B)
  T* marginals;      // (B, T, V): the probability that a frame emits a symbol
};

template <class T>
struct CtcKernels {
  void (*log_partition)(const Spellings<T>&, T* out, int64_t item);
  void (*marginals)(const Spellings<T>&, const SpellingMarginals<T>&, int64_t item);
};

}  // namespace foveal
