// Linear chains of many states: one item at a time, its states in the lanes. The recurrences are in
// chain_lanes.h.
//
// A row of a (K, K) table takes `blocks` registers, the last of them partly filled. A step that is not
// linked copies the state, which here means that the pass skips the step.

#pragma once

#include <type_traits>

#include "chain_lanes.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace chain_states {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// The rows of one item, and its linked steps.
template <class T>
struct Item {
  const T* unary;        // (T, K)
  const T* transitions;  // (T-1, K, K) by step_stride
  int64_t step_stride;
  const bool* mask;  // (T) or null

  Item(const Chain<T>& chain, int64_t item)
      : unary(chain.unary + item * chain.length * chain.states),
        transitions(chain.transitions + item * chain.item_stride),
        step_stride(chain.step_stride),
        mask(chain.mask ? chain.mask + item * chain.length : nullptr) {}

  bool real(int64_t t) const { return mask == nullptr || mask[t]; }
};

inline int64_t first_real(const bool* mask, int64_t length) {
  return mask ? std::find(mask, mask + length, true) - mask : 0;
}

// Adds unary scores to the inside scores (double, padded with -inf to whole registers).
template <class T>
void add_unary(const T* unary, int64_t states, double* alpha) {
  for (int64_t j = 0; j < states; ++j) alpha[j] += static_cast<double>(unary[j]);
}

// The terms of a step into a block of states: edges[i, block] + scores[i] - reference, less a number near
// their maximum. An approximate maximum is enough to keep exp in range, so it is first computed in T. That is
// too inaccurate if scores are so large that T has no fractional digits. `is_in_range` detects this case,
// which needs the maximum in double.
template <bool in_double, class T>
class StepTerms {
 public:
  FOVEAL_INLINE StepTerms(const double* scores, double reference, const T* edges, int64_t states, int64_t block)
      : scores_(scores), reference_(reference), edges_(edges + block), states_(states), count_(states - block),
        steepest_(Lanes<T>::of(T(0))) {
    using Number = std::conditional_t<in_double, double, T>;
    auto near = Lanes<Number>::of(std::numeric_limits<Number>::lowest());
    for (int64_t i = 0; i < states; ++i) {
      if constexpr (in_double) near = max(near, widen(edge(i)) + (scores[i] - reference));
      else near = max(near, edge(i) + static_cast<T>(scores[i] - reference));
    }
    highest_ = widen(near);
  }
  const Lanes<double>& highest() const { return highest_; }
  FOVEAL_INLINE Lanes<T> weight(int64_t i) {
    const auto term = narrow<T>(widen(edge(i)) + (scores_[i] - reference_) - highest_);
    if constexpr (!in_double) steepest_ = max(steepest_, term);
    return exp(term);
  }
  // Whether the weights with this sum neither overflow nor underflow.
  FOVEAL_INLINE bool is_in_range(const Lanes<T>& total) const {
    if constexpr (in_double) return true;
    const auto zero = Lanes<T>::of(T(0)), lowest = Lanes<T>::of(std::numeric_limits<T>::lowest());
    const auto lost = where_less(lowest, narrow<T>(highest_), Lanes<T>::of(kSteep + 1), zero);
    const auto faint = where_less(total, Lanes<T>::of(T(1e-6)), lost, zero);
    return !any_above(max(steepest_, faint), kSteep);
  }

 private:
  static constexpr T kSteep = 8;
  FOVEAL_INLINE Lanes<T> edge(int64_t i) const { return load_first(edges_ + i * states_, count_, T(kNever)); }

  const double* scores_;
  double reference_;
  const T* edges_;
  int64_t states_, count_;
  Lanes<T> steepest_;
  Lanes<double> highest_;
};

// One step of the inside pass, alpha -> next without the unary scores. Stores exp(...) in `weights`
// (K, K) and the reciprocals of their sums over i in `scales` (padded), unless they are null. Returns false if
// numbers left the range of T, which cannot happen in double.
template <bool in_double, class T>
bool advance_in(const double* alpha, const T* edges, int64_t states, double* next, T* weights, T* scales) {
  const auto never = Lanes<double>::of(kNever);
  const double top = *std::max_element(alpha, alpha + states);
  const double reference = top > kNever ? top : 0.0;
  for (int64_t block = 0; block < states; block += kLanes) {
    StepTerms<in_double, T> terms(alpha, reference, edges, states, block);
    auto total = Lanes<T>::of(T(0));
    for (int64_t i = 0; i < states; ++i) {
      const auto weight = terms.weight(i);
      total += weight;
      if (weights != nullptr) store_first(weights + i * states + block, states - block, weight);
    }
    if (!terms.is_in_range(total)) return false;
    if (scales != nullptr) reciprocal_or_zero(total).store(scales + block);
    const auto reached = terms.highest() + widen(log(total)) + reference;
    where_positive(widen(total), reached, never).store(next + block);
  }
  return true;
}

