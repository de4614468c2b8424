// The derivative of the marginals of spanning trees along a direction in the scores: `spanning.h`,
// line by line, by the product rule. A dot is a derivative.
//
//   hangs.[p, d] = w.[p, d] + sum_j ( picks.[j, p] hangs[j, d] + picks[j, p] hangs.[j, d] )
//   picks.[p, h] = ( column.[h] - picks[p, h] totals.[p] ) / totals[p],     column. as hangs., transposed
//   slope.[p, d] = sum_h ( picks.[p, h] slope[h, d] + picks[p, h] slope.[h, d] )
//   slope.[h, p] = ( spare. + drop.[h] - slope[h, p] totals.[p] ) / totals[p]
//   spare.       = - sum_h ( picks.[p, h] drop[h] + picks[p, h] drop.[h] )
//
// The changes of picks sum to 0, so spare. can use the slopes times totals[p] instead of drop.

#pragma once

#include <type_traits>

#include "spanning.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace spanning {

template <class Number>
void push_factors(const Sentence& sentence, const Square<Number>& moves, const Factors<Number>& factors,
                  const Factors<Number>& changes) {
  // Names instead of structured bindings, which a lambda may not capture in C++17.
  const auto &hangs = factors.hangs, &picks = factors.picks;
  const auto &totals = factors.totals, &on_totals = changes.totals;
  const auto &on_hangs = changes.hangs, &on_picks = changes.picks;
  const auto& is_open = factors.is_open;
  const int64_t size = sentence.size(), roots = sentence.roots(), stride = sentence.stride();
  const int64_t counted = sentence.first_counted();
  // Adds to rows first .. last - 1 the detours by the words from `from` up to `to`.
  const auto add_detours = [&](int64_t first, int64_t last, int64_t from, int64_t to) {
    if (from == to) return;
    const int64_t number = to - from, targets = last - first, count = last - 1;
    rows::add(on_hangs.row(first), {on_picks.at(from, first), 1, stride, hangs.row(from), stride, number}, targets, count);
    rows::add(on_hangs.row(first), {picks.at(from, first), 1, stride, on_hangs.row(from), stride, number}, targets, count);
    rows::add(on_picks.row(first), {on_hangs.at(from, first), 1, stride, picks.row(from), stride, number}, targets, count);
    rows::add(on_picks.row(first), {hangs.at(from, first), 1, stride, on_picks.row(from), stride, number}, targets, count);
  };
  changes.start(moves);
  for (int64_t last = size; last > roots;) {
    const int64_t first = std::max(roots, last - kTargets);
    add_detours(first, last, last, size);
    for (int64_t p = last - 1; p >= first; --p) {
      add_detours(p, p + 1, p + 1, last);
      Number* along = on_picks.row(p);
      if (is_open[p] == 0) {
        on_totals[p] = along[0];
        std::fill(along, along + p, Number(0));
      } else {
        on_totals[p] = rows::total(along + counted, p - counted);
        const Number scale = Number(1) / totals[p];
        for (int64_t h = 0; h < p; ++h) along[h] = (along[h] - *picks.at(p, h) * on_totals[p]) * scale;
      }
    }
    last = first;
  }
}

