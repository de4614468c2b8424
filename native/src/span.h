// Binary bracketings (CKY).
//
//   a[i, i] = s[i, i],      a[i, j] = s[i, j] + log sum_u exp( a[i, i+u] + a[i+u+1, j] )
//
// The span from word i to word j has width j - i. The chart holds logarithms in double; all later values are
// probabilities of type T. Spans beyond the end of a sentence are impossible. The lanes can therefore hold
// sentences of different lengths, each with a separate top span.

#pragma once

#include "chain_search.h"
#include "sentences.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace span {

using charts::Columns;
using charts::Entry;
using charts::Grid;
using charts::kNever;
using charts::lane_of;

// Numbers on spans, by width; `value` where there is no span.
template <class Layout, class T>
void read_square(const Grid<Layout>& grid, const Sentences<Layout>& sentences, const T* squares, T value,
                 const Buffer<Entry<Layout, T>>& chart) {
  const int64_t size = sentences.size();
  Buffer<Entry<Layout, T>> square(size * size);
  sentences.read(squares, value, square.data());
  if constexpr (Layout::spans > 1) charts::fill(chart, grid.chart(), value);
  for (int64_t i = 0; i < grid.words(); ++i) {
    for (int64_t j = i; j < grid.words(); ++j) chart[grid.at(j - i, i)] = square[i * size + j];
  }
}

template <class Layout, class T>
void write_square(const Grid<Layout>& grid, const Sentences<Layout>& sentences,
                  const Buffer<Entry<Layout, T>>& chart, T* squares) {
  const int64_t size = sentences.size();
  Buffer<Entry<Layout, T>> square(size * size);
  charts::fill(square, size * size, T(0));
  for (int64_t i = 0; i < grid.words(); ++i) {
    for (int64_t j = i; j < grid.words(); ++j) square[i * size + j] = chart[grid.at(j - i, i)];
  }
  sentences.write(square.data(), squares);
}

template <class Layout, class Number>
FOVEAL_INLINE Columns<Number> columns(const Grid<Layout>& grid, const Buffer<Number>& chart, int64_t width,
                                         int64_t start) {
  return {chart.data() + start, chart.data() + grid.at(width - 1, start + 1), grid.row(), width};
}

// Fills the chart (double) from the scores; `total(width, start)` adds up splits.
template <class Layout, class T, class Total>
void inside(const Grid<Layout>& grid, const Sentences<Layout>& sentences, const T* squares,
            const Buffer<Entry<Layout, double>>& chart, Total total) {
  Buffer<Entry<Layout, T>> scores(grid.chart());
  read_square(grid, sentences, squares, T(kNever), scores);
  if constexpr (Layout::spans > 1) charts::fill(chart, grid.chart(), kNever);  // lanes to spare read it
  for (int64_t i = 0; i < grid.words(); i += Layout::spans) {
    charts::store(widen(charts::load(scores.data() + i)), chart.data() + i);
  }
  grid.ascend([&](int64_t width, int64_t start) {
    const int64_t place = grid.at(width, start);
    charts::store(total(width, start) + widen(charts::load(scores.data() + place)), chart.data() + place);
  });
}

// The inside pass with sums; keeps weights and scales if `kept` is not null.
template <class Layout, class T>
void sum_inside(const Grid<Layout>& grid, const Sentences<Layout>& sentences, const T* squares,
                const Buffer<Entry<Layout, double>>& chart, T* kept) {
  inside(grid, sentences, squares, chart, [&](int64_t width, int64_t start) {
    const auto from = columns(grid, chart, width, start);
    if (kept == nullptr) return charts::sum<T>(from, {nullptr, 0});
    return charts::sum<T>(from, grid.kept(kept, 0, width, start));
  });
}

// log Z from a chart of inside scores.
template <class Layout>
double whole(const Grid<Layout>& grid, const Sentences<Layout>& sentences, const Buffer<Entry<Layout, double>>& chart,
             int lane) {
  const int64_t count = sentences.count(lane);
  return count == 0 ? 0 : lane_of(chart[grid.at(count - 1, 0)], lane);  // the empty sentence has one bracketing
}

