// The kernels of search in lanes; see search_kernels.h.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "lanes.h"
#include "scratch.h"
#include "search_kernels.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace search {

using Floats = Lanes<float>;

// A rational function of degree 13 over 6, with errors below 3e-7; the coefficients are those of Eigen.
FOVEAL_INLINE Floats tanh(const Floats& given) {
  constexpr float most = 7.90531110763549805f;  // beyond it, the result is 1 in float32
  const Floats low = Floats::of(-most), high = Floats::of(most);
  const Floats x = where_less(high, given, high, where_less(given, low, low, given));
  const Floats square = x * x;
  Floats above = Floats::of(-2.76076847742355e-16f);
  for (const float next : {2.00018790482477e-13f, -8.60467152213735e-11f, 5.12229709037114e-08f, 1.48572235717979e-05f,
                           6.37261928875436e-04f, 4.89352455891786e-03f}) {
    above = above * square + Floats::of(next);
  }
  Floats below = Floats::of(1.19825839466702e-06f);
  for (const float next : {1.18534705686654e-04f, 2.26843463243900e-03f, 4.89352518554385e-03f}) {
    below = below * square + Floats::of(next);
  }
  return x * above / below;
}

FOVEAL_INLINE Floats sigmoid(const Floats& x) { return Floats::of(0.5f) + Floats::of(0.5f) * tanh(x * 0.5f); }

// Products in float32. A packed block has groups of columns that fit into two registers, (kColumns / kWide, width, kWide).
constexpr int64_t kWide = 2 * kLanes;

inline int64_t block_size(int64_t width) { return width * kColumns; }
inline int64_t rows_size(int64_t width) { return width * kRows; }

inline void pack(const float* weight, int64_t width, int64_t columns, int64_t first, float* to) {
  for (int64_t column = first; column < first + kColumns; column += kWide) {
    const int64_t count = std::max<int64_t>(0, std::min(kWide, columns - column));
    for (int64_t k = 0; k < width; ++k, to += kWide) {
      std::fill(std::copy_n(weight + k * columns + column, count, to), to + kWide, 0.0f);
    }
  }
}

inline void arrange(const float* const* rows, int64_t count, int64_t width, float* to) {
  for (int64_t row = 0; row < count; ++row) std::copy_n(rows[row], width, to + row * width);
}

// Multiplies `count` rows and a group of columns. Every sum adds from first to last, whatever the count.
template <int count>
inline void multiply_rows(const float* rows, int64_t width, const float* weights, float* to) {
  Floats sums[count][2];
  for (auto& sum : sums) sum[0] = sum[1] = Floats::of(0.0f);
  for (int64_t k = 0; k < width; ++k, weights += kWide) {
    const Floats left = Floats::load(weights), right = Floats::load(weights + kLanes);
#pragma GCC unroll 8
    for (int row = 0; row < count; ++row) {
      const Floats value = Floats::of(rows[row * width + k]);
      sums[row][0] += value * left;
      sums[row][1] += value * right;
    }
  }
  for (int row = 0; row < count; ++row) {
    sums[row][0].store(to + row * kColumns);
    sums[row][1].store(to + row * kColumns + kLanes);
  }
}

// Multiplies at most `most` rows, whose sums fit into registers.
template <int most>
inline void multiply_some(const float* rows, int64_t count, int64_t width, const float* weights, float* to) {
  if (count == most) return multiply_rows<most>(rows, width, weights, to);
  if constexpr (most > 1) multiply_some<most - 1>(rows, count, width, weights, to);
}

inline void multiply(const float* rows, int64_t count, int64_t width, const float* block, float* to) {
  constexpr int together = FOVEAL_REGISTER_BYTES == 64 ? 8 : 4;
  for (int64_t column = 0; column < kColumns; column += kWide) {
    for (int64_t row = 0; row < count; row += together) {
      multiply_some<together>(rows + row * width, std::min<int64_t>(together, count - row), width,
                              block + column * width, to + row * kColumns + column);
    }
  }
}

inline void finish() {}

// Rows of a task, arranged for products.
class Arranged {
 public:
  Arranged(const Packed& weights, int64_t most_rows)
      : weights_(weights), size_(weights.products->rows_size(weights.width)),
        rows_((most_rows + kRows - 1) / kRows * size_) {}
  ~Arranged() { weights_.products->finish(); }

  // Arranges rows from `first`, a multiple of kRows.
  void set(int64_t first, const float* const* rows, int64_t count) {
    for (int64_t row = 0; row < count; row += kRows) {
      float* to = rows_.data() + (first + row) / kRows * size_;
      weights_.products->arrange(rows + row, std::min(kRows, count - row), weights_.width, to);
    }
  }
  // Multiplies `count` rows from `first` and a block of weights.
  void multiply(int64_t first, int64_t count, int64_t block, float* to) const {
    const float* weights = weights_.blocks + block * weights_.products->block_size(weights_.width);
    for (int64_t row = 0; row < count; row += kRows) {
      const float* rows = rows_.data() + (first + row) / kRows * size_;
      weights_.products->multiply(rows, std::min(kRows, count - row), weights_.width, weights, to + row * kColumns);
    }
  }

