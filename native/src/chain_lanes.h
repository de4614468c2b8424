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

// The inside pass of one group: `step` for the positions 1 .. T-1, then `finish`. Fills `conditionals`
// (T-1, K, K) unless it is null. A template argument K other than 0 is a compile-time constant.
template <class T, int K>
class Inside {
 public:
  Inside(const Chain<T>& chain, Group group, const Links<T>& links, Lanes<T>* conditionals)
      : states_(K ? K : static_cast<int>(chain.states)), links_(links), conditionals_(conditionals),
        unary_(chain.unary, chain.length * states_, states_, states_, chain.length, group),
        transitions_(chain.transitions, chain.item_stride, chain.step_stride, states_ * states_, chain.length - 1,
                     group) {
    const Lanes<T>* scores = unary_.at(0);
    for (int j = 0; j < states(); ++j) {
      alpha_[j] = links_.start(j, widen(links_.where_real(0, scores[j], Lanes<T>::of(T(0)))));
    }
  }
  FOVEAL_INLINE void step(int64_t t) {
    const auto never = Lanes<double>::of(-std::numeric_limits<double>::infinity());
    const Lanes<T>* scores = unary_.at(t);
    const Lanes<T>* edge = transitions_.at(t - 1);
    Lanes<double> next[kMost], joined[kMost];
    for (int j = 0; j < states(); ++j) {
      auto highest = Lanes<double>::of(std::numeric_limits<double>::lowest());
      for (int i = 0; i < states(); ++i) {
        joined[i] = alpha_[i] + widen(edge[i * states() + j]);
        highest = max(highest, joined[i]);
      }
      Lanes<T> weight[kMost];
      const auto total = exp_below(joined, highest, weight);
      if (conditionals_ != nullptr) {
        const auto scale = reciprocal_or_zero(total);
        Lanes<T>* column = conditionals_ + (t - 1) * states() * states() + j;
        for (int i = 0; i < states(); ++i) column[i * states()] = weight[i] * scale;
      }
      const auto reached = highest + widen(log(total));
      next[j] = where_positive(widen(total), reached, never);
    }
    for (int j = 0; j < states(); ++j) {
      const auto own = widen(links_.where_real(t, scores[j], Lanes<T>::of(T(0))));
      alpha_[j] = links_.where_linked(t, next[j], alpha_[j]) + own;
    }
  }
  // Returns log Z, and in `last` (K) the marginals of the last position.
  Lanes<T> finish(Lanes<T>* last) const {
    const auto never = Lanes<double>::of(-std::numeric_limits<double>::infinity());
    auto highest = Lanes<double>::of(std::numeric_limits<double>::lowest());
    for (int j = 0; j < states(); ++j) highest = max(highest, alpha_[j]);
    const auto total = exp_below(alpha_, highest, last);
    const auto scale = reciprocal_or_zero(total);
    for (int j = 0; j < states(); ++j) last[j] = last[j] * scale;
    return narrow<T>(where_positive(widen(total), highest + widen(log(total)), never));
  }

 private:
  static constexpr int kMost = K ? K : kMostStates;

  FOVEAL_INLINE int states() const { return K ? K : states_; }
  // weight[i] = exp(scores[i] - highest); returns their sum. The weight of the highest of two is 1.
  FOVEAL_INLINE Lanes<T> exp_below(const Lanes<double>* scores, const Lanes<double>& highest, Lanes<T>* weight) const {
    const auto zero = Lanes<T>::of(T(0));
    if constexpr (K == 2) {
      const auto first = narrow<T>(scores[0] - highest), second = narrow<T>(scores[1] - highest);
      const auto lower = exp(where_less(first, second, first, second)), one = Lanes<T>::of(T(1));
      weight[0] = where_less(first, zero, lower, one);
      weight[1] = where_less(second, zero, lower, one);
      return weight[0] + weight[1];
    }
    auto total = zero;
    for (int i = 0; i < states(); ++i) {
      weight[i] = exp(narrow<T>(scores[i] - highest));
      total += weight[i];
    }
    return total;
  }

