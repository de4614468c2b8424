// The grid of a monotone alignment, one item at a time, and the layout of its nodes in the lanes.
//
// Nodes of an antidiagonal do not depend on each other. Rows are split into strips, one row in each lane; at
// step n of a strip, lane l is at column n - l. The left neighbor is therefore in the same lane one step
// earlier, the upper neighbor in the previous lane one step earlier, and the upper left neighbor in the
// previous lane two steps earlier. The first lane reads the row that the last lane of the strip above has
// stored; in backward passes, the last lane reads the row stored by the first lane of the strip below.
//
// In memory, (R, C, 3), the values that lanes l and l + 1 read in one step are always 3 C - 3 apart: the
// accesses of the lanes over several steps are a transposition (`gather`).

#pragma once

#include "alignment_kernels.h"
#include "lanes.h"
#include "scratch.h"
#include "transposition.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace alignment {

// The rows and columns of nodes that are real: the first, and one for each real item.
class Grid {
 public:
  template <class T>
  Grid(const Alignments<T>& given, int64_t item)
      : all_rows_(given.rows), all_columns_(given.columns), row_places_(given.rows), column_places_(given.columns) {
    const int64_t items = given.rows + given.columns - 2;
    const bool* source = given.mask == nullptr ? nullptr : given.mask + item * items;
    const bool* target = source == nullptr ? nullptr : source + given.rows - 1;
    rows_ = real_places(source, given.rows, row_places_.data());
    columns_ = real_places(target, given.columns, column_places_.data());
    strips_ = (rows_ + kLanes - 1) / kLanes;
  }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t strips() const { return strips_; }
  int64_t antidiagonals() const { return rows_ + columns_ - 1; }
  int64_t stride() const { return columns_ + kLanes - 1; }  // steps of a full strip
  int64_t rows_of(int64_t strip) const { return std::min<int64_t>(kLanes, rows_ - strip * kLanes); }
  int64_t steps_of(int64_t strip) const { return columns_ + rows_of(strip) - 1; }
  int64_t size() const { return all_rows_ * all_columns_ * 3; }  // numbers of an item
  int64_t real_size() const { return rows_ * columns_ * 3; }
  bool is_whole() const { return real_size() == size(); }
  // Whether the real nodes are contiguous in a corner, as with padding at the end.
  bool is_dense() const { return row_places_[rows_ - 1] == rows_ - 1 && column_places_[columns_ - 1] == columns_ - 1; }
  // Offset of the moves into a real node within an item.
  int64_t place(int64_t row, int64_t column) const {
    return (row_places_[row] * all_columns_ + column_places_[column]) * 3;
  }
  // Distance between rows after removing holes.
  int64_t row_stride() const { return 3 * (is_dense() ? all_columns_ : columns_); }

 private:
  static int64_t real_places(const bool* mask, int64_t count, int64_t* places) {
    int64_t found = 0;
    places[found++] = 0;
    for (int64_t i = 1; i < count; ++i) {
      if (mask == nullptr || mask[i - 1]) places[found++] = i;
    }
    return found;
  }
  int64_t all_rows_, all_columns_, rows_ = 0, columns_ = 0, strips_ = 0;
  Buffer<int64_t> row_places_, column_places_;
};

// Reads the numbers of an item: in place, or from a copy without holes.
template <class T>
class Reader {
 public:
  Reader(const Grid& grid, const T* item) : packed_(grid.is_dense() ? 0 : grid.real_size()), numbers_(item) {
    if (grid.is_dense()) return;
    numbers_ = packed_.data();
    for (int64_t i = 0; i < grid.rows(); ++i) {
      for (int64_t j = 0; j < grid.columns(); ++j) {
        std::memcpy(packed_.data() + (i * grid.columns() + j) * 3, item + grid.place(i, j), 3 * sizeof(T));
      }
    }
  }
  // The three numbers of each step of a strip; `fill` for moves from or to nodes outside the grid.
  void read(const Grid& grid, int64_t strip, T fill, Lanes<T>* cells) const {
    const int64_t rows = grid.rows_of(strip), steps = grid.steps_of(strip), stride = grid.row_stride();
    gather(numbers_ + strip * kLanes * stride, stride - 3, static_cast<int>(rows), 3 * steps, cells);
    const auto never = Lanes<T>::of(fill), zero = Lanes<T>::of(T(0));
    Lanes<T> lane;
    for (int l = 0; l < kLanes; ++l) lane.set_lane(l, T(l));
    for (int64_t n = 0; n < steps; ++n) {
      Lanes<T>* cell = cells + 3 * n;
      if (n < kLanes || n >= grid.columns() || rows < kLanes) {
        const auto column = Lanes<T>::of(static_cast<T>(n)) - lane;
        for (int m = 0; m < 3; ++m) {
          cell[m] = where_less(column, zero, never, cell[m]);
          cell[m] = where_less(column, Lanes<T>::of(static_cast<T>(grid.columns())), cell[m], never);
          cell[m] = where_less(lane, Lanes<T>::of(static_cast<T>(rows)), cell[m], never);
        }
        cell[0] = where_less(zero, column, cell[0], never);
        cell[2] = where_less(zero, column, cell[2], never);
      }
      if (strip == 0) {
        cell[0].set_lane(0, fill);
        cell[1].set_lane(0, fill);
      }
    }
  }