template <class T>
void log_partition(const Spans<T>& spans, T* out, int64_t begin, int64_t end) {
  for_sentences(spans.batch, begin, end, [&](auto layout, int64_t first, int lanes) {
    using Layout = decltype(layout);
    const Sentences<Layout> sentences(spans.batch, 0, first, lanes);
    const Grid<Layout> grid(sentences.longest(), 1);
    Buffer<Entry<Layout, double>> chart(grid.chart());
    sum_inside<Layout, T>(grid, sentences, spans.scores, chart, nullptr);
    for (int l = 0; l < lanes; ++l) out[sentences.item(l)] = static_cast<T>(whole(grid, sentences, chart, l));
  });
}

template <class T>
void marginals(const Spans<T>& spans, const SpanMarginals<T>& out, int64_t begin, int64_t end) {
  for_sentences(spans.batch, begin, end, [&](auto layout, int64_t first, int lanes) {
    using Layout = decltype(layout);
    const Sentences<Layout> sentences(spans.batch, 0, first, lanes);
    const Grid<Layout> grid(sentences.longest(), 1);
    Buffer<T> passing(out.kept == nullptr ? grid.kept_size() : 0);
    T* kept = out.kept == nullptr ? passing.data() : out.kept + first * out.kept_size;
    Buffer<Entry<Layout, T>> mass(grid.chart());
    charts::fill(mass, grid.chart(), T(0));
    {
      Buffer<Entry<Layout, double>> chart(grid.chart());
      sum_inside(grid, sentences, spans.scores, chart, kept);
      for (int l = 0; l < lanes; ++l) {
        const double total = whole(grid, sentences, chart, l);
        const int64_t count = sentences.count(l);
        out.log_partition[sentences.item(l)] = static_cast<T>(total);
        if (count > 0 && total != kNever) lane_of(mass[grid.at(count - 1, 0)], l) = total == total ? T(1) : T(total);
      }
    }
    grid.descend([&](int64_t width, int64_t start) {
      charts::share(charts::load(mass.data() + grid.at(width, start)), grid.kept(kept, 0, width, start),
                    columns(grid, mass, width, start));
    });
    // A word is a span of every bracketing: its probability is exactly 1.
    for (int l = 0; l < lanes; ++l) {
      const bool possible = out.log_partition[sentences.item(l)] > T(kNever);
      for (int64_t i = 0; i < sentences.count(l); ++i) lane_of(mass[i], l) = possible ? T(1) : T(0);
    }
    write_square<Layout, T>(grid, sentences, mass, out.marginals);
  });
}

// The direction g on the spans, less a constant. All trees have the same number of spans of two words or
// more, so a constant changes nothing; the constant that makes E[G] = 0 keeps the numbers small.
template <class Layout, class T>
void center(const Grid<Layout>& grid, const Sentences<Layout>& sentences, const T* kept,
            const Buffer<Entry<Layout, T>>& direction) {
  auto total = Lanes<T>::of(T(0)), count = total;
  grid.ascend([&](int64_t width, int64_t start) {
    const auto mass = Lanes<T>::load(grid.kept(kept, 0, width, start).mass());
    total += mass * charts::load(direction.data() + grid.at(width, start));
  });
  Lanes<T> mean;
  if constexpr (Layout::sentences == 1) {
    mean = Lanes<T>::of(sum(total) / static_cast<T>(std::max<int64_t>(1, sentences.count(0) - 1)));
  } else {
    for (int l = 0; l < kLanes; ++l) count.set_lane(l, static_cast<T>(std::max<int64_t>(1, sentences.count(l) - 1)));
    mean = total / count;
  }
  grid.ascend([&](int64_t width, int64_t start) {
    charts::add(direction.data() + grid.at(width, start), Lanes<T>::of(T(0)) - mean);
  });
}

