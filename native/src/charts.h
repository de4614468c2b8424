// Charts of spans, one sentence at a time, with the spans of one width side by side in the lanes.
//
// The span of width w that starts at i stands at w * row + i. A span of width k splits after
// s = 0 .. k - 1 into a left part that starts at i and a right part whose width falls by 1 and whose
// start rises by 1 with s, so a sum over splits walks down two columns of charts:
//
//   total    = log sum_s exp( left[s] + right[s] ),      w[s] = exp( left[s] + right[s] - total )
//   outside    left[s] and right[s] receive w[s] m, the probability m of the span
//   tangent    d = sum_s w[s] (d_left[s] + d_right[s]);  both parts receive
//              w[s] ( e + m (d_left[s] + d_right[s] - d) ), the tangent e of m
//
// Weights are kept as exp( left + right - highest ) with the reciprocal of their sum, the scale.
// Lanes past the last span of a width compute on whatever stands there, which is never NaN; their
// probabilities are 0, so they add nothing to anything.

#pragma once

#include "kernels.h"
#include "lanes.h"
#include "scratch.h"

namespace sightline {
namespace SIGHTLINE_ISA {
namespace charts {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Where a split leads: the first entries of both columns, one step down each, and how many.
template <class Number>
struct Columns {
  Number* left;
  Number* right;
  int64_t row;
  int64_t count;
};

// The weights of one sum: entry s stands at s * stride.
template <class T>
struct Weights {
  T* first;
  int64_t stride;
};

template <class T>
SIGHTLINE_INLINE Lanes<double> sum(const Columns<const double>& from, Weights<T> weights, T* scale) {
  const auto never = Lanes<double>::of(kNever);
  const int64_t down = from.row, up = 1 - from.row;
  auto highest = Lanes<double>::of(std::numeric_limits<double>::lowest());
  for (int64_t s = 0; s < from.count; ++s) {
    highest = max(highest, Lanes<double>::load(from.left + s * down) + Lanes<double>::load(from.right + s * up));
  }
  auto total = Lanes<T>::of(T(0));
  for (int64_t s = 0; s < from.count; ++s) {
    const auto joined = Lanes<double>::load(from.left + s * down) + Lanes<double>::load(from.right + s * up);
    const auto weight = exp(narrow<T>(joined - highest));
    total += weight;
    if (weights.first != nullptr) weight.store(weights.first + s * weights.stride);
  }
  if (weights.first != nullptr) reciprocal_or_zero(total).store(scale);
  return where_positive(widen(total), highest + widen(log(total)), never);
}

// The highest of left[s] + right[s], and where it stands.
template <class T>
SIGHTLINE_INLINE Lanes<double> best(const Columns<const double>& from, T* place) {
  const int64_t down = from.row, up = 1 - from.row;
  auto highest = Lanes<double>::load(from.left) + Lanes<double>::load(from.right);
  auto found = Lanes<double>::of(0.0);
  for (int64_t s = 1; s < from.count; ++s) {
    const auto joined = Lanes<double>::load(from.left + s * down) + Lanes<double>::load(from.right + s * up);
    found = where_less(highest, joined, Lanes<double>::of(static_cast<double>(s)), found);
    highest = max(highest, joined);
  }
  narrow<T>(found).store(place);
  return highest;
}

template <class T>
SIGHTLINE_INLINE void add(T* to, const Lanes<T>& x) {
  (Lanes<T>::load(to) + x).store(to);
}

// Shares out a probability, scaled, over the parts.
template <class T>
SIGHTLINE_INLINE void share(const Lanes<T>& scaled, Weights<const T> weights, const Columns<T>& to) {
  for (int64_t s = 0; s < to.count; ++s) {
    const auto part = scaled * Lanes<T>::load(weights.first + s * weights.stride);
    add(to.left + s * to.row, part);
    add(to.right + s * (1 - to.row), part);
  }
}

// sum_s w[s] (left[s] + right[s]), not yet scaled.
template <class T>
SIGHTLINE_INLINE Lanes<T> mix(Weights<const T> weights, const Columns<const T>& from) {
  auto total = Lanes<T>::of(T(0));
  for (int64_t s = 0; s < from.count; ++s) {
    const auto both = Lanes<T>::load(from.left + s * from.row) + Lanes<T>::load(from.right + s * (1 - from.row));
    total += both * Lanes<T>::load(weights.first + s * weights.stride);
  }
  return total;
}

// Both parts receive w[s] ( change + scaled (below_left[s] + below_right[s]) ).
template <class T>
SIGHTLINE_INLINE void share_change(const Lanes<T>& change, const Lanes<T>& scaled, Weights<const T> weights,
                                   const Columns<const T>& below, const Columns<T>& to) {
  const int64_t down = to.row, up = 1 - to.row;
  for (int64_t s = 0; s < to.count; ++s) {
    const auto both = Lanes<T>::load(below.left + s * down) + Lanes<T>::load(below.right + s * up);
    const auto part = (change + scaled * both) * Lanes<T>::load(weights.first + s * weights.stride);
    add(to.left + s * down, part);
    add(to.right + s * up, part);
  }
}

}  // namespace charts
}  // namespace SIGHTLINE_ISA
}  // namespace sightline
