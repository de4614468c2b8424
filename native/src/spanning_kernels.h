// Inputs and outputs of the kernels of spanning trees.

#pragma once

#include <cstdint>

namespace foveal {

// Scores of arcs: B sentences of n words; index 0 is the root.
template <class T>
struct Graph {
  int64_t words;
  bool single_root;
  const T* scores;   // (B, n+1, n+1), [head, word]
  const bool* mask;  // (B, n), true on real words; or null: all are real
};

// The number of values that the marginals keep per sentence for the tangent pass.
inline int64_t kept_of_spanning(int64_t words, bool single_root) {
  const int64_t size = words + (single_root ? 2 : 1);
  return 2 * size * (size + 1);
}

template <class T>
struct SpanningMarginals {
  T* log_partition;  // (B)
  T* marginals;      // (B, n+1, n+1)
  double* kept;      // (B, kept_size)
  bool* safe;        // (B), whether the range of doubles was sufficient; if not, nothing is kept
  int64_t kept_size;
};

template <class T>
struct SpanningTangent {
  const double* kept;
  const bool* safe;
  int64_t kept_size;
  const T* direction;  // (B, n+1, n+1)
  T* tangent;
};

// Draws: `seeds` (S, B) become heads (S, B, n).
struct SpanningDraws {
  int64_t samples, batch;
  const int64_t* seeds;
  int64_t* heads;
  bool* possible;  // (B)
};

template <class T>
struct SpanningKernels {
  void (*log_partition)(const Graph<T>&, T* out, int64_t item);
  void (*marginals)(const Graph<T>&, const SpanningMarginals<T>&, int64_t item);
  void (*tangent)(const Graph<T>&, const SpanningTangent<T>&, int64_t item);
  void (*best)(const Graph<T>&, int64_t* heads, T* scores, int64_t item);
  void (*sample)(const Graph<T>&, const SpanningDraws&, int64_t item);
};

}  // namespace foveal
