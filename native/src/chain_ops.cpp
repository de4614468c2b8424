// The ops of the linear chain: tensors to pointers, batch items to threads.

#include <algorithm>
#include <tuple>
#include <vector>

#include "tensors.h"

namespace foveal {
namespace {

template <class T>
const ChainKernels<T>& chain_kernels();

template <>
const ChainKernels<float>& chain_kernels<float>() {
  return kernels().chain_float;
}

template <>
const ChainKernels<double>& chain_kernels<double>() {
  return kernels().chain_double;
}

// The potentials, contiguous, and their sizes.
struct Potentials {
  Tensor unary, transitions;
  std::optional<Tensor> mask;
  int64_t batch, length, states;

  Potentials(const Tensor& given_unary, const Tensor& given_transitions, const std::optional<Tensor>& given_mask)
      : unary(leading("unary", given_unary, 3, "(B, T, K)")), batch(unary.size(0)), length(unary.size(1)),
        states(unary.size(2)) {
    if (length == 0 || states == 0) refuse("unary", "(B, T, K) with a position and a state", unary);
    transitions = fitting_transitions(given_transitions, unary.scalar_type(), batch, length - 1, states);
    mask = fitting_mask(given_mask, batch, length);
  }
  bool is_shared() const { return transitions.size(0) == 1 && transitions.size(1) == 1; }

