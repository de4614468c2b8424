// Projective dependency trees (Eisner).
//
//   join        J[i, j]  = sum_s  R[i, i+s]  L[i+s+1, j]        s = 0 .. k-1,  j = i + k
//   incomplete  I>[i, j] = J[i, j] a[i, j],      I<[i, j] = J[i, j] a[j, i]
//   complete    R[i, j]  = sum_s  I>[i, i+s+1]  R[i+s+1, j]     head i
//               L[i, j]  = sum_s  L[i, i+s]  I<[i+s, j]         head j
//
// With any number of roots, the root is node 0 and a tree is R[0, n]; with a single root, the nodes
// are only the words and Z = sum_r a[0, r] L[1, r] R[r, n]. Charts hold logarithms in double; all later
// values are probabilities of type T. Arcs beyond the end of a sentence are impossible. The lanes can
// therefore hold sentences of different lengths, each with a separate top span.

#pragma once

#include "sentences.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace projective {

using charts::Columns;
using charts::Entry;
using charts::Grid;
using charts::Kept;
using charts::kNever;
using charts::lane_of;

// The kinds of sums over splits; each has separate weights, scales and probabilities.
enum Sum { kJoin, kRight, kLeft, kSums };

// The sentences that are computed together, and their nodes: node i has index i + shift in squares.
template <class Layout>
struct Nodes {
  Sentences<Layout> sentences;
  int64_t shift;
  Grid<Layout> grid;

  template <class T>
  Nodes(const Arcs<T>& arcs, int64_t first, int lanes)
      : sentences(arcs.batch, 1, first, lanes), shift(arcs.single_root ? 1 : 0),
        grid(sentences.longest() - shift, kSums) {}
  int64_t count(int lane) const { return sentences.count(lane) - shift; }
  bool single_root() const { return shift == 1; }
};

// Numbers on arcs, in the order of the spans between their ends; `value` where there is no arc.
template <class Layout, class T>
struct ByWidth {
  Buffer<Entry<Layout, T>> rightward, leftward;

  ByWidth(const Nodes<Layout>& nodes, const Entry<Layout, T>* square, T value)
      : rightward(nodes.grid.chart()), leftward(nodes.grid.chart()) {
    const auto& grid = nodes.grid;
    const int64_t size = nodes.sentences.size(), shift = nodes.shift;
    charts::fill(leftward, grid.chart(), value);  // the root has no head
    if constexpr (Layout::spans > 1) charts::fill(rightward, grid.chart(), value);
    for (int64_t i = 0; i < grid.words(); ++i) {
      for (int64_t j = i + 1; j < grid.words(); ++j) {
        const int64_t head = i + shift, word = j + shift;
        rightward[grid.at(j - i, i)] = square[head * size + word];
        if (head > 0) leftward[grid.at(j - i, i)] = square[word * size + head];
      }
    }
  }
};

// Four charts, of complete and incomplete spans, and the columns of their sums.
template <class Layout, class Number>
struct Charts {
  Buffer<Entry<Layout, Number>> right, left, rightward, leftward;  // R, L, I>, I<
  int64_t row;

  explicit Charts(const Grid<Layout>& grid)
      : right(grid.chart()), left(grid.chart()), rightward(grid.chart()), leftward(grid.chart()), row(grid.row()) {}
  void fill(int64_t count, Number value) const {
    for (const auto* chart : {&right, &left, &rightward, &leftward}) charts::fill(*chart, count, value);
  }
  FOVEAL_INLINE Columns<Entry<Layout, Number>> columns(Sum sum, int64_t width, int64_t start) const {
    const int64_t below = (width - 1) * row + start + 1;
    if (sum == kJoin) return {right.data() + start, left.data() + below, row, width};
    if (sum == kRight) return {rightward.data() + row + start, right.data() + below, row, width};
    return {left.data() + start, leftward.data() + width * row + start, row, width};
  }
};