template <class T>
void advance(const double* alpha, const T* edges, int64_t states, double* next, T* weights, T* scales) {
  if (std::is_same_v<T, float> && advance_in<false>(alpha, edges, states, next, weights, scales)) return;
  advance_in<true>(alpha, edges, states, next, weights, scales);
}

// Stores exp( alpha - log Z ) in `last`, padded; returns log Z.
template <class T>
double finish(const double* alpha, int64_t states, T* last) {
  const double top = *std::max_element(alpha, alpha + states);
  if (top == kNever) {
    std::fill(last, last + states, T(0));
    return kNever;
  }
  double total = 0;
  for (int64_t j = 0; j < states; ++j) total += std::exp(alpha[j] - top);
  for (int64_t j = 0; j < states; ++j) last[j] = static_cast<T>(std::exp(alpha[j] - top) / total);
  return top + std::log(total);
}

inline int64_t padded(int64_t states) { return (states + kLanes - 1) / kLanes * kLanes; }

// The inside pass. `kept`, if not null, receives the inside scores of every position (T, padded);
// a position that is not real repeats the scores of the previous position.
template <class T>
void inside(const Chain<T>& chain, const Item<T>& item, double* alpha, double* kept, T* weights, T* scales) {
  const int64_t states = chain.states, edges = states * states, row = padded(states);
  Buffer<double> next(row);
  std::fill(alpha, alpha + row, kNever);
  std::fill(alpha, alpha + states, 0.0);
  const int64_t start = first_real(item.mask, chain.length);
  for (int64_t t = 0; t < chain.length; ++t) {
    if (item.real(t)) {
      if (t > start) {
        advance(alpha, item.transitions + (t - 1) * item.step_stride, states, next.data(),
                weights ? weights + (t - 1) * edges : nullptr, scales ? scales + (t - 1) * row : nullptr);
        std::copy(next.data(), next.data() + row, alpha);
      }
      add_unary(item.unary + t * states, states, alpha);
    }
    if (kept != nullptr) std::copy(alpha, alpha + row, kept + t * row);
  }
  // No real position: one labeling, the empty one, not K copies of it.
  if (start == chain.length) std::fill(alpha + 1, alpha + row, kNever);
}

template <class T>
void log_partition(const Chain<T>& chain, T* out, int64_t item) {
  Buffer<double> alpha(padded(chain.states));
  Buffer<T> last(padded(chain.states));
  inside<T>(chain, Item<T>(chain, item), alpha.data(), nullptr, nullptr, nullptr);
  out[item] = static_cast<T>(finish(alpha.data(), chain.states, last.data()));
}

template <class T>
void marginals(const Chain<T>& chain, const ChainMarginals<T>& out, int64_t index) {
  const int64_t states = chain.states, edges = states * states, row = padded(states);
  const Item<T> item(chain, index);
  T* nodes = out.nodes + index * chain.length * states;
  T* pairs = out.pairs + index * (chain.length - 1) * edges;
  Buffer<double> alpha(row);
  Buffer<T> scales((chain.length - 1) * row), mass(row), scaled(row);
  std::fill(mass.data(), mass.data() + row, T(0));
  inside(chain, item, alpha.data(), nullptr, pairs, scales.data());
  out.log_partition[index] = static_cast<T>(finish(alpha.data(), states, mass.data()));
  const int64_t start = first_real(item.mask, chain.length);
  for (int64_t t = chain.length - 1; t >= 0; --t) {
    const bool real = item.real(t);
    for (int64_t j = 0; j < states; ++j) nodes[t * states + j] = real ? mass[j] : T(0);
    if (t == 0) break;
    T* pair = pairs + (t - 1) * edges;
    if (!real || t <= start) {
      std::fill(pair, pair + edges, T(0));
      continue;
    }
    for (int64_t block = 0; block < states; block += kLanes) {
      const auto weight = Lanes<T>::load(scales.data() + (t - 1) * row + block);
      (Lanes<T>::load(mass.data() + block) * weight).store(scaled.data() + block);
    }
    T total = 0;
    for (int64_t i = 0; i < states; ++i) {
      auto sums = Lanes<T>::of(T(0));
      for (int64_t block = 0; block < states; block += kLanes) {
        T* place = pair + i * states + block;
        const auto both = load_first(place, states - block, T(0)) * Lanes<T>::load(scaled.data() + block);
        store_first(place, states - block, both);
        sums += both;
      }
      mass[i] = sum(sums);
      total += mass[i];
    }
    if (total > 0) {
      for (int64_t i = 0; i < states; ++i) mass[i] /= total;
    }
  }
}

// The direction on the nodes of a position, centered; 0 if there is no direction or the position is not real.
template <class T>
void center(const T* mass, const T* direction, bool real, int64_t states, T* own) {
  std::fill(own, own + states, T(0));
  if (direction == nullptr || !real) return;
  T mean = 0;
  for (int64_t j = 0; j < states; ++j) mean += mass[j] * direction[j];
  for (int64_t j = 0; j < states; ++j) own[j] = direction[j] - mean;
}

