// Linear chains: all kernels against a sum over all labelings.

#pragma once

#include "check.h"

namespace foveal {

template <class T>
struct ChainCase {
  int64_t batch, length, states;
  bool shared;
  std::vector<T> unary, transitions, on_nodes, on_pairs;
  Mask mask;

  ChainCase(std::mt19937& random, int64_t batch, int64_t length, int64_t states, bool shared, bool masked, bool forbid)
      : batch(batch), length(length), states(states), shared(shared),
        unary(scores<T>(random, batch * length * states, forbid)),
        transitions(scores<T>(random, shared ? states * states : batch * (length - 1) * states * states, forbid)),
        on_nodes(scores<T>(random, batch * length * states, false)),
        on_pairs(scores<T>(random, batch * (length - 1) * states * states, false)) {
    if (masked) mask = random_mask(random, batch * length);
  }

  Chain<T> view() const {
    const int64_t edges = states * states;
    return {length, states, unary.data(), transitions.data(), shared ? 0 : (length - 1) * edges,
            shared ? 0 : edges, mask.data()};
  }
  bool real(int64_t item, int64_t t) const { return mask.bits.empty() || mask.bits[item * length + t]; }
};

// Sums over the labelings of one item, with scores moved by `step` along the directions.
template <class T>
struct ChainSums {
  double log_partition, best = -std::numeric_limits<double>::infinity();
  std::vector<double> nodes, pairs;

