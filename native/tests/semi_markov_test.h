// Semi-Markov models: all kernels against a sum over all segmentations.

#pragma once

#include "check.h"

namespace foveal {

template <class T>
struct SemiMarkovCase {
  int64_t batch, length, lengths, labels;
  bool shared;
  std::vector<T> segments, transitions, on_segments, on_pairs;
  Mask mask;

  SemiMarkovCase(std::mt19937& random, int64_t batch, int64_t length, int64_t lengths, int64_t labels, bool shared,
                 bool masked, bool forbid)
      : batch(batch), length(length), lengths(lengths), labels(labels), shared(shared),
        segments(scores<T>(random, batch * length * lengths * labels, forbid)),
        transitions(scores<T>(random, (shared ? 1 : batch * (length - 1)) * labels * labels, forbid)),
        on_segments(scores<T>(random, batch * length * lengths * labels, false)),
        on_pairs(scores<T>(random, batch * (length - 1) * labels * labels, false)) {
    if (masked) mask = random_mask(random, batch * length);
  }

  SemiMarkov<T> view() const {
    const int64_t edges = labels * labels;
    return {{length, lengths, labels, mask.data()}, segments.data(), transitions.data(),
            shared ? 0 : (length - 1) * edges, shared ? 0 : edges};
  }
  std::vector<int64_t> real(int64_t item) const {
    std::vector<int64_t> found;
    for (int64_t t = 0; t < length; ++t) {
      if (mask.bits.empty() || mask.bits[item * length + t]) found.push_back(t);
    }
    return found;
  }
};

// Sums over the segmentations of one item, with scores moved by `step` along the directions.
template <class T>
class SemiMarkovSums {
 public:
  double log_partition, best = -std::numeric_limits<double>::infinity();
  std::vector<double> segments, pairs;

  SemiMarkovSums(const SemiMarkovCase<T>& given, int64_t item, double step)
      : segments(given.length * given.lengths * given.labels), pairs((given.length - 1) * given.labels * given.labels),
        given_(given), item_(item), step_(step), real_(given.real(item)) {
    extend(0, -1, 0);
    log_partition = std::log(total_);
    for (double& mass : segments) mass = total_ > 0 ? mass / total_ : 0;
    for (double& mass : pairs) mass = total_ > 0 ? mass / total_ : 0;
  }

  // The score of labels at the starts of segments.
  static double score(const SemiMarkovCase<T>& given, int64_t item, const int64_t* labels) {
    const std::vector<int64_t> real = given.real(item);
    double total = 0;
    int64_t before = -1;
    for (std::size_t row = 0; row < real.size();) {
      std::size_t end = row + 1;
      while (end < real.size() && labels[real[end]] < 0) ++end;
      const int64_t label = labels[real[row]];
      if (end - row > static_cast<std::size_t>(given.lengths) || label < 0) return std::nan("");
      total += given.segments[((item * given.length + real[row]) * given.lengths + end - row - 1) * given.labels + label];
      if (row > 0) {
        const int64_t edge = before * given.labels + label;
        const int64_t at = item * (given.length - 1) + real[row] - 1;
        total += given.transitions[given.shared ? edge : at * given.labels * given.labels + edge];
      }
      before = label, row = end;
    }
    return total;
  }

 private:
  // All continuations from a row, after a segment of label `before`.
  void extend(int64_t row, int64_t before, double score) {
    const int64_t count = static_cast<int64_t>(real_.size());
    if (row == count) {
      total_ += std::exp(score);
      best = std::max(best, score);
      for (int64_t place : on_segments_) segments[place] += std::exp(score);
      for (int64_t place : on_pairs_) pairs[place] += std::exp(score);
      return;
    }
    const int64_t edges = given_.labels * given_.labels, t = real_[row];
    for (int64_t d = 0; d < given_.lengths && row + d < count; ++d) {
      for (int64_t k = 0; k < given_.labels; ++k) {
        const int64_t place = (t * given_.lengths + d) * given_.labels + k;
        const int64_t at = item_ * static_cast<int64_t>(segments.size()) + place;
        double next = score + given_.segments[at] + step_ * given_.on_segments[at];
        on_segments_.push_back(place);
        if (row > 0) {
          const int64_t edge = before * given_.labels + k, pair = (t - 1) * edges + edge;
          const int64_t there = item_ * static_cast<int64_t>(pairs.size()) + pair;
          next += given_.transitions[given_.shared ? edge : there] + step_ * given_.on_pairs[there];
          on_pairs_.push_back(pair);
        }
        extend(row + d + 1, k, next);
        on_segments_.pop_back();
        if (row > 0) on_pairs_.pop_back();
      }
    }
  }