 private:
  const Packed& weights_;
  const int64_t size_;
  Buffer<float> rows_;
};

inline void product(const ProductTask& task, int64_t first, int64_t last) {
  const Packed& weights = task.weights;
  Arranged rows(weights, last - first);
  const float* pointers[kRows];
  float found[kRows * kColumns];
  for (int64_t row = first; row < last; row += kRows) {
    const int64_t count = std::min(kRows, last - row);
    for (int64_t i = 0; i < count; ++i) pointers[i] = task.rows + (row + i) * weights.width;
    rows.set(row - first, pointers, count);
  }
  for (int64_t column = 0; column < weights.columns; column += kColumns) {
    const int64_t wide = std::min(kColumns, weights.columns - column);
    for (int64_t row = first; row < last; row += kRows) {
      const int64_t count = std::min(kRows, last - row);
      rows.multiply(row - first, count, column / kColumns, found);
      for (int64_t i = 0; i < count; ++i) {
        float* out = task.out + (row + i) * weights.columns + column;
        for (int64_t c = 0; c < wide; c += kLanes) {
          Floats sums = Floats::load(found + i * kColumns + c);
          if (task.bias != nullptr) sums += load_first(task.bias + column + c, wide - c, 0.0f);
          store_first(out + c, wide - c, sums);
        }
      }
    }
  }
}

// Scores of one row's gates for `kUnits` units, or null.
struct GateScores {
  const float* from_state;
  const float* of_input;
  const float* of_item;
};

// c' = sigmoid(f) c + sigmoid(i) tanh(g),   h' = sigmoid(o) tanh(c')
FOVEAL_INLINE void update(const GateScores& scores, int64_t count, const float* memory, float* next_memory,
                          float* next_hidden) {
  for (int64_t unit = 0; unit < count; unit += kLanes) {
    Floats gates[4];
    for (int gate = 0; gate < 4; ++gate) {
      const int64_t at = gate * kUnits + unit;
      gates[gate] = Floats::load(scores.of_input + at);
      if (scores.of_item != nullptr) gates[gate] += Floats::load(scores.of_item + at);
      if (scores.from_state != nullptr) gates[gate] += Floats::load(scores.from_state + at);
    }
    const Floats before = load_first(memory + unit, count - unit, 0.0f);
    const Floats after = sigmoid(gates[1]) * before + sigmoid(gates[0]) * tanh(gates[3]);
    store_first(next_memory + unit, count - unit, after);
    store_first(next_hidden + unit, count - unit, sigmoid(gates[2]) * tanh(after));
  }
}

// Finds the equal ones among the hidden vectors of an item: hypotheses with one parent. `slots` receives the number of
// the vector of each row, and `rows` the vectors. Returns their number.
inline int64_t find_distinct(const float* hidden, int64_t each, int64_t units, const float** rows, int64_t filled,
                             int64_t* slots) {
  for (int64_t row = 0; row < each; ++row) {
    const float* vector = hidden + row * units;
    slots[row] = filled;
    for (int64_t other = 0; other < row; ++other) {
      if (std::memcmp(hidden + other * units, vector, units * sizeof(float)) == 0) {
        slots[row] = slots[other];
        break;
      }
    }
    if (slots[row] == filled) rows[filled++] = vector;
  }
  return filled;
}

inline void step(const LstmStep& task, int64_t first, int64_t last) {
  const int64_t gates = task.weights.columns, units = task.units;
  const bool whole = task.each <= kTogether;  // otherwise, rows are treated as separate items
  const int64_t each = whole ? task.each : 1, end = whole ? last : last * task.each;
  Arranged arranged(task.weights, kTogether);
  const float* pointers[kTogether];
  Buffer<float> found(kTogether * kColumns);
  Buffer<int64_t> slots(kTogether * each);
  for (int64_t item = whole ? first : first * task.each; item < end;) {
    const int64_t start = item;
    int64_t count = 0;
    while (item < end && item - start < kTogether && count + each <= kTogether) {
      count = find_distinct(task.hidden + item * each * units, each, units, pointers, count,
                            slots.data() + (item - start) * each);
      ++item;
    }
    arranged.set(0, pointers, count);
    for (int64_t unit = 0; unit < units; unit += kUnits) {
      arranged.multiply(0, count, unit / kUnits, found.data());
      for (int64_t i = 0; i < (item - start) * each; ++i) {
        const int64_t row = start * each + i, at = row * units + unit;
        const int64_t scores = task.tokens == nullptr ? row : task.tokens[row];
        const float* of_item = task.of_item;
        if (of_item != nullptr) of_item += row / task.each * gates + 4 * unit;
        update({found.data() + slots[i] * kColumns, task.scores + scores * gates + 4 * unit, of_item},
               std::min(kUnits, units - unit), task.memory + at, task.next_memory + at, task.next_hidden + at);
      }
    }
  }
}

