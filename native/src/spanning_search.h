// Exact samples of spanning trees, and the table of the kernels.
//
// A random walk along heads starts at each word that is not yet in the tree and ends when it meets the tree;
// the last step from each word is kept (Wilson 1996). The total number of steps is independent of the resulting
// tree (because the erased cycles are). It is therefore exact to give up after a number of steps and to draw the
// tree with another method: one word after the other, from the marginals given the heads drawn so far. This
// happens if the most probable heads form cycles.
//
// With a single root, its word is drawn first, from its marginals, and the walks end at that word.

#pragma once

#include <cmath>

#include "chain_search.h"
#include "spanning_best.h"
#include "spanning_tangent.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace spanning {

constexpr int64_t kStepsOfWord = 100;

// SplitMix64 (Steele et al. 2014), because the number of random numbers of a walk is not known in advance.
class Random {
 public:
  explicit Random(int64_t seed) : state_(static_cast<uint64_t>(seed)) {}
  double uniform() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

// For each word, the running sums of the weights of its heads; node 0 is the root.
class Walks {
 public:
  template <class T>
  Walks(const Graph<T>& arcs, const Sentence& sentence) : size_(sentence.size()), sums_(sentence), last_(size_) {
    const int64_t size = arcs.words + 1;
    const int64_t first = arcs.single_root ? 1 : 0;
    std::fill(last_.data(), last_.data() + size_, int64_t(0));
    for (int64_t word = 1; word < size_; ++word) {
      const auto score = [&](int64_t head) {
        return static_cast<double>(arcs.scores[sentence.place(head) * size + sentence.place(word)]);
      };
      double highest = kNever, total = 0;
      for (int64_t head = first; head < size_; ++head) highest = head == word ? highest : std::max(highest, score(head));
      for (int64_t head = 0; head < size_; ++head) {
        const bool is_arc = head >= first && head != word && score(head) > kNever;
        const double weight = is_arc ? std::exp(score(head) - highest) : 0;
        if (weight > 0) last_[word] = head;
        *sums_.at(word, head) = total += weight;
      }
    }
  }

  // Draws the heads of a tree with root `root`; returns false if its walks take too many steps.
  bool draw(int64_t root, Random& random, int64_t* heads, bool* is_in) const {
    int64_t left = kStepsOfWord * size_;
    std::fill(is_in, is_in + size_, false);
    is_in[root] = true;
    for (int64_t start = 1; start < size_; ++start) {
      for (int64_t node = start; !is_in[node]; node = heads[node]) {
        if (left-- == 0) return false;
        heads[node] = step(node, random.uniform());
        if (heads[node] == 0 && root != 0) return false;  // its only head is the root
      }
      for (int64_t node = start; !is_in[node]; node = heads[node]) is_in[node] = true;
    }
    return true;
  }

 private:
  int64_t step(int64_t word, double uniform) const {
    const double* sums = sums_.row(word);
    const int64_t found = std::upper_bound(sums, sums + size_, uniform * sums[size_ - 1]) - sums;
    return std::min(found, last_[word]);  // rounding may keep the sum below the level
  }

  int64_t size_;
  Square<double> sums_;
  Buffer<int64_t> last_;
};

// The marginals of one sentence, its working memory and log Z.
template <class T>
class Conditioned {
 public:
  Conditioned(int64_t words, bool single_root)
      : marginals(nullptr), found_((words + 1) * (words + 1)), kept_(kept_of_spanning(words, single_root)),
        kept_size_(kept_of_spanning(words, single_root)) {
    marginals = found_.data();
  }
  bool solve(const Graph<T>& arcs) {
    T log_partition;
    bool safe;
    spanning::marginals(arcs, {&log_partition, marginals, kept_.data(), &safe, kept_size_}, 0);
    return log_partition > T(kNever);
  }
  T* marginals;  // (n+1, n+1)

 private:
  Buffer<T> found_;
  Buffer<double> kept_;
  int64_t kept_size_;
};

// Draws word after word, from the marginals given the heads so far. Modifies the scores in `fixed`.
template <class T>
void draw_in_turn(const Graph<T>& arcs, const Sentence& sentence, T* fixed, Conditioned<T>& conditioned, Random& random,
                  int64_t* heads) {
  const int64_t size = arcs.words + 1;
  const Graph<T> view{arcs.words, arcs.single_root, fixed, arcs.mask};
  Buffer<double> weights(sentence.size());
  for (int64_t word = 1; word < sentence.size(); ++word) {
    conditioned.solve(view);
    double total = 0;
    for (int64_t head = 0; head < sentence.size(); ++head) {
      total += weights[head] = conditioned.marginals[sentence.place(head) * size + sentence.place(word)];
    }
    heads[word] = chain_search::choose(weights.data(), sentence.size(), total, random.uniform());
    for (int64_t head = 0; head < sentence.size(); ++head) {
      if (head != heads[word]) fixed[sentence.place(head) * size + sentence.place(word)] = T(kNever);
    }
  }
}

template <class T>
void sample(const Graph<T>& arcs, const SpanningDraws& draws, int64_t item) {
  const int64_t words = arcs.words, size = words + 1;
  const bool* mask = arcs.mask == nullptr ? nullptr : arcs.mask + item * words;
  const Graph<T> own{words, arcs.single_root, arcs.scores + item * size * size, mask};
  const Sentence sentence(Graph<T>{words, false, own.scores, mask}, 0);
  Conditioned<T> conditioned(words, arcs.single_root);
  Buffer<double> roots(sentence.size());
  Buffer<T> fixed(size * size);
  Buffer<int64_t> heads(sentence.size());
  Buffer<bool> is_in(sentence.size());
  draws.possible[item] = conditioned.solve(own);
  for (int64_t node = 0; node < sentence.size(); ++node) {
    roots[node] = node == 0 ? 0 : static_cast<double>(conditioned.marginals[sentence.place(node)]);
  }
  const Walks walks(own, sentence);
  for (int64_t s = 0; s < draws.samples; ++s) {
    int64_t* out = draws.heads + (s * draws.batch + item) * words;
    std::fill(out, out + words, int64_t(0));
    if (!draws.possible[item] || sentence.words() == 0) continue;
    Random random(draws.seeds[s * draws.batch + item]);
    int64_t root = 0;
    if (arcs.single_root) root = chain_search::choose(roots.data(), sentence.size(), 1.0, random.uniform());
    if (!walks.draw(root, random, heads.data(), is_in.data())) {
      std::copy(own.scores, own.scores + size * size, fixed.data());
      for (int64_t head = 1; root != 0 && head < sentence.size(); ++head) {
        fixed[sentence.place(head) * size + sentence.place(root)] = T(kNever);
      }
      draw_in_turn(own, sentence, fixed.data(), conditioned, random, heads.data());
    }
    if (root != 0) heads[root] = 0;
    for (int64_t word = 1; word < sentence.size(); ++word) out[sentence.place(word) - 1] = sentence.place(heads[word]);
  }
}

template <class T>
constexpr SpanningKernels<T> table() {
  return {log_partition<T>, marginals<T>, tangent<T>, best<T>, sample<T>};
}

}  // namespace spanning
}  // namespace FOVEAL_ISA
}  // namespace foveal
