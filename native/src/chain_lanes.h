// Linear chains of few states, one batch item in each lane.
//
//   inside        a[t, j]    = log sum_i exp( a[t-1, i] + e[t, i, j] ) + u[t, j]
//   conditionals  q[t, i, j] = exp( a[t-1, i] + e[t, i, j] ) / sum_i ( the same )  =  p( i | j )
//   outside       m[t-1, i]  = sum_j q[t, i, j] m[t, j]
//   tangent       see `tangent`
//
// The inside scores are doubles, so large scores cost no accuracy; all later values are probabilities
// of the type T of the result. A step is linked if its position is real and follows a real one. Any other
// step copies the state, and its values are never used.

#pragma once

#include "kernels.h"
#include "lanes.h"
#include "scratch.h"
#include "transposition.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace chain_lanes {

constexpr int kMostStates = 10;  // with more states, states in lanes are faster

// The group of items that fills the lanes.
struct Group {
  int64_t first;
  int lanes;  // unused lanes repeat the first item
};

// Which positions are real and which steps linked, 1 or 0 in each lane.
template <class T>
class Links {
 public:
  Links(const bool* mask, int64_t length, Group group)
      : masked_(mask != nullptr), real_(masked_ ? length : 0), linked_(masked_ ? length : 0) {
    if (!masked_) return;
    for (int l = 0; l < kLanes; ++l) {
      const bool* row = mask + (group.first + (l < group.lanes ? l : 0)) * length;
      bool seen = false;
      for (int64_t t = 0; t < length; ++t) {
        real_[t].set_lane(l, row[t]);
        linked_[t].set_lane(l, row[t] && seen);
        seen = seen || row[t];
      }
      empty_.set_lane(l, !seen);
    }
  }
  bool masked() const { return masked_; }
  // Selects the first value in lanes whose position is real, and the second value in the others.
  FOVEAL_INLINE Lanes<T> where_real(int64_t t, const Lanes<T>& x, const Lanes<T>& other) const {
    return masked_ ? where_positive(real_[t], x, other) : x;
  }
  template <class U>
  FOVEAL_INLINE Lanes<U> where_linked(int64_t t, const Lanes<U>& x, const Lanes<U>& other) const {
    if (!masked_) return x;
    if constexpr (sizeof(U) == sizeof(T)) return where_positive(linked_[t], x, other);
    else return where_positive(widen(linked_[t]), x, other);
  }
  // A sequence without real positions has one labeling, the empty one, not K copies of it.
  FOVEAL_INLINE Lanes<double> start(int state, const Lanes<double>& score) const {
    if (!masked_ || state == 0) return score;
    const auto never = Lanes<double>::of(-std::numeric_limits<double>::infinity());
    return where_positive(widen(empty_), never, score);
  }

 private:
  bool masked_;
  Buffer<Lanes<T>> real_, linked_;
  Lanes<T> empty_;
};

// Transposes a few steps of a tensor (B, steps, size) at a time, with items in lanes.
template <class T>
class Steps {
 public:
  Steps(const T* from, int64_t item_stride, int64_t step_stride, int64_t size, int64_t count, Group group)
      : from_(from + group.first * item_stride), item_stride_(item_stride), step_stride_(step_stride),
        size_(size), count_(count), lanes_(group.lanes), at_once_(std::max<int64_t>(1, 64 / size)),
        block_(at_once_ * size) {
    if (step_stride_ == 0) gather(from_, item_stride_, lanes_, size_, block_.data());
  }
  const Lanes<T>* at(int64_t step) {
    if (step_stride_ == 0) return block_.data();
    if (step < begin_ || step >= end_) {
      begin_ = step - step % at_once_;
      end_ = std::min(begin_ + at_once_, count_);
      gather(from_ + begin_ * step_stride_, item_stride_, lanes_, (end_ - begin_) * size_, block_.data());
    }
    return block_.data() + (step - begin_) * size_;
  }

 private:
  const T* from_;
  int64_t item_stride_, step_stride_, size_, count_;
  int lanes_;
  int64_t at_once_, begin_ = 0, end_ = 0;
  Buffer<Lanes<T>> block_;
};

