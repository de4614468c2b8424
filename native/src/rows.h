// Sums of multiples of rows, the main work of an elimination: doubles in lanes, `Wide` one by one.
//
// Rows of doubles are padded to whole lanes; values in the padding are never read as a result.

#pragma once

#include "kernels.h"
#include "lanes.h"
#include "wide.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace rows {

constexpr int kTargets = 4;  // rows that are summed together, to load shared values once

// Row r times a factor for each target t: factors[t * across + r * along] * rows[r * stride + c].
template <class Number>
struct Terms {
  const Number* factors;
  int64_t across, along;
  const Number* rows;
  int64_t stride, number;
};

template <int targets>
FOVEAL_INLINE void add_block(double* to, const Terms<double>& terms) {
  Lanes<double> sums[targets];
  for (int t = 0; t < targets; ++t) sums[t] = Lanes<double>::load(to + t * terms.stride);
  const double* factor = terms.factors;
  const double* row = terms.rows;
  for (int64_t r = 0; r < terms.number; ++r, factor += terms.along, row += terms.stride) {
    const auto shared = Lanes<double>::load(row);
    for (int t = 0; t < targets; ++t) sums[t] += Lanes<double>::of(factor[t * terms.across]) * shared;
  }
  for (int t = 0; t < targets; ++t) sums[t].store(to + t * terms.stride);
}

template <int targets>
void add_blocks(double* to, Terms<double> terms, int64_t count) {
  for (int64_t c = 0; c < count; c += kLanes, to += kLanes, terms.rows += kLanes) add_block<targets>(to, terms);
}

// Adds the terms to `targets` rows (at most kTargets) of `count` numbers, each `stride` after the other.
inline void add(double* to, const Terms<double>& terms, int64_t targets, int64_t count) {
  if (terms.number == 0) return;
  if (targets == 1) return add_blocks<1>(to, terms, count);
  if (targets == 2) return add_blocks<2>(to, terms, count);
  if (targets == 3) return add_blocks<3>(to, terms, count);
  add_blocks<4>(to, terms, count);
}

inline void add(Wide* to, const Terms<Wide>& terms, int64_t targets, int64_t count) {
  for (int64_t t = 0; t < targets; ++t) {
    for (int64_t r = 0; r < terms.number; ++r) {
      const Wide factor = terms.factors[t * terms.across + r * terms.along];
      if (factor.digits == 0) continue;
      for (int64_t c = 0; c < count; ++c) to[t * terms.stride + c] += factor * terms.rows[r * terms.stride + c];
    }
  }
}

inline double dot(const double* a, const double* b, int64_t count) {
  auto total = Lanes<double>::of(0.0);
  for (int64_t c = 0; c < count; c += kLanes) {
    total += load_first(a + c, count - c, 0.0) * load_first(b + c, count - c, 0.0);
  }
  return sum(total);
}

inline Wide dot(const Wide* a, const Wide* b, int64_t count) {
  Wide total;
  for (int64_t c = 0; c < count; ++c) total += a[c] * b[c];
  return total;
}

inline double total(const double* row, int64_t count) {
  auto found = Lanes<double>::of(0.0);
  for (int64_t c = 0; c < count; c += kLanes) found += load_first(row + c, count - c, 0.0);
  return sum(found);
}

inline Wide total(const Wide* row, int64_t count) {
  Wide found;
  for (int64_t c = 0; c < count; ++c) found += row[c];
  return found;
}

// Checks whether all products of the given numbers, except 0, are in the range of their type.
template <class Number>
class Range;

template <>
class Range<double> {
 public:
  Range() : low_(Lanes<double>::of(1.0)), high_(low_) {}
  void watch(const double* row, int64_t count) {
    for (int64_t c = 0; c < count; c += kLanes) {
      const auto x = load_first(row + c, count - c, 1.0);
      const auto positive = where_positive(x, x, Lanes<double>::of(1.0));
      low_ = where_less(positive, low_, positive, low_);
      high_ = max(high_, positive);
    }
  }
  bool is_kept() const {
    return largest(Lanes<double>::of(0.0) - low_) <= -1e-150 && largest(high_) <= 1e150;
  }

 private:
  Lanes<double> low_, high_;
};

template <>
class Range<Wide> {
 public:
  void watch(const Wide*, int64_t) {}
  bool is_kept() const { return true; }
};

}  // namespace rows
}  // namespace FOVEAL_ISA
}  // namespace foveal
