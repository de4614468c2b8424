// Spanning trees: elimination without subtraction, one sentence at a time.
//
// With w[h, d] the weight of the arc from head h to word d, words are eliminated from the last to the
// first; the dependents of an eliminated word p then depend on the heads of p. An arc is read when the later
// of its ends is eliminated, as one sum over the arc and the detours by words j > p:
//
//   hangs[p, d] = w[p, d] + sum_j picks[j, p] hangs[j, d]       d < p
//   picks[p, h] = ( w[h, p] + sum_j hangs[j, p] picks[j, h] ) / totals[p],    which sum to 1
//   Z           = prod_p totals[p]
//
// The derivative of log Z in each entry, its slope, comes from the first word to the last:
//
//   slope[p, d] = sum_h picks[p, h] slope[h, d]
//   slope[h, p] = ( spare + drop[h] ) / totals[p],   drop[h] = sum_d hangs[p, d] slope[h, d],
//                 spare = 1 - sum_h picks[p, h] drop[h], which is p( no arc that is read uses p's head )
//   marginal    = w slope
//
// and its derivative along a direction by the product rule, over the same factors.
//
// Except for `spare`, the recurrences only add and multiply nonnegative numbers, so each entry has the
// accuracy of a double while none leaves its range. The scores of a word are shifted to give its best arc the
// weight 1. Entries only grow, so scores up to 345 apart are safe; with forbidden arcs, the range is checked.
// Lower scores count as forbidden, which is exact as long as the trees with such an arc have a negligible
// weight; see `Cut`. Otherwise the sentence is computed again with numbers of any magnitude.
//
// Exactly one root arc: root arcs are scaled by e, with e to 0 (see `_spanning_passes.py`). They do not count
// in totals[p] unless p has no other head left and is closed; the dependents of a closed word then depend on a
// second root, node 1, which has no arc cost.

#pragma once

#include "kernels.h"
#include "lanes.h"
#include "rows.h"
#include "scratch.h"
#include "transposition.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace spanning {

using rows::kTargets;

constexpr double kNever = -std::numeric_limits<double>::infinity();

// The nodes of a sentence: one root or two, then its real words.
class Sentence {
 public:
  template <class T>
  Sentence(const Graph<T>& arcs, int64_t item) : places_(arcs.words + 2), roots_(arcs.single_root ? 2 : 1) {
    size_ = roots_;
    places_[0] = places_[roots_ - 1] = 0;
    for (int64_t word = 0; word < arcs.words; ++word) {
      if (arcs.mask == nullptr || arcs.mask[item * arcs.words + word]) places_[size_++] = word + 1;
    }
    stride_ = (size_ + kLanes - 1) / kLanes * kLanes;
  }
  int64_t roots() const { return roots_; }
  int64_t first_counted() const { return roots_ - 1; }  // heads from here on count in the totals
  int64_t size() const { return size_; }
  int64_t words() const { return size_ - roots_; }
  int64_t stride() const { return stride_; }
  int64_t place(int64_t node) const { return places_[node]; }  // its index in the scores
  bool is_whole() const { return places_[size_ - 1] == words(); }  // no masked word precedes a real one
  bool is_free_root(int64_t node) const { return roots_ == 2 && node == 1; }

 private:
  Buffer<int64_t> places_;
  int64_t roots_, size_, stride_;
};

// A number for each pair of nodes, in whole lanes both ways; not initialized.
template <class Number>
class Square {
 public:
  explicit Square(const Sentence& sentence) : numbers_(sentence.stride() * sentence.stride()), stride_(sentence.stride()) {}
  Number* row(int64_t node) const { return numbers_.data() + node * stride_; }
  Number* at(int64_t node, int64_t other) const { return row(node) + other; }
  int64_t stride() const { return stride_; }
  void fill(Number value) const { std::fill(row(0), row(stride_), value); }

 private:
  Buffer<Number> numbers_;
  int64_t stride_;
};

inline void transpose(const Square<double>& from, const Square<double>& to) {
  constexpr int width = Lanes<double>::width;
  using Unaligned = Lanes<double>::Unaligned;
  for (int64_t i = 0; i < from.stride(); i += width) {
    for (int64_t j = 0; j < from.stride(); j += width) {
      Lanes<double>::Register block[width];
      for (int k = 0; k < width; ++k) block[k] = *reinterpret_cast<const Unaligned*>(from.at(i + k, j));
      FOVEAL_ISA::transpose<double>(block);
      for (int k = 0; k < width; ++k) *reinterpret_cast<Unaligned*>(to.at(j + k, i)) = block[k];
    }
  }
}