  const int states_;
  const Links<T>& links_;
  Lanes<T>* const conditionals_;
  Steps<T> unary_, transitions_;
  Lanes<double> alpha_[kMost];
};

// The inside and the outside pass of one group: `inside` for the positions 1 .. T-1, `turn`, `outside` for T-1 .. 1,
// then `store`.
template <class T, int K>
class Marginals {
 public:
  Marginals(const Chain<T>& chain, Group group)
      : states_(K ? K : static_cast<int>(chain.states)), length_(chain.length), group_(group),
        links_(chain.mask, chain.length, group), pairs_((length_ - 1) * states_ * states_), nodes_(length_ * states_),
        inside_(chain, group, links_, pairs_.data()) {}
  FOVEAL_INLINE void inside(int64_t t) { inside_.step(t); }
  void turn() { log_partition_ = inside_.finish(mass_); }
  FOVEAL_INLINE void outside(int64_t t) {
    const auto zero = Lanes<T>::of(T(0));
    store_nodes(t);
    Lanes<T>* pair = pairs_.data() + (t - 1) * states() * states();
    Lanes<T> before[kMost];
    auto total = zero;
    for (int i = 0; i < states(); ++i) {
      before[i] = zero;
      for (int j = 0; j < states(); ++j) {
        const auto both = pair[i * states() + j] * mass_[j];
        before[i] += both;
        pair[i * states() + j] = links_.where_linked(t, both, zero);
      }
      total += before[i];
    }
    // Rounding errors of the total of a position accumulate with every step: rescale it to 1.
    const auto scale = reciprocal_or_zero(total);
    for (int i = 0; i < states(); ++i) mass_[i] = links_.where_linked(t, before[i] * scale, mass_[i]);
  }
  void store(const ChainMarginals<T>& out) {
    store_nodes(0);
    const int64_t node_count = length_ * states(), pair_count = (length_ - 1) * states() * states();
    for (int l = 0; l < group_.lanes; ++l) out.log_partition[group_.first + l] = log_partition_.lane(l);
    scatter(nodes_.data(), node_count, group_.lanes, node_count, out.nodes + group_.first * node_count);
    scatter(pairs_.data(), pair_count, group_.lanes, pair_count, out.pairs + group_.first * pair_count);
  }

 private:
  static constexpr int kMost = K ? K : kMostStates;

  FOVEAL_INLINE int states() const { return K ? K : states_; }
  FOVEAL_INLINE void store_nodes(int64_t t) {
    for (int j = 0; j < states(); ++j) {
      nodes_[t * states() + j] = links_.where_real(t, mass_[j], Lanes<T>::of(T(0)));
    }
  }

  const int states_;
  const int64_t length_;
  const Group group_;
  const Links<T> links_;
  Buffer<Lanes<T>> pairs_, nodes_;
  Inside<T, K> inside_;
  Lanes<T> mass_[kMost], log_partition_;
};

template <class T, int K>
void log_partition(const Chain<T>& chain, T* out, Group group) {
  const Links<T> links(chain.mask, chain.length, group);
  Inside<T, K> inside(chain, group, links, nullptr);
  for (int64_t t = 1; t < chain.length; ++t) inside.step(t);
  Lanes<T> last[kMostStates];
  const auto found = inside.finish(last);
  for (int l = 0; l < group.lanes; ++l) out[group.first + l] = found.lane(l);
}

// Each step waits for an exp, a log and a division of the step before. Two groups in one loop wait together.
template <class T, class... Groups>
void run_marginals(int64_t length, const ChainMarginals<T>& out, Groups&... group) {
  for (int64_t t = 1; t < length; ++t) (group.inside(t), ...);
  (group.turn(), ...);
  for (int64_t t = length - 1; t > 0; --t) (group.outside(t), ...);
  (group.store(out), ...);
}

