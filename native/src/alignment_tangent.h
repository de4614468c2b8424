// The derivative of the marginals of a monotone alignment along a direction g in the scores.
//
// With G(path) the sum of g over the moves of a path, it is Cov(move, G). If E[G] = 0, it follows from the
// conditional expectations of G before and after a node:
//
//   past[v]   = E[ G up to v | v ] = sum_m p[v, m] (g[v, m] + past[from(v, m)]) / p[v]
//   future[u] = E[ G after u | u ] = sum over moves m out of u, into v, of p[v, m] (g[v, m] + future[v]) / p[u]
//   tangent   = p[v, m] ( past[from(v, m)] + g[v, m] + future[v] )
//
// Only the marginals are kept. At a node of probability 0, nothing depends on the quotient.

#pragma once

#include "alignment.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace alignment {

// The moves of an item by strips, three registers per step.
template <class T>
struct Slopes {
  Buffer<Lanes<T>> masses, direction, found;
  explicit Slopes(const Grid& grid)
      : masses(3 * grid.strips() * grid.stride()), direction(3 * grid.strips() * grid.stride()),
        found(3 * grid.strips() * grid.stride()) {}
};

// 1 / p[v], or 0 if p[v] is 0.
template <class T>
FOVEAL_INLINE Lanes<T> inverse_mass(const Lanes<T>* mass) {
  return reciprocal_or_zero(mass[0] + mass[1] + mass[2]);
}

// Reads marginals and direction, and returns the mean increment of G on each antidiagonal. Values of the
// direction on impossible moves are ignored.
template <class T>
void read_slopes(const Grid& grid, const T* marginals, const T* direction, const Slopes<T>& slopes, T* gains) {
  const Reader<T> masses(grid, marginals), along(grid, direction);
  const auto zero = Lanes<T>::of(T(0));
  Crossings<T> gained(grid);
  for (int64_t strip = 0; strip < grid.strips(); ++strip) {
    Lanes<T>* mass = slopes.masses.data() + 3 * strip * grid.stride();
    Lanes<T>* slope = slopes.direction.data() + 3 * strip * grid.stride();
    masses.read(grid, strip, T(0), mass);
    along.read(grid, strip, T(0), slope);
    for (int64_t n = 0; n < grid.steps_of(strip); ++n, mass += 3, slope += 3) {
      for (int m = 0; m < 3; ++m) slope[m] = where_positive(mass[m], slope[m], zero);
      gained.add(strip * kLanes + n, mass[0] * slope[0] + mass[1] * slope[1] + mass[2] * slope[2], zero);
    }
  }
  for (int64_t d = 0; d < grid.antidiagonals(); ++d) gains[d] = gained.total(d);
}

// Subtracts from each move the mean increment of G over the antidiagonals it crosses: one, or two for a match.
// Every path crosses all antidiagonals, so this subtracts E[G] from every path. The remaining sums stay near 0
// for paths of any length, which float32 needs. Leaves p[v, m] (g[v, m] + past) in `found`.
template <class T>
void look_back(const Grid& grid, const T* gains, const Slopes<T>& slopes) {
  Buffer<T> row(grid.stride());
  std::fill(row.data(), row.data() + grid.stride(), T(0));
  for (int64_t strip = 0; strip < grid.strips(); ++strip) {
    Front<T> past(row.data(), T(0));
    for (int64_t n = 0; n < grid.steps_of(strip); ++n) {
      const int64_t place = 3 * (strip * grid.stride() + n), d = strip * kLanes + n;
      const Lanes<T>* mass = slopes.masses.data() + place;
      Lanes<T>* slope = slopes.direction.data() + place;
      Lanes<T>* found = slopes.found.data() + place;
      slope[0] = slope[0] - (gains[d] + (d > 0 ? gains[d - 1] : T(0)));
      slope[1] = slope[1] - gains[d];
      slope[2] = slope[2] - gains[d];
      past.advance(n);
      found[0] = mass[0] * (slope[0] + past.corner);
      found[1] = mass[1] * (slope[1] + past.above);
      found[2] = mass[2] * (slope[2] + past.left);
      past.leave(n, (found[0] + found[1] + found[2]) * inverse_mass(mass));
    }
  }
}

// Adds p[v, m] future[v] to `found`.
template <class T>
void look_ahead(const Grid& grid, const Slopes<T>& slopes, Crossings<T>& crossings) {
  Buffer<T> row(grid.stride());
  std::fill(row.data(), row.data() + grid.stride(), T(0));
  for (int64_t strip = grid.strips() - 1; strip >= 0; --strip) {
    Back<T> back(row.data());
    for (int64_t n = grid.steps_of(strip) - 1; n >= 0; --n) {
      const int64_t place = 3 * (strip * grid.stride() + n);
      const Lanes<T>* mass = slopes.masses.data() + place;
      const Lanes<T>* slope = slopes.direction.data() + place;
      Lanes<T>* found = slopes.found.data() + place;
      Lanes<T> brought[3];
      const auto future = back.arriving(n) * inverse_mass(mass);
      for (int m = 0; m < 3; ++m) {
        brought[m] = mass[m] * (slope[m] + future);
        found[m] = found[m] + mass[m] * future;
      }
      crossings.add(strip * kLanes + n, found[0] + found[1] + found[2], found[0]);
      back.leave(n, brought);
    }
  }
}

template <class T>
void tangent(const Alignments<T>& given, const AlignmentTangent<T>& task, int64_t item) {
  const FlushSubnormals flushing;
  const Grid grid(given, item);
  const Slopes<T> slopes(grid);
  Buffer<T> gains(grid.antidiagonals());
  read_slopes(grid, task.marginals + item * grid.size(), task.direction + item * grid.size(), slopes, gains.data());
  look_back(grid, gains.data(), slopes);
  Crossings<T> crossings(grid);
  look_ahead(grid, slopes, crossings);
  // The total of an antidiagonal is constant. Removing the rounding error of its derivative, which should be
  // 0, keeps the error from growing with the size of the grid.
  for (int64_t d = 0; d < grid.antidiagonals(); ++d) gains[d] = crossings.total(d);
  Writer<T> writer(grid, task.tangent + item * grid.size());
  for (int64_t strip = 0; strip < grid.strips(); ++strip) {
    const Lanes<T>* mass = slopes.masses.data() + 3 * strip * grid.stride();
    Lanes<T>* found = slopes.found.data() + 3 * strip * grid.stride();
    for (int64_t n = 0; n < grid.steps_of(strip); ++n) {
      const auto rest = Lanes<T>::of(gains[strip * kLanes + n]);
      for (int m = 0; m < 3; ++m) found[3 * n + m] = found[3 * n + m] - mass[3 * n + m] * rest;
    }
    writer.write(grid, strip, found);
  }
  writer.finish(grid);
}

}  // namespace alignment
}  // namespace FOVEAL_ISA
}  // namespace foveal
