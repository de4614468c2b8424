// The kernels of monotone alignments, as plain functions on pointers; see kernels.h.

#pragma once

#include <cstdint>

namespace foveal {

// Scores of moves on a grid of R rows and C columns of nodes: B items. moves[i, j, m] enters node
// (i, j): 0 a match from (i-1, j-1), 1 a skip of source from (i-1, j), 2 a skip of target from (i, j-1).
template <class T>
struct Alignments {
  int64_t rows, columns;
  const T* moves;    // (B, R, C, 3); tangents do not read them
  const bool* mask;  // (B, R-1 + C-1), source items, then target items, true on real ones; or null
};

template <class T>
struct AlignmentMarginals {
  T* log_partition;  // (B)
  T* marginals;      // (B, R, C, 3)
};

template <class T>
struct AlignmentTangent {
  const T* marginals;  // as the outside pass gave them
  const T* direction;  // (B, R, C, 3)
  T* tangent;
};

// Draws: `uniforms` (P, B, R-1 + C-1) in [0, 1) become paths (P, B, R, C, 3), true on their moves.
struct AlignmentDraws {
  int64_t samples, batch;
  const double* uniforms;
  bool* paths;
  bool* possible;  // (B)
};

template <class T>
struct AlignmentKernels {
  void (*log_partition)(const Alignments<T>&, T* out, int64_t item);
  void (*marginals)(const Alignments<T>&, const AlignmentMarginals<T>&, int64_t item);
  void (*tangent)(const Alignments<T>&, const AlignmentTangent<T>&, int64_t item);
  void (*best)(const Alignments<T>&, bool* paths, T* scores, int64_t item);
  void (*sample)(const Alignments<T>&, const AlignmentDraws&, int64_t item);
};

}  // namespace foveal
