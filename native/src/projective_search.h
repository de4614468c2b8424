// The best projective tree, and exact samples: trees grown from the widest span down.
//
//   best     the inside pass with maxima, a pointer to the best split of every sum
//   sample   each split by its probability given the span, from the weights of the inside pass

#pragma once

#include "chain_search.h"
#include "projective.h"

namespace sightline {
namespace SIGHTLINE_ISA {
namespace projective {

// A span whose arcs are still to be found, by the sum that splits it.
struct Open {
  Sum sum;
  int64_t start, width;
};

// Writes the head of every real word (n); `root` is the root's word, as a node, if it is to be one.
// `choose(sum, start, width)` gives the split of a span.
template <class Choose>
void grow(const Sentence& sentence, int64_t root, int64_t* heads, Choose choose) {
  const int64_t nodes = sentence.nodes();
  Buffer<Open> stack(2 * nodes + 2);
  int64_t height = 0;
  const auto push = [&](Sum sum, int64_t start, int64_t width) {
    if (width > 0) stack[height++] = {sum, start, width};
  };
  const auto attach = [&](int64_t head, int64_t word) { heads[sentence.place(word) - 1] = sentence.place(head); };
  if (sentence.single_root()) {
    heads[sentence.place(root) - 1] = 0;
    push(kLeft, 0, root);
    push(kRight, root, nodes - 1 - root);
  } else {
    push(kRight, 0, nodes - 1);
  }
  while (height > 0) {
    const auto [sum, start, width] = stack[--height];
    const int64_t split = choose(sum, start, width);
    if (sum == kJoin) {
      push(kRight, start, split);
      push(kLeft, start + split + 1, width - 1 - split);
    } else if (sum == kRight) {
      attach(start, start + split + 1);
      push(kJoin, start, split + 1);
      push(kRight, start + split + 1, width - 1 - split);
    } else {
      attach(start + width, start + split);
      push(kJoin, start + split, width - split);
      push(kLeft, start, split);
    }
  }
}

template <class T>
void best(const Arcs<T>& arcs, int64_t* heads, T* scores, int64_t item) {
  const Sentence sentence(arcs, item);
  const int64_t size = arcs.words + 1, row = sentence.row();
  const T* square = arcs.scores + item * size * size;
  int64_t* found = heads + item * arcs.words;
  std::fill(found, found + arcs.words, int64_t(0));
  const ByWidth<T> by_width(sentence, square, size, T(kNever));
  const Charts<double> charts(sentence, kNever);
  Buffer<T> pointers(3 * sentence.chart());
  inside(sentence, by_width, charts, [&](Sum sum, int64_t width, int64_t start, int64_t place) {
    const auto columns = charts.columns<const double>(sum, width, start);
    return charts::best<T>(columns, pointers.data() + sum * sentence.chart() + place);
  });
  Buffer<double> chosen(size);
  const int64_t count = roots(sentence, charts, square, chosen.data());
  const int64_t root = std::max_element(chosen.data(), chosen.data() + count) - chosen.data();
  scores[item] = static_cast<T>(chosen[root]);
  if (sentence.nodes() == 0) return;
  grow(sentence, root, found, [&](Sum sum, int64_t start, int64_t width) {
    return static_cast<int64_t>(pointers[sum * sentence.chart() + width * row + start]);
  });
}

template <class T>
void sample(const Arcs<T>& arcs, const ArcDraws& draws, int64_t item) {
  const Sentence sentence(arcs, item);
  const int64_t size = arcs.words + 1;
  const T* square = arcs.scores + item * size * size;
  Buffer<T> kept(draws.kept_size);
  Buffer<double> chosen(size), options(size);
  {
    const ByWidth<T> by_width(sentence, square, size, T(kNever));
    const Charts<double> charts(sentence, kNever);
    sum_inside(sentence, by_width, charts, kept.data());
    const int64_t count = roots(sentence, charts, square, chosen.data());
    draws.possible[item] = normalise(chosen.data(), count) > kNever;
  }
  for (int64_t s = 0; s < draws.samples; ++s) {
    int64_t* found = draws.heads + (s * draws.batch + item) * arcs.words;
    const double* uniform = draws.uniforms + (s * draws.batch + item) * 2 * size;
    std::fill(found, found + arcs.words, int64_t(0));
    if (sentence.nodes() == 0) continue;
    const int64_t count = sentence.single_root() ? sentence.nodes() : 1;
    const int64_t root = chain_search::choose(chosen.data(), count, 1.0, *uniform++);
    grow(sentence, root, found, [&](Sum sum, int64_t start, int64_t width) {
      const auto weights = sentence.weights<const T>(kept.data(), sum, width, start);
      double total = 0;
      for (int64_t i = 0; i < width; ++i) total += options[i] = weights.first[i * weights.stride];
      return chain_search::choose(options.data(), width, total, *uniform++);
    });
  }
}

template <class T>
constexpr ArcKernels<T> table() {
  return {log_partition<T>, marginals<T>, tangent<T>, best<T>, sample<T>};
}

}  // namespace projective
}  // namespace SIGHTLINE_ISA
}  // namespace sightline