template <class Number>
void push_slopes(const Sentence& sentence, const Factors<Number>& factors, const Slopes<Number>& slopes,
                 const Factors<Number>& changes, const Slopes<Number>& on_slopes) {
  const auto& [hangs, picks, totals, is_open] = factors;
  const auto& [on_hangs, on_picks, on_totals, unused] = changes;
  const auto& [of_heads, of_words] = slopes;
  const auto& [on_heads, on_words] = on_slopes;
  const int64_t size = sentence.size(), stride = sentence.stride(), counted = sentence.first_counted();
  on_slopes.clear();
  for (int64_t first = sentence.roots(); first < size; first += kTargets) {
    const int64_t last = std::min(size, first + kTargets), targets = last - first;
    rows::add(on_heads.row(first), {on_picks.row(first), stride, 1, of_heads.row(0), stride, first}, targets, first);
    rows::add(on_heads.row(first), {picks.row(first), stride, 1, on_heads.row(0), stride, first}, targets, first);
    rows::add(on_words.row(first), {on_hangs.row(first), stride, 1, of_words.row(0), stride, first}, targets, first);
    rows::add(on_words.row(first), {hangs.row(first), stride, 1, on_words.row(0), stride, first}, targets, first);
    for (int64_t p = first; p < last; ++p) {
      Number *row = on_heads.row(p), *column = on_words.row(p);
      add_latest(on_heads, on_picks.row(p), of_heads, first, p);
      add_latest(on_heads, picks.row(p), on_heads, first, p);
      add_latest(on_words, on_hangs.row(p), of_words, first, p);
      add_latest(on_words, hangs.row(p), on_words, first, p);
      for (int64_t x = first; x < p; ++x) {
        row[x] = rows::dot(on_picks.row(p), of_words.row(x), p) + rows::dot(picks.row(p), on_words.row(x), p);
        column[x] = rows::dot(on_hangs.row(p), of_heads.row(x), p) + rows::dot(hangs.row(p), on_heads.row(x), p);
      }
      const Number scale = Number(1) / totals[p];
      if (is_open[p] == 0) {
        std::fill(column, column + p, Number(0));
        column[0] = -(on_totals[p] * scale) * scale;
      } else {
        const Number* own = of_words.row(p);
        const Number lost = rows::dot(on_picks.row(p), own, p) * totals[p] + rows::dot(picks.row(p), column, p);
        for (int64_t h = 0; h < p; ++h) {
          const Number spare = h < counted ? Number(0) : lost;
          column[h] = (column[h] - spare - own[h] * on_totals[p]) * scale;
        }
        drop_unused(column, picks.row(p), p);
      }
      drop_unused(row, hangs.row(p), p);
      on_slopes.spread(p, first);
    }
    on_slopes.spread_panel(first, last);
  }
}

// The values kept for a sentence: totals and closed words; the rows of hangs, up to the diagonal, each followed
// by the row of picks, which together fill the full width; the slopes.
template <class Numbers, class Copy>
void for_kept(const Sentence& sentence, const Factors<double>& factors, const Slopes<double>& slopes, Numbers* kept,
              Copy copy) {
  const int64_t size = sentence.size();
  copy(&factors.totals[0], kept, size);
  copy(&factors.is_open[0], kept + size, size);
  Numbers* at = kept + 2 * size;
  for (int64_t p = 0; p < size; ++p) {
    copy(factors.hangs.row(p), at + p * size, p);
    copy(factors.picks.row(size - 1 - p), at + p * size + p, size - 1 - p);
    copy(slopes.of_heads.row(p), at + (size + p) * size, size);
  }
}

inline void pack(const Sentence& sentence, const Factors<double>& factors, const Slopes<double>& slopes, double* kept) {
  for_kept(sentence, factors, slopes, kept, [](const double* own, double* to, int64_t count) { std::copy(own, own + count, to); });
}

inline void unpack(const Sentence& sentence, const double* kept, const Factors<double>& factors, const Slopes<double>& slopes) {
  for_kept(sentence, factors, slopes, kept, [](double* own, const double* from, int64_t count) { std::copy(from, from + count, own); });
  transpose(slopes.of_heads, slopes.of_words);
}

// Stores numbers on arcs in the layout of the scores; 0 where there is no arc. `each(head, word)` returns
// the numbers of a word and of the lanes after it.
template <class T, class Each>
void write(const Sentence& sentence, int64_t size, T* square, Each each) {
  const int64_t roots = sentence.roots();
  std::fill(square, square + size * size, T(0));
  Buffer<T> numbers(sentence.stride() + kLanes);
  for (int64_t head = 0; head < sentence.size(); ++head) {
    if (sentence.is_free_root(head)) continue;
    for (int64_t word = 0; word < sentence.size(); word += kLanes) narrow<T>(each(head, word)).store(&numbers[word]);
    T* row = square + sentence.place(head) * size;
    if (sentence.is_whole()) {
      std::copy(&numbers[roots], &numbers[sentence.size()], row + 1);
    } else {
      for (int64_t word = roots; word < sentence.size(); ++word) row[sentence.place(word)] = numbers[word];
    }
  }
}

