// Subsets of k items: all kernels against a sum over all subsets.

#pragma once

#include "check.h"

namespace foveal {

template <class T>
struct ItemCase {
  int64_t batch, items, chosen;
  std::vector<T> scores_, direction;
  Mask mask;

  ItemCase(std::mt19937& random, int64_t batch, int64_t items, int64_t chosen, bool masked, bool forbid)
      : batch(batch), items(items), chosen(chosen), scores_(scores<T>(random, batch * items, forbid)),
        direction(scores<T>(random, batch * items, false)) {
    if (masked) mask = random_mask(random, batch * items);
  }
};

// Sums over the subsets of one row, with scores moved by `step` along the direction.
template <class T>
struct ItemSums {
  double log_partition;
  std::vector<double> items;

  ItemSums(const ItemCase<T>& given, int64_t row, double step) : items(given.items) {
    double total = 0;
    for (int64_t subset = 0; subset < int64_t(1) << given.items; ++subset) {
      double score = 0;
      int64_t size = 0;
      for (int64_t i = 0; i < given.items; ++i) {
        if (!(subset >> i & 1)) continue;
        const int64_t place = row * given.items + i;
        const bool is_real = given.mask.bits.empty() || given.mask.bits[place];
        score += is_real ? given.scores_[place] + step * given.direction[place] : -std::numeric_limits<double>::infinity();
        ++size;
      }
      if (size != given.chosen) continue;
      total += std::exp(score);
      for (int64_t i = 0; i < given.items; ++i) items[i] += subset >> i & 1 ? std::exp(score) : 0;
    }
    log_partition = std::log(total);
    for (double& mass : items) mass = total > 0 ? mass / total : 0;
  }
};

template <class T>
void check_subsets_of(const ItemKernels<T>& kernels, const ItemCase<T>& given, double tolerance) {
  const int64_t batch = given.batch, items = given.items, samples = 2;
  const Items<T> view{items, given.chosen, given.scores_.data(), given.mask.data()};
  std::vector<T> log_partition(batch), again(batch), marginals(batch * items), tangent(batch * items);
  std::vector<T> kept((batch + kGrain - 1) / kGrain * kGrain * items * given.chosen);
  std::vector<char> drawn(samples * batch * items), possible(batch);
  std::vector<double> uniforms(samples * batch * items, 0.5);
  kernels.log_partition(view, log_partition.data(), 0, batch);
  kernels.marginals(view, {again.data(), marginals.data(), kept.data()}, 0, batch);
  kernels.tangent(view, {marginals.data(), kept.data(), given.direction.data(), tangent.data()}, 0, batch);
  kernels.sample(view, {samples, batch, uniforms.data(), reinterpret_cast<bool*>(drawn.data()), reinterpret_cast<bool*>(possible.data())}, 0, batch);
  constexpr double step = 1e-5;
  const double rough = std::max(tolerance, 1e-6);  // finite differences are not more accurate
  for (int64_t row = 0; row < batch; ++row) {
    const ItemSums<T> sums(given, row, 0), up(given, row, step), down(given, row, -step);
    const bool exists = sums.log_partition > -std::numeric_limits<double>::infinity();
    expect("log partition of subsets", log_partition[row], sums.log_partition, tolerance);
    expect("log partition of subsets with marginals", again[row], sums.log_partition, tolerance);
    expect("possible subset", possible[row], exists, 0);
    int64_t size = 0;
    for (int64_t i = 0; i < items; ++i) {
      size += drawn[row * items + i];
      expect("item", marginals[row * items + i], sums.items[i], tolerance);
      expect("item tangent", tangent[row * items + i], (up.items[i] - down.items[i]) / (2 * step), rough);
      if (drawn[row * items + i]) expect("drawn item is possible", sums.items[i] > 0, 1, 0);
    }
    expect("size of a drawn subset", static_cast<double>(size), exists ? static_cast<double>(given.chosen) : 0, 0);
  }
}

template <class T>
void check_subsets(const ItemKernels<T>& kernels, double tolerance) {
  std::mt19937 random(0);
  for (int kind = 0; kind < 4; ++kind) {
    for (int64_t items : {1, 2, 7}) {
      for (int64_t chosen : {int64_t(0), int64_t(1), items / 2, items, items + 1}) {
        check_subsets_of(kernels, ItemCase<T>(random, 19, items, chosen, kind & 1, kind & 2), tolerance);
      }
    }
  }
}

}  // namespace foveal