inline void transpose(const Square<Wide>& from, const Square<Wide>& to) {
  for (int64_t i = 0; i < from.stride(); ++i) {
    for (int64_t j = 0; j < from.stride(); ++j) *to.at(j, i) = *from.at(i, j);
  }
}

// Numbers on arcs [head, word], `fill` where there is none.
template <class T>
void read(const Sentence& sentence, const T* square, int64_t size, double fill, const Square<double>& out) {
  const int64_t roots = sentence.roots();
  for (int64_t head = 0; head < sentence.size(); ++head) {
    double* row = out.row(head);
    std::fill(row, sentence.is_free_root(head) ? row + sentence.size() : row + roots, fill);
    std::fill(row + sentence.size(), row + sentence.stride(), fill);
    if (sentence.is_free_root(head)) continue;
    const T* given = square + sentence.place(head) * size;
    if (sentence.is_whole()) {
      for (int64_t c = 0; c < sentence.words(); c += kLanes) {
        const int64_t left = sentence.words() - c;
        store_first(row + roots + c, left, widen(load_first(given + 1 + c, left, T(0))));
      }
    } else {
      for (int64_t word = roots; word < sentence.size(); ++word) row[word] = static_cast<double>(given[sentence.place(word)]);
    }
    if (head >= roots) row[head] = fill;
  }
}

// Converts shifted scores to weights: scores below `floor` are forbidden, and all are multiplied by `scale`.
struct Cut {
  double floor, scale;
};
constexpr Cut kCutForDoubles{-345, 1}, kCutForWides{kLowestLog, 1};

// The total shift of the scores of a tree; the lowest shifted score, and the highest one that is too low for
// doubles, -inf if there is none; and whether all scores are numbers.
struct Shifts {
  double total = 0, lowest = 0, too_low = kNever;
  bool are_numbers = true;
};

// The highest number below `floor`, -inf if there is none.
inline double highest_below(const Sentence& sentence, const Square<double>& logs, double floor) {
  double found = kNever;
  for (int64_t head = 0; head < sentence.size(); ++head) {
    for (int64_t word = 0; word < sentence.size(); ++word) {
      const double log = *logs.at(head, word);
      if (log < floor) found = std::max(found, log);
    }
  }
  return found;
}

// Whether all trees with an arc of weight exp(`too_low`) or less are negligible compared with the total weight
// exp(`log_weight`): there are less than (n+1)^n trees, and no arc weighs more than 1.
inline bool is_exact(const Sentence& sentence, double log_weight, double too_low) {
  const double words = static_cast<double>(sentence.words());
  return too_low == kNever || log_weight - too_low > words * std::log(words + 1) + 40;
}

// Subtracts from each root arc the best score of its word, and returns the best difference. Adds up the total
// shift. For the best root arc, this is the arc's score: a word that can only depend on the root may have
// a placeholder such as -1e30 as the best of its other scores, which would swamp the root score.
inline double shift_root(const Sentence& sentence, const Square<double>& logs, const double* best, double* total) {
  double* row = logs.row(0);
  int64_t chosen = sentence.roots();
  double highest = kNever, own = 0;
  for (int64_t word = sentence.roots(); word < sentence.size(); ++word) {
    const double given = row[word];
    row[word] -= best[word];
    if (!(row[word] > highest)) continue;
    highest = row[word], own = given, chosen = word;
  }
  if (highest == kNever) highest = 0;
  for (int64_t word = sentence.roots(); word < sentence.size(); ++word) *total += word == chosen ? own : best[word];
  return highest;
}

// Subtracts from the scores of each word the best one that counts; with a single root, also from root arcs.
inline Shifts shift(const Sentence& sentence, const Square<double>& logs) {
  const int64_t size = sentence.size(), roots = sentence.roots(), counted = sentence.first_counted();
  Buffer<double> best(sentence.stride());
  std::fill(best.data(), best.data() + sentence.stride(), kNever);
  for (int64_t head = counted; head < size; ++head) {
    for (int64_t c = 0; c < size; c += kLanes) {
      max(Lanes<double>::load(&best[c]), Lanes<double>::load(logs.at(head, c))).store(&best[c]);
    }
  }
  Shifts shifts;
  for (int64_t word = roots; word < size; ++word) {
    if (best[word] == kNever) best[word] = *logs.at(0, word);  // the root, or no arc at all
    if (best[word] == kNever) best[word] = 0;
  }
  std::fill(best.data(), best.data() + roots, 0.0);
  std::fill(best.data() + size, best.data() + sentence.stride(), 0.0);
  const double root_best = roots == 2 ? shift_root(sentence, logs, best.data(), &shifts.total) : 0.0;
  for (int64_t word = roots; word < size && roots == 1; ++word) shifts.total += best[word];
  const auto never = Lanes<double>::of(kNever), zero = Lanes<double>::of(0.0), floor = Lanes<double>::of(kCutForDoubles.floor);
  auto lowest = zero, too_low = never, strange = zero;
  for (int64_t head = 0; head < size; ++head) {
    for (int64_t c = 0; c < size; c += kLanes) {
      const auto off = roots == 2 && head == 0 ? Lanes<double>::of(root_best) : Lanes<double>::load(&best[c]);
      const auto moved = Lanes<double>::load(logs.at(head, c)) - off;
      moved.store(logs.at(head, c));
      const auto finite = where_less(never, moved, moved, zero);
      lowest = where_less(finite, lowest, finite, lowest);
      too_low = max(too_low, where_less(moved, floor, moved, never));
      strange += where_less(moved, Lanes<double>::of(1.0), zero, Lanes<double>::of(1.0));  // NaN is not less
    }
  }
  shifts.lowest = -largest(zero - lowest);
  shifts.too_low = largest(too_low);
  shifts.are_numbers = largest(strange) == 0;
  return shifts;
}

