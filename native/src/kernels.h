// The kernels as plain functions on pointers, one table of kernels for each instruction set.
//
// Each kernel works on one batch item, or on the items first .. last - 1, and has no state between calls.
// A caller may therefore split a batch over threads; multiples of `kGrain` items waste no lanes.

#pragma once

#include <cstdint>

#include "alignment_kernels.h"
#include "ctc_kernels.h"
#include "k_subset_kernels.h"
#include "semi_markov_kernels.h"
#include "spanning_kernels.h"

namespace foveal {

constexpr int64_t kGrain = 16;  // the widest lanes of any instruction set

// Scores of chains: B items, T positions, K states.
template <class T>
struct Chain {
  int64_t length, states;
  const T* unary;                      // (B, T, K)
  const T* transitions;                // (K, K) for item b and step t at b * item_stride + t * step_stride
  int64_t item_stride, step_stride;    // 0 where transitions are shared
  const bool* mask;                    // (B, T), true on real positions; or null: all are real
};

template <class T>
struct ChainMarginals {
  T* log_partition;  // (B)
  T* nodes;          // (B, T, K)
  T* pairs;          // (B, T-1, K, K)
};

// Marginals of the nodes only, for one table of transitions and many states.
template <class T>
struct ChainNodes {
  T* log_partition;  // (B)
  T* nodes;          // (B, T, K)
  double* kept;      // (B, 3, T, K), for the tangent pass
  bool* safe;        // (B), whether probability space was safe; if not, nothing is kept
};

template <class T>
struct ChainNodesTangent {
  Chain<T> chain;
  const double* kept;
  const bool* safe;
  const T* on_nodes;  // the direction
  T* node_tangent;
};

// A direction in the potentials, and the derivative of the marginals along it.
template <class T>
struct ChainTangent {
  int64_t length, states;
  const T* nodes;     // the marginals
  const T* pairs;
  const T* on_nodes;  // the direction; null: 0
  const T* on_pairs;
  const bool* mask;
  T* node_tangent;
  T* pair_tangent;  // null: not wanted
};

// Draws: `uniforms` (S, B, T) in [0, 1) become labels (S, B, T).
struct ChainDraws {
  int64_t samples, batch;
  const double* uniforms;
  int64_t* labels;
  bool* possible;  // (B)
};

template <class T>
struct ChainKernels {
  void (*log_partition)(const Chain<T>&, T* out, int64_t first, int64_t last);
  void (*marginals)(const Chain<T>&, const ChainMarginals<T>&, int64_t first, int64_t last);
  void (*tangent)(const ChainTangent<T>&, int64_t first, int64_t last);
  void (*nodes)(const Chain<T>&, const ChainNodes<T>&, int64_t first, int64_t last);
  void (*nodes_tangent)(const ChainNodesTangent<T>&, double* on_transitions, int64_t first, int64_t last);
  void (*best)(const Chain<T>&, int64_t* labels, T* scores, int64_t first, int64_t last);
  void (*sample)(const Chain<T>&, const ChainDraws&, int64_t first, int64_t last);
};

// The sentences of a batch, for trees.
struct Batch {
  int64_t items, words;
  const bool* mask;      // (B, n), true on real words; or null: all are real
  const int64_t* order;  // the order of the items, for example by length; or null: as they come
  bool together;         // whether each lane has a different sentence
};

// With more words, the values kept for sentences in separate lanes do not fit into the cache.
constexpr int64_t kMostWordsWithArcs = 48, kMostWordsWithSpans = 56;

// Whether each lane has a different sentence. One sentence at a time, short sentences leave lanes empty; with
// separate sentences, groups with too few sentences do. Both take the same time at a third of the words.
inline bool is_together(int64_t items, int64_t words, int64_t most_words) {
  return words <= most_words && 3 * items >= words * ((items + kGrain - 1) / kGrain);
}

// The number of values kept per sentence for the tangent pass: for every span of two words or more, a
// weight for each split, a scale and a probability. Spans in lanes are padded to fill the lanes.
inline int64_t kept_of_sentence(int64_t words, bool together) {
  int64_t total = 0;
  for (int64_t width = 1; width < words; ++width) {
    const int64_t spans = words - width;
    total += (width + 2) * (together ? spans : (spans + kGrain - 1) / kGrain * kGrain);
  }
  return total;
}

// Scores of arcs: B sentences of n words; index 0 is the root.
template <class T>
struct Arcs {
  Batch batch;
  bool single_root;
  const T* scores;  // (B, n+1, n+1), [head, word]; tangents do not read them
};

template <class T>
struct ArcMarginals {
  T* log_partition;  // (B)
  T* marginals;      // (B, n+1, n+1)
  T* kept;           // (B, kept_size), in the order of `order`, B rounded up to fill lanes if together; or null
  int64_t kept_size;
};

template <class T>
struct ArcTangent {
  const T* marginals;  // as the outside pass gave them
  const T* kept;
  int64_t kept_size;
  const T* direction;  // (B, n+1, n+1)
  T* tangent;
};

// Draws: `uniforms` (S, B, 2n+2) in [0, 1) become heads (S, B, n).
struct ArcDraws {
  int64_t samples;
  const double* uniforms;
  int64_t* heads;
  bool* possible;  // (B)
};

template <class T>
struct ArcKernels {
  void (*log_partition)(const Arcs<T>&, T* out, int64_t first, int64_t last);
  void (*marginals)(const Arcs<T>&, const ArcMarginals<T>&, int64_t first, int64_t last);
  void (*tangent)(const Arcs<T>&, const ArcTangent<T>&, int64_t first, int64_t last);
  void (*best)(const Arcs<T>&, int64_t* heads, T* scores, int64_t place);
  void (*sample)(const Arcs<T>&, const ArcDraws&, int64_t place);
};

// Scores of spans: B sentences of n words; labels are summed already.
template <class T>
struct Spans {
  Batch batch;
  const T* scores;  // (B, n, n), read on and above the diagonal; tangents do not read them
};

template <class T>
struct SpanMarginals {
  T* log_partition;  // (B)
  T* marginals;      // (B, n, n)
  T* kept;           // as for arcs
  int64_t kept_size;
};

template <class T>
struct SpanTangent {
  const T* kept;  // as the outside pass gave them
  int64_t kept_size;
  const T* direction;  // (B, n, n)
  T* tangent;
};

// Draws: `uniforms` (S, B, n) in [0, 1) become the spans of trees (S, B, n, n).
struct SpanDraws {
  int64_t samples;
  const double* uniforms;
  bool* chosen;
  bool* possible;  // (B)
};

template <class T>
struct SpanKernels {
  void (*log_partition)(const Spans<T>&, T* out, int64_t first, int64_t last);
  void (*marginals)(const Spans<T>&, const SpanMarginals<T>&, int64_t first, int64_t last);
  void (*tangent)(const Spans<T>&, const SpanTangent<T>&, int64_t first, int64_t last);
  void (*best)(const Spans<T>&, bool* chosen, T* scores, int64_t place);
  void (*sample)(const Spans<T>&, const SpanDraws&, int64_t place);
};

struct Kernels {
  const char* name;
  ChainKernels<float> chain_float;
  ChainKernels<double> chain_double;
  ArcKernels<float> projective_float;
  ArcKernels<double> projective_double;
  SpanKernels<float> span_float;
  SpanKernels<double> span_double;
  SemiMarkovKernels<float> semi_markov_float;
  SemiMarkovKernels<double> semi_markov_double;
  AlignmentKernels<float> alignment_float;
  AlignmentKernels<double> alignment_double;
  CtcKernels<float> ctc_float;
  CtcKernels<double> ctc_double;
  SpanningKernels<float> spanning_float;
  SpanningKernels<double> spanning_double;
  ItemKernels<float> k_subset_float;
  ItemKernels<double> k_subset_double;
  bool (*may_be_spoiled_float)(const float* from, int64_t count);
  bool (*may_be_spoiled_double)(const double* from, int64_t count);
};

extern const Kernels baseline_kernels;
#if defined(FOVEAL_X86)
extern const Kernels avx2_kernels;
extern const Kernels avx512_kernels;
#endif

// The table for this CPU, or the one named by the environment variable FOVEAL_KERNELS.
const Kernels& kernels();

}  // namespace foveal
