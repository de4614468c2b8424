// The best monotone alignment (Needleman-Wunsch), and exact samples.
//
//   best     v[u] = max_m ( v[from(u, m)] + moves[u, m] ), with a pointer to the best move; sums in double
//   sample   from the last node back, each move by the weights of the node it enters

#pragma once

#include "alignment_tangent.h"
#include "chain_search.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace alignment {

// The register index of a node, and its lane.
inline int64_t step_of(const Grid& grid, int64_t row, int64_t column) {
  return row / kLanes * grid.stride() + column + row % kLanes;
}

// Marks the moves of one path, from the last node back; `choose(row, column)` returns the move into a node.
// The first row and the first column leave no choice.
template <class Choose>
void trace(const Grid& grid, bool* path, Choose choose) {
  std::fill(path, path + grid.size(), false);
  int64_t row = grid.rows() - 1, column = grid.columns() - 1;
  while (row > 0 || column > 0) {
    const int64_t move = row == 0 ? 2 : column == 0 ? 1 : choose(row, column);
    path[grid.place(row, column) + move] = true;
    if (move != 2) --row;
    if (move != 1) --column;
  }
}

template <class T>
void best(const Alignments<T>& given, bool* paths, T* scores, int64_t item) {
  constexpr double never = -std::numeric_limits<double>::infinity();
  const Grid grid(given, item);
  const Reader<T> reader(grid, given.moves + item * grid.size());
  Buffer<Lanes<T>> cells(3 * grid.stride()), pointers(grid.strips() * grid.stride());
  Buffer<double> row(grid.stride());
  std::fill(row.data(), row.data() + grid.stride(), never);
  Lanes<double> here;
  for (int64_t strip = 0; strip < grid.strips(); ++strip) {
    reader.read(grid, strip, -std::numeric_limits<T>::infinity(), cells.data());
    Front<double> value(row.data(), never);
    for (int64_t n = 0; n < grid.steps_of(strip); ++n) {
      const Lanes<T>* cell = cells.data() + 3 * n;
      value.advance(n);
      here = value.corner + widen(cell[0]);
      auto move = Lanes<double>::of(0.0);
      const auto by_source = value.above + widen(cell[1]), by_target = value.left + widen(cell[2]);
      move = where_less(here, by_source, Lanes<double>::of(1.0), move);
      here = max(here, by_source);
      move = where_less(here, by_target, Lanes<double>::of(2.0), move);
      here = max(here, by_target);
      if (strip == 0 && n == 0) here.set_lane(0, 0.0);
      narrow<T>(move).store(reinterpret_cast<T*>(pointers.data() + strip * grid.stride() + n));
      value.leave(n, here);
    }
  }
  scores[item] = static_cast<T>(here.lane(static_cast<int>(grid.rows_of(grid.strips() - 1)) - 1));
  trace(grid, paths + item * grid.size(), [&](int64_t i, int64_t j) {
    return static_cast<int64_t>(pointers[step_of(grid, i, j)].lane(static_cast<int>(i % kLanes)));
  });
}

template <class T>
void sample(const Alignments<T>& given, const AlignmentDraws& draws, int64_t item) {
  const Grid grid(given, item);
  const int64_t most = given.rows + given.columns - 2;
  Buffer<Lanes<T>> cells(3 * grid.strips() * grid.stride());
  const double total = inside<true>(grid, given.moves + item * grid.size(), cells.data());
  draws.possible[item] = total > -std::numeric_limits<double>::infinity();
  for (int64_t s = 0; s < draws.samples; ++s) {
    const double* uniform = draws.uniforms + (s * draws.batch + item) * most;
    trace(grid, draws.paths + (s * draws.batch + item) * grid.size(), [&](int64_t i, int64_t j) {
      const Lanes<T>* cell = cells.data() + 3 * step_of(grid, i, j);
      double options[3], sum = 0;
      for (int m = 0; m < 3; ++m) sum += options[m] = static_cast<double>(cell[m].lane(static_cast<int>(i % kLanes)));
      return chain_search::choose(options, 3, sum, *uniform++);
    });
  }
}

template <class T>
constexpr AlignmentKernels<T> table() {
  return {log_partition<T>, marginals<T>, tangent<T>, best<T>, sample<T>};
}

}  // namespace alignment
}  // namespace FOVEAL_ISA
}  // namespace foveal