inline void weigh(const Sentence& sentence, const Square<double>& logs, const Cut& cut, const Square<double>& weights) {
  const auto floor = Lanes<double>::of(cut.floor), never = Lanes<double>::of(kNever);
  for (int64_t head = 0; head < sentence.size(); ++head) {
    for (int64_t c = 0; c < sentence.size(); c += kLanes) {
      const auto log = Lanes<double>::load(logs.at(head, c));
      exp(where_less(log, floor, never, log)).store(weights.at(head, c));
    }
  }
}

inline void weigh(const Sentence& sentence, const Square<double>& logs, const Cut& cut, const Square<Wide>& weights) {
  for (int64_t head = 0; head < sentence.size(); ++head) {
    for (int64_t c = 0; c < sentence.size(); ++c) {
      const double log = *logs.at(head, c);
      *weights.at(head, c) = log < cut.floor ? Wide() : wide_exp(log * cut.scale);
    }
  }
}

// The factors of the Laplacian; rows are read up to the diagonal.
template <class Number>
struct Factors {
  Square<Number> hangs, picks;
  Buffer<Number> totals;
  Buffer<double> is_open;  // 1, or 0 for words that are closed

  explicit Factors(const Sentence& sentence)
      : hangs(sentence), picks(sentence), totals(sentence.size()), is_open(sentence.size()) {
    std::fill(totals.data(), totals.data() + sentence.roots(), Number(1));
    std::fill(is_open.data(), is_open.data() + sentence.roots(), 1.0);
  }

  // Initializes all rows with the arcs. Values beyond the diagonal are never read as a result.
  void start(const Square<Number>& arcs) const {
    std::copy(arcs.row(0), arcs.row(arcs.stride()), hangs.row(0));
    transpose(arcs, picks);
  }
};

template <class Number>
void settle(const Sentence& sentence, int64_t p, const Factors<Number>& factors) {
  Number* picks = factors.picks.row(p);
  const int64_t counted = sentence.first_counted();
  Number total = rows::total(picks + counted, p - counted);
  factors.is_open[p] = 1;
  if (total == Number(0) && counted > 0) {
    total = picks[0];
    std::fill(picks, picks + p, Number(0));
    picks[1] = Number(1);
    factors.is_open[p] = 0;
  } else if (!(total == Number(0))) {
    const Number scale = Number(1) / total;
    for (int64_t h = 0; h < p; ++h) picks[h] *= scale;
  }
  factors.totals[p] = total;
}

// Eliminates all words in turn; returns whether all numbers stayed in range.
template <class Number>
bool eliminate(const Sentence& sentence, const Square<Number>& weights, const Factors<Number>& factors) {
  const auto& [hangs, picks, totals, is_open] = factors;
  const int64_t size = sentence.size(), roots = sentence.roots(), stride = sentence.stride();
  rows::Range<Number> range;
  factors.start(weights);
  for (int64_t last = size; last > roots;) {
    const int64_t first = std::max(roots, last - kTargets);
    if (last < size) {
      rows::add(hangs.row(first), {picks.at(last, first), 1, stride, hangs.row(last), stride, size - last}, last - first, last - 1);
      rows::add(picks.row(first), {hangs.at(last, first), 1, stride, picks.row(last), stride, size - last}, last - first, last - 1);
    }
    for (int64_t p = last - 1; p >= first; --p) {
      if (p + 1 < last) {
        rows::add(hangs.row(p), {picks.at(p + 1, p), 1, stride, hangs.row(p + 1), stride, last - 1 - p}, 1, p);
        rows::add(picks.row(p), {hangs.at(p + 1, p), 1, stride, picks.row(p + 1), stride, last - 1 - p}, 1, p);
      }
      settle(sentence, p, factors);
      range.watch(hangs.row(p), p);
      range.watch(picks.row(p), p);
    }
    last = first;
  }
  return range.is_kept();
}