// Fills the charts, a block of spans at a time; `total(sum, width, start)` adds up splits.
template <class Layout, class T, class Total>
void inside(const Grid<Layout>& grid, const ByWidth<Layout, T>& arcs, const Charts<Layout, double>& charts, Total total) {
  if constexpr (Layout::spans > 1) charts.fill(grid.chart(), kNever);  // lanes to spare read it
  charts::fill(charts.right, grid.words(), 0.0);
  charts::fill(charts.left, grid.words(), 0.0);
  grid.ascend([&](int64_t width, int64_t start) {
    const int64_t place = grid.at(width, start);
    const Lanes<double> join = total(kJoin, width, start);
    charts::store(join + widen(charts::load(arcs.rightward.data() + place)), charts.rightward.data() + place);
    charts::store(join + widen(charts::load(arcs.leftward.data() + place)), charts.leftward.data() + place);
    charts::store(total(kRight, width, start), charts.right.data() + place);
    charts::store(total(kLeft, width, start), charts.left.data() + place);
  });
}

// The inside pass with sums; keeps weights and scales if `kept` is not null.
template <class Layout, class T>
void sum_inside(const Grid<Layout>& grid, const ByWidth<Layout, T>& arcs, const Charts<Layout, double>& charts, T* kept) {
  inside(grid, arcs, charts, [&](Sum sum, int64_t width, int64_t start) {
    const auto columns = charts.columns(sum, width, start);
    if (kept == nullptr) return charts::sum<T>(columns, {nullptr, 0});
    return charts::sum<T>(columns, grid.kept(kept, sum, width, start));
  });
}

// Scores of the choices at the top: the word of the root if there is a single root, otherwise one choice.
template <class Layout, class T>
int64_t roots(const Nodes<Layout>& nodes, int lane, const Charts<Layout, double>& charts,
              const Entry<Layout, T>* square, double* scores) {
  const auto& grid = nodes.grid;
  const int64_t count = nodes.count(lane);
  if (count == 0) {
    scores[0] = 0;  // the empty sentence has one tree
    return 1;
  }
  if (!nodes.single_root()) {
    scores[0] = lane_of(charts.right[grid.at(count - 1, 0)], lane);
    return 1;
  }
  for (int64_t r = 0; r < count; ++r) {
    scores[r] = static_cast<double>(lane_of(square[r + 1], lane)) + lane_of(charts.left[grid.at(r, 0)], lane) +
                lane_of(charts.right[grid.at(count - 1 - r, r)], lane);
  }
  return count;
}

// Turns log-scores into probabilities, all 0 if none is possible; returns their log-sum.
inline double normalize(double* scores, int64_t count) {
  if (count == 1) {
    const double only = scores[0];
    scores[0] = only > kNever ? 1 : 0;
    return only;
  }
  auto highest = Lanes<double>::of(std::numeric_limits<double>::lowest());
  for (int64_t i = 0; i < count; i += kLanes) highest = max(highest, load_first(scores + i, count - i, kNever));
  highest = Lanes<double>::of(largest(highest));
  auto total = Lanes<double>::of(0.0);
  for (int64_t i = 0; i < count; i += kLanes) {
    const auto weight = exp(load_first(scores + i, count - i, kNever) - highest);
    store_first(scores + i, count - i, weight);
    total += weight;
  }
  const double all = sum(total);
  for (int64_t i = 0; i < count; ++i) scores[i] = all > 0 ? scores[i] / all : 0;
  return all > 0 ? highest.lane(0) + std::log(all) : kNever;
}

template <class T>
void log_partition(const Arcs<T>& arcs, T* out, int64_t begin, int64_t end) {
  for_sentences(arcs.batch, begin, end, [&](auto layout, int64_t first, int lanes) {
    using Layout = decltype(layout);
    const Nodes<Layout> nodes(arcs, first, lanes);
    const int64_t size = nodes.sentences.size();
    Buffer<Entry<Layout, T>> square(size * size);
    nodes.sentences.read(arcs.scores, T(kNever), square.data());
    const ByWidth<Layout, T> scores(nodes, square.data(), T(kNever));
    const Charts<Layout, double> charts(nodes.grid);
    sum_inside<Layout, T>(nodes.grid, scores, charts, nullptr);
    Buffer<double> chosen(size);
    for (int l = 0; l < lanes; ++l) {
      const int64_t count = roots<Layout, T>(nodes, l, charts, square.data(), chosen.data());
      out[nodes.sentences.item(l)] = static_cast<T>(normalize(chosen.data(), count));
    }
  });
}