inline void sequence(const LstmSequence& task, int64_t first, int64_t last) {
  const int64_t gates = task.weights.columns, units = task.units;
  Arranged arranged(task.weights, kTogether);
  const float* pointers[kTogether];
  Buffer<float> found(kTogether * kColumns);
  Buffer<float> memory(kTogether * units);
  for (int64_t text = first; text < last; text += kTogether) {
    std::fill_n(memory.data(), kTogether * units, 0.0f);
    const int64_t longest = task.lengths[text];
    int64_t count = task.backward ? 0 : std::min(kTogether, last - text);
    for (int64_t step = 0; step < longest; ++step) {
      const int64_t t = task.backward ? longest - 1 - step : step;
      while (task.backward && count < std::min(kTogether, last - text) && task.lengths[text + count] > t) ++count;
      while (!task.backward && task.lengths[text + count - 1] <= t) --count;
      const auto output = [&](int64_t row, int64_t at) {
        return task.outputs + ((text + row) * task.length + at) * task.stride;
      };
      if (step > 0) {
        for (int64_t row = 0; row < count; ++row) pointers[row] = output(row, task.backward ? t + 1 : t - 1);
        arranged.set(0, pointers, count);
      }
      for (int64_t unit = 0; unit < units; unit += kUnits) {
        if (step > 0) arranged.multiply(0, count, unit / kUnits, found.data());
        for (int64_t row = 0; row < count; ++row) {
          const int64_t at = (text + row) * task.length + t, scores = task.tokens == nullptr ? at : task.tokens[at];
          float* state = memory.data() + row * units + unit;
          update({step > 0 ? found.data() + row * kColumns : nullptr, task.scores + scores * gates + 4 * unit, nullptr},
                 std::min(kUnits, units - unit), state, state, output(row, t) + unit);
        }
      }
    }
  }
}

// Scores become weights: exp(score - largest) / sum, in a fixed order of positions; 0 if all are -inf.
inline void softmax(float* scores, int64_t count) {
  float most = scores[0], total = 0;
  for (int64_t s = 1; s < count; ++s) most = scores[s] > most || scores[s] != scores[s] ? scores[s] : most;
  if (most == -std::numeric_limits<float>::infinity()) return static_cast<void>(std::fill_n(scores, count, 0.0f));
  const Floats shift = Floats::of(most);
  for (int64_t s = 0; s < count; s += kLanes) {
    const Floats some = load_first(scores + s, count - s, -std::numeric_limits<float>::infinity());
    store_first(scores + s, count - s, exp(some - shift));
  }
  for (int64_t s = 0; s < count; ++s) total += scores[s];
  for (int64_t s = 0; s < count; ++s) scores[s] /= total;
}

inline void attend(const AttendTask& task, int64_t first, int64_t last) {
  const int64_t all = task.query + task.width;
  for (int64_t row = first * task.each; row < last * task.each; ++row) {
    const int64_t item = row / task.each;
    const float* query = task.products + row * all;
    const float* shut = task.shut == nullptr ? nullptr : task.shut + item * task.positions;
    float* scores = task.weights + row * task.positions;
    for (int64_t s = 0; s < task.positions; ++s) {
      if (shut != nullptr && shut[s] < 0) {
        scores[s] = shut[s];
        continue;
      }
      const float* key = task.keys + (item * task.positions + s) * task.query;
      Floats sums = Floats::of(0.0f);
      for (int64_t q = 0; q < task.query; q += kLanes) {
        const int64_t count = task.query - q;
        const Floats arguments = load_first(query + q, count, 0.0f) + load_first(key + q, count, 0.0f);
        sums += load_first(task.weight + q, count, 0.0f) * tanh(arguments);
      }
      scores[s] = sum(sums);
    }
    softmax(scores, task.positions);
    for (int64_t a = 0; a < task.width; a += kLanes) {
      const int64_t count = task.width - a;
      Floats sums = load_first(query + task.query + a, count, 0.0f);
      for (int64_t s = 0; s < task.positions; ++s) {
        const float* value = task.values + (item * task.positions + s) * task.width + a;
        sums += load_first(value, count, 0.0f) * scores[s];
      }
      store_first(task.vectors + row * task.width + a, count, tanh(sums));
    }
  }
}

// log p[w] = score[w] - log( sum over all exp(score) )
inline void log_softmax(float* scores, int64_t size, int64_t first, int64_t last) {
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  for (float* row = scores + first * size; row < scores + last * size; row += size) {
    Floats most = Floats::of(lowest), total = Floats::of(0.0f);
    for (int64_t w = 0; w < size; w += kLanes) most = max(most, load_first(row + w, size - w, lowest));
    const Floats shift = Floats::of(largest(most));
    for (int64_t w = 0; w < size; w += kLanes) total += exp(load_first(row + w, size - w, lowest) - shift);
    const Floats norm = Floats::of(std::log(sum(total)));
    for (int64_t w = 0; w < size; w += kLanes) {
      store_first(row + w, size - w, load_first(row + w, size - w, 0.0f) - shift - norm);
    }
  }
}

constexpr SearchKernels table() {
  return {{block_size, rows_size, pack, arrange, multiply, finish}, product, step, sequence, attend, log_softmax};
}

}  // namespace search
}  // namespace FOVEAL_ISA
}  // namespace foveal
