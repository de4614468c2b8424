// Charts of spans, and sums over the splits of a span.
//
// The span of width w that starts at i has index w * row + i. A span of width k splits after
// s = 0 .. k - 1 into a left part that starts at i and a right part whose width falls by 1 and whose
// start rises by 1 with s, so a sum over splits walks down two columns of charts:
//
//   total    = log sum_s exp( left[s] + right[s] ),      w[s] = exp( left[s] + right[s] - total )
//   outside    left[s] and right[s] receive w[s] m, the probability m of the span
//   tangent    d = sum_s w[s] (d_left[s] + d_right[s]);  both parts receive
//              w[s] ( e + m (d_left[s] + d_right[s] - d) ), the tangent e of m
//
// The lanes hold spans of one width with consecutive starts, or the same span of several sentences, because
// short sentences have few spans of a width. The layouts differ only in the entry of a chart: a number in the
// first layout and a register in the second.
//
// Weights are kept as exp( left + right - highest ) with the reciprocal of their sum, the scale.

#pragma once

#include "kernels.h"
#include "lanes.h"
#include "scratch.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace charts {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// One sentence, spans of a width in the lanes. Lanes past the last span of a width compute on unrelated
// values; their probabilities are 0, so they add nothing, unless the sentence has a NaN.
struct Starts {
  template <class T>
  using Entry = T;
  static constexpr int64_t spans = kLanes;  // in a block
  static constexpr int sentences = 1;
};

// One sentence in each lane.
struct Items {
  template <class T>
  using Entry = Lanes<T>;
  static constexpr int64_t spans = 1;
  static constexpr int sentences = kLanes;
};

template <class Layout, class T>
using Entry = typename Layout::template Entry<T>;

// A block of spans, which begins at an entry.
template <class T>
FOVEAL_INLINE Lanes<T> load(const T* entry) {
  return Lanes<T>::load(entry);
}
template <class T>
FOVEAL_INLINE Lanes<T> load(const Lanes<T>* entry) {
  return *entry;
}
template <class T>
FOVEAL_INLINE void store(const Lanes<T>& x, T* entry) {
  x.store(entry);
}
template <class T>
FOVEAL_INLINE void store(const Lanes<T>& x, Lanes<T>* entry) {
  *entry = x;
}

// The number of one sentence in an entry.
template <class T>
FOVEAL_INLINE T& lane_of(T& entry, int) {
  return entry;
}
template <class T>
FOVEAL_INLINE T& lane_of(Lanes<T>& entry, int lane) {
  return reinterpret_cast<T*>(entry.part)[lane];
}
template <class T>
FOVEAL_INLINE const T& lane_of(const Lanes<T>& entry, int lane) {
  return reinterpret_cast<const T*>(entry.part)[lane];
}

// The values kept for a block of spans and one of its sums, lane by lane: the weight of every split,
// the scale, the probability.
template <class T>
struct Kept {
  T* first;  // null: nothing is to be kept
  int64_t count;

  T* weight(int64_t split) const { return first + split * kLanes; }
  T* scale() const { return first + count * kLanes; }
  T* mass() const { return first + (count + 1) * kLanes; }
};

// The indices of spans in a chart and in the kept values, for `words` words and a number of sums per span.
template <class Layout>
class Grid {
 public:
  Grid(int64_t words, int64_t sums)
      : words_(words), row_(Layout::spans == 1 ? words : (words + kLanes - 1) / kLanes * kLanes), sums_(sums),
        offsets_(words + 1) {
    int64_t offset = 0;
    offsets_[0] = 0;
    for (int64_t width = 1; width <= words; ++width) {
      offsets_[width] = offset;
      const int64_t blocks = (words - width + Layout::spans - 1) / Layout::spans;
      offset += blocks * sums * (width + 2) * kLanes;
    }
  }
  int64_t words() const { return words_; }
  int64_t row() const { return row_; }
  int64_t chart() const { return words_ * row_; }  // entries
  int64_t at(int64_t width, int64_t start) const { return width * row_ + start; }
  int64_t kept_size() const { return offsets_[words_]; }

  template <class T>
  FOVEAL_INLINE Kept<T> kept(T* all, int64_t sum, int64_t width, int64_t start) const {
    const int64_t block = start / Layout::spans * sums_ + sum;
    return {all + offsets_[width] + block * (width + 2) * kLanes + start % Layout::spans, width};
  }
  // Calls each(width, start) for every block of spans of two words or more, from the narrowest.
  template <class Each>
  void ascend(Each each) const {
    for (int64_t width = 1; width < words_; ++width) {
      for (int64_t start = 0; start + width < words_; start += Layout::spans) each(width, start);
    }
  }
  template <class Each>
  void descend(Each each) const {
    for (int64_t width = words_ - 1; width > 0; --width) {
      for (int64_t start = 0; start + width < words_; start += Layout::spans) each(width, start);
    }
  }

