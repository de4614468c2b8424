// Monotone alignments: all kernels against a sum over all paths.

#pragma once

#include "check.h"

namespace foveal {

struct Move {
  int64_t row, column, kind;
};
using Path = std::vector<Move>;

// All paths from node (0, 0) to a node.
inline std::vector<Path> paths_to(int64_t row, int64_t column) {
  if (row == 0 && column == 0) return {{}};
  std::vector<Path> found;
  for (int64_t kind = 0; kind < 3; ++kind) {
    const int64_t up = kind != 2, left = kind != 1;
    if (row < up || column < left) continue;
    for (Path& path : paths_to(row - up, column - left)) {
      path.push_back({row, column, kind});
      found.push_back(path);
    }
  }
  return found;
}

// Moves outside all paths are NaN: a kernel that reads them cannot hide it. A direction is also NaN on
// forbidden moves.
template <class T>
struct AlignmentCase {
  int64_t batch, rows, columns;
  std::vector<T> scores_, direction;
  Mask mask;

  AlignmentCase(std::mt19937& random, int64_t batch, int64_t rows, int64_t columns, bool masked, bool forbid)
      : batch(batch), rows(rows), columns(columns), scores_(scores<T>(random, batch * size(), forbid)),
        direction(scores<T>(random, batch * size(), false)) {
    if (masked) mask = random_mask(random, batch * (rows + columns - 2));
    for (int64_t item = 0; item < batch; ++item) {
      const auto real_rows = real(item, 0, rows), real_columns = real(item, rows - 1, columns);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          const bool is_node = has(real_rows, i) && has(real_columns, j);
          for (int64_t kind = 0; kind < 3; ++kind) {
            const int64_t there = place(item, i, j, kind);
            const bool is_move = is_node && (kind == 2 || i > 0) && (kind == 1 || j > 0);
            if (!is_move) scores_[there] = std::numeric_limits<T>::quiet_NaN();
            if (!is_move || std::isinf(scores_[there])) direction[there] = std::numeric_limits<T>::quiet_NaN();
          }
        }
      }
    }
  }
  int64_t size() const { return rows * columns * 3; }
  int64_t place(int64_t item, int64_t row, int64_t column, int64_t kind) const {
    return ((item * rows + row) * columns + column) * 3 + kind;
  }
  // The real nodes of a side; the items of the side start at `offset` in the mask.
  std::vector<int64_t> real(int64_t item, int64_t offset, int64_t count) const {
    std::vector<int64_t> found{0};
    for (int64_t i = 1; i < count; ++i) {
      if (mask.bits.empty() || mask.bits[item * (rows + columns - 2) + offset + i - 1]) found.push_back(i);
    }
    return found;
  }
  static bool has(const std::vector<int64_t>& nodes, int64_t node) {
    for (int64_t other : nodes) {
      if (other == node) return true;
    }
    return false;
  }
};

// Sums over the paths of one item, with scores moved by `step` along the direction.
template <class T>
struct AlignmentSums {
  double log_partition, best = -std::numeric_limits<double>::infinity();
  std::vector<double> moves;

  AlignmentSums(const AlignmentCase<T>& given, int64_t item, double step) : moves(given.size()) {
    const auto rows = given.real(item, 0, given.rows), columns = given.real(item, given.rows - 1, given.columns);
    const auto paths = paths_to(static_cast<int64_t>(rows.size()) - 1, static_cast<int64_t>(columns.size()) - 1);
    double total = 0;
    for (const Path& path : paths) {
      double score = 0;
      for (const auto& [row, column, kind] : path) {
        const int64_t place = given.place(item, rows[row], columns[column], kind);
        score += given.scores_[place] + (std::isinf(given.scores_[place]) ? 0 : step * given.direction[place]);
      }
      total += std::exp(score);
      best = std::max(best, score);
      for (const auto& [row, column, kind] : path) moves[given.place(0, rows[row], columns[column], kind)] += std::exp(score);
    }
    log_partition = std::log(total);
    for (double& mass : moves) mass = total > 0 ? mass / total : 0;
  }
};

// The score of the marked moves.
template <class T>
double score_of(const AlignmentCase<T>& given, int64_t item, const char* path) {
  double score = 0;
  for (int64_t i = 0; i < given.size(); ++i) {
    if (path[i]) score += given.scores_[item * given.size() + i];
  }
  return score;
}

template <class T>
void check_alignments_of(const AlignmentKernels<T>& kernels, const AlignmentCase<T>& given, double tolerance) {
  const int64_t batch = given.batch, size = given.size();
  const Alignments<T> moves{given.rows, given.columns, given.scores_.data(), given.mask.data()};
  std::vector<T> log_partition(batch), again(batch), best(batch), marginals(batch * size), tangent(batch * size);
  std::vector<double> uniforms(2 * batch * (given.rows + given.columns - 2), 0.5);
  std::vector<char> paths(batch * size), drawn(2 * batch * size), possible(batch);
  const AlignmentMarginals<T> out{again.data(), marginals.data()};
  const AlignmentTangent<T> task{marginals.data(), given.direction.data(), tangent.data()};
  const AlignmentDraws draws{2, batch, uniforms.data(), reinterpret_cast<bool*>(drawn.data()),
                             reinterpret_cast<bool*>(possible.data())};
  constexpr double step = 1e-5;
  const double rough = std::max(tolerance, 1e-6);  // finite differences are not more accurate
  for (int64_t item = 0; item < batch; ++item) {
    kernels.log_partition(moves, log_partition.data(), item);
    kernels.marginals(moves, out, item);
    kernels.tangent(moves, task, item);
    kernels.best(moves, reinterpret_cast<bool*>(paths.data()), best.data(), item);
    kernels.sample(moves, draws, item);
    const AlignmentSums<T> sums(given, item, 0), up(given, item, step), down(given, item, -step);
    const bool is_possible = sums.log_partition > -std::numeric_limits<double>::infinity();
    expect("log partition of alignments", log_partition[item], sums.log_partition, tolerance);
    expect("log partition of alignments with marginals", again[item], sums.log_partition, tolerance);
    expect("best score of an alignment", best[item], sums.best, tolerance);
    expect("possible alignment", possible[item], is_possible, 0);
    if (is_possible) {
      expect("score of the best alignment", score_of(given, item, paths.data() + item * size), sums.best, tolerance);
      const double score = score_of(given, item, drawn.data() + (batch + item) * size);
      expect("a drawn alignment is possible", score > -std::numeric_limits<double>::infinity(), true, 0);
    }
    for (int64_t i = 0; i < size; ++i) {
      const int64_t place = item * size + i;
      expect("move", marginals[place], sums.moves[i], tolerance);
      expect("move tangent", tangent[place], (up.moves[i] - down.moves[i]) / (2 * step), rough);
    }
  }
}

// Grids of one strip and of more, of one row, one column and one node.
template <class T>
void check_alignments(const AlignmentKernels<T>& kernels, double tolerance) {
  std::mt19937 random(0);
  const int64_t shapes[][2] = {{1, 1}, {1, 20}, {20, 1}, {4, 5}, {35, 2}, {2, 35}, {16, 2}, {17, 3}};
  for (int kind = 0; kind < 4; ++kind) {
    for (const auto& [rows, columns] : shapes) {
      check_alignments_of(kernels, AlignmentCase<T>(random, 2, rows, columns, kind & 1, kind & 2), tolerance);
    }
  }
}

}  // namespace foveal