// Copies the values of the incomplete spans into a square.
template <class Layout, class T>
void write_arcs(const Nodes<Layout>& nodes, const Charts<Layout, T>& charts, Entry<Layout, T>* square) {
  const auto& grid = nodes.grid;
  const int64_t size = nodes.sentences.size(), shift = nodes.shift;
  for (int64_t i = 0; i < grid.words(); ++i) {
    for (int64_t j = i + 1; j < grid.words(); ++j) {
      const int64_t head = i + shift, word = j + shift;
      square[head * size + word] = charts.rightward[grid.at(j - i, i)];
      if (head > 0) square[word * size + head] = charts.leftward[grid.at(j - i, i)];
    }
  }
}

// The outside pass, from the probabilities at the top down.
template <class Layout, class T>
void share_out(const Grid<Layout>& grid, const Charts<Layout, T>& mass, T* kept) {
  grid.descend([&](int64_t width, int64_t start) {
    const int64_t place = grid.at(width, start);
    const auto pass_on = [&](Sum sum, const Lanes<T>& probability) {
      charts::share(probability, grid.kept(kept, sum, width, start), mass.columns(sum, width, start));
    };
    pass_on(kRight, charts::load(mass.right.data() + place));
    pass_on(kLeft, charts::load(mass.left.data() + place));
    pass_on(kJoin, charts::load(mass.rightward.data() + place) + charts::load(mass.leftward.data() + place));
  });
}

template <class T>
void marginals(const Arcs<T>& arcs, const ArcMarginals<T>& out, int64_t begin, int64_t end) {
  for_sentences(arcs.batch, begin, end, [&](auto layout, int64_t first, int lanes) {
    using Layout = decltype(layout);
    const Nodes<Layout> nodes(arcs, first, lanes);
    const auto& grid = nodes.grid;
    const int64_t size = nodes.sentences.size();
    Buffer<T> passing(out.kept == nullptr ? grid.kept_size() : 0);
    T* kept = out.kept == nullptr ? passing.data() : out.kept + first * out.kept_size;
    const Charts<Layout, T> mass(grid);
    mass.fill(grid.chart(), T(0));
    Buffer<Entry<Layout, T>> square(size * size), found(size * size);
    charts::fill(found, size * size, T(0));
    {
      nodes.sentences.read(arcs.scores, T(kNever), square.data());
      const ByWidth<Layout, T> scores(nodes, square.data(), T(kNever));
      const Charts<Layout, double> charts(grid);
      sum_inside(grid, scores, charts, kept);
      Buffer<double> chosen(size);
      for (int l = 0; l < lanes; ++l) {
        const int64_t count = nodes.count(l), choices = roots<Layout, T>(nodes, l, charts, square.data(), chosen.data());
        out.log_partition[nodes.sentences.item(l)] = static_cast<T>(normalize(chosen.data(), choices));
        for (int64_t r = 0; r < choices && count > 0; ++r) {
          lane_of(mass.right[grid.at(count - 1 - r, r)], l) += static_cast<T>(chosen[r]);
          if (!nodes.single_root()) continue;
          lane_of(mass.left[grid.at(r, 0)], l) += static_cast<T>(chosen[r]);
          lane_of(found[r + 1], l) = static_cast<T>(chosen[r]);
        }
      }
    }
    share_out(grid, mass, kept);
    write_arcs(nodes, mass, found.data());
    nodes.sentences.write(found.data(), out.marginals);
  });
}

// Subtracting a constant from the direction on the arcs to one word changes nothing, since each word has one
// head in every tree; the constant that makes their mean 0 keeps the numbers small.
template <class Layout, class T>
void center(const Nodes<Layout>& nodes, const Entry<Layout, T>* marginals, Entry<Layout, T>* direction) {
  const int64_t size = nodes.sentences.size(), places = nodes.sentences.longest();
  Buffer<Entry<Layout, T>> means(places);
  charts::fill(means, places, T(0));
  for (int64_t i = 0; i < places; ++i) {
    direction[i * size + i] = means[0];  // 0: no word is its own head
    for (int64_t j = 1; j < places; ++j) means[j] += marginals[i * size + j] * direction[i * size + j];
  }
  for (int64_t i = 0; i < places; ++i) {
    for (int64_t j = 1; j < places; ++j) direction[i * size + j] = direction[i * size + j] - means[j];
  }
}