template <class T, int K>
void marginals(const Chain<T>& chain, const ChainMarginals<T>& out, Group group) {
  Marginals<T, K> all(chain, group);
  run_marginals(chain.length, out, all);
}

template <class T, int K>
void marginals(const Chain<T>& chain, const ChainMarginals<T>& out, Group group, Group other) {
  Marginals<T, K> first(chain, group), second(chain, other);
  run_marginals(chain.length, out, first, second);
}

// The derivative of the marginals along a direction g: with G(y) the sum of g over the parts of y,
// it is Cov(part, G). Two vectors per position are enough, both with mean 0:
//
//   past[t, j]   = E[ G up to t | y_t = j ]   = g[t, j] + sum_i p[t, i, j] (past[t-1, i] + g[t, i, j]) / p[t, j]
//   future[t, i] = E[ G from t on | y_t = i ] = g[t, i] + sum_j p[t+1, i, j] (future[t+1, j] + g[t+1, i, j]) / p[t, i]
//   pair         = p[t, i, j] ( past[t-1, i] + g[t, i, j] - E[g[t]] + future[t, j] )
//   node         = p[t, j] ( past[t, j] + future[t, j] - g[t, j] + E[g[t]] )
//
// The pass over one group: `center` for all positions, `past` for 1 .. T-1, `future` for T-1 .. 1, then `store`.
template <class T, int K>
class Tangent {
 public:
  Tangent(const ChainTangent<T>& task, Group group)
      : states_(K ? K : static_cast<int>(task.states)), task_(task), group_(group),
        links_(task.mask, task.length, group), nodes_(steps_of(task.nodes, nodes_in_all(), states_, task.length)),
        on_nodes_(steps_of(task.on_nodes ? task.on_nodes : task.nodes, nodes_in_all(), states_, task.length)),
        on_pairs_(steps_of(task.on_pairs ? task.on_pairs : task.pairs, pairs_in_all(), states_ * states_, task.length - 1)),
        past_(nodes_in_all()), means_(task.length), own_(nodes_in_all()), pairs_(pairs_in_all()) {
    gather(task.pairs + group.first * pairs_in_all(), pairs_in_all(), group.lanes, pairs_in_all(), pairs_.data());
  }
  // own[t] is the direction on the nodes, centered; values on padding are ignored.
  FOVEAL_INLINE void center(int64_t t) {
    const auto zero = Lanes<T>::of(T(0));
    Lanes<T>* mine = own_.data() + t * states();
    if (task_.on_nodes == nullptr) {
      for (int j = 0; j < states(); ++j) mine[j] = zero;
    } else {
      const Lanes<T>* mass = nodes_.at(t);
      const Lanes<T>* direction = on_nodes_.at(t);
      auto mean = zero;
      for (int j = 0; j < states(); ++j) {
        mine[j] = links_.where_real(t, direction[j], zero);
        mean += mass[j] * mine[j];
      }
      for (int j = 0; j < states(); ++j) mine[j] = links_.where_real(t, mine[j] - mean, zero);
    }
    if (t > 0) return;
    for (int j = 0; j < states(); ++j) past_[j] = mine[j], future_[j] = zero;
  }
  FOVEAL_INLINE void past(int64_t t) {
    const auto zero = Lanes<T>::of(T(0));
    const Lanes<T>* pair = pairs_.data() + (t - 1) * states() * states();
    const Lanes<T>* direction = on_pairs_.at(t - 1);
    const Lanes<T>* before = past_.data() + (t - 1) * states();
    Lanes<T>* here = past_.data() + t * states();
    Lanes<T> sums[kMost];
    auto mean = zero, edge_mean = zero;
    for (int j = 0; j < states(); ++j) {
      auto total = zero, weight = zero;
      for (int i = 0; i < states(); ++i) {
        const auto p = pair[i * states() + j];
        auto term = before[i];
        if (task_.on_pairs) {
          const auto g = links_.where_linked(t, direction[i * states() + j], zero);
          edge_mean += p * g;
          term += g;
        }
        total += p * term;
        weight += p;
      }
      mean += total;
      sums[j] = total * reciprocal_or_zero(weight);
    }
    means_[t] = edge_mean;
    for (int j = 0; j < states(); ++j) {
      here[j] = links_.where_linked(t, sums[j] - mean, before[j]) + own_[t * states() + j];
    }
  }
  FOVEAL_INLINE void future(int64_t t) {
    const auto zero = Lanes<T>::of(T(0));
    finish_nodes(t);
    Lanes<T>* pair = pairs_.data() + (t - 1) * states() * states();  // becomes the result
    const Lanes<T>* direction = on_pairs_.at(t - 1);
    const Lanes<T>* before = past_.data() + (t - 1) * states();
    Lanes<T> sums[kMost];
    auto mean = zero;
    for (int i = 0; i < states(); ++i) {
      auto total = zero, weight = zero;
      for (int j = 0; j < states(); ++j) {
        const auto p = pair[i * states() + j];
        auto term = future_[j];
        if (task_.on_pairs) term += links_.where_linked(t, direction[i * states() + j], zero) - means_[t];
        const auto share = p * term;
        total += share;
        weight += p;
        pair[i * states() + j] = share + p * before[i];
      }
      mean += total;
      sums[i] = total * reciprocal_or_zero(weight);
    }
    for (int i = 0; i < states(); ++i) future_[i] = links_.where_linked(t, sums[i] - mean, future_[i]);
  }
  void store() {
    finish_nodes(0);
    scatter(own_.data(), nodes_in_all(), group_.lanes, nodes_in_all(),
            task_.node_tangent + group_.first * nodes_in_all());
    if (task_.pair_tangent == nullptr) return;
    scatter(pairs_.data(), pairs_in_all(), group_.lanes, pairs_in_all(),
            task_.pair_tangent + group_.first * pairs_in_all());
  }

