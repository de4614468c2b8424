// Linear chains of many states with one table of transitions: filtering in probability space, which
// costs one matrix-vector product per step and never builds a (K, K) table for a step.
//
//   filter    s[t, j] = sum_i f[t-1, i] E[i, j],   f[t, j] = s[t, j] U[t, j] / c[t],   c[t] the largest
//             with E = exp( transitions - their maximum ) and U[t] = exp( u[t] - its maximum )
//   outside   m[t-1, i] = f[t-1, i] sum_j E[i, j] r[t, j],    r[t, j] = m[t, j] / s[t, j]
//   pairs     f[t-1, i] E[i, j] r[t, j], which is never stored
//   tangent   the recurrences of chain_lanes.h with these pairs: past[t] takes E' (f past), future[t-1]
//             takes E (r future), and the transitions E * sum_t ( f past r' + f (r future)' )
//
// All values are doubles. A probability that underflows would be lost, and with it chains that catch up
// later. The pass therefore checks the range: if the scores of one step spread over more than `kSpread`, or
// a possible state falls below `kFaint` of the best, chain_states.h computes the item in log-space.
// Within these bounds no product underflows: 1e-100 exp(-200) exp(-200) > 1e-280.

#pragma once

#include "chain_states.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace chain_shared {

using chain_states::Item;
using chain_states::kNever;
using chain_states::padded;

constexpr double kSpread = 200;
constexpr double kFaint = 1e-100;

// exp( scores - their maximum ) over `count` numbers; false if they spread too far.
template <class T>
bool exponentiate(const T* scores, int64_t count, double* out, double* top) {
  *top = static_cast<double>(*std::max_element(scores, scores + count));
  if (*top == kNever) *top = 0;
  const auto highest = Lanes<double>::of(*top);
  auto lowest = Lanes<double>::of(0.0);
  for (int64_t i = 0; i < count; i += kLanes) {
    const auto shifted = widen(load_first(scores + i, count - i, T(kNever))) - highest;
    // -inf does not count in the spread: it is forbidden, and its exp is exactly 0.
    const auto spread = where_less(Lanes<double>::of(std::numeric_limits<double>::lowest()), shifted, shifted, lowest);
    lowest = where_less(spread, lowest, spread, lowest);
    store_first(out + i, count - i, exp(shifted));
  }
  for (int l = 0; l < kLanes; ++l) {
    if (lowest.lane(l) < -kSpread) return false;
  }
  return true;
}

// E and its transpose, rows padded with 0.
class Table {
 public:
  template <class T>
  Table(const T* transitions, int64_t states)
      : states_(states), row_(padded(states)), forward_(states * row_), backward_(states * row_), dense_(states * states) {
    usable_ = exponentiate(transitions, states * states, dense_.data(), &top_);
    std::fill(forward_.data(), forward_.data() + states * row_, 0.0);
    std::fill(backward_.data(), backward_.data() + states * row_, 0.0);
    for (int64_t i = 0; i < states; ++i) {
      for (int64_t j = 0; j < states; ++j) {
        forward_[i * row_ + j] = backward_[j * row_ + i] = dense_[i * states + j];
      }
    }
  }
  bool usable() const { return usable_; }
  double top() const { return top_; }
  int64_t row() const { return row_; }
  double at(int64_t i, int64_t j) const { return forward_[i * row_ + j]; }

  // out[j] = sum_i x[i] E[i, j], and out[i] = sum_j E[i, j] x[j]
  void onward(const double* x, double* out) const { multiply(forward_.data(), x, out); }
  void back(const double* x, double* out) const { multiply(backward_.data(), x, out); }

 private:
  void multiply(const double* table, const double* x, double* out) const {
    for (int64_t block = 0; block < row_; block += kLanes) {
      auto total = Lanes<double>::of(0.0);
      for (int64_t i = 0; i < states_; ++i) {
        total += Lanes<double>::of(x[i]) * Lanes<double>::load(table + i * row_ + block);
      }
      total.store(out + block);
    }
  }

  int64_t states_, row_;
  double top_;
  bool usable_;
  Buffer<double> forward_, backward_, dense_;
};

// The values kept for an item: f, 1 / s and the marginals m of every position.
template <class Number>
struct Kept {
  Number *filtered, *inverse, *mass;

  Kept(Number* kept, int64_t item, int64_t length, int64_t states) {
    filtered = kept + item * 3 * length * states;
    inverse = filtered + length * states;
    mass = inverse + length * states;
  }
};

// The nearest real position before t, or -1.
inline int64_t real_before(const bool* mask, int64_t t) {
  do --t;
  while (t >= 0 && mask != nullptr && !mask[t]);
  return t;
}

