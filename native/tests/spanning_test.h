// Spanning trees: all kernels against a sum over all trees.

#pragma once

#include "projective_test.h"

namespace foveal {

// Whether the drawn tree is possible.
template <class T>
bool is_drawable(const ArcCase<T>& given, int64_t item, const int64_t* drawn) {
  const int64_t size = given.words + 1;
  std::vector<int64_t> real, heads;
  for (int64_t word = 1; word < size; ++word) {
    if (!given.mask.bits.empty() && !given.mask.bits[item * given.words + word - 1]) continue;
    real.push_back(word);
    heads.push_back(drawn[word - 1]);
    const T score = given.scores_[item * size * size + heads.back() * size + word];
    if (score == -std::numeric_limits<T>::infinity()) return false;
  }
  return is_tree(real, heads, given.single_root, true);
}

template <class T>
void check_spanning_trees_of(const SpanningKernels<T>& kernels, const ArcCase<T>& given, double tolerance) {
  const int64_t batch = given.batch, words = given.words, size = words + 1, samples = 3;
  const int64_t kept_size = kept_of_spanning(words, given.single_root);
  const Graph<T> arcs{words, given.single_root, given.scores_.data(), given.mask.data()};
  std::vector<T> log_partition(batch), again(batch), best(batch), marginals(batch * size * size), tangent(batch * size * size);
  std::vector<double> kept(batch * kept_size);
  std::vector<int64_t> heads(batch * words), drawn(samples * batch * words), seeds(samples * batch);
  std::vector<char> possible(batch), safe(batch);
  for (std::size_t i = 0; i < seeds.size(); ++i) seeds[i] = static_cast<int64_t>(i);
  bool* is_safe = reinterpret_cast<bool*>(safe.data());
  const SpanningMarginals<T> out{again.data(), marginals.data(), kept.data(), is_safe, kept_size};
  const SpanningTangent<T> task{kept.data(), is_safe, kept_size, given.direction.data(), tangent.data()};
  const SpanningDraws draws{samples, batch, seeds.data(), drawn.data(), reinterpret_cast<bool*>(possible.data())};
  constexpr double step = 1e-5;
  const double rough = std::max(tolerance, 1e-6);  // finite differences are not more accurate
  for (int64_t item = 0; item < batch; ++item) {
    kernels.log_partition(arcs, log_partition.data(), item);
    kernels.marginals(arcs, out, item);
    kernels.tangent(arcs, task, item);
    kernels.best(arcs, heads.data(), best.data(), item);
    kernels.sample(arcs, draws, item);
    const ArcSums<T> sums(given, item, 0, true), up(given, item, step, true), down(given, item, -step, true);
    const bool exists = sums.log_partition > -std::numeric_limits<double>::infinity();
    expect("log partition of spanning trees", log_partition[item], sums.log_partition, tolerance);
    expect("log partition of spanning trees with marginals", again[item], sums.log_partition, tolerance);
    expect("best score of a spanning tree", best[item], sums.best, tolerance);
    expect("possible spanning tree", possible[item], exists, 0);
    for (int64_t s = 0; exists && s < samples; ++s) {
      expect("drawn spanning tree", is_drawable(given, item, drawn.data() + (s * batch + item) * words), 1, 0);
    }
    for (std::size_t i = 0; i < sums.arcs.size(); ++i) {
      const std::size_t place = item * sums.arcs.size() + i;
      expect("arc of spanning trees", marginals[place], sums.arcs[i], tolerance);
      expect("arc tangent of spanning trees", tangent[place], (up.arcs[i] - down.arcs[i]) / (2 * step), rough);
    }
  }
}

template <class T>
void check_spanning_trees(const SpanningKernels<T>& kernels, double tolerance) {
  std::mt19937 random(0);
  for (int kind = 0; kind < 16; ++kind) {
    const bool single_root = kind & 1, masked = kind & 2, forbid = kind & 4, far_apart = kind & 8;
    for (int64_t words : {1, 2, 5}) {
      ArcCase<T> given(random, 3, words, single_root, masked, forbid);
      // Beyond the range of doubles; very low scores then count if no other arc is left.
      for (T& score : given.scores_) score -= far_apart && random() % 2 ? T(400) : T(0);
      check_spanning_trees_of(kernels, given, far_apart ? std::max(tolerance, 1e-9) : tolerance);
    }
  }
}

}  // namespace foveal
