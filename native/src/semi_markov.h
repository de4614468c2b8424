// Semi-Markov models: sequences split into labeled segments of up to D positions.
//
//   starts        s[t, k] = log sum_i exp( a[t-1, i] + e[t, i, k] ),   s[0] = 0
//   inside        a[t, k] = log sum_d exp( s[t-d, k] + u[t-d, d, k] )
//   outside       m[t, d, k] = l[t, d, k] end[t+d, k],   start[t, k] = sum_d m[t, d, k],   end[t-1, i] = sum_k q[t, i, k] start[t, k]
//   tangent       see `tangent`
//
// with l and q the terms of both sums divided by the sum. Each term takes one exp, is stored in T as
// exp( term - highest ) in place of its score, with the reciprocal of the sum in double as its scale, and
// later becomes the marginal by multiplication. The scores s and a are doubles, so large scores cost no
// accuracy. The probabilities of starts and ends are doubles too, which preserves their totals in rows of
// any length.
//
// A layout defines the lanes: items (semi_markov_batch.h) or labels (semi_markov_labels.h). It has `width`
// registers for row t and length d, at (t D + d) width. Only the steps between segments need to know more
// about the layout.

#pragma once

#include "semi_markov_labels.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace semi_markov {

// Iterates over the segments that end in one row, for one register of a row, from the shortest.
template <class T>
struct Ending {
  Lanes<T>* segment;
  int64_t stride, row_stride, count;

  template <class Layout>
  Ending(const Layout& layout, Lanes<T>* segments, int64_t row, int64_t column)
      : segment(segments + row * layout.sizes().lengths * layout.width() + column),
        stride((1 - layout.sizes().lengths) * layout.width()), row_stride(layout.width()),
        count(std::min(layout.sizes().lengths, row + 1)) {}
  FOVEAL_INLINE Lanes<T>& at(int64_t d) const { return segment[d * stride]; }
};

// log sum_d exp( s + u ) for `starts` at the row of the ends; scores become weights if `scale` is not null.
template <class T>
FOVEAL_INLINE Lanes<double> sum_lengths(const Ending<T>& ending, const Lanes<double>* starts, Lanes<double>* scale) {
  const auto joined = [&](int64_t d) { return starts[-d * ending.row_stride] + widen(ending.at(d)); };
  auto highest = Lanes<double>::of(std::numeric_limits<double>::lowest());
  for (int64_t d = 0; d < ending.count; ++d) highest = max(highest, joined(d));
  auto total = Lanes<double>::of(0.0);
  for (int64_t d = 0; d < ending.count; ++d) {
    const auto weight = exp(narrow<T>(joined(d) - highest));
    total += widen(weight);
    if (scale != nullptr) ending.at(d) = weight;
  }
  if (scale != nullptr) *scale = reciprocal_or_zero(total);
  return where_positive(total, highest + widen(log(narrow<T>(total))), Lanes<double>::of(kNever));
}

// The scales of the weights that the inside pass keeps, by row.
struct Scales {
  Lanes<double>* starts;
  Lanes<double>* ends;
};

// The inside pass; `last` receives the scores of the ends of the last row. Keeps no weights if the
// scales are null.
template <class Layout, class T>
void inside(const Layout& layout, const typename Layout::Steps& steps, Lanes<T>* segments, Scales scales, Lanes<double>* last) {
  const int64_t rows = layout.rows(), width = layout.width();
  Buffer<Lanes<double>> starts(rows * width), ends(width);
  std::fill(last, last + width, Lanes<double>::of(kNever));
  for (int64_t r = 0; r < rows; ++r) {
    Lanes<double>* start = starts.data() + r * width;
    if (r == 0) std::fill(start, start + width, Lanes<double>::of(0.0));
    else steps.onward(r, ends.data(), start, scales.starts ? scales.starts + r * width : nullptr);
    for (int64_t c = 0; c < width; ++c) {
      Lanes<double>* scale = scales.ends ? scales.ends + r * width + c : nullptr;
      ends[c] = sum_lengths(Ending<T>(layout, segments, r, c), start + c, scale);
    }
    layout.take_last(r, ends.data(), last);
  }
}

