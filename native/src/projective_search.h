// The best projective tree, and exact samples: trees grown from the widest span down.
//
//   best     the inside pass with maxima, a pointer to the best split of every sum
//   sample   each split by its probability given the span, from the weights of the inside pass

#pragma once

#include "chain_search.h"
#include "projective.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace projective {

// A span whose arcs are still to be found, by the sum that splits it.
struct Open {
  Sum sum;
  int64_t start, width;
};

// Writes the head of every real word (n); with a single root, `root` is the node of the root's word.
// `choose(sum, start, width)` returns the split of a span.
template <class Choose>
void grow(const Nodes<charts::Starts>& nodes, int64_t root, int64_t* heads, Choose choose) {
  const int64_t count = nodes.count(0);
  Buffer<Open> stack(2 * count + 2);
  int64_t height = 0;
  const auto push = [&](Sum sum, int64_t start, int64_t width) {
    if (width > 0) stack[height++] = {sum, start, width};
  };
  const auto place = [&](int64_t node) { return nodes.sentences.place(node + nodes.shift); };
  const auto attach = [&](int64_t head, int64_t word) { heads[place(word) - 1] = place(head); };
  if (nodes.single_root()) {
    heads[place(root) - 1] = 0;
    push(kLeft, 0, root);
    push(kRight, root, count - 1 - root);
  } else {
    push(kRight, 0, count - 1);
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
void best(const Arcs<T>& arcs, int64_t* heads, T* scores, int64_t place) {
  const Nodes<charts::Starts> nodes(arcs, place, 1);
  const auto& grid = nodes.grid;
  const int64_t item = nodes.sentences.item(0), size = nodes.sentences.size(), words = size - 1;
  int64_t* found = heads + item * words;
  std::fill(found, found + words, int64_t(0));
  Buffer<T> square(size * size), pointers(kSums * grid.chart());
  nodes.sentences.read(arcs.scores, T(kNever), square.data());
  const ByWidth<charts::Starts, T> by_width(nodes, square.data(), T(kNever));
  const Charts<charts::Starts, double> charts(grid);
  inside(grid, by_width, charts, [&](Sum sum, int64_t width, int64_t start) {
    return charts::best<T>(charts.columns(sum, width, start), pointers.data() + sum * grid.chart() + grid.at(width, start));
  });
  Buffer<double> chosen(size);
  const int64_t count = roots<charts::Starts, T>(nodes, 0, charts, square.data(), chosen.data());
  const int64_t root = std::max_element(chosen.data(), chosen.data() + count) - chosen.data();
  scores[item] = static_cast<T>(chosen[root]);
  if (nodes.count(0) == 0) return;
  grow(nodes, root, found, [&](Sum sum, int64_t start, int64_t width) {
    return static_cast<int64_t>(pointers[sum * grid.chart() + grid.at(width, start)]);
  });
}

template <class T>
void sample(const Arcs<T>& arcs, const ArcDraws& draws, int64_t place) {
  const Nodes<charts::Starts> nodes(arcs, place, 1);
  const auto& grid = nodes.grid;
  const int64_t item = nodes.sentences.item(0), size = nodes.sentences.size(), words = size - 1;
  Buffer<T> kept(grid.kept_size());
  Buffer<double> chosen(size), options(size);
  int64_t count;
  {
    Buffer<T> square(size * size);
    nodes.sentences.read(arcs.scores, T(kNever), square.data());
    const ByWidth<charts::Starts, T> by_width(nodes, square.data(), T(kNever));
    const Charts<charts::Starts, double> charts(grid);
    sum_inside(grid, by_width, charts, kept.data());
    count = roots<charts::Starts, T>(nodes, 0, charts, square.data(), chosen.data());
    draws.possible[item] = normalize(chosen.data(), count) > kNever;
  }
  for (int64_t s = 0; s < draws.samples; ++s) {
    int64_t* found = draws.heads + (s * arcs.batch.items + item) * words;
    const double* uniform = draws.uniforms + (s * arcs.batch.items + item) * 2 * size;
    std::fill(found, found + words, int64_t(0));
    if (nodes.count(0) == 0) continue;
    const int64_t root = chain_search::choose(chosen.data(), count, 1.0, *uniform++);
    grow(nodes, root, found, [&](Sum sum, int64_t start, int64_t width) {
      const auto of_span = grid.kept(kept.data(), sum, width, start);
      double total = 0;
      for (int64_t i = 0; i < width; ++i) total += options[i] = *of_span.weight(i);
      return chain_search::choose(options.data(), width, total, *uniform++);
    });
  }
}

template <class T>
constexpr ArcKernels<T> table() {
  return {log_partition<T>, marginals<T>, tangent<T>, best<T>, sample<T>};
}

}  // namespace projective
}  // namespace FOVEAL_ISA
}  // namespace foveal
