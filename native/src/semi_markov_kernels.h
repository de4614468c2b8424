// The kernels of semi-Markov models as plain functions on pointers; see kernels.h.

#pragma once

#include <cstdint>

namespace foveal {

// With more labels, a single item fills the lanes, and items need not come in groups.
constexpr int kFewLabels = 12;

// The sizes of a batch of models, and the real positions.
struct SemiMarkovSizes {
  int64_t length, lengths, labels;  // T, D, K
  const bool* mask;                 // (B, T), true on real positions; or null: all are real
};

// Scores: B items, T positions, segments of up to D positions, K labels.
template <class T>
struct SemiMarkov {
  SemiMarkovSizes sizes;
  const T* segments;                 // (B, T, D, K), by the start of a segment
  const T* transitions;              // (K, K) for item b and step t at b * item_stride + t * step_stride
  int64_t item_stride, step_stride;  // 0 where transitions are shared
};

template <class T>
struct SemiMarkovMarginals {
  T* log_partition;  // (B)
  T* segments;       // (B, T, D, K)
  T* pairs;          // (B, T-1, K, K)
};

// A direction in the potentials, and the derivative of the marginals along it.
template <class T>
struct SemiMarkovTangent {
  SemiMarkovSizes sizes;
  const T* segments;  // the marginals
  const T* pairs;
  const T* on_segments;  // the direction; null: 0
  const T* on_pairs;
  T* segment_tangent;
  T* pair_tangent;  // null: not wanted
};

// Draws: `uniforms` (S, B, 2T) in [0, 1) become labels (S, B, T), -1 where no segment starts.
struct SemiMarkovDraws {
  int64_t samples, batch;
  const double* uniforms;
  int64_t* labels;
  bool* possible;  // (B)
};

template <class T>
struct SemiMarkovKernels {
  void (*log_partition)(const SemiMarkov<T>&, T* out, int64_t first, int64_t last);
  void (*marginals)(const SemiMarkov<T>&, const SemiMarkovMarginals<T>&, int64_t first, int64_t last);
  void (*tangent)(const SemiMarkovTangent<T>&, int64_t first, int64_t last);
  void (*best)(const SemiMarkov<T>&, int64_t* labels, T* scores, int64_t first, int64_t last);
  void (*sample)(const SemiMarkov<T>&, const SemiMarkovDraws&, int64_t first, int64_t last);
};

}  // namespace foveal
