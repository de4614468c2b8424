// The best segmentation of a semi-Markov model, and exact samples; and the table of its kernels.
//
// Both are traced from the last row back: each step chooses the length of a segment that ends in a row, and
// the label before a segment that starts in a row. The best choices are looked up, samples are drawn.

#pragma once

#include "chain.h"
#include "semi_markov.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace semi_markov {

// Writes the labels (T) of one item at the starts of segments, -1 elsewhere. `length` returns the length minus
// one of a segment that ends in a row, `before` the label before a segment that starts in a row.
template <class Layout, class Length, class Before>
void trace(const Layout& layout, int item, int64_t label, int64_t* labels, Length length, Before before) {
  std::fill(labels, labels + layout.sizes().length, int64_t(-1));
  for (int64_t row = layout.places().count(item) - 1; row >= 0; --row) {
    row -= length(row, label);
    labels[layout.places().at(item, row)] = label;
    if (row > 0) label = before(row, label);
  }
}

// The maximum of s + u over the lengths of segments that end in a row, and the length that attains it.
template <class T>
FOVEAL_INLINE Lanes<double> best_length(const Ending<T>& ending, const Lanes<double>* starts, Lanes<T>* length) {
  auto highest = starts[0] + widen(ending.at(0)), place = Lanes<double>::of(0.0);
  for (int64_t d = 1; d < ending.count; ++d) {
    const auto joined = starts[-d * ending.row_stride] + widen(ending.at(d));
    place = where_less(highest, joined, Lanes<double>::of(static_cast<double>(d)), place);
    highest = max(highest, joined);
  }
  *length = narrow<T>(place);
  return highest;
}

template <class Layout, class T>
void best_of(const Layout& layout, const SemiMarkov<T>& model, int64_t* labels, T* scores) {
  const int64_t rows = layout.rows(), width = layout.width(), num_labels = layout.sizes().labels;
  Buffer<Lanes<T>> segments(rows * layout.sizes().lengths * width), to_length(rows * width), to_label(rows * width);
  Buffer<Lanes<double>> starts(rows * width), ends(width), last(width);
  const typename Layout::Steps steps(layout, model, false, nullptr);
  layout.load_scores(model.segments, segments.data());
  std::fill(last.data(), last.data() + width, Lanes<double>::of(kNever));
  for (int64_t r = 0; r < rows; ++r) {
    Lanes<double>* start = starts.data() + r * width;
    if (r == 0) std::fill(start, start + width, Lanes<double>::of(0.0));
    else steps.best_onward(r, ends.data(), start, to_label.data() + r * width);
    for (int64_t c = 0; c < width; ++c) {
      ends[c] = best_length(Ending<T>(layout, segments.data(), r, c), start + c, to_length.data() + r * width + c);
    }
    layout.take_last(r, ends.data(), last.data());
  }
  for (int l = 0; l < layout.items(); ++l) {
    int64_t label = 0;
    const auto score = [&](int64_t k) { return layout.element(last.data(), k, l); };
    for (int64_t k = 1; k < num_labels; ++k) {
      if (score(k) > score(label)) label = k;
    }
    scores[layout.item(l)] = layout.places().count(l) == 0 ? T(0) : static_cast<T>(score(label));
    const auto look_up = [&](const Lanes<T>* table) {
      return [&layout, table, width, l](int64_t row, int64_t k) {
        return static_cast<int64_t>(layout.element(table + row * width, k, l));
      };
    };
    trace(layout, l, label, labels + layout.item(l) * layout.sizes().length, look_up(to_length.data()), look_up(to_label.data()));
  }
}

template <class Layout, class T>
void sample_of(const Layout& layout, const SemiMarkov<T>& model, const SemiMarkovDraws& draws) {
  const int64_t rows = layout.rows(), width = layout.width(), lengths = layout.sizes().lengths;
  const int64_t num_labels = layout.sizes().labels, length = layout.sizes().length;
  Buffer<Lanes<T>> segments(rows * lengths * width);
  Buffer<Lanes<double>> last(width), scales(2 * rows * width);
  Buffer<double> options(std::max(lengths, num_labels));
  const typename Layout::Steps steps(layout, model, true, nullptr);
  layout.load_scores(model.segments, segments.data());
  inside(layout, steps, segments.data(), {scales.data(), scales.data() + rows * width}, last.data());
  layout.finish(last.data(), nullptr);
  for (int l = 0; l < layout.items(); ++l) {
    const int64_t item = layout.item(l);
    bool possible = layout.places().count(l) == 0;
    for (int64_t k = 0; k < num_labels; ++k) possible = possible || layout.element(last.data(), k, l) > 0;
    draws.possible[item] = possible;
    for (int64_t s = 0; s < draws.samples; ++s) {
      const double* uniform = draws.uniforms + (s * draws.batch + item) * 2 * length;
      const auto draw = [&](int64_t count, auto weight) {
        double total = 0;
        for (int64_t i = 0; i < count; ++i) total += options[i] = static_cast<double>(weight(i));
        return chain_search::choose(options.data(), count, total, *uniform++);
      };
      const int64_t label = draw(num_labels, [&](int64_t k) { return layout.element(last.data(), k, l); });
      trace(layout, l, label, draws.labels + (s * draws.batch + item) * length,
            [&](int64_t row, int64_t k) {
              return draw(std::min(lengths, row + 1), [&](int64_t d) {
                return layout.element(segments.data() + ((row - d) * lengths + d) * width, k, l);
              });
            },
            [&](int64_t row, int64_t k) {
              return draw(num_labels, [&](int64_t i) { return steps.weight(row, i, k, l); });
            });
    }
  }
}

// Calls run(layout) for every layout that items first .. last - 1 need.
template <class T, class Run>
void by_layout(const SemiMarkovSizes& sizes, int64_t first, int64_t last, Run run) {
  if (sizes.labels > kFewLabels) {
    for (int64_t item = first; item < last; ++item) run(Labels<T>(sizes, item));
  } else {
    chain::for_groups(first, last, [&](Group group) { run(Batch<T>(sizes, group)); });
  }
}

template <class T>
void log_partition(const SemiMarkov<T>& model, T* out, int64_t first, int64_t last) {
  by_layout<T>(model.sizes, first, last, [&](const auto& layout) { log_partition_of(layout, model, out); });
}

template <class T>
void marginals(const SemiMarkov<T>& model, const SemiMarkovMarginals<T>& out, int64_t first, int64_t last) {
  by_layout<T>(model.sizes, first, last, [&](const auto& layout) { marginals_of(layout, model, out); });
}

template <class T>
void tangent(const SemiMarkovTangent<T>& task, int64_t first, int64_t last) {
  by_layout<T>(task.sizes, first, last, [&](const auto& layout) { tangent_of(layout, task); });
}

template <class T>
void best(const SemiMarkov<T>& model, int64_t* labels, T* scores, int64_t first, int64_t last) {
  by_layout<T>(model.sizes, first, last, [&](const auto& layout) { best_of(layout, model, labels, scores); });
}

template <class T>
void sample(const SemiMarkov<T>& model, const SemiMarkovDraws& draws, int64_t first, int64_t last) {
  by_layout<T>(model.sizes, first, last, [&](const auto& layout) { sample_of(layout, model, draws); });
}

template <class T>
constexpr SemiMarkovKernels<T> table() {
  return {log_partition<T>, marginals<T>, tangent<T>, best<T>, sample<T>};
}

}  // namespace semi_markov
}  // namespace FOVEAL_ISA
}  // namespace foveal