 private:
  static constexpr int kMost = K ? K : kMostStates;

  FOVEAL_INLINE int states() const { return K ? K : states_; }
  int64_t nodes_in_all() const { return task_.length * states_; }
  int64_t pairs_in_all() const { return (task_.length - 1) * states_ * states_; }
  Steps<T> steps_of(const T* from, int64_t in_all, int64_t size, int64_t count) const {
    return Steps<T>(from, in_all, size, size, count, group_);
  }
  FOVEAL_INLINE void finish_nodes(int64_t t) {
    const Lanes<T>* mass = nodes_.at(t);
    const Lanes<T>* here = past_.data() + t * states();
    Lanes<T>* mine = own_.data() + t * states();
    for (int j = 0; j < states(); ++j) {
      const auto along_node = mass[j] * (here[j] + future_[j]);
      future_[j] += mine[j];
      mine[j] = along_node;  // 0 on padding, where the marginal is 0
    }
  }

  const int states_;
  const ChainTangent<T>& task_;
  const Group group_;
  const Links<T> links_;
  Steps<T> nodes_, on_nodes_, on_pairs_;
  Buffer<Lanes<T>> past_, means_, own_, pairs_;
  Lanes<T> future_[kMost];
};

template <class T, class... Groups>
void run_tangent(int64_t length, Groups&... group) {
  for (int64_t t = 0; t < length; ++t) (group.center(t), ...);
  for (int64_t t = 1; t < length; ++t) (group.past(t), ...);
  for (int64_t t = length - 1; t > 0; --t) (group.future(t), ...);
  (group.store(), ...);
}

template <class T, int K>
void tangent(const ChainTangent<T>& task, Group group) {
  Tangent<T, K> all(task, group);
  run_tangent<T>(task.length, all);
}

template <class T, int K>
void tangent(const ChainTangent<T>& task, Group group, Group other) {
  Tangent<T, K> first(task, group), second(task, other);
  run_tangent<T>(task.length, first, second);
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
