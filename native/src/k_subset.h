// Subsets of exactly k of n items, one row of the batch in each lane.
//
// With c items chosen of the first i,
//
//   inside    a[i, c] = log( exp( a[i-1, c] ) + exp( a[i-1, c-1] + s[i] ) )
//   weights   q[i, c] = exp( a[i-1, c-1] + s[i] - a[i, c] ) = p( item i is chosen | c of the first i )
//   outside   p[i-1, c-1] receives q[i, c] p[i, c], and so does the marginal of item i; p[i-1, c] the rest
//   tangent   up   b[i, c] = E[ G | c of the first i ],   d[i, c] = b[i-1, c-1] + g[i] - b[i-1, c]
//             down p'[i-1, c-1] receives q ( p' + p (1 - q) d ), p'[i-1, c] receives (1 - q) ( p' - p q d )
//
// with G the sum of the direction g over the chosen items. Counts that cannot reach k are skipped. Sums of
// scores are doubles; the weights are probabilities of type T. Masked items have the score -inf.

#pragma once

#include "kernels.h"
#include "lanes.h"
#include "scratch.h"
#include "transposition.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace k_subset {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Rows first .. first + lanes - 1 of the batch, and the range of relevant counts of the first i + 1 items.
struct Group {
  int64_t items, chosen, first;
  int lanes;

  int64_t lowest(int64_t i) const { return std::max<int64_t>(1, chosen - (items - 1 - i)); }
  int64_t highest(int64_t i) const { return std::min(i + 1, chosen); }
  int64_t place(int64_t i, int64_t count) const { return (i * chosen + count - 1) * kLanes; }
  int64_t weights() const { return items * chosen * kLanes; }
};

template <class Each>
void in_lanes(int64_t items, int64_t chosen, int64_t first, int64_t last, Each each) {
  for (; first < last; first += kLanes) {
    each(Group{items, chosen, first, static_cast<int>(std::min<int64_t>(kLanes, last - first))});
  }
}

// One number for each item, in lanes; `fill` on masked items.
template <class T>
void read(const Group& group, const T* numbers, const bool* mask, T fill, Lanes<T>* out) {
  gather(numbers + group.first * group.items, group.items, group.lanes, group.items, out);
  if (mask == nullptr) return;
  for (int l = 0; l < group.lanes; ++l) {
    const bool* real = mask + (group.first + l) * group.items;
    for (int64_t i = 0; i < group.items; ++i) {
      if (!real[i]) out[i].set_lane(l, fill);
    }
  }
}

// The inside pass; keeps the weights if `kept` is not null. Returns log Z.
template <class T>
Lanes<double> inside(const Items<T>& items, const Group& group, T* kept) {
  Buffer<Lanes<T>> scores(group.items);
  read(group, items.scores, items.mask, T(kNever), scores.data());
  Buffer<Lanes<double>> totals(group.chosen + 1);
  for (int64_t c = 0; c <= group.chosen; ++c) totals[c] = Lanes<double>::of(c == 0 ? 0.0 : kNever);
  const auto never = Lanes<double>::of(kNever), lowest = Lanes<double>::of(std::numeric_limits<double>::lowest());
  const auto one = Lanes<T>::of(T(1));
  for (int64_t i = 0; i < group.items; ++i) {
    const auto score = widen(scores[i]);
    for (int64_t c = group.highest(i); c >= group.lowest(i); --c) {
      const auto without = totals[c], with = totals[c - 1] + score;
      const auto high = max(max(without, with), lowest), low = where_less(with, without, with, without);
      const auto rest = exp(narrow<T>(low - high));
      const auto sum = one + rest;
      totals[c] = where_less(lowest, high, high + widen(log(sum)), never);
      if (kept == nullptr) continue;
      const auto larger = one / sum;
      where_less(narrow<T>(without - high), narrow<T>(with - high), larger, rest * larger).store(kept + group.place(i, c));
    }
  }
  return totals[group.chosen];
}

template <class T>
void write(const Group& group, const Lanes<T>& found, T* out) {
  store_first(out + group.first, group.lanes, found);
}

template <class T>
void log_partition(const Items<T>& items, T* out, int64_t first, int64_t last) {
  in_lanes(items.items, items.chosen, first, last, [&](const Group& group) {
    write(group, narrow<T>(inside<T>(items, group, nullptr)), out);
  });
}

// p( k of all items ): 1, or 0 if it is impossible.
template <class T>
Lanes<T> possible(const Lanes<double>& log_partition) {
  const auto zero = Lanes<double>::of(0.0);
  return narrow<T>(where_less(Lanes<double>::of(kNever), log_partition, Lanes<double>::of(1.0), zero));
}

