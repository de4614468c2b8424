// Projective dependency trees (Eisner), one sentence at a time.
//
//   join        J[i, j]  = sum_s  R[i, i+s]  L[i+s+1, j]        s = 0 .. k-1,  j = i + k
//   incomplete  I>[i, j] = J[i, j] a[i, j],      I<[i, j] = J[i, j] a[j, i]
//   complete    R[i, j]  = sum_s  I>[i, i+s+1]  R[i+s+1, j]     head i
//               L[i, j]  = sum_s  L[i, i+s]  I<[i+s, j]         head j
//
// With any number of roots the root is node 0 and a tree is R[0, n]; with a single root the nodes
// are the words alone and Z = sum_r a[0, r] L[1, r] R[r, n]. Words that are masked out are no
// nodes. Charts hold logarithms in double; what follows are probabilities, in the type T.

#pragma once

#include "charts.h"

namespace sightline {
namespace SIGHTLINE_ISA {
namespace projective {

using charts::Columns;
using charts::Weights;
using charts::kNever;

// The sums over splits, which have weights, scales and probabilities of their own.
enum Sum { kJoin, kRight, kLeft };

inline int64_t padded(int64_t count) { return (count + kGrain - 1) / kGrain * kGrain; }

// The nodes of a sentence, and the layout of its charts and of what is kept about it: the weights,
// by width, sum and split; the scales; the probabilities of J, R and L.
class Sentence {
 public:
  template <class T>
  Sentence(const Arcs<T>& arcs, int64_t item) : places_(arcs.words + 1), offsets_(arcs.words + 2) {
    single_root_ = arcs.single_root;
    if (!single_root_) places_[nodes_++] = 0;
    for (int64_t word = 1; word <= arcs.words; ++word) {
      if (arcs.mask == nullptr || arcs.mask[item * arcs.words + word - 1]) places_[nodes_++] = word;
    }
    row_ = padded(nodes_);
    for (int64_t width = 1, offset = 0; width <= nodes_; ++width) {
      offsets_[width] = offset;
      offset += 3 * width * padded(nodes_ - width);
    }
    offsets_[0] = 0;
  }
  int64_t nodes() const { return nodes_; }
  int64_t row() const { return row_; }
  int64_t chart() const { return nodes_ * row_; }
  bool single_root() const { return single_root_; }
  int64_t place(int64_t node) const { return places_[node]; }  // where it stands in the scores

  template <class T>
  Weights<T> weights(T* kept, Sum sum, int64_t width, int64_t start) const {
    const int64_t stride = padded(nodes_ - width);
    return {kept + offsets_[width] + sum * width * stride + start, stride};
  }
  template <class T>
  T* scales(T* kept, Sum sum) const {
    return kept + offsets_[nodes_] + sum * chart();
  }
  template <class T>
  T* masses(T* kept, Sum sum) const {
    return kept + offsets_[nodes_] + (3 + sum) * chart();
  }

 private:
  Buffer<int64_t> places_, offsets_;
  int64_t nodes_ = 0, row_ = 0;
  bool single_root_;
};

// Numbers on arcs, in the order of the spans whose ends they join, `fill` where there is no arc.
template <class T>
struct ByWidth {
  Buffer<T> rightward, leftward;

  ByWidth(const Sentence& sentence, const T* square, int64_t size, T fill)
      : rightward(sentence.chart()), leftward(sentence.chart()) {
    const int64_t nodes = sentence.nodes(), row = sentence.row();
    std::fill(rightward.data(), rightward.data() + sentence.chart(), fill);
    std::fill(leftward.data(), leftward.data() + sentence.chart(), fill);
    for (int64_t i = 0; i < nodes; ++i) {
      for (int64_t j = i + 1; j < nodes; ++j) {
        const int64_t head = sentence.place(i), word = sentence.place(j);
        rightward[(j - i) * row + i] = square[head * size + word];
        if (head > 0) leftward[(j - i) * row + i] = square[word * size + head];  // the root has no head
      }
    }
  }
};

// Four charts, of complete and incomplete spans, and the columns of their sums.
template <class Number>
struct Charts {
  Buffer<Number> right, left, rightward, leftward;  // R, L, I>, I<
  int64_t row;

