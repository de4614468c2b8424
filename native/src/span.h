// Binary bracketings (CKY), one sentence at a time.
//
//   a[i, i] = s[i, i],      a[i, j] = s[i, j] + log sum_u exp( a[i, i+u] + a[i+u+1, j] )
//
// The span from word i to word j has width j - i. Words that are masked out are left out. The chart
// holds logarithms in double; what follows are probabilities, in the type T.

#pragma once

#include "chain_search.h"
#include "charts.h"

namespace sightline {
namespace SIGHTLINE_ISA {
namespace span {

using charts::Columns;
using charts::Weights;
using charts::kNever;

inline int64_t padded(int64_t count) { return (count + kGrain - 1) / kGrain * kGrain; }

// The words of a sentence, and the layout of its chart and of what is kept about it: the weights, by
// width and split; the scales; the probabilities of the spans.
class Sentence {
 public:
  template <class T>
  Sentence(const Spans<T>& spans, int64_t item) : places_(spans.words), offsets_(spans.words + 1) {
    for (int64_t word = 0; word < spans.words; ++word) {
      if (spans.mask == nullptr || spans.mask[item * spans.words + word]) places_[words_++] = word;
    }
    row_ = padded(words_);
    int64_t offset = 0;
    for (int64_t width = 0; width <= words_; ++width) {
      offsets_[width] = offset;
      offset += width * padded(words_ - width);
    }
  }
  int64_t words() const { return words_; }
  int64_t row() const { return row_; }
  int64_t chart() const { return words_ * row_; }
  int64_t top() const { return (words_ - 1) * row_; }          // the span of all words
  int64_t place(int64_t word) const { return places_[word]; }  // where it stands in the scores

  template <class T>
  Weights<T> weights(T* kept, int64_t width, int64_t start) const {
    return {kept + offsets_[width] + start, padded(words_ - width)};
  }
  template <class T>
  T* scales(T* kept) const {
    return kept + offsets_[words_];
  }
  template <class T>
  T* masses(T* kept) const {
    return scales(kept) + chart();
  }
  template <class Number>
  Columns<Number> columns(Number* chart, int64_t width, int64_t start) const {
    return {chart + start, chart + (width - 1) * row_ + start + 1, row_, width};
  }