// Whether there is a tree: every word has a head, and at most one word is closed.
template <class Number>
bool is_possible(const Sentence& sentence, const Factors<Number>& factors) {
  int64_t num_closed = 0;
  for (int64_t p = sentence.roots(); p < sentence.size(); ++p) {
    if (factors.totals[p] == Number(0)) return false;
    if (factors.is_open[p] == 0) ++num_closed;
  }
  return num_closed <= 1;
}

// log Z of the weights.
template <class Number>
double log_of_weight(const Sentence& sentence, const Factors<Number>& factors) {
  if (!is_possible(sentence, factors)) return kNever;
  return log_of_product(&factors.totals[sentence.roots()], sentence.words());
}

// The slopes [head, word] and their transpose, by rows; 0 for entries that are not yet computed, and on the
// diagonal.
template <class Number>
struct Slopes {
  Square<Number> of_heads, of_words;

  explicit Slopes(const Sentence& sentence) : of_heads(sentence), of_words(sentence) {}

  void clear() const {
    of_heads.fill(Number(0));
    of_words.fill(Number(0));
  }

  // Copies the results of pivot p from its rows to its columns in the rows from .. p.
  void spread(int64_t p, int64_t from) const {
    *of_heads.at(p, p) = *of_words.at(p, p) = Number(0);
    for (int64_t x = from; x < p; ++x) {
      *of_heads.at(x, p) = *of_words.at(p, x);
      *of_words.at(x, p) = *of_heads.at(p, x);
    }
  }

  // The same for the pivots first .. last - 1, in the rows before them: all pivots at once, since each row is
  // in another cache line.
  void spread_panel(int64_t first, int64_t last) const {
    for (int64_t x = 0; x < first; ++x) {
      for (int64_t p = first; p < last; ++p) {
        *of_heads.at(x, p) = *of_words.at(p, x);
        *of_words.at(x, p) = *of_heads.at(p, x);
      }
    }
  }
};

// Adds to row p of `to` the multiples of the rows first .. p - 1. Its entries from `first` on must not be
// read afterwards: their rows were incomplete when the rows before `first` were added.
template <class Number>
void add_latest(const Square<Number>& to, const Number* factors, const Square<Number>& over, int64_t first, int64_t p) {
  if (p > first) rows::add(to.row(p), {factors + first, 0, 1, over.row(first), to.stride(), p - first}, 1, first);
}

// 0 where an entry is 0: nothing depends on the slope of such an entry.
template <class Number>
void drop_unused(Number* slopes, const Number* entries, int64_t count) {
  for (int64_t x = 0; x < count; ++x) slopes[x] = entries[x] == Number(0) ? Number(0) : slopes[x];
}

template <class Number>
void differentiate(const Sentence& sentence, const Factors<Number>& factors, const Slopes<Number>& slopes) {
  const auto& [hangs, picks, totals, is_open] = factors;
  const auto& [of_heads, of_words] = slopes;
  const int64_t size = sentence.size(), stride = sentence.stride(), counted = sentence.first_counted();
  slopes.clear();
  for (int64_t first = sentence.roots(); first < size; first += kTargets) {
    const int64_t last = std::min(size, first + kTargets);
    rows::add(of_heads.row(first), {picks.row(first), stride, 1, of_heads.row(0), stride, first}, last - first, first);
    rows::add(of_words.row(first), {hangs.row(first), stride, 1, of_words.row(0), stride, first}, last - first, first);
    for (int64_t p = first; p < last; ++p) {
      Number *row = of_heads.row(p), *column = of_words.row(p);
      add_latest(of_heads, picks.row(p), of_heads, first, p);
      add_latest(of_words, hangs.row(p), of_words, first, p);
      for (int64_t x = first; x < p; ++x) {
        row[x] = rows::dot(picks.row(p), of_words.row(x), p);
        column[x] = rows::dot(hangs.row(p), of_heads.row(x), p);
      }
      const Number scale = Number(1) / totals[p];
      if (is_open[p] == 0) {
        std::fill(column, column + p, Number(0));
        column[0] = scale;
      } else {
        const Number spare = Number(1) - rows::dot(picks.row(p), column, p);
        for (int64_t h = 0; h < counted; ++h) column[h] *= scale;
        for (int64_t h = counted; h < p; ++h) column[h] = (column[h] + spare) * scale;
        drop_unused(column, picks.row(p), p);
      }
      drop_unused(row, hangs.row(p), p);
      slopes.spread(p, first);
    }
    slopes.spread_panel(first, last);
  }
}

}  // namespace spanning
}  // namespace FOVEAL_ISA
}  // namespace foveal