  const SemiMarkovCase<T>& given_;
  int64_t item_;
  double step_, total_ = 0;
  std::vector<int64_t> real_, on_segments_, on_pairs_;
};

template <class T>
void check_segmentations_of(const SemiMarkovKernels<T>& kernels, const SemiMarkovCase<T>& given, double tolerance) {
  const int64_t batch = given.batch, length = given.length;
  const SemiMarkov<T> model = given.view();
  std::vector<T> log_partition(batch), again(batch), best(batch);
  std::vector<T> segments(given.segments.size()), pairs(given.on_pairs.size());
  std::vector<T> segment_tangent(segments.size()), pair_tangent(pairs.size());
  std::vector<int64_t> labels(batch * length), drawn(2 * batch * length);
  std::vector<double> uniforms(2 * batch * 2 * length, 0.5);
  std::vector<char> possible(batch);
  kernels.log_partition(model, log_partition.data(), 0, batch);
  kernels.marginals(model, {again.data(), segments.data(), pairs.data()}, 0, batch);
  kernels.tangent({model.sizes, segments.data(), pairs.data(), given.on_segments.data(), given.on_pairs.data(),
                   segment_tangent.data(), pair_tangent.data()}, 0, batch);
  kernels.best(model, labels.data(), best.data(), 0, batch);
  kernels.sample(model, {2, batch, uniforms.data(), drawn.data(), reinterpret_cast<bool*>(possible.data())}, 0, batch);
  constexpr double step = 1e-5;
  const double rough = std::max(tolerance, 1e-6);  // finite differences are not more accurate
  for (int64_t item = 0; item < batch; ++item) {
    const SemiMarkovSums<T> sums(given, item, 0), up(given, item, step), down(given, item, -step);
    const bool exists = sums.log_partition > -std::numeric_limits<double>::infinity();
    expect("log partition of segmentations", log_partition[item], sums.log_partition, tolerance);
    expect("log partition of segmentations with marginals", again[item], sums.log_partition, tolerance);
    expect("best score of a segmentation", best[item], sums.best, tolerance);
    expect("possible segmentation", possible[item], exists, 0);
    if (exists) {
      const auto score = [&](const int64_t* found) { return SemiMarkovSums<T>::score(given, item, found); };
      expect("score of the best segmentation", score(labels.data() + item * length), sums.best, tolerance);
      expect("a drawn segmentation has a score", std::isfinite(score(drawn.data() + item * length)), 1, 0);
    }
    for (std::size_t i = 0; i < sums.segments.size(); ++i) {
      const std::size_t place = item * sums.segments.size() + i;
      expect("segment", segments[place], sums.segments[i], tolerance);
      expect("segment tangent", segment_tangent[place], (up.segments[i] - down.segments[i]) / (2 * step), rough);
    }
    for (std::size_t i = 0; i < sums.pairs.size(); ++i) {
      const std::size_t place = item * sums.pairs.size() + i;
      expect("pair of segments", pairs[place], sums.pairs[i], tolerance);
      expect("pair of segments tangent", pair_tangent[place], (up.pairs[i] - down.pairs[i]) / (2 * step), rough);
    }
  }
}

template <class T>
void check_segmentations(const SemiMarkovKernels<T>& kernels, double tolerance) {
  std::mt19937 random(0);
  for (int kind = 0; kind < 8; ++kind) {
    const bool shared = kind & 1, masked = kind & 2, forbid = kind & 4;
    check_segmentations_of(kernels, SemiMarkovCase<T>(random, 19, 4, 3, 2, shared, masked, forbid), tolerance);
    check_segmentations_of(kernels, SemiMarkovCase<T>(random, 2, 5, 2, 3, shared, masked, forbid), tolerance);
    check_segmentations_of(kernels, SemiMarkovCase<T>(random, 3, 1, 2, 2, shared, masked, forbid), tolerance);
    check_segmentations_of(kernels, SemiMarkovCase<T>(random, 2, 3, 2, 18, shared, masked, forbid), tolerance);
    check_segmentations_of(kernels, SemiMarkovCase<T>(random, 2, 2, 4, 13, shared, masked, forbid), tolerance);
  }
}

}  // namespace foveal