 private:
  Buffer<int64_t> places_, offsets_;
  int64_t words_ = 0, row_ = 0;
};

// Numbers on spans, by width; `fill` where there is no span.
template <class T>
void read_square(const Sentence& sentence, const T* square, int64_t size, T fill, T* chart) {
  std::fill(chart, chart + sentence.chart(), fill);
  for (int64_t i = 0; i < sentence.words(); ++i) {
    for (int64_t j = i; j < sentence.words(); ++j) {
      chart[(j - i) * sentence.row() + i] = square[sentence.place(i) * size + sentence.place(j)];
    }
  }
}

template <class T>
void write_square(const Sentence& sentence, const T* chart, int64_t size, T* square) {
  std::fill(square, square + size * size, T(0));
  for (int64_t i = 0; i < sentence.words(); ++i) {
    for (int64_t j = i; j < sentence.words(); ++j) {
      square[sentence.place(i) * size + sentence.place(j)] = chart[(j - i) * sentence.row() + i];
    }
  }
}

// Calls each(width, start, place) for every block of spans of two words or more, by rising width.
template <class Each>
void ascend(const Sentence& sentence, Each each) {
  for (int64_t width = 1; width < sentence.words(); ++width) {
    for (int64_t start = 0; start + width < sentence.words(); start += kLanes) {
      each(width, start, width * sentence.row() + start);
    }
  }
}

template <class Each>
void descend(const Sentence& sentence, Each each) {
  for (int64_t width = sentence.words() - 1; width > 0; --width) {
    for (int64_t start = 0; start + width < sentence.words(); start += kLanes) {
      each(width, start, width * sentence.row() + start);
    }
  }
}

// Fills the chart (double) from the scores of an item; `total(width, start, place)` adds up splits.
template <class T, class Total>
void inside(const Spans<T>& spans, int64_t item, const Sentence& sentence, double* chart, Total total) {
  Buffer<T> scores(sentence.chart());
  read_square(sentence, spans.scores + item * spans.words * spans.words, spans.words, T(kNever), scores.data());
  std::fill(chart, chart + sentence.chart(), kNever);
  for (int64_t i = 0; i < sentence.words(); ++i) chart[i] = static_cast<double>(scores[i]);
  ascend(sentence, [&](int64_t width, int64_t start, int64_t place) {
    (total(width, start, place) + widen(Lanes<T>::load(scores.data() + place))).store(chart + place);
  });
}

// The inside pass with sums; keeps weights and scales if `kept` is not null. Gives log Z.
template <class T>
double sum_inside(const Spans<T>& spans, int64_t item, const Sentence& sentence, T* kept) {
  if (sentence.words() == 0) return 0;  // the empty sentence has one bracketing
  Buffer<double> chart(sentence.chart());
  inside(spans, item, sentence, chart.data(), [&](int64_t width, int64_t start, int64_t place) {
    const auto columns = sentence.columns<const double>(chart.data(), width, start);
    if (kept == nullptr) return charts::sum<T>(columns, {nullptr, 0}, nullptr);
    return charts::sum<T>(columns, sentence.weights(kept, width, start), sentence.scales(kept) + place);
  });
  return chart[sentence.top()];
}

template <class T>
void log_partition(const Spans<T>& spans, T* out, int64_t item) {
  out[item] = static_cast<T>(sum_inside<T>(spans, item, Sentence(spans, item), nullptr));
}

template <class T>
void marginals(const Spans<T>& spans, const SpanMarginals<T>& out, int64_t item) {
  const Sentence sentence(spans, item);
  T* kept = out.kept + item * out.kept_size;
  const double total = sum_inside(spans, item, sentence, kept);
  out.log_partition[item] = static_cast<T>(total);
  Buffer<T> mass(sentence.chart());
  std::fill(mass.data(), mass.data() + sentence.chart(), T(0));
  if (sentence.words() > 0 && total > kNever) mass[sentence.top()] = 1;
  descend(sentence, [&](int64_t width, int64_t start, int64_t place) {
    const auto probability = Lanes<T>::load(mass.data() + place);
    probability.store(sentence.masses(kept) + place);
    const auto scaled = probability * Lanes<T>::load(sentence.scales(kept) + place);
    charts::share(scaled, sentence.weights<const T>(kept, width, start), sentence.columns(mass.data(), width, start));
  });
  // A word is a span of every bracketing: its probability is 1, free of rounding.
  for (int64_t i = 0; i < sentence.words(); ++i) mass[i] = total > kNever ? T(1) : T(0);
  write_square(sentence, mass.data(), spans.words, out.marginals + item * spans.words * spans.words);
}

// The derivative of span marginals along a direction g in the span scores: Cov(span, G), with G(tree)
// the sum of g over the spans of a tree. Words are in every tree: their g is left out. All trees have
// the same number of wider spans: a constant taken off their g changes nothing either, and the one
// that makes E[G] = 0 keeps the numbers small.
template <class T>
void tangent(const Spans<T>& spans, const SpanTangent<T>& task, int64_t item) {
  const Sentence sentence(spans, item);
  const int64_t size = spans.words, words = sentence.words(), row = sentence.row();
  const T* kept = task.kept + item * task.kept_size;
  Buffer<T> direction(sentence.chart()), mixtures(sentence.chart()), below(sentence.chart()), above(sentence.chart());
  read_square(sentence, task.direction + item * size * size, size, T(0), direction.data());
  std::fill(below.data(), below.data() + sentence.chart(), T(0));
  std::fill(above.data(), above.data() + sentence.chart(), T(0));
  T mean = 0;
  for (int64_t width = 1; width < words; ++width) {
    for (int64_t i = 0; i + width < words; ++i) {
      mean += sentence.masses(kept)[width * row + i] * direction[width * row + i];
    }
  }
  mean /= static_cast<T>(std::max<int64_t>(1, words - 1));
  ascend(sentence, [&](int64_t width, int64_t start, int64_t place) {
    const auto columns = sentence.columns<const T>(below.data(), width, start);
    const auto total = charts::mix(sentence.weights(kept, width, start), columns);
    const auto mixture = total * Lanes<T>::load(sentence.scales(kept) + place);
    mixture.store(mixtures.data() + place);
    (mixture + (Lanes<T>::load(direction.data() + place) - mean)).store(below.data() + place);
  });
  descend(sentence, [&](int64_t width, int64_t start, int64_t place) {
    const auto scale = Lanes<T>::load(sentence.scales(kept) + place);
    const auto scaled = Lanes<T>::load(sentence.masses(kept) + place) * scale;
    const auto change = Lanes<T>::load(above.data() + place) * scale - scaled * Lanes<T>::load(mixtures.data() + place);
    charts::share_change(change, scaled, sentence.weights(kept, width, start),
                         sentence.columns<const T>(below.data(), width, start),
                         sentence.columns(above.data(), width, start));
  });
  std::fill(above.data(), above.data() + words, T(0));  // the probability of a word does not change
  write_square(sentence, above.data(), size, task.tangent + item * size * size);
}

// Marks the spans of one bracketing (n, n); `choose(start, width)` gives the split of a span.
template <class Choose>
void unfold(const Sentence& sentence, int64_t size, bool* chosen, Choose choose) {
  struct Open {
    int64_t start, width;
  };
  std::fill(chosen, chosen + size * size, false);
  if (sentence.words() == 0) return;
  Buffer<Open> stack(sentence.words() + 1);
  int64_t height = 0;
  stack[height++] = {0, sentence.words() - 1};
  while (height > 0) {
    const auto [start, width] = stack[--height];
    chosen[sentence.place(start) * size + sentence.place(start + width)] = true;
    if (width == 0) continue;
    const int64_t split = choose(start, width);
    stack[height++] = {start, split};
    stack[height++] = {start + split + 1, width - 1 - split};
  }
}

template <class T>
void best(const Spans<T>& spans, bool* chosen, T* scores, int64_t item) {
  const Sentence sentence(spans, item);
  const int64_t size = spans.words;
  Buffer<double> chart(sentence.chart() + 1);
  Buffer<T> pointers(sentence.chart());
  inside(spans, item, sentence, chart.data(), [&](int64_t width, int64_t start, int64_t place) {
    return charts::best<T>(sentence.columns<const double>(chart.data(), width, start), pointers.data() + place);
  });
  scores[item] = sentence.words() == 0 ? T(0) : static_cast<T>(chart[sentence.top()]);
  unfold(sentence, size, chosen + item * size * size, [&](int64_t start, int64_t width) {
    return static_cast<int64_t>(pointers[width * sentence.row() + start]);
  });
}

template <class T>
void sample(const Spans<T>& spans, const SpanDraws& draws, int64_t item) {
  const Sentence sentence(spans, item);
  const int64_t size = spans.words;
  Buffer<T> kept(draws.kept_size);
  Buffer<double> options(size);
  draws.possible[item] = sum_inside(spans, item, sentence, kept.data()) > kNever;
  for (int64_t s = 0; s < draws.samples; ++s) {
    const double* uniform = draws.uniforms + (s * draws.batch + item) * size;
    bool* chosen = draws.chosen + (s * draws.batch + item) * size * size;
    unfold(sentence, size, chosen, [&](int64_t start, int64_t width) {
      const auto weights = sentence.weights<const T>(kept.data(), width, start);
      double total = 0;
      for (int64_t i = 0; i < width; ++i) total += options[i] = weights.first[i * weights.stride];
      return chain_search::choose(options.data(), width, total, *uniform++);
    });
  }
}

template <class T>
constexpr SpanKernels<T> table() {
  return {log_partition<T>, marginals<T>, tangent<T>, best<T>, sample<T>};
}

}  // namespace span
}  // namespace SIGHTLINE_ISA
}  // namespace sightline