// The change of the probabilities at the top, for a single root.
template <class Layout, class T>
void change_roots(const Nodes<Layout>& nodes, const Entry<Layout, T>* marginals, const Entry<Layout, T>* direction,
                  const Charts<Layout, T>& below, const Charts<Layout, T>& above, Entry<Layout, T>* along) {
  const auto& grid = nodes.grid;
  for (int l = 0; l < nodes.sentences.lanes(); ++l) {
    const int64_t count = nodes.count(l);
    const auto sum_of = [&](int64_t r) {
      return lane_of(direction[r + 1], l) + lane_of(below.left[grid.at(r, 0)], l) +
             lane_of(below.right[grid.at(count - 1 - r, r)], l);
    };
    T mean = 0;
    for (int64_t r = 0; r < count; ++r) mean += lane_of(marginals[r + 1], l) * sum_of(r);
    for (int64_t r = 0; r < count; ++r) {
      const T change = lane_of(marginals[r + 1], l) * (sum_of(r) - mean);
      lane_of(along[r + 1], l) = change;
      lane_of(above.left[grid.at(r, 0)], l) += change;
      lane_of(above.right[grid.at(count - 1 - r, r)], l) += change;
    }
  }
}

// E[ G in the span | span ] for every span, with G(tree) the sum of g over the arcs of a tree; and of
// the joins without their arcs.
template <class Layout, class T>
void expect(const Grid<Layout>& grid, const ByWidth<Layout, T>& direction, const T* kept, const Charts<Layout, T>& below,
            Entry<Layout, T>* joins) {
  grid.ascend([&](int64_t width, int64_t start) {
    const int64_t place = grid.at(width, start);
    const auto mixed = [&](Sum sum) {
      return charts::mix(grid.kept(kept, sum, width, start), below.columns(sum, width, start));
    };
    const auto join = mixed(kJoin);
    charts::store(join, joins + place);
    charts::store(join + charts::load(direction.rightward.data() + place), below.rightward.data() + place);
    charts::store(join + charts::load(direction.leftward.data() + place), below.leftward.data() + place);
    charts::store(mixed(kRight), below.right.data() + place);
    charts::store(mixed(kLeft), below.left.data() + place);
  });
}

// The change of the probability of every span, from the top down.
template <class Layout, class T>
void share_change(const Grid<Layout>& grid, const T* kept, const Charts<Layout, T>& below, const Entry<Layout, T>* joins,
                  const Charts<Layout, T>& above) {
  grid.descend([&](int64_t width, int64_t start) {
    const int64_t place = grid.at(width, start);
    const auto pass_on = [&](Sum sum, const Lanes<T>& change, const Entry<Layout, T>* mixture) {
      charts::share_change(change, charts::load(mixture + place), grid.kept(kept, sum, width, start),
                           below.columns(sum, width, start), above.columns(sum, width, start));
    };
    pass_on(kRight, charts::load(above.right.data() + place), below.right.data());
    pass_on(kLeft, charts::load(above.left.data() + place), below.left.data());
    pass_on(kJoin, charts::load(above.rightward.data() + place) + charts::load(above.leftward.data() + place), joins);
  });
}

// The derivative of the arc marginals along a direction g: Cov(arc, G).
template <class T>
void tangent(const Arcs<T>& arcs, const ArcTangent<T>& task, int64_t begin, int64_t end) {
  for_sentences(arcs.batch, begin, end, [&](auto layout, int64_t first, int lanes) {
    using Layout = decltype(layout);
    const Nodes<Layout> nodes(arcs, first, lanes);
    const auto& grid = nodes.grid;
    const int64_t area = nodes.sentences.size() * nodes.sentences.size();
    const T* kept = task.kept + first * task.kept_size;
    Buffer<Entry<Layout, T>> marginals(area), direction(area), along(area), joins(grid.chart());
    nodes.sentences.read(task.marginals, T(0), marginals.data());
    nodes.sentences.read(task.direction, T(0), direction.data());
    center<Layout, T>(nodes, marginals.data(), direction.data());
    const ByWidth<Layout, T> by_width(nodes, direction.data(), T(0));
    const Charts<Layout, T> below(grid), above(grid);
    below.fill(Layout::spans > 1 ? grid.chart() : grid.words(), T(0));
    above.fill(grid.chart(), T(0));
    charts::fill(along, area, T(0));
    expect(grid, by_width, kept, below, joins.data());
    if (nodes.single_root()) change_roots(nodes, marginals.data(), direction.data(), below, above, along.data());
    share_change(grid, kept, below, joins.data(), above);
    write_arcs(nodes, above, along.data());
    nodes.sentences.write(along.data(), task.tangent);
  });
}

}  // namespace projective
}  // namespace FOVEAL_ISA
}  // namespace foveal
