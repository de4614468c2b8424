// Inputs and outputs of the kernels of subsets of k items: B rows of n items.

#pragma once

#include <cstdint>

namespace foveal {

template <class T>
struct Items {
  int64_t items, chosen;  // n and k
  const T* scores;        // (B, n); tangents do not read them
  const bool* mask;       // (B, n), true on real items; or null: all are real
};

template <class T>
struct ItemMarginals {
  T* log_partition;  // (B)
  T* marginals;      // (B, n)
  T* kept;           // (B in whole groups, n, k), for the tangent pass
};

template <class T>
struct ItemTangent {
  const T* marginals;  // as the outside pass gave them
  const T* kept;
  const T* direction;  // (B, n)
  T* tangent;
};

// Samples: `uniforms` (S, B, n) in [0, 1) become the chosen items (S, B, n).
struct ItemDraws {
  int64_t samples, batch;
  const double* uniforms;
  bool* chosen;
  bool* possible;  // (B)
};

template <class T>
struct ItemKernels {
  void (*log_partition)(const Items<T>&, T* out, int64_t first, int64_t last);
  void (*marginals)(const Items<T>&, const ItemMarginals<T>&, int64_t first, int64_t last);
  void (*tangent)(const Items<T>&, const ItemTangent<T>&, int64_t first, int64_t last);
  void (*sample)(const Items<T>&, const ItemDraws&, int64_t first, int64_t last);
};

}  // namespace foveal