// The inside pass; fills `conditionals` (T-1, K, K) unless it is null, and `last` (K), the marginals
// of the last position. A template argument K other than 0 is a compile-time constant.
template <class T, int K>
Lanes<T> inside(const Chain<T>& chain, Group group, const Links<T>& links, Lanes<T>* conditionals,
                Lanes<T>* last) {
  const int states = K ? K : static_cast<int>(chain.states);
  const int edges = states * states;
  const auto zero = Lanes<double>::of(0.0);
  const auto never = Lanes<double>::of(-std::numeric_limits<double>::infinity());
  Steps<T> unary(chain.unary, chain.length * states, states, states, chain.length, group);
  Steps<T> transitions(chain.transitions, chain.item_stride, chain.step_stride, edges, chain.length - 1, group);
  Lanes<double> alpha[K ? K : kMostStates], next[K ? K : kMostStates], joined[K ? K : kMostStates];
  const Lanes<T>* scores = unary.at(0);
  for (int j = 0; j < states; ++j) {
    alpha[j] = links.start(j, widen(links.where_real(0, scores[j], Lanes<T>::of(T(0)))));
  }
  for (int64_t t = 1; t < chain.length; ++t) {
    scores = unary.at(t);
    const Lanes<T>* edge = transitions.at(t - 1);
    for (int j = 0; j < states; ++j) {
      auto highest = Lanes<double>::of(std::numeric_limits<double>::lowest());
      for (int i = 0; i < states; ++i) {
        joined[i] = alpha[i] + widen(edge[i * states + j]);
        highest = max(highest, joined[i]);
      }
      auto total = Lanes<T>::of(T(0));
      Lanes<T> weight[K ? K : kMostStates];
      for (int i = 0; i < states; ++i) {
        weight[i] = exp(narrow<T>(joined[i] - highest));
        total += weight[i];
      }
      if (conditionals != nullptr) {
        const auto scale = reciprocal_or_zero(total);
        Lanes<T>* column = conditionals + (t - 1) * edges + j;
        for (int i = 0; i < states; ++i) column[i * states] = weight[i] * scale;
      }
      const auto reached = highest + widen(log(total));
      next[j] = where_positive(widen(total), reached, never);
    }
    for (int j = 0; j < states; ++j) {
      const auto own = widen(links.where_real(t, scores[j], Lanes<T>::of(T(0))));
      alpha[j] = links.where_linked(t, next[j], alpha[j]) + own;
    }
  }
  auto highest = Lanes<double>::of(std::numeric_limits<double>::lowest());
  for (int j = 0; j < states; ++j) highest = max(highest, alpha[j]);
  auto total = Lanes<T>::of(T(0));
  for (int j = 0; j < states; ++j) {
    last[j] = exp(narrow<T>(alpha[j] - highest));
    total += last[j];
  }
  const auto scale = reciprocal_or_zero(total);
  for (int j = 0; j < states; ++j) last[j] = last[j] * scale;
  return narrow<T>(where_positive(widen(total), highest + widen(log(total)), never + zero));
}

template <class T, int K>
void log_partition(const Chain<T>& chain, T* out, Group group) {
  const Links<T> links(chain.mask, chain.length, group);
  Lanes<T> last[kMostStates];
  const auto found = inside<T, K>(chain, group, links, nullptr, last);
  for (int l = 0; l < group.lanes; ++l) out[group.first + l] = found.lane(l);
}

template <class T, int K>
void marginals(const Chain<T>& chain, const ChainMarginals<T>& out, Group group) {
  const int states = K ? K : static_cast<int>(chain.states);
  const int edges = states * states;
  const int64_t steps = chain.length - 1;
  const auto zero = Lanes<T>::of(T(0));
  const Links<T> links(chain.mask, chain.length, group);
  Buffer<Lanes<T>> pairs(steps * edges), nodes(chain.length * states);
  Lanes<T> mass[kMostStates], before[kMostStates];
  const auto found = inside<T, K>(chain, group, links, pairs.data(), mass);
  for (int64_t t = chain.length - 1;; --t) {
    for (int j = 0; j < states; ++j) nodes[t * states + j] = links.where_real(t, mass[j], zero);
    if (t == 0) break;
    Lanes<T>* pair = pairs.data() + (t - 1) * edges;
    auto total = zero;
    for (int i = 0; i < states; ++i) {
      before[i] = zero;
      for (int j = 0; j < states; ++j) {
        const auto both = pair[i * states + j] * mass[j];
        before[i] += both;
        pair[i * states + j] = links.where_linked(t, both, zero);
      }
      total += before[i];
    }
    // Rounding errors of the total of a position accumulate with every step: rescale it to 1.
    const auto scale = reciprocal_or_zero(total);
    for (int i = 0; i < states; ++i) mass[i] = links.where_linked(t, before[i] * scale, mass[i]);
  }
  for (int l = 0; l < group.lanes; ++l) out.log_partition[group.first + l] = found.lane(l);
  const int64_t node_count = chain.length * states, pair_count = steps * edges;
  scatter(nodes.data(), node_count, group.lanes, node_count, out.nodes + group.first * node_count);
  scatter(pairs.data(), pair_count, group.lanes, pair_count, out.pairs + group.first * pair_count);
}