 private:
  Buffer<T> packed_;
  const T* numbers_;
};

// Writes strips back into an item, with 0 where there is no real node.
template <class T>
class Writer {
 public:
  Writer(const Grid& grid, T* item) : packed_(grid.is_dense() ? 0 : grid.real_size()), item_(item), numbers_(item) {
    if (!grid.is_whole()) std::fill(item, item + grid.size(), T(0));
    if (!grid.is_dense()) numbers_ = packed_.data();
  }
  // Lane l has numbers 3 l to 3 (l + columns) of the steps; values outside this range belong to other rows.
  void write(const Grid& grid, int64_t strip, const Lanes<T>* cells) {
    constexpr int width = Lanes<T>::width;
    const int64_t rows = grid.rows_of(strip), count = 3 * grid.steps_of(strip), stride = grid.row_stride();
    T* to = numbers_ + strip * kLanes * stride;
    for (int64_t start = 0; start < count; start += width) {
      const bool is_inside = start >= 3 * (rows - 1) && start + width <= 3 * grid.columns();
      for (int p = 0; p * width < rows; ++p) {
        typename Lanes<T>::Register square[width];
        for (int k = 0; k < width; ++k) square[k] = cells[std::min(start + k, count - 1)].part[p];
        transpose<T>(square);
        T* corner = to + p * width * (stride - 3) + start;
        if (is_inside && rows >= (p + 1) * width) {
          for (int l = 0; l < width; ++l) {
            *reinterpret_cast<typename Lanes<T>::Unaligned*>(corner + l * (stride - 3)) = square[l];
          }
          continue;
        }
        for (int l = 0; l < width && p * width + l < rows; ++l) {
          const int64_t first = 3 * (p * width + l) - start;
          const int64_t from = std::max<int64_t>(0, first), end = std::min<int64_t>(width, first + 3 * grid.columns());
          store_between<T>(corner + l * (stride - 3), from, end, square[l]);
        }
      }
    }
  }
  void finish(const Grid& grid) {
    if (grid.is_dense()) return;
    for (int64_t i = 0; i < grid.rows(); ++i) {
      for (int64_t j = 0; j < grid.columns(); ++j) {
        std::memcpy(item_ + grid.place(i, j), packed_.data() + (i * grid.columns() + j) * 3, 3 * sizeof(T));
      }
    }
  }

 private:
  Buffer<T> packed_;
  T* item_;
  T* numbers_;
};

// A forward recursion within a strip: the values at the origins of the three moves.
template <class Number>
struct Front {
  Number* row;  // last row of the strip above, by column; one number for each step of a strip
  Lanes<Number> corner, above, left;

  Front(Number* row, Number outside) : row(row), above(Lanes<Number>::of(outside)), left(above) {}
  FOVEAL_INLINE void advance(int64_t n) {
    corner = above;
    above = shift_in(left, row[n]);
  }
  FOVEAL_INLINE void leave(int64_t n, const Lanes<Number>& here) {
    left = here;
    if (n >= kLanes - 1) row[n - kLanes + 1] = here.lane(kLanes - 1);
  }
};

// A backward recursion: the sum over the three moves out of a node.
template <class T>
struct Back {
  T* row;  // first row of the strip below, by column
  Lanes<T> match, upward, across;

  explicit Back(T* row) : row(row), match(Lanes<T>::of(T(0))), upward(match), across(match) {}
  FOVEAL_INLINE Lanes<T> arriving(int64_t n) const {
    return across + shift_out(upward, n >= kLanes - 1 ? row[n - kLanes + 1] : T(0));
  }
  FOVEAL_INLINE void leave(int64_t n, const Lanes<T>* brought) {
    upward = match + brought[1];
    match = brought[0];
    across = brought[2];
    row[n] = upward.lane(0);
  }
};

}  // namespace alignment
}  // namespace FOVEAL_ISA
}  // namespace foveal