template <class T>
void marginals(const Items<T>& items, const ItemMarginals<T>& out, int64_t first, int64_t last) {
  in_lanes(items.items, items.chosen, first, last, [&](const Group& group) {
    T* kept = out.kept + group.first * group.items * group.chosen;
    const auto total = inside(items, group, kept);
    write(group, narrow<T>(total), out.log_partition);
    const auto zero = Lanes<T>::of(T(0));
    Buffer<Lanes<T>> mass(group.chosen + 1), found(group.items);
    for (int64_t c = 0; c <= group.chosen; ++c) mass[c] = c == group.chosen ? possible<T>(total) : zero;
    for (int64_t i = group.items - 1; i >= 0; --i) {
      auto own = zero;
      for (int64_t c = group.lowest(i); c <= group.highest(i); ++c) {
        const auto part = Lanes<T>::load(kept + group.place(i, c)) * mass[c];
        own += part;
        mass[c] = mass[c] - part;
        mass[c - 1] += part;
      }
      found[i] = own;
    }
    scatter(found.data(), group.items, group.lanes, group.items, out.marginals + group.first * group.items);
  });
}

// Subtracting a constant from g changes nothing, since every subset has k items; subtracting the mean of g
// over the chosen items keeps the numbers small.
template <class T>
void center(const Group& group, const ItemTangent<T>& task, Lanes<T>* direction) {
  Buffer<Lanes<T>> marginals(group.items);
  gather(task.marginals + group.first * group.items, group.items, group.lanes, group.items, marginals.data());
  auto mean = Lanes<T>::of(T(0));
  for (int64_t i = 0; i < group.items; ++i) mean += marginals[i] * direction[i];
  mean = mean / Lanes<T>::of(static_cast<T>(std::max<int64_t>(1, group.chosen)));
  for (int64_t i = 0; i < group.items; ++i) direction[i] = direction[i] - mean;
}

template <class T>
void tangent(const Items<T>& items, const ItemTangent<T>& task, int64_t first, int64_t last) {
  in_lanes(items.items, items.chosen, first, last, [&](const Group& group) {
    const T* kept = task.kept + group.first * group.items * group.chosen;
    const auto zero = Lanes<T>::of(T(0)), one = Lanes<T>::of(T(1));
    Buffer<Lanes<T>> direction(group.items), found(group.items);
    Buffer<Lanes<T>> below(group.chosen + 1), mass(group.chosen + 1), change(group.chosen + 1);
    Buffer<T> apart(group.weights());
    read(group, task.direction, items.mask, T(0), direction.data());
    center(group, task, direction.data());
    for (int64_t c = 0; c <= group.chosen; ++c) below[c] = mass[c] = change[c] = zero;
    for (int64_t i = 0; i < group.items; ++i) {
      for (int64_t c = group.highest(i); c >= group.lowest(i); --c) {
        const auto gap = below[c - 1] + direction[i] - below[c];
        gap.store(&apart[group.place(i, c)]);
        below[c] += Lanes<T>::load(kept + group.place(i, c)) * gap;
      }
    }
    mass[group.chosen] = one;  // if no subset is possible, all weights are 0
    for (int64_t i = group.items - 1; i >= 0; --i) {
      auto own = zero;
      for (int64_t c = group.lowest(i); c <= group.highest(i); ++c) {
        const auto weight = Lanes<T>::load(kept + group.place(i, c));
        const auto part = weight * mass[c];
        const auto moved = weight * change[c] + part * (one - weight) * Lanes<T>::load(&apart[group.place(i, c)]);
        own += moved;
        mass[c] = mass[c] - part;
        mass[c - 1] += part;
        change[c] = change[c] - moved;
        change[c - 1] += moved;
      }
      found[i] = own;
    }
    scatter(found.data(), group.items, group.lanes, group.items, task.tangent + group.first * group.items);
  });
}

template <class T>
void sample(const Items<T>& items, const ItemDraws& draws, int64_t first, int64_t last) {
  in_lanes(items.items, items.chosen, first, last, [&](const Group& group) {
    Buffer<T> kept(group.weights());
    const auto total = inside(items, group, kept.data());
    for (int l = 0; l < group.lanes; ++l) {
      draws.possible[group.first + l] = total.lane(l) > kNever;
      for (int64_t s = 0; s < draws.samples; ++s) {
        const int64_t at = (s * draws.batch + group.first + l) * group.items;
        std::fill(draws.chosen + at, draws.chosen + at + group.items, false);
        int64_t left = draws.possible[group.first + l] ? group.chosen : 0;
        for (int64_t i = group.items - 1; i >= 0 && left > 0; --i) {
          const double weight = static_cast<double>(kept[group.place(i, left) + l]);
          if (draws.uniforms[at + i] >= weight) continue;
          draws.chosen[at + i] = true;
          --left;
        }
      }
    }
  });
}

template <class T>
constexpr ItemKernels<T> table() {
  return {log_partition<T>, marginals<T>, tangent<T>, sample<T>};
}

}  // namespace k_subset
}  // namespace FOVEAL_ISA
}  // namespace foveal
