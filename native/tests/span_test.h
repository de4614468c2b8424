// Bracketings: all kernels against a sum over all trees.

#pragma once

#include <utility>

#include "check.h"

namespace foveal {

using Tree = std::vector<std::pair<int64_t, int64_t>>;

// All bracketings of the words first .. last.
inline std::vector<Tree> bracketings(int64_t first, int64_t last) {
  if (first == last) return {{{first, last}}};
  std::vector<Tree> found;
  for (int64_t split = first; split < last; ++split) {
    for (const Tree& left : bracketings(first, split)) {
      for (const Tree& right : bracketings(split + 1, last)) {
        Tree tree{{first, last}};
        tree.insert(tree.end(), left.begin(), left.end());
        tree.insert(tree.end(), right.begin(), right.end());
        found.push_back(tree);
      }
    }
  }
  return found;
}

template <class T>
struct SpanCase {
  int64_t batch, words;
  std::vector<T> scores_, direction;
  Mask mask;

  SpanCase(std::mt19937& random, int64_t batch, int64_t words, bool masked, bool forbid)
      : batch(batch), words(words), scores_(scores<T>(random, batch * words * words, forbid)),
        direction(scores<T>(random, batch * words * words, false)) {
    if (masked) mask = random_mask(random, batch * words);
  }
};

// Sums over the trees of one sentence, with scores moved by `step` along the direction.
template <class T>
struct SpanSums {
  double log_partition, best = -std::numeric_limits<double>::infinity();
  std::vector<double> spans;

  SpanSums(const SpanCase<T>& given, int64_t item, double step) : spans(given.words * given.words) {
    std::vector<int64_t> real;
    for (int64_t word = 0; word < given.words; ++word) {
      if (given.mask.bits.empty() || given.mask.bits[item * given.words + word]) real.push_back(word);
    }
    double total = 0;
    const auto trees = real.empty() ? std::vector<Tree>{{}} : bracketings(0, static_cast<int64_t>(real.size()) - 1);
    for (const Tree& tree : trees) {
      double score = 0;
      for (const auto& [first, last] : tree) {
        const int64_t place = (item * given.words + real[first]) * given.words + real[last];
        score += given.scores_[place] + step * given.direction[place];
      }
      total += std::exp(score);
      best = std::max(best, score);
      for (const auto& [first, last] : tree) spans[real[first] * given.words + real[last]] += std::exp(score);
    }
    log_partition = std::log(total);
    for (double& mass : spans) mass = total > 0 ? mass / total : 0;
  }
};

template <class T>
void check_bracketings_of(const SpanKernels<T>& kernels, const SpanCase<T>& given, double tolerance) {
  const int64_t batch = given.batch, words = given.words, square = words * words;
  const bool together = is_together(batch, words, kMostWordsWithSpans);
  const int64_t kept_size = kept_of_sentence(words, together);
  const auto order = reversed(batch);
  const Spans<T> spans{{batch, words, given.mask.data(), order.data(), together}, given.scores_.data()};
  std::vector<T> log_partition(batch), again(batch), best(batch), kept(kept_items(batch, together) * kept_size);
  std::vector<T> marginals(batch * square), tangent(batch * square);
  std::vector<char> chosen(batch * square), drawn(2 * batch * square), possible(batch);
  std::vector<double> uniforms(2 * batch * words, 0.5);
  const SpanMarginals<T> out{again.data(), marginals.data(), kept.data(), kept_size};
  const SpanTangent<T> task{kept.data(), kept_size, given.direction.data(), tangent.data()};
  const SpanDraws draws{2, uniforms.data(), reinterpret_cast<bool*>(drawn.data()),
                        reinterpret_cast<bool*>(possible.data())};
  constexpr double step = 1e-5;
  const double rough = std::max(tolerance, 1e-6);  // finite differences are not more accurate
  kernels.log_partition(spans, log_partition.data(), 0, batch);
  kernels.marginals(spans, out, 0, batch);
  kernels.tangent(spans, task, 0, batch);
  for (int64_t place = 0; place < batch; ++place) {
    kernels.best(spans, reinterpret_cast<bool*>(chosen.data()), best.data(), place);
    kernels.sample(spans, draws, place);
  }
  for (int64_t item = 0; item < batch; ++item) {
    const SpanSums<T> sums(given, item, 0), up(given, item, step), down(given, item, -step);
    expect("log partition of bracketings", log_partition[item], sums.log_partition, tolerance);
    expect("log partition of bracketings with marginals", again[item], sums.log_partition, tolerance);
    expect("best score of a bracketing", best[item], sums.best, tolerance);
    expect("possible bracketing", possible[item], sums.log_partition > -std::numeric_limits<double>::infinity(), 0);
    for (int64_t i = 0; i < square; ++i) {
      const int64_t place = item * square + i;
      expect("span", marginals[place], sums.spans[i], tolerance);
      expect("span tangent", tangent[place], (up.spans[i] - down.spans[i]) / (2 * step), rough);
    }
  }
}

template <class T>
void check_bracketings(const SpanKernels<T>& kernels, double tolerance) {
  std::mt19937 random(0);
  for (int kind = 0; kind < 4; ++kind) {
    for (int64_t words : {1, 2, 6}) {
      check_bracketings_of(kernels, SpanCase<T>(random, 3, words, kind & 1, kind & 2), tolerance);
    }
    // Side by side, in one group of lanes that is full and one that is not.
    check_bracketings_of(kernels, SpanCase<T>(random, 19, 5, kind & 1, kind & 2), tolerance);
  }
}

}  // namespace foveal