  Charts(const Sentence& sentence, Number value)
      : right(sentence.chart()), left(sentence.chart()), rightward(sentence.chart()),
        leftward(sentence.chart()), row(sentence.row()) {
    for (Number* chart : {right.data(), left.data(), rightward.data(), leftward.data()}) {
      std::fill(chart, chart + sentence.chart(), value);
    }
  }
  template <class Access = Number>
  Columns<Access> columns(Sum sum, int64_t width, int64_t start) const {
    const int64_t below = (width - 1) * row + start + 1;
    if (sum == kJoin) return {right.data() + start, left.data() + below, row, width};
    if (sum == kRight) return {rightward.data() + row + start, right.data() + below, row, width};
    return {left.data() + start, leftward.data() + width * row + start, row, width};
  }
};

// Calls each(width, start, place) for every block of spans, from the narrowest or the widest.
template <class Each>
void ascend(const Sentence& sentence, Each each) {
  for (int64_t width = 1; width < sentence.nodes(); ++width) {
    for (int64_t start = 0; start + width < sentence.nodes(); start += kLanes) {
      each(width, start, width * sentence.row() + start);
    }
  }
}

template <class Each>
void descend(const Sentence& sentence, Each each) {
  for (int64_t width = sentence.nodes() - 1; width > 0; --width) {
    for (int64_t start = 0; start + width < sentence.nodes(); start += kLanes) {
      each(width, start, width * sentence.row() + start);
    }
  }
}

// Fills the charts, a block of spans at a time; `total(sum, width, start, place)` adds up splits.
template <class T, class Total>
void inside(const Sentence& sentence, const ByWidth<T>& arcs, const Charts<double>& charts, Total total) {
  std::fill(charts.right.data(), charts.right.data() + sentence.nodes(), 0.0);
  std::fill(charts.left.data(), charts.left.data() + sentence.nodes(), 0.0);
  ascend(sentence, [&](int64_t width, int64_t start, int64_t place) {
    const Lanes<double> join = total(kJoin, width, start, place);
    (join + widen(Lanes<T>::load(arcs.rightward.data() + place))).store(charts.rightward.data() + place);
    (join + widen(Lanes<T>::load(arcs.leftward.data() + place))).store(charts.leftward.data() + place);
    total(kRight, width, start, place).store(charts.right.data() + place);
    total(kLeft, width, start, place).store(charts.left.data() + place);
  });
}

// The inside pass with sums; keeps weights and scales if `kept` is not null.
template <class T>
void sum_inside(const Sentence& sentence, const ByWidth<T>& arcs, const Charts<double>& charts, T* kept) {
  inside(sentence, arcs, charts, [&](Sum sum, int64_t width, int64_t start, int64_t place) {
    const auto columns = charts.columns<const double>(sum, width, start);
    if (kept == nullptr) return charts::sum<T>(columns, {nullptr, 0}, nullptr);
    return charts::sum<T>(columns, sentence.weights(kept, sum, width, start), sentence.scales(kept, sum) + place);
  });
}

// Scores of the choices at the top: the root's word if it is to be one, otherwise a single choice.
template <class T>
int64_t roots(const Sentence& sentence, const Charts<double>& charts, const T* square, double* scores) {
  const int64_t nodes = sentence.nodes(), row = sentence.row();
  if (nodes == 0) {
    scores[0] = 0;  // the empty sentence has one tree
    return 1;
  }
  if (!sentence.single_root()) {
    scores[0] = charts.right[(nodes - 1) * row];
    return 1;
  }
  for (int64_t r = 0; r < nodes; ++r) {
    const double root = static_cast<double>(square[sentence.place(r)]);
    scores[r] = root + charts.left[r * row] + charts.right[(nodes - 1 - r) * row + r];
  }
  return nodes;
}

// Turns log-scores into probabilities, all 0 if none is possible; gives their log-sum.
inline double normalise(double* scores, int64_t count) {
  const double top = *std::max_element(scores, scores + count);
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += scores[i] = top > kNever ? std::exp(scores[i] - top) : 0;
  for (int64_t i = 0; i < count; ++i) scores[i] = top > kNever ? scores[i] / total : 0;
  return top > kNever ? top + std::log(total) : kNever;
}

template <class T>
void log_partition(const Arcs<T>& arcs, T* out, int64_t item) {
  const Sentence sentence(arcs, item);
  const int64_t size = arcs.words + 1;
  const T* square = arcs.scores + item * size * size;
  const ByWidth<T> scores(sentence, square, size, T(kNever));
  const Charts<double> charts(sentence, kNever);
  sum_inside<T>(sentence, scores, charts, nullptr);
  Buffer<double> chosen(size);
  out[item] = static_cast<T>(normalise(chosen.data(), roots(sentence, charts, square, chosen.data())));
}

// What stands on the incomplete spans, into the layout of the scores.
template <class T>
void write_arcs(const Sentence& sentence, const Charts<T>& charts, T* square, int64_t size) {
  for (int64_t i = 0; i < sentence.nodes(); ++i) {
    for (int64_t j = i + 1; j < sentence.nodes(); ++j) {
      const int64_t place = (j - i) * charts.row + i, head = sentence.place(i), word = sentence.place(j);
      square[head * size + word] = charts.rightward[place];
      if (head > 0) square[word * size + head] = charts.leftward[place];
    }
  }
}

template <class T>
void marginals(const Arcs<T>& arcs, const ArcMarginals<T>& out, int64_t item) {
  const Sentence sentence(arcs, item);
  const int64_t size = arcs.words + 1, nodes = sentence.nodes(), row = sentence.row();
  const T* square = arcs.scores + item * size * size;
  T* kept = out.kept + item * out.kept_size;
  T* found = out.marginals + item * size * size;
  Buffer<double> chosen(size);
  {
    const ByWidth<T> scores(sentence, square, size, T(kNever));
    const Charts<double> charts(sentence, kNever);
    sum_inside(sentence, scores, charts, kept);
    out.log_partition[item] = static_cast<T>(normalise(chosen.data(), roots(sentence, charts, square, chosen.data())));
  }
  std::fill(found, found + size * size, T(0));
  if (nodes == 0) return;
  const Charts<T> mass(sentence, T(0));
  if (sentence.single_root()) {
    for (int64_t r = 0; r < nodes; ++r) {
      mass.left[r * row] += found[sentence.place(r)] = static_cast<T>(chosen[r]);
      mass.right[(nodes - 1 - r) * row + r] += static_cast<T>(chosen[r]);
    }
  } else {
    mass.right[(nodes - 1) * row] = static_cast<T>(chosen[0]);
  }
  descend(sentence, [&](int64_t width, int64_t start, int64_t place) {
    const auto pass_on = [&](Sum sum, const Lanes<T>& probability) {
      probability.store(sentence.masses(kept, sum) + place);
      const auto scaled = probability * Lanes<T>::load(sentence.scales(kept, sum) + place);
      charts::share(scaled, sentence.weights<const T>(kept, sum, width, start), mass.columns(sum, width, start));
    };
    pass_on(kRight, Lanes<T>::load(mass.right.data() + place));
    pass_on(kLeft, Lanes<T>::load(mass.left.data() + place));
    pass_on(kJoin, Lanes<T>::load(mass.rightward.data() + place) + Lanes<T>::load(mass.leftward.data() + place));
  });
  write_arcs(sentence, mass, found, size);
}

// The derivative of the arc marginals along a direction g: Cov(arc, G), with G(tree) the sum of g over
// the arcs of a tree; `below` is E[ G in the span | span ], `above` the change of its probability.
// Each word has one head in every tree: a constant taken off a column of g changes nothing, and the
// one that makes its mean 0 keeps the numbers small.
template <class T>
void tangent(const Arcs<T>& arcs, const ArcTangent<T>& task, int64_t item) {
  const Sentence sentence(arcs, item);
  const int64_t size = arcs.words + 1, nodes = sentence.nodes(), row = sentence.row();
  const T* marginal = task.marginals + item * size * size;
  const T* given = task.direction + item * size * size;
  const T* kept = task.kept + item * task.kept_size;
  T* along = task.tangent + item * size * size;
  std::fill(along, along + size * size, T(0));
  if (nodes == 0) return;
  Buffer<T> centred(size * size);
  std::fill(centred.data(), centred.data() + size * size, T(0));
  const auto each_head = [&](int64_t word, auto visit) {
    if (sentence.single_root()) visit(word);
    for (int64_t i = 0; i < nodes; ++i) {
      if (sentence.place(i) != word) visit(sentence.place(i) * size + word);
    }
  };
  for (int64_t j = sentence.single_root() ? 0 : 1; j < nodes; ++j) {
    T mean = 0;
    each_head(sentence.place(j), [&](int64_t arc) { mean += marginal[arc] * given[arc]; });
    each_head(sentence.place(j), [&](int64_t arc) { centred[arc] = given[arc] - mean; });
  }
  const ByWidth<T> direction(sentence, centred.data(), size, T(0));
  const Charts<T> below(sentence, T(0)), above(sentence, T(0));
  Buffer<T> joins(sentence.chart());
  ascend(sentence, [&](int64_t width, int64_t start, int64_t place) {
    const auto mixed = [&](Sum sum) {
      const auto columns = below.template columns<const T>(sum, width, start);
      const auto total = charts::mix(sentence.weights(kept, sum, width, start), columns);
      return total * Lanes<T>::load(sentence.scales(kept, sum) + place);
    };
    const auto join = mixed(kJoin);
    join.store(joins.data() + place);
    (join + Lanes<T>::load(direction.rightward.data() + place)).store(below.rightward.data() + place);
    (join + Lanes<T>::load(direction.leftward.data() + place)).store(below.leftward.data() + place);
    mixed(kRight).store(below.right.data() + place);
    mixed(kLeft).store(below.left.data() + place);
  });
  if (sentence.single_root()) {
    T mean = 0;
    const auto sum_of = [&](int64_t r) {
      return centred[sentence.place(r)] + below.left[r * row] + below.right[(nodes - 1 - r) * row + r];
    };
    for (int64_t r = 0; r < nodes; ++r) mean += marginal[sentence.place(r)] * sum_of(r);
    for (int64_t r = 0; r < nodes; ++r) {
      const T change = marginal[sentence.place(r)] * (sum_of(r) - mean);
      along[sentence.place(r)] = change;
      above.left[r * row] += change;
      above.right[(nodes - 1 - r) * row + r] += change;
    }
  }
  descend(sentence, [&](int64_t width, int64_t start, int64_t place) {
    const auto pass_on = [&](Sum sum, const Lanes<T>& change, const T* mixture) {
      const auto scale = Lanes<T>::load(sentence.scales(kept, sum) + place);
      const auto scaled = Lanes<T>::load(sentence.masses(kept, sum) + place) * scale;
      charts::share_change(change * scale - scaled * Lanes<T>::load(mixture + place), scaled,
                           sentence.weights(kept, sum, width, start),
                           below.template columns<const T>(sum, width, start), above.columns(sum, width, start));
    };
    pass_on(kRight, Lanes<T>::load(above.right.data() + place), below.right.data());
    pass_on(kLeft, Lanes<T>::load(above.left.data() + place), below.left.data());
    const auto both = Lanes<T>::load(above.rightward.data() + place) + Lanes<T>::load(above.leftward.data() + place);
    pass_on(kJoin, both, joins.data());
  });
  write_arcs(sentence, above, along, size);
}

}  // namespace projective
}  // namespace SIGHTLINE_ISA
}  // namespace sightline