 private:
  int64_t words_, row_, sums_;
  Buffer<int64_t> offsets_;
};

template <class Number>
void fill(const Buffer<Number>& chart, int64_t count, Number value) {
  std::fill(chart.data(), chart.data() + count, value);
}
template <class T>
void fill(const Buffer<Lanes<T>>& chart, int64_t count, T value) {
  std::fill(chart.data(), chart.data() + count, Lanes<T>::of(value));
}

// The parts of all splits: the first entries of both columns, the stride of each, and the number of splits.
template <class Number>
struct Columns {
  Number* left;
  Number* right;
  int64_t row;
  int64_t count;
};

template <class T, class Number>
FOVEAL_INLINE Lanes<double> sum(const Columns<Number>& from, const Kept<T>& kept) {
  const auto never = Lanes<double>::of(kNever);
  const int64_t down = from.row, up = 1 - from.row;
  auto highest = Lanes<double>::of(std::numeric_limits<double>::lowest());
  for (int64_t s = 0; s < from.count; ++s) {
    highest = max(highest, load(from.left + s * down) + load(from.right + s * up));
  }
  auto total = Lanes<T>::of(T(0));
  for (int64_t s = 0; s < from.count; ++s) {
    const auto joined = load(from.left + s * down) + load(from.right + s * up);
    const auto weight = exp(narrow<T>(joined - highest));
    total += weight;
    if (kept.first != nullptr) weight.store(kept.weight(s));
  }
  if (kept.first != nullptr) reciprocal_or_zero(total).store(kept.scale());
  return where_positive(widen(total), highest + widen(log(total)), never + widen(total));  // NaN if the total is
}

// The maximum of left[s] + right[s], and its index.
template <class T>
FOVEAL_INLINE Lanes<double> best(const Columns<double>& from, T* place) {
  const int64_t down = from.row, up = 1 - from.row;
  auto highest = load(from.left) + load(from.right);
  auto found = Lanes<double>::of(0.0);
  for (int64_t s = 1; s < from.count; ++s) {
    const auto joined = load(from.left + s * down) + load(from.right + s * up);
    found = where_less(highest, joined, Lanes<double>::of(static_cast<double>(s)), found);
    highest = max(highest, joined);
  }
  narrow<T>(found).store(place);
  return highest;
}

template <class Number, class T>
FOVEAL_INLINE void add(Number* to, const Lanes<T>& x) {
  store(load(to) + x, to);
}

// Distributes the probability of a block of spans over their parts, and keeps it.
template <class T, class Number>
FOVEAL_INLINE void share(const Lanes<T>& mass, const Kept<T>& kept, const Columns<Number>& to) {
  mass.store(kept.mass());
  const auto scaled = mass * Lanes<T>::load(kept.scale());
  for (int64_t s = 0; s < to.count; ++s) {
    const auto part = scaled * Lanes<T>::load(kept.weight(s));
    add(to.left + s * to.row, part);
    add(to.right + s * (1 - to.row), part);
  }
}

// sum_s w[s] (left[s] + right[s])
template <class T, class Number>
FOVEAL_INLINE Lanes<T> mix(const Kept<const T>& kept, const Columns<Number>& from) {
  auto total = Lanes<T>::of(T(0));
  for (int64_t s = 0; s < from.count; ++s) {
    const auto both = load(from.left + s * from.row) + load(from.right + s * (1 - from.row));
    total += both * Lanes<T>::load(kept.weight(s));
  }
  return total * Lanes<T>::load(kept.scale());
}

// Both parts receive w[s] ( change + mass (below_left[s] + below_right[s] - mixture) ).
template <class T, class Below, class Number>
FOVEAL_INLINE void share_change(const Lanes<T>& change, const Lanes<T>& mixture, const Kept<const T>& kept,
                                   const Columns<Below>& below, const Columns<Number>& to) {
  const int64_t down = to.row, up = 1 - to.row;
  const auto scale = Lanes<T>::load(kept.scale());
  const auto scaled = Lanes<T>::load(kept.mass()) * scale;
  const auto own = change * scale - scaled * mixture;
  for (int64_t s = 0; s < to.count; ++s) {
    const auto both = load(below.left + s * down) + load(below.right + s * up);
    const auto part = (own + scaled * both) * Lanes<T>::load(kept.weight(s));
    add(to.left + s * down, part);
    add(to.right + s * up, part);
  }
}

}  // namespace charts
}  // namespace FOVEAL_ISA
}  // namespace foveal