// Filters one item; false if it is not safe in probability space.
template <class T>
bool filter(const Chain<T>& chain, const Item<T>& item, const Table& table, const Kept<double>& kept, double* log_partition) {
  const int64_t states = chain.states, row = table.row();
  Buffer<double> factor(row), state(row), reached(row);
  std::fill(state.data(), state.data() + row, 0.0);
  double total = 0;
  bool started = false;
  for (int64_t t = 0; t < chain.length; ++t) {
    if (!item.real(t)) continue;
    double top;
    if (!exponentiate(item.unary + t * states, states, factor.data(), &top)) return false;
    total += top;
    if (started) {
      table.onward(state.data(), reached.data());
      total += table.top();
    } else {
      std::fill(reached.data(), reached.data() + states, 1.0);
      started = true;
    }
    double largest = 0;
    for (int64_t j = 0; j < states; ++j) {
      kept.inverse[t * states + j] = reached[j] > 0 ? 1 / reached[j] : 0;
      state[j] = reached[j] * factor[j];
      largest = std::max(largest, state[j]);
    }
    if (largest == 0) {
      *log_partition = kNever;
      return true;
    }
    total += std::log(largest);
    for (int64_t j = 0; j < states; ++j) {
      state[j] /= largest;
      if (state[j] > 0 && state[j] < kFaint) return false;
      kept.filtered[t * states + j] = state[j];
    }
  }
  double sum = 0;
  for (int64_t j = 0; j < states; ++j) sum += state[j];
  *log_partition = started ? total + std::log(sum) : 0;
  return true;
}

template <class T>
void by_log_space(const Chain<T>& chain, const ChainNodes<T>& out, int64_t item) {
  Buffer<T> pairs((chain.length - 1) * chain.states * chain.states);
  const Chain<T> one{chain.length, chain.states, chain.unary + item * chain.length * chain.states, chain.transitions,
                     0, 0, chain.mask ? chain.mask + item * chain.length : nullptr};
  T* nodes = out.nodes + item * chain.length * chain.states;
  chain_states::marginals(one, {out.log_partition + item, nodes, pairs.data()}, 0);
}

template <class T>
void nodes(const Chain<T>& chain, const ChainNodes<T>& out, int64_t first, int64_t last) {
  const int64_t states = chain.states, length = chain.length;
  const Table table(chain.transitions, states);
  Buffer<double> ratio(table.row()), sums(table.row()), mass(table.row());
  for (int64_t index = first; index < last; ++index) {
    const Item<T> item(chain, index);
    const Kept<double> kept(out.kept, index, length, states);
    double log_partition;
    out.safe[index] = table.usable() && filter(chain, item, table, kept, &log_partition);
    if (!out.safe[index]) {
      by_log_space(chain, out, index);
      continue;
    }
    T* found = out.nodes + index * length * states;
    out.log_partition[index] = static_cast<T>(log_partition);
    std::fill(found, found + length * states, T(0));
    std::fill(kept.mass, kept.mass + length * states, 0.0);
    int64_t t = real_before(item.mask, length);
    if (t < 0 || log_partition == kNever) {
      std::fill(kept.filtered, kept.mass, 0.0);  // its tangent is then 0 too
      continue;
    }
    std::copy(kept.filtered + t * states, kept.filtered + (t + 1) * states, mass.data());
    for (int64_t before; t >= 0; t = before) {
      double total = 0;
      for (int64_t j = 0; j < states; ++j) total += mass[j];
      for (int64_t j = 0; j < states; ++j) {
        const double probability = mass[j] / total;
        kept.mass[t * states + j] = probability;
        found[t * states + j] = static_cast<T>(probability);
        ratio[j] = probability * kept.inverse[t * states + j];
      }
      before = real_before(item.mask, t);
      if (before < 0) break;
      table.back(ratio.data(), sums.data());
      for (int64_t i = 0; i < states; ++i) mass[i] = kept.filtered[before * states + i] * sums[i];
    }
  }
}

// Adds one item's tangent in log-space: recomputes the marginals of pairs, and their derivative.
template <class T>
void tangent_by_log_space(const ChainNodesTangent<T>& task, double* on_transitions, int64_t item) {
  const Chain<T>& chain = task.chain;
  const int64_t edges = chain.states * chain.states, steps = chain.length - 1, offset = item * chain.length * chain.states;
  const bool* mask = chain.mask ? chain.mask + item * chain.length : nullptr;
  const Chain<T> one{chain.length, chain.states, chain.unary + offset, chain.transitions, 0, 0, mask};
  Buffer<T> pairs(steps * edges), along(steps * edges), nodes(chain.length * chain.states);
  T log_partition;
  chain_states::marginals(one, {&log_partition, nodes.data(), pairs.data()}, 0);
  chain_states::tangent<T>({chain.length, chain.states, nodes.data(), pairs.data(), task.on_nodes + offset, nullptr, mask,
                            task.node_tangent + offset, along.data()}, 0);
  for (int64_t e = 0; e < steps * edges; ++e) on_transitions[e % edges] += along[e];
}