// The derivative of span marginals along a direction g in the span scores: Cov(span, G), with G(tree)
// the sum of g over the spans of a tree. Words are in every tree: their g is left out.
template <class T>
void tangent(const Spans<T>& spans, const SpanTangent<T>& task, int64_t begin, int64_t end) {
  for_sentences(spans.batch, begin, end, [&](auto layout, int64_t first, int lanes) {
    using Layout = decltype(layout);
    const Sentences<Layout> sentences(spans.batch, 0, first, lanes);
    const Grid<Layout> grid(sentences.longest(), 1);
    const T* kept = task.kept + first * task.kept_size;
    Buffer<Entry<Layout, T>> direction(grid.chart()), mixtures(grid.chart()), below(grid.chart()), above(grid.chart());
    read_square(grid, sentences, task.direction, T(0), direction);
    center<Layout, T>(grid, sentences, kept, direction);
    charts::fill(below, Layout::spans > 1 ? grid.chart() : grid.words(), T(0));
    charts::fill(above, grid.chart(), T(0));
    grid.ascend([&](int64_t width, int64_t start) {
      const int64_t place = grid.at(width, start);
      const auto mixture = charts::mix(grid.kept(kept, 0, width, start), columns(grid, below, width, start));
      charts::store(mixture, mixtures.data() + place);
      charts::store(mixture + charts::load(direction.data() + place), below.data() + place);
    });
    grid.descend([&](int64_t width, int64_t start) {
      const int64_t place = grid.at(width, start);
      charts::share_change(charts::load(above.data() + place), charts::load(mixtures.data() + place),
                           grid.kept(kept, 0, width, start), columns(grid, below, width, start),
                           columns(grid, above, width, start));
    });
    charts::fill(above, grid.words(), T(0));  // the probability of a word does not change
    write_square<Layout, T>(grid, sentences, above, task.tangent);
  });
}

// Marks the spans of one bracketing (n, n); `choose(start, width)` returns the split of a span.
template <class Choose>
void unfold(const Sentences<charts::Starts>& sentences, bool* chosen, Choose choose) {
  struct Open {
    int64_t start, width;
  };
  const int64_t size = sentences.size(), words = sentences.count(0);
  std::fill(chosen, chosen + size * size, false);
  if (words == 0) return;
  Buffer<Open> stack(words + 1);
  int64_t height = 0;
  stack[height++] = {0, words - 1};
  while (height > 0) {
    const auto [start, width] = stack[--height];
    chosen[sentences.place(start) * size + sentences.place(start + width)] = true;
    if (width == 0) continue;
    const int64_t split = choose(start, width);
    stack[height++] = {start, split};
    stack[height++] = {start + split + 1, width - 1 - split};
  }
}

template <class T>
void best(const Spans<T>& spans, bool* chosen, T* scores, int64_t place) {
  const Sentences<charts::Starts> sentences(spans.batch, 0, place, 1);
  const Grid<charts::Starts> grid(sentences.longest(), 1);
  const int64_t item = sentences.item(0), size = sentences.size();
  Buffer<double> chart(grid.chart());
  Buffer<T> pointers(grid.chart());
  inside(grid, sentences, spans.scores, chart, [&](int64_t width, int64_t start) {
    return charts::best<T>(columns(grid, chart, width, start), pointers.data() + grid.at(width, start));
  });
  scores[item] = static_cast<T>(whole(grid, sentences, chart, 0));
  unfold(sentences, chosen + item * size * size, [&](int64_t start, int64_t width) {
    return static_cast<int64_t>(pointers[grid.at(width, start)]);
  });
}

template <class T>
void sample(const Spans<T>& spans, const SpanDraws& draws, int64_t place) {
  const Sentences<charts::Starts> sentences(spans.batch, 0, place, 1);
  const Grid<charts::Starts> grid(sentences.longest(), 1);
  const int64_t item = sentences.item(0), size = sentences.size();
  Buffer<T> kept(grid.kept_size());
  Buffer<double> chart(grid.chart()), options(size);
  sum_inside(grid, sentences, spans.scores, chart, kept.data());
  draws.possible[item] = whole(grid, sentences, chart, 0) > kNever;
  for (int64_t s = 0; s < draws.samples; ++s) {
    const int64_t draw = s * spans.batch.items + item;
    const double* uniform = draws.uniforms + draw * size;
    unfold(sentences, draws.chosen + draw * size * size, [&](int64_t start, int64_t width) {
      const auto of_span = grid.kept(kept.data(), 0, width, start);
      double total = 0;
      for (int64_t i = 0; i < width; ++i) total += options[i] = *of_span.weight(i);
      return chain_search::choose(options.data(), width, total, *uniform++);
    });
  }
}

template <class T>
constexpr SpanKernels<T> table() {
  return {log_partition<T>, marginals<T>, tangent<T>, best<T>, sample<T>};
}

}  // namespace span
}  // namespace FOVEAL_ISA
}  // namespace foveal
