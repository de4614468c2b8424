// Monotone alignments: a path leads from node (0, 0) to the last node of a grid.
//
//   inside     a[v]    = sum_m a[from(v, m)] exp( moves[v, m] ),    a[0, 0] = 1
//   weights    w[v, m] = a[from(v, m)] exp( moves[v, m] ) / a[v]  =  p( move m | the path visits v )
//   outside    p[u]    = sum over moves m out of u, into v, of w[v, m] p[v]
//
// Sums over paths store their exponents separately (`scaled.h`); weights and marginals are probabilities of type T.

#pragma once

#include "alignment_grid.h"
#include "scaled.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace alignment {

// A mantissa grows by less than 2^2.1 and shrinks by at most 2^0.5 per step: kSteps steps need no rescaling.
constexpr int64_t kSteps = 8;

// The sum over the paths into the nodes of one step. `cell` holds the scores and gets the three terms.
template <class T>
FOVEAL_INLINE Scaled<T> join(const Front<T>& mantissa, const Front<double>& exponent, Lanes<T>* cell) {
  const auto match = split_exp(cell[0]), source = split_exp(cell[1]), target = split_exp(cell[2]);
  const auto by_match = exponent.corner + match.exponent;
  const auto by_source = exponent.above + source.exponent;
  const auto by_target = exponent.left + target.exponent;
  // At an unreachable node, all three may be -inf, and differences would be NaN.
  const auto top = max(max(by_match, by_source), max(by_target, Lanes<double>::of(kLowestExponent)));
  cell[0] = mantissa.corner * match.mantissa * power_of_two<T>(by_match - top);
  cell[1] = mantissa.above * source.mantissa * power_of_two<T>(by_source - top);
  cell[2] = mantissa.left * target.mantissa * power_of_two<T>(by_target - top);
  return {cell[0] + cell[1] + cell[2], top};
}

// The inside pass; returns log Z. `cells` has room for one strip, or for all strips if it keeps the weights.
template <bool keep, class T>
double inside(const Grid& grid, const T* item, Lanes<T>* cells) {
  const Reader<T> scores(grid, item);
  Buffer<T> mantissas(grid.stride());
  Buffer<double> exponents(grid.stride());
  std::fill(mantissas.data(), mantissas.data() + grid.stride(), T(0));
  std::fill(exponents.data(), exponents.data() + grid.stride(), kLowestExponent);
  Scaled<T> here;
  for (int64_t strip = 0; strip < grid.strips(); ++strip) {
    Lanes<T>* cell = cells + (keep ? 3 * strip * grid.stride() : 0);
    scores.read(grid, strip, -std::numeric_limits<T>::infinity(), cell);
    Front<T> mantissa(mantissas.data(), T(0));
    Front<double> exponent(exponents.data(), kLowestExponent);
    for (int64_t n = 0; n < grid.steps_of(strip); ++n, cell += 3) {
      mantissa.advance(n);
      exponent.advance(n);
      here = join(mantissa, exponent, cell);
      if (keep) {
        const auto scale = reciprocal_or_zero(here.mantissa);
        for (int m = 0; m < 3; ++m) cell[m] = cell[m] * scale;
      }
      if (strip == 0 && n == 0) {
        here.mantissa.set_lane(0, T(1));
        here.exponent.set_lane(0, 0.0);
      }
      if (n % kSteps == 0) here = normalized(here);
      mantissa.leave(n, here.mantissa);
      exponent.leave(n, here.exponent);
    }
  }
  const int last = static_cast<int>(grid.rows_of(grid.strips() - 1)) - 1;
  const double mantissa = static_cast<double>(here.mantissa.lane(last));
  constexpr double log_two = 0.69314718055994530942;
  return mantissa > 0 ? std::log(mantissa) + here.exponent.lane(last) * log_two
                      : -std::numeric_limits<double>::infinity();
}

// Total probability that crosses each antidiagonal: its nodes, and the matches that jump over it.
template <class T>
class Crossings {
 public:
  explicit Crossings(const Grid& grid) : totals_(grid.antidiagonals() + 1) {
    std::fill(totals_.data(), totals_.data() + grid.antidiagonals() + 1, Lanes<T>::of(T(0)));
  }
  FOVEAL_INLINE void add(int64_t antidiagonal, const Lanes<T>& nodes, const Lanes<T>& matches) {
    totals_[antidiagonal + 1] += nodes;
    totals_[antidiagonal] += matches;
  }
  T total(int64_t antidiagonal) const { return sum(totals_[antidiagonal + 1]); }

 private:
  Buffer<Lanes<T>> totals_;  // for the antidiagonal before the first, then for each
};

// Turns weights into marginals, and writes them to `out`.
template <class T>
void outside(const Grid& grid, bool possible, Lanes<T>* cells, T* out) {
  Buffer<T> row(grid.stride());
  Crossings<T> crossings(grid);
  std::fill(row.data(), row.data() + grid.stride(), T(0));
  for (int64_t strip = grid.strips() - 1; strip >= 0; --strip) {
    Back<T> back(row.data());
    const int64_t last = grid.steps_of(strip) - 1;
    for (int64_t n = last; n >= 0; --n) {
      Lanes<T>* cell = cells + 3 * (strip * grid.stride() + n);
      auto mass = back.arriving(n);
      if (strip == grid.strips() - 1 && n == last) {
        mass.set_lane(static_cast<int>(grid.rows_of(strip)) - 1, T(possible));
      }
      for (int m = 0; m < 3; ++m) cell[m] = cell[m] * mass;
      crossings.add(strip * kLanes + n, mass, cell[0]);
      back.leave(n, cell);
    }
  }
  // A path crosses each antidiagonal, so its total is 1. Rounding errors accumulate with every step: rescale
  // the total to 1. Without any path, the total is 0 and stays 0.
  Buffer<T> scales(grid.antidiagonals());
  for (int64_t d = 0; d < grid.antidiagonals(); ++d) {
    const T total = crossings.total(d);
    scales[d] = total > 0 ? 1 / total : T(0);
  }
  Writer<T> writer(grid, out);
  for (int64_t strip = 0; strip < grid.strips(); ++strip) {
    Lanes<T>* cell = cells + 3 * strip * grid.stride();
    for (int64_t n = 0; n < grid.steps_of(strip); ++n) {
      for (int m = 0; m < 3; ++m) cell[3 * n + m] = cell[3 * n + m] * scales[strip * kLanes + n];
    }
    writer.write(grid, strip, cell);
  }
  writer.finish(grid);
}

template <class T>
void log_partition(const Alignments<T>& given, T* out, int64_t item) {
  const Grid grid(given, item);
  Buffer<Lanes<T>> cells(3 * grid.stride());
  out[item] = static_cast<T>(inside<false>(grid, given.moves + item * grid.size(), cells.data()));
}

template <class T>
void marginals(const Alignments<T>& given, const AlignmentMarginals<T>& out, int64_t item) {
  const FlushSubnormals flushing;
  const Grid grid(given, item);
  Buffer<Lanes<T>> cells(3 * grid.strips() * grid.stride());
  const double total = inside<true>(grid, given.moves + item * grid.size(), cells.data());
  out.log_partition[item] = static_cast<T>(total);
  outside(grid, total > -std::numeric_limits<double>::infinity(), cells.data(), out.marginals + item * grid.size());
}

}  // namespace alignment
}  // namespace FOVEAL_ISA
}  // namespace foveal