// The derivative of the marginals along a direction g: with G(y) the sum of g over the parts of y,
// it is Cov(part, G). Two vectors per position are enough, both with mean 0:
//
//   past[t, j]   = E[ G up to t | y_t = j ]   = g[t, j] + sum_i p[t, i, j] (past[t-1, i] + g[t, i, j]) / p[t, j]
//   future[t, i] = E[ G from t on | y_t = i ] = g[t, i] + sum_j p[t+1, i, j] (future[t+1, j] + g[t+1, i, j]) / p[t, i]
//   pair         = p[t, i, j] ( past[t-1, i] + g[t, i, j] - E[g[t]] + future[t, j] )
//   node         = p[t, j] ( past[t, j] + future[t, j] - g[t, j] + E[g[t]] )
template <class T, int K>
void tangent(const ChainTangent<T>& task, Group group) {
  const int states = K ? K : static_cast<int>(task.states);
  const int edges = states * states;
  const int64_t length = task.length, steps = length - 1;
  const int64_t node_count = length * states, pair_count = steps * edges;
  const auto zero = Lanes<T>::of(T(0));
  const Links<T> links(task.mask, length, group);
  Steps<T> nodes(task.nodes, node_count, states, states, length, group);
  Steps<T> pairs(task.pairs, pair_count, edges, edges, steps, group);
  Steps<T> on_nodes(task.on_nodes ? task.on_nodes : task.nodes, node_count, states, states, length, group);
  Steps<T> on_pairs(task.on_pairs ? task.on_pairs : task.pairs, pair_count, edges, edges, steps, group);
  Buffer<Lanes<T>> past(node_count), means(length), own(node_count), along(pair_count);
  Lanes<T> sums[kMostStates], future[kMostStates];

  // own[t] is the direction on the nodes, centered; values on padding are ignored.
  for (int64_t t = 0; t < length; ++t) {
    const Lanes<T>* mass = nodes.at(t);
    Lanes<T>* mine = own.data() + t * states;
    auto mean = zero;
    for (int j = 0; j < states; ++j) {
      mine[j] = task.on_nodes ? links.where_real(t, on_nodes.at(t)[j], zero) : zero;
      mean += mass[j] * mine[j];
    }
    for (int j = 0; j < states; ++j) mine[j] = links.where_real(t, mine[j] - mean, zero);
  }
  for (int j = 0; j < states; ++j) past[j] = own[j];
  for (int64_t t = 1; t < length; ++t) {
    const Lanes<T>* pair = pairs.at(t - 1);
    const Lanes<T>* direction = on_pairs.at(t - 1);
    const Lanes<T>* before = past.data() + (t - 1) * states;
    Lanes<T>* here = past.data() + t * states;
    auto mean = zero, edge_mean = zero;
    for (int j = 0; j < states; ++j) {
      auto total = zero, weight = zero;
      for (int i = 0; i < states; ++i) {
        const auto p = pair[i * states + j];
        auto term = before[i];
        if (task.on_pairs) {
          const auto g = links.where_linked(t, direction[i * states + j], zero);
          edge_mean += p * g;
          term += g;
        }
        total += p * term;
        weight += p;
      }
      mean += total;
      sums[j] = total * reciprocal_or_zero(weight);
    }
    means[t] = edge_mean;
    for (int j = 0; j < states; ++j) {
      here[j] = links.where_linked(t, sums[j] - mean, before[j]) + own[t * states + j];
    }
  }
  for (int j = 0; j < states; ++j) future[j] = zero;
  for (int64_t t = length - 1;; --t) {
    const Lanes<T>* mass = nodes.at(t);
    const Lanes<T>* here = past.data() + t * states;
    Lanes<T>* mine = own.data() + t * states;
    for (int j = 0; j < states; ++j) {
      const auto along_node = mass[j] * (here[j] + future[j]);
      future[j] += mine[j];
      mine[j] = along_node;  // 0 on padding, where the marginal is 0
    }
    if (t == 0) break;
    const Lanes<T>* pair = pairs.at(t - 1);
    const Lanes<T>* direction = on_pairs.at(t - 1);
    const Lanes<T>* before = past.data() + (t - 1) * states;
    Lanes<T>* out = along.data() + (t - 1) * edges;
    auto mean = zero;
    for (int i = 0; i < states; ++i) {
      auto total = zero, weight = zero;
      for (int j = 0; j < states; ++j) {
        const auto p = pair[i * states + j];
        auto term = future[j];
        if (task.on_pairs) term += links.where_linked(t, direction[i * states + j], zero) - means[t];
        const auto share = p * term;
        total += share;
        weight += p;
        out[i * states + j] = share + p * before[i];
      }
      mean += total;
      sums[i] = total * reciprocal_or_zero(weight);
    }
    for (int i = 0; i < states; ++i) future[i] = links.where_linked(t, sums[i] - mean, future[i]);
  }
  scatter(own.data(), node_count, group.lanes, node_count, task.node_tangent + group.first * node_count);
  if (task.pair_tangent != nullptr) {
    scatter(along.data(), pair_count, group.lanes, pair_count, task.pair_tangent + group.first * pair_count);
  }
}

// Two states, as in segment attention, are a compile-time constant; other numbers are not.
#define FOVEAL_BY_STATES(states, f, ...) \
  if ((states) == 2) {                      \
    f<T, 2>(__VA_ARGS__);                   \
  } else {                                  \
    f<T, 0>(__VA_ARGS__);                   \
  }

}  // namespace chain_lanes
}  // namespace FOVEAL_ISA
}  // namespace foveal