// Computes past[t] from past[t-1], without the direction on the nodes; returns E[g] of the step.
template <class T>
T push_forward(const T* pair, const T* direction, int64_t states, const T* before, T* here) {
  auto mean = Lanes<T>::of(T(0)), edge_mean = Lanes<T>::of(T(0));
  for (int64_t block = 0; block < states; block += kLanes) {
    const int64_t count = states - block;
    auto total = Lanes<T>::of(T(0)), weight = total;
    for (int64_t i = 0; i < states; ++i) {
      const auto p = load_first(pair + i * states + block, count, T(0));
      if (direction != nullptr) {
        const auto g = load_first(direction + i * states + block, count, T(0));
        total += p * (g + before[i]);
        edge_mean += p * g;
      } else {
        total += p * Lanes<T>::of(before[i]);
      }
      weight += p;
    }
    mean += total;
    (total * reciprocal_or_zero(weight)).store(here + block);
  }
  const T shift = sum(mean);
  for (int64_t j = 0; j < states; ++j) here[j] -= shift;
  return sum(edge_mean);
}

// Computes future[t-1] from future[t] (in place), and the derivative of the pairs if `along` is not null.
template <class T>
void push_back(const T* pair, const T* direction, T edge_mean, int64_t states, const T* before,
               T* future, T* next, T* along) {
  T mean = 0;
  for (int64_t i = 0; i < states; ++i) {
    auto total = Lanes<T>::of(T(0)), weight = total;
    for (int64_t block = 0; block < states; block += kLanes) {
      const int64_t count = states - block;
      const auto p = load_first(pair + i * states + block, count, T(0));
      auto term = Lanes<T>::load(future + block);
      if (direction != nullptr) {
        term += load_first(direction + i * states + block, count, T(0)) - edge_mean;
      }
      const auto share = p * term;
      total += share;
      weight += p;
      if (along != nullptr) {
        store_first(along + i * states + block, count, share + p * Lanes<T>::of(before[i]));
      }
    }
    const T all = sum(weight), part = sum(total);
    next[i] = all > std::numeric_limits<T>::min() ? part / all : T(0);
    mean += part;
  }
  for (int64_t i = 0; i < states; ++i) future[i] = next[i] - mean;
}

template <class T>
void tangent(const ChainTangent<T>& task, int64_t item) {
  const int64_t states = task.states, edges = states * states, length = task.length, row = padded(states);
  const int64_t node_offset = item * length * states, pair_offset = item * (length - 1) * edges;
  const T* nodes = task.nodes + node_offset;
  const T* pairs = task.pairs + pair_offset;
  const T* on_nodes = task.on_nodes ? task.on_nodes + node_offset : nullptr;
  const T* on_pairs = task.on_pairs ? task.on_pairs + pair_offset : nullptr;
  const bool* mask = task.mask ? task.mask + item * length : nullptr;
  T* node_tangent = task.node_tangent + node_offset;
  T* pair_tangent = task.pair_tangent ? task.pair_tangent + pair_offset : nullptr;
  const int64_t start = first_real(mask, length);
  const auto linked = [&](int64_t t) { return t > start && (mask == nullptr || mask[t]); };
  Buffer<T> past(length * row), own(length * states), means(length), future(row), next(row);

  for (int64_t t = 0; t < length; ++t) {
    const bool real = mask == nullptr || mask[t];
    T* mine = own.data() + t * states;
    T* here = past.data() + t * row;
    center(nodes + t * states, on_nodes ? on_nodes + t * states : nullptr, real, states, mine);
    if (linked(t)) {
      const T* direction = on_pairs ? on_pairs + (t - 1) * edges : nullptr;
      means[t] = push_forward(pairs + (t - 1) * edges, direction, states, here - row, here);
    } else if (t > 0) {
      std::copy(here - row, here, here);
    } else {
      std::fill(here, here + row, T(0));
    }
    for (int64_t j = 0; j < states; ++j) here[j] += mine[j];
  }
  std::fill(future.data(), future.data() + row, T(0));
  for (int64_t t = length - 1; t >= 0; --t) {
    const T* mine = own.data() + t * states;
    const T* here = past.data() + t * row;
    for (int64_t j = 0; j < states; ++j) {
      node_tangent[t * states + j] = nodes[t * states + j] * (here[j] + future[j]);
      future[j] += mine[j];
    }
    if (t == 0) break;
    T* along = pair_tangent ? pair_tangent + (t - 1) * edges : nullptr;
    if (linked(t)) {
      const T* direction = on_pairs ? on_pairs + (t - 1) * edges : nullptr;
      push_back(pairs + (t - 1) * edges, direction, means[t], states, here - row, future.data(), next.data(), along);
    } else if (along != nullptr) {
      std::fill(along, along + edges, T(0));
    }
  }
}

}  // namespace chain_states
}  // namespace FOVEAL_ISA
}  // namespace foveal