// Adds f past r' + f (r future)' to `totals` (K, padded).
inline void add_outer(const double* filtered, const double* past, const double* ratio, const double* future,
                      int64_t states, int64_t row, double* totals) {
  for (int64_t block = 0; block < row; block += kLanes) {
    const auto r = Lanes<double>::load(ratio + block), later = r * Lanes<double>::load(future + block);
    for (int64_t i = 0; i < states; ++i) {
      double* place = totals + i * row + block;
      const auto both = r * Lanes<double>::of(filtered[i] * past[i]) + later * Lanes<double>::of(filtered[i]);
      (Lanes<double>::load(place) + both).store(place);
    }
  }
}

// `on_transitions` (K, K) receives the sum over the items first .. last - 1.
template <class T>
void tangent(const ChainNodesTangent<T>& task, double* on_transitions, int64_t first, int64_t last) {
  const Chain<T>& chain = task.chain;
  const int64_t states = chain.states, length = chain.length;
  const Table table(chain.transitions, states);
  const int64_t row = table.row();
  Buffer<double> own(length * row), past(length * row), future(row), ratio(row), weighted(row), sums(row), totals(states * row);
  for (Buffer<double>* buffer : {&future, &ratio, &weighted}) std::fill(buffer->data(), buffer->data() + row, 0.0);
  std::fill(totals.data(), totals.data() + states * row, 0.0);
  std::fill(on_transitions, on_transitions + states * states, 0.0);
  for (int64_t index = first; index < last; ++index) {
    if (!task.safe[index]) {
      tangent_by_log_space(task, on_transitions, index);
      continue;
    }
    const Kept<const double> kept(task.kept, index, length, states);
    const bool* mask = chain.mask ? chain.mask + index * length : nullptr;
    const T* direction = task.on_nodes + index * length * states;
    T* along = task.node_tangent + index * length * states;
    std::fill(along, along + length * states, T(0));
    int64_t before = -1;
    for (int64_t t = 0; t < length; ++t) {
      if (mask != nullptr && !mask[t]) continue;
      const double* mass = kept.mass + t * states;
      double* mine = own.data() + t * row;
      double* here = past.data() + t * row;
      double mean = 0;
      for (int64_t j = 0; j < states; ++j) mean += mass[j] * direction[t * states + j];
      for (int64_t j = 0; j < states; ++j) here[j] = mine[j] = direction[t * states + j] - mean;
      if (before >= 0) {
        const double* filtered = kept.filtered + before * states;
        for (int64_t i = 0; i < states; ++i) weighted[i] = filtered[i] * past[before * row + i];
        table.onward(weighted.data(), sums.data());
        mean = 0;
        for (int64_t j = 0; j < states; ++j) {
          sums[j] *= kept.inverse[t * states + j];
          mean += mass[j] * sums[j];
        }
        for (int64_t j = 0; j < states; ++j) here[j] += sums[j] - mean;
      }
      before = t;
    }
    std::fill(future.data(), future.data() + states, 0.0);
    for (int64_t t = before; t >= 0; t = before) {
      const double* mass = kept.mass + t * states;
      for (int64_t j = 0; j < states; ++j) {
        along[t * states + j] = static_cast<T>(mass[j] * (past[t * row + j] + future[j]));
        future[j] += own[t * row + j];
        ratio[j] = mass[j] * kept.inverse[t * states + j];
        weighted[j] = ratio[j] * future[j];
      }
      before = real_before(mask, t);
      if (before < 0) break;
      const double* filtered = kept.filtered + before * states;
      add_outer(filtered, past.data() + before * row, ratio.data(), future.data(), states, row, totals.data());
      table.back(weighted.data(), sums.data());
      double mean = 0;
      for (int64_t i = 0; i < states; ++i) {
        const double probability = kept.mass[before * states + i];
        future[i] = probability > 0 ? filtered[i] * sums[i] / probability : 0;
        mean += probability * future[i];
      }
      for (int64_t i = 0; i < states; ++i) future[i] -= mean;
    }
  }
  for (int64_t i = 0; i < states; ++i) {
    for (int64_t j = 0; j < states; ++j) {
      const double total = totals[i * row + j];
      if (total != 0) on_transitions[i * states + j] += table.at(i, j) * total;  // no step reads a NaN
    }
  }
}

}  // namespace chain_shared
}  // namespace FOVEAL_ISA
}  // namespace foveal