// The outside pass: weights become marginals. The scales of the ends are multiplied in place.
template <class Layout, class T>
void outside(const Layout& layout, const typename Layout::Steps& steps, Lanes<T>* segments, Scales scales, const Lanes<double>* last) {
  const int64_t rows = layout.rows(), width = layout.width(), lengths = layout.sizes().lengths;
  Buffer<Lanes<double>> starts(width), ends(width);
  std::fill(ends.data(), ends.data() + width, Lanes<double>::of(0.0));
  for (int64_t r = rows - 1; r >= 0; --r) {
    Lanes<double>* scaled = scales.ends + r * width;
    Lanes<T>* row = segments + r * lengths * width;
    const int64_t count = std::min(lengths, rows - r);
    layout.give_last(r, last, ends.data());
    for (int64_t c = 0; c < width; ++c) {
      scaled[c] = scaled[c] * ends[c];
      auto total = Lanes<double>::of(0.0);
      for (int64_t d = 0; d < count; ++d) {
        const auto mass = widen(row[d * width + c]) * scaled[d * width + c];
        row[d * width + c] = narrow<T>(mass);
        total += mass;
      }
      if (r > 0) starts[c] = total * scales.starts[r * width + c];
    }
    std::fill(row + count * width, row + lengths * width, Lanes<T>::of(T(0)));
    if (r > 0) steps.back(r, starts.data(), ends.data());
  }
}

template <class Layout, class T>
void log_partition_of(const Layout& layout, const SemiMarkov<T>& model, T* out) {
  const int64_t size = layout.rows() * layout.sizes().lengths * layout.width();
  Buffer<Lanes<T>> segments(size);
  Buffer<Lanes<double>> last(layout.width());
  const typename Layout::Steps steps(layout, model, false, nullptr);
  layout.load_scores(model.segments, segments.data());
  inside(layout, steps, segments.data(), {nullptr, nullptr}, last.data());
  layout.finish(last.data(), out);
}

template <class Layout, class T>
void marginals_of(const Layout& layout, const SemiMarkov<T>& model, const SemiMarkovMarginals<T>& out) {
  const int64_t rows = layout.rows(), width = layout.width();
  Buffer<Lanes<T>> segments(rows * layout.sizes().lengths * width);
  Buffer<Lanes<double>> last(width), start_scales(rows * width), end_scales(rows * width);
  const Scales scales{start_scales.data(), end_scales.data()};
  const typename Layout::Steps steps(layout, model, true, out.pairs);
  layout.load_scores(model.segments, segments.data());
  inside(layout, steps, segments.data(), scales, last.data());
  layout.finish(last.data(), out.log_partition);
  outside(layout, steps, segments.data(), scales, last.data());
  layout.store_segments(segments.data(), out.segments);
  steps.store();
}

// The values of the tangent pass: the marginals, the direction (which becomes the derivative), and the
// expectations of `tangent` by row.
template <class T>
struct Course {
  Lanes<T>* marginals;
  Lanes<T>* along;
  Lanes<T>* past_starts;
  Lanes<T>* past_ends;
  Lanes<T>* in_starts;  // probabilities of starts
};

// The first half: past_start and past_end. The direction is centered.
template <class Layout, class T>
void look_back(const Layout& layout, const typename Layout::StepTangent& steps, const Course<T>& course) {
  const int64_t rows = layout.rows(), width = layout.width(), lengths = layout.sizes().lengths;
  const auto zero = Lanes<T>::of(T(0));
  Buffer<Lanes<double>> gains(rows + 1);
  Buffer<Lanes<T>> covered(lengths);
  gains[0] = Lanes<double>::of(0.0);
  for (int64_t r = 0; r < rows; ++r) {
    Lanes<T>* starts = course.past_starts + r * width;
    auto gain = zero;
    if (r == 0) std::fill(starts, starts + width, zero);
    else gain = steps.past(r, course.past_ends + (r - 1) * width, starts);
    for (int64_t c = 0; c < width; ++c) {
      auto mass = zero;
      for (int64_t at = r * lengths * width + c, end = at + lengths * width; at < end; at += width) {
        const auto m = course.marginals[at];
        // Values of the direction on impossible segments are ignored.
        const auto g = where_positive(m, course.along[at], zero);
        course.along[at] = g;
        gain += m * g;
        mass += m;
      }
      course.in_starts[r * width + c] = mass;
    }
    gains[r + 1] = gains[r] + layout.over_labels(gain);
    const int64_t count = std::min(lengths, r + 1);
    for (int64_t d = 0; d < count; ++d) covered[d] = narrow<T>(gains[r + 1] - gains[r - d]);
    for (int64_t c = 0; c < width; ++c) {
      const Ending<T> marginal(layout, course.marginals, r, c), direction(layout, course.along, r, c);
      auto total = zero, mass = zero;
      for (int64_t d = 0; d < count; ++d) {
        const auto m = marginal.at(d), g = direction.at(d) - covered[d];
        direction.at(d) = g;
        total += m * (g + starts[c - d * width]);
        mass += m;
      }
      course.past_ends[r * width + c] = total * reciprocal_or_zero(mass);
    }
  }
}