// Products of two rows, as doubles.
FOVEAL_INLINE Lanes<double> product(const double* a, const double* b) {
  return Lanes<double>::load(a) * Lanes<double>::load(b);
}

inline Lanes<double> product(const Wide* a, const Wide* b) {
  auto out = Lanes<double>::of(0.0);
  for (int i = 0; i < kLanes; ++i) out.set_lane(i, value_of(a[i] * b[i]));
  return out;
}

// The scores of a sentence, shifted.
struct Shifted {
  Square<double> logs;
  Shifts shifts;

  template <class T>
  Shifted(const Graph<T>& arcs, int64_t item, const Sentence& sentence) : logs(sentence) {
    const int64_t size = arcs.words + 1;
    read(sentence, arcs.scores + item * size * size, size, kNever, logs);
    shifts = shift(sentence, logs);
  }
};

// log Z with doubles; NaN if their range is not sufficient.
inline double log_partition_by(const Sentence& sentence, const Shifted& shifted, const Square<double>& weights,
                               const Factors<double>& factors, Cut* cut) {
  const Shifts& shifts = shifted.shifts;
  *cut = kCutForDoubles;
  weigh(sentence, shifted.logs, *cut, weights);
  const bool is_in_range = eliminate(sentence, weights, factors);
  const double found = is_in_range ? log_of_weight(sentence, factors) : kNever;
  if (!is_in_range || !is_exact(sentence, found, shifts.too_low)) return std::numeric_limits<double>::quiet_NaN();
  return found + shifts.total;
}

// log Z with numbers of any magnitude. If all trees have an arc whose score is too low even for these numbers,
// the scores are scaled to their range: scores that large have no accurate small differences anyway.
inline double log_partition_by(const Sentence& sentence, const Shifted& shifted, const Square<Wide>& weights,
                               const Factors<Wide>& factors, Cut* cut) {
  const Shifts& shifts = shifted.shifts;
  *cut = kCutForWides;
  weigh(sentence, shifted.logs, *cut, weights);
  eliminate(sentence, weights, factors);
  double found = log_of_weight(sentence, factors);
  if (!is_exact(sentence, found, highest_below(sentence, shifted.logs, cut->floor))) {
    *cut = {kNever, kLowestLog / shifts.lowest};
    weigh(sentence, shifted.logs, *cut, weights);
    eliminate(sentence, weights, factors);
    found = log_of_weight(sentence, factors);
  }
  return found / cut->scale + shifts.total;
}

template <class T>
void log_partition(const Graph<T>& arcs, T* out, int64_t item) {
  const Sentence sentence(arcs, item);
  const Shifted shifted(arcs, item, sentence);
  Cut cut;
  double found = std::numeric_limits<double>::quiet_NaN();
  if (shifted.shifts.are_numbers) found = log_partition_by(sentence, shifted, Square<double>(sentence), Factors<double>(sentence), &cut);
  if (shifted.shifts.are_numbers && found != found) {
    found = log_partition_by(sentence, shifted, Square<Wide>(sentence), Factors<Wide>(sentence), &cut);
  }
  out[item] = static_cast<T>(found);
}

// Marginals of one sentence with one type of numbers; returns whether their range was sufficient.
template <class Number, class T>
bool marginals_by(const Graph<T>& arcs, const SpanningMarginals<T>& out, int64_t item, const Sentence& sentence,
                  const Shifted& shifted) {
  const Square<Number> weights(sentence);
  const Factors<Number> factors(sentence);
  const Slopes<Number> slopes(sentence);
  Cut cut;
  const double found = log_partition_by(sentence, shifted, weights, factors, &cut);
  if (found != found) return false;
  out.log_partition[item] = static_cast<T>(found);
  found > kNever ? differentiate(sentence, factors, slopes) : slopes.clear();
  const int64_t size = arcs.words + 1;
  // The marginal of an almost impossible arc may be slightly below 0 due to rounding.
  write(sentence, size, out.marginals + item * size * size, [&](int64_t head, int64_t word) {
    return max(product(weights.at(head, word), slopes.of_heads.at(head, word)), Lanes<double>::of(0.0));
  });
  if constexpr (std::is_same_v<Number, double>) pack(sentence, factors, slopes, out.kept + item * out.kept_size);
  return true;
}

