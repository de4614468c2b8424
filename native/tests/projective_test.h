// Projective trees: all kernels against a sum over all trees.

#pragma once

#include <algorithm>
#include <utility>

#include "check.h"

namespace foveal {

// Whether heads (0: the root) of the given words are a tree, projective unless arcs may cross.
inline bool is_tree(const std::vector<int64_t>& words, const std::vector<int64_t>& heads, bool single_root, bool may_cross) {
  int64_t from_root = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    from_root += heads[i] == 0;
    int64_t node = words[i];
    for (std::size_t up = 0; node != 0 && up <= words.size(); ++up) {
      node = heads[std::find(words.begin(), words.end(), node) - words.begin()];
    }
    if (node != 0) return false;
    for (std::size_t k = 0; k < words.size(); ++k) {
      const int64_t a = std::min(words[i], heads[i]), b = std::max(words[i], heads[i]);
      const int64_t c = std::min(words[k], heads[k]), d = std::max(words[k], heads[k]);
      if (!may_cross && a < c && c < b && b < d) return false;
    }
  }
  return words.empty() || !single_root || from_root == 1;
}

template <class T>
struct ArcCase {
  int64_t batch, words;
  bool single_root;
  std::vector<T> scores_, direction;
  Mask mask;

  ArcCase(std::mt19937& random, int64_t batch, int64_t words, bool single_root, bool masked, bool forbid)
      : batch(batch), words(words), single_root(single_root),
        scores_(scores<T>(random, batch * (words + 1) * (words + 1), forbid)),
        direction(scores<T>(random, batch * (words + 1) * (words + 1), false)) {
    if (masked) mask = random_mask(random, batch * words);
  }
};

// Sums over the trees of one sentence, with scores moved by `step` along the direction.
template <class T>
struct ArcSums {
  double log_partition, best = -std::numeric_limits<double>::infinity();
  std::vector<double> arcs;

  ArcSums(const ArcCase<T>& given, int64_t item, double step, bool may_cross = false)
      : arcs((given.words + 1) * (given.words + 1)) {
    const int64_t size = given.words + 1;
    std::vector<int64_t> real;
    for (int64_t word = 1; word < size; ++word) {
      if (given.mask.bits.empty() || given.mask.bits[item * given.words + word - 1]) real.push_back(word);
    }
    std::vector<int64_t> options = real, choice(real.size(), 0), heads(real.size());
    options.insert(options.begin(), 0);
    std::vector<std::pair<double, std::vector<int64_t>>> trees;
    while (true) {
      bool valid = true;
      for (std::size_t i = 0; i < real.size(); ++i) {
        heads[i] = options[choice[i]];
        valid = valid && heads[i] != real[i];
      }
      if (valid && is_tree(real, heads, given.single_root, may_cross)) {
        double score = 0;
        for (std::size_t i = 0; i < real.size(); ++i) {
          const int64_t place = item * size * size + heads[i] * size + real[i];
          score += given.scores_[place] + step * given.direction[place];
        }
        best = std::max(best, score);
        trees.emplace_back(score, heads);
      }
      std::size_t k = 0;
      while (k < choice.size() && ++choice[k] == static_cast<int64_t>(options.size())) choice[k++] = 0;
      if (k == choice.size()) break;
    }
    double total = 0;
    log_partition = best;
    if (best == -std::numeric_limits<double>::infinity()) return;
    for (const auto& [score, chosen] : trees) {
      const double weight = std::exp(score - best);
      total += weight;
      for (std::size_t i = 0; i < real.size(); ++i) arcs[chosen[i] * size + real[i]] += weight;
    }
    log_partition += std::log(total);
    for (double& mass : arcs) mass /= total;
  }
};

template <class T>
void check_trees_of(const ArcKernels<T>& kernels, const ArcCase<T>& given, double tolerance) {
  const int64_t batch = given.batch, words = given.words, size = words + 1;
  const bool together = is_together(batch, words, kMostWordsWithArcs);
  const int64_t kept_size = 3 * kept_of_sentence(given.single_root ? words : size, together);
  const auto order = reversed(batch);
  const Arcs<T> arcs{{batch, words, given.mask.data(), order.data(), together}, given.single_root, given.scores_.data()};
  std::vector<T> log_partition(batch), again(batch), best(batch), kept(kept_items(batch, together) * kept_size);
  std::vector<T> marginals(batch * size * size), tangent(batch * size * size);
  std::vector<int64_t> heads(batch * words), drawn(2 * batch * words);
  std::vector<double> uniforms(2 * batch * 2 * size, 0.5);
  std::vector<char> possible(batch);
  const ArcMarginals<T> out{again.data(), marginals.data(), kept.data(), kept_size};
  const ArcTangent<T> task{marginals.data(), kept.data(), kept_size, given.direction.data(), tangent.data()};
  const ArcDraws draws{2, uniforms.data(), drawn.data(), reinterpret_cast<bool*>(possible.data())};
  constexpr double step = 1e-5;
  const double rough = std::max(tolerance, 1e-6);  // finite differences are not more accurate
  kernels.log_partition(arcs, log_partition.data(), 0, batch);
  kernels.marginals(arcs, out, 0, batch);
  kernels.tangent(arcs, task, 0, batch);
  for (int64_t place = 0; place < batch; ++place) {
    kernels.best(arcs, heads.data(), best.data(), place);
    kernels.sample(arcs, draws, place);
  }
  for (int64_t item = 0; item < batch; ++item) {
    const ArcSums<T> sums(given, item, 0), up(given, item, step), down(given, item, -step);
    expect("log partition of trees", log_partition[item], sums.log_partition, tolerance);
    expect("log partition of trees with marginals", again[item], sums.log_partition, tolerance);
    expect("best score of a tree", best[item], sums.best, tolerance);
    expect("possible tree", possible[item], sums.log_partition > -std::numeric_limits<double>::infinity(), 0);
    for (std::size_t i = 0; i < sums.arcs.size(); ++i) {
      const std::size_t place = item * sums.arcs.size() + i;
      expect("arc", marginals[place], sums.arcs[i], tolerance);
      expect("arc tangent", tangent[place], (up.arcs[i] - down.arcs[i]) / (2 * step), rough);
    }
  }
}

template <class T>
void check_trees(const ArcKernels<T>& kernels, double tolerance) {
  std::mt19937 random(0);
  for (int kind = 0; kind < 8; ++kind) {
    const bool single_root = kind & 1, masked = kind & 2, forbid = kind & 4;
    for (int64_t words : {1, 2, 5}) {
      check_trees_of(kernels, ArcCase<T>(random, 3, words, single_root, masked, forbid), tolerance);
    }
    // Side by side, in one group of lanes that is full and one that is not.
    check_trees_of(kernels, ArcCase<T>(random, 19, 4, single_root, masked, forbid), tolerance);
  }
}

}  // namespace foveal