  template <class T>
  Chain<T> view() const {
    const int64_t edges = states * states;
    const int64_t step_stride = transitions.size(1) == 1 ? 0 : edges;
    const int64_t item_stride = transitions.size(0) == 1 ? 0 : transitions.size(1) * edges;
    return {length, states, read<T>(unary), read<T>(transitions), item_stride, step_stride, read<bool>(mask)};
  }
};

// Calls node(t) for the real positions of an item, and step(t) for the steps t, t + 1 to all but the first.
template <class T, class Node, class Step>
void for_read(const Chain<T>& chain, int64_t item, Node node, Step step) {
  bool started = false;
  for (int64_t t = 0; t < chain.length; ++t) {
    if (chain.mask != nullptr && !chain.mask[item * chain.length + t]) continue;
    node(t);
    if (started) step(t - 1);
    started = true;
  }
}

// Calls spoil(item) for the items first .. last - 1 that have a NaN or +inf at a real position or step.
template <class T, class Spoil>
void for_spoiled_in(const Chain<T>& chain, int64_t first, int64_t last, Spoil spoil) {
  const int64_t states = chain.states, edges = states * states, size = chain.length * states;
  if (!may_be_spoiled(chain.unary + first * size, (last - first) * size) &&
      !may_have_spoiled_steps(chain, edges, chain.length - 1, first, last)) {
    return;
  }
  for (int64_t item = first; item < last; ++item) {
    bool found = false;
    for_read(chain, item, [&](int64_t t) { found = found || is_spoiled(chain.unary + item * size + t * states, states); },
             [&](int64_t t) {
               const T* table = chain.transitions + item * chain.item_stride + t * chain.step_stride;
               found = found || is_spoiled(table, edges);
             });
    if (found) spoil(item);
  }
}

// Writes positions (B, T, K) and, if not null, steps (B, T-1, K, K): NaN where an item reads, 0 elsewhere.
template <class T>
void spoil_item(const Chain<T>& chain, int64_t item, T* nodes, T* pairs) {
  const int64_t states = chain.states, edges = states * states, steps = chain.length - 1;
  nodes += item * chain.length * states;
  std::fill(nodes, nodes + chain.length * states, T(0));
  if (pairs != nullptr) pairs += item * steps * edges, std::fill(pairs, pairs + steps * edges, T(0));
  for_read(chain, item, [&](int64_t t) { std::fill_n(nodes + t * states, states, kNaN<T>); },
           [&](int64_t t) { if (pairs != nullptr) std::fill_n(pairs + t * edges, edges, kNaN<T>); });
}

Tensor chain_log_partition(Tensor unary, Tensor transitions, std::optional<Tensor> mask) {
  const Potentials given(unary, transitions, mask);
  Tensor out = like(given.unary, {given.batch});
  by_type(given.unary, [&](auto kind) {
    using T = decltype(kind);
    const Chain<T> chain = given.view<T>();
    T* found = write<T>(out);
    in_groups(given.batch, [&](int64_t first, int64_t last) {
      chain_kernels<T>().log_partition(chain, found, first, last);
      for_spoiled_in(chain, first, last, [&](int64_t item) { found[item] = kNaN<T>; });
    });
  });
  return out;
}

std::tuple<Tensor, Tensor, Tensor> chain_marginals(Tensor unary, Tensor transitions, std::optional<Tensor> mask) {
  const Potentials given(unary, transitions, mask);
  const int64_t states = given.states;
  Tensor log_partition = like(given.unary, {given.batch});
  Tensor nodes = like(given.unary, {given.batch, given.length, states});
  Tensor pairs = like(given.unary, {given.batch, given.length - 1, states, states});
  by_type(given.unary, [&](auto kind) {
    using T = decltype(kind);
    const Chain<T> chain = given.view<T>();
    const ChainMarginals<T> out{write<T>(log_partition), write<T>(nodes), write<T>(pairs)};
    in_groups(given.batch, [&](int64_t first, int64_t last) {
      chain_kernels<T>().marginals(chain, out, first, last);
      for_spoiled_in(chain, first, last, [&](int64_t item) {
        out.log_partition[item] = kNaN<T>;
        spoil_item(chain, item, out.nodes, out.pairs);
      });
    });
  });
  return {log_partition, nodes, pairs};
}

std::tuple<Tensor, Tensor> chain_tangent(Tensor nodes, Tensor pairs, std::optional<Tensor> mask,
                                         std::optional<Tensor> on_nodes, std::optional<Tensor> on_pairs,
                                         bool want_pairs) {
  nodes = leading("nodes", nodes, 3, "(B, T, K)");
  const ScalarType type = nodes.scalar_type();
  const int64_t batch = nodes.size(0), length = nodes.size(1), states = nodes.size(2);
  if (length == 0 || states == 0) refuse("nodes", "(B, T, K) with a position and a state", nodes);
  pairs = fitting("pairs", pairs, type, {batch, length - 1, states, states});
  on_nodes = fitting("on_nodes", on_nodes, type, {batch, length, states});
  on_pairs = fitting("on_pairs", on_pairs, type, {batch, length - 1, states, states});
  mask = fitting_mask(mask, batch, length);
  Tensor node_tangent = like(nodes, {batch, length, states});
  Tensor pair_tangent = want_pairs ? like(nodes, {batch, length - 1, states, states}) : like(nodes, {0});
  by_type(nodes, [&](auto kind) {
    using T = decltype(kind);
    const ChainTangent<T> task{length, states, read<T>(nodes), read<T>(pairs), read<T>(on_nodes),
                               read<T>(on_pairs), read<bool>(mask), write<T>(node_tangent),
                               want_pairs ? write<T>(pair_tangent) : nullptr};
    in_groups(batch, [&](int64_t first, int64_t last) { chain_kernels<T>().tangent(task, first, last); });
  });
  return {node_tangent, pair_tangent};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> chain_nodes(Tensor unary, Tensor transitions, std::optional<Tensor> mask) {
  const Potentials given(unary, transitions, mask);
  require(given.is_shared(), "marginals of nodes alone take one table of transitions, (1, 1, K, K)");
  Tensor log_partition = like(given.unary, {given.batch});
  Tensor nodes = like(given.unary, {given.batch, given.length, given.states});
  Tensor kept = like(given.unary, {given.batch, 3, given.length, given.states}, ScalarType::Double);
  Tensor safe = like(given.unary, {given.batch}, ScalarType::Bool);
  by_type(given.unary, [&](auto kind) {
    using T = decltype(kind);
    const Chain<T> chain = given.view<T>();
    const ChainNodes<T> out{write<T>(log_partition), write<T>(nodes), write<double>(kept), write<bool>(safe)};
    in_groups(given.batch, [&](int64_t first, int64_t last) {
      chain_kernels<T>().nodes(chain, out, first, last);
      for_spoiled_in(chain, first, last, [&](int64_t item) {
        out.log_partition[item] = kNaN<T>;
        spoil_item<T>(chain, item, out.nodes, nullptr);
      });
    });
  });
  return {log_partition, nodes, kept, safe};
}

std::tuple<Tensor, Tensor> chain_nodes_tangent(Tensor unary, Tensor transitions, std::optional<Tensor> mask,
                                               Tensor kept, Tensor safe, Tensor on_nodes) {
  const Potentials given(unary, transitions, mask);
  require(given.is_shared(), "marginals of nodes alone take one table of transitions, (1, 1, K, K)");
  kept = fitting("kept", kept, ScalarType::Double, {given.batch, 3, given.length, given.states});
  safe = fitting("safe", safe, ScalarType::Bool, {given.batch});
  on_nodes = fitting("on_nodes", on_nodes, given.unary.scalar_type(), {given.batch, given.length, given.states});
  const int64_t edges = given.states * given.states;
  Tensor node_tangent = like(given.unary, {given.batch, given.length, given.states});
  Tensor transition_tangent = like(given.unary, {1, 1, given.states, given.states});
  // Each group of items has a separate sum, so the number of threads does not change the result.
  std::vector<double> sums((given.batch + kGrain - 1) / kGrain * edges);
  by_type(given.unary, [&](auto kind) {
    using T = decltype(kind);
    const ChainNodesTangent<T> task{given.view<T>(), read<double>(kept), read<bool>(safe), read<T>(on_nodes), write<T>(node_tangent)};
    torch::stable::parallel_for(0, (given.batch + kGrain - 1) / kGrain, 1, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        const int64_t last = std::min(given.batch, (group + 1) * kGrain);
        chain_kernels<T>().nodes_tangent(task, sums.data() + group * edges, group * kGrain, last);
        for_spoiled_in(task.chain, group * kGrain, last, [&](int64_t item) {
          spoil_item<T>(task.chain, item, task.node_tangent, nullptr);
          for_read(task.chain, item, [](int64_t) {}, [&](int64_t) {
            std::fill_n(sums.data() + group * edges, edges, kNaN<double>);
          });
        });
      }
    });
    T* total = write<T>(transition_tangent);
    for (int64_t e = 0; e < edges; ++e) {
      double sum = 0;
      for (std::size_t place = e; place < sums.size(); place += edges) sum += sums[place];
      total[e] = static_cast<T>(sum);
    }
  });
  return {node_tangent, transition_tangent};
}

std::tuple<Tensor, Tensor> chain_best(Tensor unary, Tensor transitions, std::optional<Tensor> mask) {
  const Potentials given(unary, transitions, mask);
  Tensor labels = like(given.unary, {given.batch, given.length}, ScalarType::Long);
  Tensor scores = like(given.unary, {given.batch});
  by_type(given.unary, [&](auto kind) {
    using T = decltype(kind);
    const Chain<T> chain = given.view<T>();
    int64_t* found = write<int64_t>(labels);
    T* values = write<T>(scores);
    in_groups(given.batch, [&](int64_t first, int64_t last) {
      chain_kernels<T>().best(chain, found, values, first, last);
    });
  });
  return {labels, scores};
}

std::tuple<Tensor, Tensor> chain_sample(Tensor unary, Tensor transitions, std::optional<Tensor> mask, Tensor uniforms) {
  const Potentials given(unary, transitions, mask);
  uniforms = fitting_draws("uniforms", uniforms, ScalarType::Double, given.batch, given.length);
  const int64_t samples = uniforms.size(0);
  Tensor labels = like(given.unary, {samples, given.batch, given.length}, ScalarType::Long);
  Tensor possible = like(given.unary, {given.batch}, ScalarType::Bool);
  const ChainDraws draws{samples, given.batch, read<double>(uniforms), write<int64_t>(labels), write<bool>(possible)};
  by_type(given.unary, [&](auto kind) {
    using T = decltype(kind);
    const Chain<T> chain = given.view<T>();
    in_groups(given.batch, [&](int64_t first, int64_t last) {
      chain_kernels<T>().sample(chain, draws, first, last);
      for_spoiled_in(chain, first, last, [&](int64_t item) { draws.possible[item] = false; });
    });
  });
  return {labels, possible};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(foveal_native, m) {
  m.def("chain_log_partition(Tensor unary, Tensor transitions, Tensor? mask) -> Tensor");
  m.def("chain_marginals(Tensor unary, Tensor transitions, Tensor? mask) -> (Tensor, Tensor, Tensor)");
  m.def("chain_tangent(Tensor nodes, Tensor pairs, Tensor? mask, Tensor? on_nodes, Tensor? on_pairs, bool want_pairs) -> (Tensor, Tensor)");
  m.def("chain_nodes(Tensor unary, Tensor transitions, Tensor? mask) -> (Tensor, Tensor, Tensor, Tensor)");
  m.def("chain_nodes_tangent(Tensor unary, Tensor transitions, Tensor? mask, Tensor kept, Tensor safe, Tensor on_nodes) -> (Tensor, Tensor)");
  m.def("chain_best(Tensor unary, Tensor transitions, Tensor? mask) -> (Tensor, Tensor)");
  m.def("chain_sample(Tensor unary, Tensor transitions, Tensor? mask, Tensor uniforms) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(foveal_native, CPU, m) {
  m.impl("chain_log_partition", TORCH_BOX(&chain_log_partition));
  m.impl("chain_marginals", TORCH_BOX(&chain_marginals));
  m.impl("chain_tangent", TORCH_BOX(&chain_tangent));
  m.impl("chain_nodes", TORCH_BOX(&chain_nodes));
  m.impl("chain_nodes_tangent", TORCH_BOX(&chain_nodes_tangent));
  m.impl("chain_best", TORCH_BOX(&chain_best));
  m.impl("chain_sample", TORCH_BOX(&chain_sample));
}

}  // namespace foveal