  ChainSums(const ChainCase<T>& given, int64_t item, double step)
      : nodes(given.length * given.states), pairs((given.length - 1) * given.states * given.states) {
    const int64_t length = given.length, states = given.states;
    std::vector<int64_t> real;
    for (int64_t t = 0; t < length; ++t) {
      if (given.real(item, t)) real.push_back(t);
    }
    std::vector<int64_t> labels(real.size(), 0);
    double total = 0;
    while (true) {
      double score = 0;
      std::vector<int64_t> on_nodes, on_pairs;
      for (std::size_t k = 0; k < real.size(); ++k) {
        const int64_t node = real[k] * states + labels[k];
        const int64_t place = item * length * states + node;
        score += given.unary[place] + step * given.on_nodes[place];
        on_nodes.push_back(node);
        if (k == 0) continue;
        const int64_t edge = labels[k - 1] * states + labels[k];
        const int64_t pair = (real[k] - 1) * states * states + edge;
        const int64_t there = item * (length - 1) * states * states + pair;
        score += given.transitions[given.shared ? edge : there] + step * given.on_pairs[there];
        on_pairs.push_back(pair);
      }
      const double weight = std::exp(score);
      total += weight;
      best = std::max(best, score);
      for (int64_t place : on_nodes) nodes[place] += weight;
      for (int64_t place : on_pairs) pairs[place] += weight;
      std::size_t k = 0;
      while (k < labels.size() && ++labels[k] == states) labels[k++] = 0;
      if (k == labels.size()) break;
    }
    log_partition = std::log(total);
    for (double& mass : nodes) mass = total > 0 ? mass / total : 0;
    for (double& mass : pairs) mass = total > 0 ? mass / total : 0;
  }
};

template <class T>
void check_chain(const ChainKernels<T>& kernels, const ChainCase<T>& given, double tolerance) {
  const int64_t batch = given.batch, length = given.length, states = given.states;
  const Chain<T> chain = given.view();
  std::vector<T> log_partition(batch), again(batch), best(batch);
  std::vector<T> nodes(batch * length * states), pairs(batch * (length - 1) * states * states);
  std::vector<T> node_tangent(nodes.size()), pair_tangent(pairs.size());
  std::vector<int64_t> labels(batch * length), drawn(2 * batch * length);
  std::vector<double> uniforms(2 * batch * length, 0.5);
  std::vector<char> possible(batch);
  kernels.log_partition(chain, log_partition.data(), 0, batch);
  kernels.marginals(chain, {again.data(), nodes.data(), pairs.data()}, 0, batch);
  kernels.tangent({length, states, nodes.data(), pairs.data(), given.on_nodes.data(), given.on_pairs.data(),
                   given.mask.data(), node_tangent.data(), pair_tangent.data()}, 0, batch);
  kernels.best(chain, labels.data(), best.data(), 0, batch);
  kernels.sample(chain, {2, batch, uniforms.data(), drawn.data(), reinterpret_cast<bool*>(possible.data())}, 0, batch);
  constexpr double step = 1e-5;
  const double rough = std::max(tolerance, 1e-6);  // finite differences are not more accurate
  for (int64_t item = 0; item < batch; ++item) {
    const ChainSums<T> sums(given, item, 0), up(given, item, step), down(given, item, -step);
    expect("log partition", log_partition[item], sums.log_partition, tolerance);
    expect("log partition with marginals", again[item], sums.log_partition, tolerance);
    expect("best score", best[item], sums.best, tolerance);
    expect("possible", possible[item], sums.log_partition > -std::numeric_limits<double>::infinity(), 0);
    for (std::size_t i = 0; i < sums.nodes.size(); ++i) {
      const std::size_t place = item * sums.nodes.size() + i;
      expect("node", nodes[place], sums.nodes[i], tolerance);
      expect("node tangent", node_tangent[place], (up.nodes[i] - down.nodes[i]) / (2 * step), rough);
    }
    for (std::size_t i = 0; i < sums.pairs.size(); ++i) {
      const std::size_t place = item * sums.pairs.size() + i;
      expect("pair", pairs[place], sums.pairs[i], tolerance);
      expect("pair tangent", pair_tangent[place], (up.pairs[i] - down.pairs[i]) / (2 * step), rough);
    }
  }
}

// Marginals of the nodes only, for shared transitions: in probability space, or in log-space if that is not
// safe (`far`: scores that spread too far).
template <class T>
void check_nodes(const ChainKernels<T>& kernels, ChainCase<T> given, double tolerance, bool far) {
  const int64_t batch = given.batch, length = given.length, states = given.states, edges = states * states;
  if (far) given.unary[0] = -300;
  std::fill(given.on_pairs.begin(), given.on_pairs.end(), T(0));
  const Chain<T> chain = given.view();
  std::vector<T> log_partition(batch), nodes(batch * length * states), node_tangent(nodes.size());
  std::vector<double> kept(3 * nodes.size()), on_transitions(edges), expected(edges);
  std::vector<char> safe(batch);
  bool* is_safe = reinterpret_cast<bool*>(safe.data());
  kernels.nodes(chain, {log_partition.data(), nodes.data(), kept.data(), is_safe}, 0, batch);
  kernels.nodes_tangent({chain, kept.data(), is_safe, given.on_nodes.data(), node_tangent.data()}, on_transitions.data(), 0, batch);
  constexpr double step = 1e-5;
  const double rough = std::max(tolerance, 1e-6);
  for (int64_t item = 0; item < batch; ++item) {
    const ChainSums<T> sums(given, item, 0), up(given, item, step), down(given, item, -step);
    expect("log partition with nodes", log_partition[item], sums.log_partition, tolerance);
    for (std::size_t i = 0; i < sums.nodes.size(); ++i) {
      const std::size_t place = item * sums.nodes.size() + i;
      expect("node alone", nodes[place], sums.nodes[i], tolerance);
      expect("tangent of a node alone", node_tangent[place], (up.nodes[i] - down.nodes[i]) / (2 * step), rough);
    }
    for (std::size_t i = 0; i < sums.pairs.size(); ++i) expected[i % edges] += (up.pairs[i] - down.pairs[i]) / (2 * step);
  }
  for (int64_t e = 0; e < edges; ++e) expect("tangent of transitions", on_transitions[e], expected[e], 10 * rough);
}

template <class T>
void check_chains(const ChainKernels<T>& kernels, double tolerance) {
  std::mt19937 random(0);
  for (int kind = 0; kind < 8; ++kind) {
    const bool shared = kind & 1, masked = kind & 2, forbid = kind & 4;
    check_chain(kernels, ChainCase<T>(random, 19, 4, 2, shared, masked, forbid), tolerance);
    check_chain(kernels, ChainCase<T>(random, 3, 4, 3, shared, masked, forbid), tolerance);
    check_chain(kernels, ChainCase<T>(random, 2, 1, 2, shared, masked, forbid), tolerance);
    check_chain(kernels, ChainCase<T>(random, 2, 3, 18, shared, masked, forbid), tolerance);
    check_nodes(kernels, ChainCase<T>(random, 3, 4, 3, true, masked, forbid), tolerance, shared);
    check_nodes(kernels, ChainCase<T>(random, 2, 3, 18, true, masked, forbid), tolerance, shared);
  }
}

}  // namespace foveal