// The second half: future_end and future_start, from the last row back, and the derivatives.
template <class Layout, class T>
void look_ahead(const Layout& layout, const typename Layout::StepTangent& steps, const Course<T>& course) {
  const int64_t rows = layout.rows(), width = layout.width(), lengths = layout.sizes().lengths;
  const auto zero = Lanes<T>::of(T(0));
  Buffer<Lanes<T>> ends(width), starts(rows * width), totals(rows * lengths);
  std::fill(ends.data(), ends.data() + width, zero);
  std::fill(starts.data(), starts.data() + rows * width, zero);
  std::fill(totals.data(), totals.data() + rows * lengths, zero);
  auto open = Lanes<double>::of(0.0);  // the total over the segments that cover the row
  for (int64_t r = rows - 1; r >= 0; --r) {
    Lanes<T>* start = starts.data() + r * width;
    const Lanes<T>* past = course.past_starts + r * width;
    for (int64_t d = 0; d < lengths && d <= r; ++d) {
      const int64_t place = (r - d) * lengths + d, back = d * width;
      auto total = zero;
      for (int64_t c = 0; c < width; ++c) {
        const auto m = course.marginals[place * width + c];
        const auto share = m * (course.along[place * width + c] + ends[c]);
        const auto change = share + m * past[c - back];
        start[c - back] += share;
        course.along[place * width + c] = change;
        total += change;
      }
      totals[place] = total;
      open += widen(total);
    }
    // Every row is covered once, so the derivative of its total is 0. Removing the rounding error of this
    // derivative keeps the error from growing with the number of rows.
    const auto rest = narrow<T>(layout.over_labels(narrow<T>(open)));
    for (int64_t place = r * lengths; place < (r + 1) * lengths; ++place) {
      open = open - widen(totals[place]);
      for (int64_t at = place * width; at < (place + 1) * width; ++at) {
        course.along[at] = course.along[at] - course.marginals[at] * rest;
      }
    }
    if (r == 0) break;
    for (int64_t c = 0; c < width; ++c) start[c] = start[c] * reciprocal_or_zero(course.in_starts[r * width + c]);
    steps.future(r, start, course.past_ends + (r - 1) * width, rest, ends.data());
  }
}

// The derivative of the marginals along a direction g: with G(y) the sum of g over the parts of y, it
// is Cov(part, G). The pass subtracts from each segment the mean increment of G over the rows it covers. This
// subtracts E[G] from all segmentations, and the remaining sums stay small for sequences of any length. Then
//
//   past_start[t, k]   = E[ G before | a segment of k starts at t ]    = sum_i p[t, i, k] (g[t, i, k] + past_end[t-1, i]) / sum_i p[t, i, k]
//   past_end[t, k]     = E[ G so far | a segment of k ends with t ]    = sum_d m[t-d, d, k] (g[t-d, d, k] + past_start[t-d, k]) / sum_d m[t-d, d, k]
//   future_start[t, k] = E[ G from t on | a segment of k starts at t ] = sum_d m[t, d, k] (g[t, d, k] + future_end[t+d, k]) / sum_d m[t, d, k]
//   future_end[t-1, i] = E[ G after | a segment of i ends with t-1 ]   = sum_k p[t, i, k] (g[t, i, k] + future_start[t, k]) / sum_k p[t, i, k]
//   segment            = m[t, d, k] (g[t, d, k] + past_start[t, k] + future_end[t+d, k])
//   pair               = p[t, i, k] (g[t, i, k] + past_end[t-1, i] + future_start[t, k])
//
// Parts on padding have probability 0, so they need no special treatment.
template <class Layout, class T>
void tangent_of(const Layout& layout, const SemiMarkovTangent<T>& task) {
  const int64_t width = layout.width(), table = layout.rows() * width, size = table * layout.sizes().lengths;
  Buffer<Lanes<T>> marginals(size), along(size), past_starts(table), past_ends(table), in_starts(table);
  const Course<T> course{marginals.data(), along.data(), past_starts.data(), past_ends.data(), in_starts.data()};
  const typename Layout::StepTangent steps(layout, task);
  layout.load_segments(task.segments, marginals.data());
  if (task.on_segments != nullptr) layout.load_segments(task.on_segments, along.data());
  else std::fill(along.data(), along.data() + size, Lanes<T>::of(T(0)));
  look_back(layout, steps, course);
  look_ahead(layout, steps, course);
  layout.store_segments(along.data(), task.segment_tangent);
  steps.store();
}

}  // namespace semi_markov
}  // namespace FOVEAL_ISA
}  // namespace foveal