// The results for scores that are not all numbers.
template <class T>
void fill_with_nan(const Graph<T>& arcs, T* square, T* log_partition, int64_t item) {
  const int64_t area = (arcs.words + 1) * (arcs.words + 1);
  std::fill(square + item * area, square + (item + 1) * area, std::numeric_limits<T>::quiet_NaN());
  if (log_partition != nullptr) log_partition[item] = std::numeric_limits<T>::quiet_NaN();
}

template <class T>
void marginals(const Graph<T>& arcs, const SpanningMarginals<T>& out, int64_t item) {
  const Sentence sentence(arcs, item);
  const Shifted shifted(arcs, item, sentence);
  const bool are_numbers = shifted.shifts.are_numbers;
  out.safe[item] = are_numbers && marginals_by<double>(arcs, out, item, sentence, shifted);
  if (are_numbers && !out.safe[item]) marginals_by<Wide>(arcs, out, item, sentence, shifted);
  if (!are_numbers) fill_with_nan(arcs, out.marginals, out.log_partition, item);
}

inline void scale(const double* row, const double* by, int64_t count, double* out) {
  for (int64_t c = 0; c < count; c += kLanes) product(row + c, by + c).store(out + c);
}

inline void scale(const Wide* row, const double* by, int64_t count, Wide* out) {
  for (int64_t c = 0; c < count; ++c) out[c] = row[c] * Wide(by[c]);
}

template <class Number, class T>
void tangent_by(const Graph<T>& arcs, const SpanningTangent<T>& task, int64_t item, const Sentence& sentence,
                const Factors<Number>& factors, const Slopes<Number>& slopes, const Square<Number>& weights, const Cut& cut) {
  const int64_t size = arcs.words + 1;
  T* tangent = task.tangent + item * size * size;
  if (!is_possible(sentence, factors)) return std::fill(tangent, tangent + size * size, T(0));
  const Square<double> direction(sentence);
  read(sentence, task.direction + item * size * size, size, 0.0, direction);
  if (cut.scale != 1) std::for_each(direction.row(0), direction.row(direction.stride()), [&](double& x) { x *= cut.scale; });
  const Square<Number> moves(sentence);
  for (int64_t head = 0; head < sentence.size(); ++head) scale(weights.row(head), direction.row(head), sentence.size(), moves.row(head));
  const Factors<Number> changes(sentence);
  const Slopes<Number> on_slopes(sentence);
  push_factors(sentence, moves, factors, changes);
  push_slopes(sentence, factors, slopes, changes, on_slopes);
  write(sentence, size, tangent, [&](int64_t head, int64_t word) {
    return product(moves.at(head, word), slopes.of_heads.at(head, word)) +
           product(weights.at(head, word), on_slopes.of_heads.at(head, word));
  });
}

template <class T>
void tangent(const Graph<T>& arcs, const SpanningTangent<T>& task, int64_t item) {
  const Sentence sentence(arcs, item);
  const Shifted shifted(arcs, item, sentence);
  if (!shifted.shifts.are_numbers) return fill_with_nan(arcs, task.tangent, static_cast<T*>(nullptr), item);
  if (task.safe[item]) {
    const Square<double> weights(sentence);
    const Factors<double> factors(sentence);
    const Slopes<double> slopes(sentence);
    weigh(sentence, shifted.logs, kCutForDoubles, weights);
    unpack(sentence, task.kept + item * task.kept_size, factors, slopes);
    return tangent_by(arcs, task, item, sentence, factors, slopes, weights, kCutForDoubles);
  }
  const Square<Wide> weights(sentence);
  const Factors<Wide> factors(sentence);
  const Slopes<Wide> slopes(sentence);
  Cut cut;
  if (log_partition_by(sentence, shifted, weights, factors, &cut) > kNever) differentiate(sentence, factors, slopes);
  tangent_by(arcs, task, item, sentence, factors, slopes, weights, cut);
}

}  // namespace spanning
}  // namespace FOVEAL_ISA
}  // namespace foveal
