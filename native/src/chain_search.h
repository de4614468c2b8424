// The best labeling of a linear chain, and exact samples.
//
//   best     v[t, j] = max_i ( v[t-1, i] + e[t, i, j] ) + u[t, j], with a pointer to the best i
//   sample   y_T ~ softmax( a[T] ),   y_{t-1} ~ softmax_i( a[t-1, i] + e[t, i, y_t] )
//
// Scores are added in double. Positions that are not real copy the label of the one before.

#pragma once

#include "chain_states.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace chain_search {

using chain_lanes::Group;
using chain_lanes::Links;
using chain_lanes::Steps;
using chain_lanes::kMostStates;
using chain_states::Item;
using chain_states::kNever;

// Few states: one item in each lane. Pointers are small numbers, stored as T.
template <class T, int K>
void best_in_lanes(const Chain<T>& chain, int64_t* labels, T* scores, Group group) {
  const int states = K ? K : static_cast<int>(chain.states);
  const int64_t length = chain.length;
  const Links<T> links(chain.mask, length, group);
  Steps<T> unary(chain.unary, length * states, states, states, length, group);
  Steps<T> transitions(chain.transitions, chain.item_stride, chain.step_stride, states * states, length - 1, group);
  Buffer<Lanes<T>> pointers(length * states);
  Lanes<double> value[kMostStates], next[kMostStates];
  const auto zero = Lanes<T>::of(T(0));
  for (int j = 0; j < states; ++j) {
    value[j] = links.start(j, widen(links.where_real(0, unary.at(0)[j], zero)));
  }
  for (int64_t t = 1; t < length; ++t) {
    const Lanes<T>* edge = transitions.at(t - 1);
    const Lanes<T>* own = unary.at(t);
    for (int j = 0; j < states; ++j) {
      auto highest = value[0] + widen(edge[j]);
      auto from = Lanes<double>::of(0.0);
      for (int i = 1; i < states; ++i) {
        const auto joined = value[i] + widen(edge[i * states + j]);
        from = where_less(highest, joined, Lanes<double>::of(i), from);
        highest = max(highest, joined);
      }
      next[j] = highest;
      pointers[t * states + j] = links.where_linked(t, narrow<T>(from), Lanes<T>::of(T(j)));
    }
    for (int j = 0; j < states; ++j) {
      value[j] = links.where_linked(t, next[j], value[j]) + widen(links.where_real(t, own[j], zero));
    }
  }
  for (int l = 0; l < group.lanes; ++l) {
    int label = 0;
    for (int j = 1; j < states; ++j) {
      if (value[j].lane(l) > value[label].lane(l)) label = j;
    }
    scores[group.first + l] = static_cast<T>(value[label].lane(l));
    int64_t* row = labels + (group.first + l) * length;
    const T* table = reinterpret_cast<const T*>(pointers.data());
    for (int64_t t = length - 1; t > 0; --t) {
      row[t] = label;
      label = static_cast<int>(table[(t * states + label) * kLanes + l]);
    }
    row[0] = label;
  }
}

// Many states: one item at a time, its states in the lanes.
template <class T>
void best_by_states(const Chain<T>& chain, int64_t* labels, T* scores, int64_t index) {
  const int64_t states = chain.states, length = chain.length, row = chain_states::padded(states);
  const Item<T> item(chain, index);
  const int64_t start = chain_states::first_real(item.mask, length);
  Buffer<double> value(row), next(row), from(row);
  Buffer<int32_t> pointers(length * states);
  std::fill(value.data(), value.data() + states, 0.0);
  for (int64_t t = 0; t < length; ++t) {
    if (item.real(t) && t > start) {
      const T* edges = item.transitions + (t - 1) * item.step_stride;
      for (int64_t block = 0; block < states; block += kLanes) {
        const int64_t count = states - block;
        auto highest = widen(load_first(edges + block, count, T(kNever))) + value[0];
        auto place = Lanes<double>::of(0.0);
        for (int64_t i = 1; i < states; ++i) {
          const auto joined = widen(load_first(edges + i * states + block, count, T(kNever))) + value[i];
          place = where_less(highest, joined, Lanes<double>::of(static_cast<double>(i)), place);
          highest = max(highest, joined);
        }
        highest.store(next.data() + block);
        place.store(from.data() + block);
      }
      for (int64_t j = 0; j < states; ++j) {
        pointers[t * states + j] = static_cast<int32_t>(from[j]);
        value[j] = next[j];
      }
    } else {
      for (int64_t j = 0; j < states; ++j) pointers[t * states + j] = static_cast<int32_t>(j);
    }
    if (item.real(t)) chain_states::add_unary(item.unary + t * states, states, value.data());
  }
  int64_t label = std::max_element(value.data(), value.data() + states) - value.data();
  scores[index] = static_cast<T>(value[label]);
  for (int64_t t = length - 1; t >= 0; --t) {
    labels[index * length + t] = label;
    label = pointers[t * states + label];
  }
}

// The first index at which the running sum of `weights` exceeds `uniform` times their sum.
inline int64_t choose(const double* weights, int64_t count, double total, double uniform) {
  const double level = uniform * total;
  double running = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (weights[i] == 0) continue;
    running += weights[i];
    last = i;  // if rounding keeps the sum below the level, take the last possible index
    if (running > level) break;
  }
  return last;
}

template <class T>
void sample(const Chain<T>& chain, const ChainDraws& draws, int64_t index) {
  const int64_t states = chain.states, length = chain.length, row = chain_states::padded(states);
  const Item<T> item(chain, index);
  const int64_t start = chain_states::first_real(item.mask, length);
  Buffer<double> alpha(row), kept(length * row), weights(states);
  chain_states::inside<T>(chain, item, alpha.data(), kept.data(), nullptr, nullptr);
  const auto draw = [&](const double* scores, const T* column, double uniform) {
    double top = kNever, total = 0;
    for (int64_t i = 0; i < states; ++i) {
      weights[i] = scores[i] + (column ? static_cast<double>(column[i * states]) : 0.0);
      top = std::max(top, weights[i]);
    }
    for (int64_t i = 0; i < states; ++i) {
      weights[i] = top > kNever ? std::exp(weights[i] - top) : 0.0;
      total += weights[i];
    }
    return choose(weights.data(), states, total, uniform);
  };
  draws.possible[index] = *std::max_element(alpha.data(), alpha.data() + states) > kNever;
  for (int64_t s = 0; s < draws.samples; ++s) {
    const int64_t offset = (s * draws.batch + index) * length;
    int64_t label = draw(alpha.data(), nullptr, draws.uniforms[offset + length - 1]);
    for (int64_t t = length - 1; t >= 0; --t) {
      draws.labels[offset + t] = label;
      if (t == 0 || !item.real(t) || t <= start) continue;
      const T* column = item.transitions + (t - 1) * item.step_stride + label;
      label = draw(kept.data() + (t - 1) * row, column, draws.uniforms[offset + t - 1]);
    }
  }
}

}  // namespace chain_search
}  // namespace FOVEAL_ISA
}  // namespace foveal
