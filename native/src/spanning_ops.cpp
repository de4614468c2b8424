// The ops of spanning trees: tensors to pointers, sentences to threads.

#include <tuple>

#include "tensors.h"

namespace foveal {
namespace {

template <class T>
const SpanningKernels<T>& spanning_kernels();

template <>
const SpanningKernels<float>& spanning_kernels<float>() {
  return kernels().spanning_float;
}

template <>
const SpanningKernels<double>& spanning_kernels<double>() {
  return kernels().spanning_double;
}

template <class T>
auto arcs_of(const Graph<T>& view) {
  return [view](int64_t item, auto each) {
    for_read_arcs(view.mask ? view.mask + item * view.words : nullptr, view.words, each);
  };
}

// A contiguous tensor on arcs, and the real words.
struct Given {
  Tensor arcs;
  std::optional<Tensor> mask;
  bool single_root;
  int64_t batch, words;

  Given(const Tensor& given_arcs, const std::optional<Tensor>& given_mask, bool single_root)
      : arcs(fitting_arcs("arcs", given_arcs)), mask(fitting_mask(given_mask, arcs.size(0), arcs.size(1) - 1)),
        single_root(single_root), batch(arcs.size(0)), words(arcs.size(1) - 1) {}
  int64_t kept_size() const { return kept_of_spanning(words, single_root); }

  template <class T>
  Graph<T> view() const {
    return {words, single_root, read<T>(arcs), read<bool>(mask)};
  }
};

// Calls spoil(item) if an arc that a tree of the item may have is NaN or +inf.
template <class T, class Spoil>
void if_spoiled(const Graph<T>& view, int64_t item, Spoil spoil) {
  const int64_t area = (view.words + 1) * (view.words + 1);
  for_spoiled(view.scores, area, item, item + 1, arcs_of(view), spoil);
}

// Writes NaN on the arcs (B, n+1, n+1) that trees of an item may have, 0 elsewhere.
template <class T>
void spoil_arcs(const Graph<T>& view, T* squares, int64_t item) {
  fill_with_nan(squares, (view.words + 1) * (view.words + 1), item, arcs_of(view));
}

Tensor spanning_log_partition(Tensor arcs, std::optional<Tensor> mask, bool single_root) {
  const Given given(arcs, mask, single_root);
  Tensor out = like(given.arcs, {given.batch});
  by_type(given.arcs, [&](auto kind) {
    using T = decltype(kind);
    const Graph<T> view = given.view<T>();
    T* found = write<T>(out);
    one_by_one(given.batch, [&](int64_t item) {
      spanning_kernels<T>().log_partition(view, found, item);
      if_spoiled(view, item, [&](int64_t) { found[item] = kNaN<T>; });
    });
  });
  return out;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> spanning_marginals(Tensor arcs, std::optional<Tensor> mask, bool single_root) {
  const Given given(arcs, mask, single_root);
  const int64_t kept_size = given.kept_size();
  Tensor log_partition = like(given.arcs, {given.batch});
  Tensor marginals = like(given.arcs, {given.batch, given.words + 1, given.words + 1});
  Tensor kept = like(given.arcs, {given.batch, kept_size}, ScalarType::Double);
  Tensor safe = like(given.arcs, {given.batch}, ScalarType::Bool);
  by_type(given.arcs, [&](auto kind) {
    using T = decltype(kind);
    const Graph<T> view = given.view<T>();
    const SpanningMarginals<T> out{write<T>(log_partition), write<T>(marginals), write<double>(kept), write<bool>(safe), kept_size};
    one_by_one(given.batch, [&](int64_t item) {
      spanning_kernels<T>().marginals(view, out, item);
      if_spoiled(view, item, [&](int64_t) {
        out.log_partition[item] = kNaN<T>;
        spoil_arcs(view, out.marginals, item);
      });
    });
  });
  return {log_partition, marginals, kept, safe};
}

Tensor spanning_tangent(Tensor arcs, std::optional<Tensor> mask, Tensor kept, Tensor safe, Tensor direction, bool single_root) {
  const Given given(arcs, mask, single_root);
  kept = fitting("kept", kept, ScalarType::Double, {given.batch, given.kept_size()});
  safe = fitting("safe", safe, ScalarType::Bool, {given.batch});
  direction = fitting("direction", direction, given.arcs.scalar_type(), {given.batch, given.words + 1, given.words + 1});
  Tensor tangent = like(given.arcs, {given.batch, given.words + 1, given.words + 1});
  by_type(given.arcs, [&](auto kind) {
    using T = decltype(kind);
    const Graph<T> view = given.view<T>();
    const SpanningTangent<T> task{read<double>(kept), read<bool>(safe), given.kept_size(), read<T>(direction), write<T>(tangent)};
    one_by_one(given.batch, [&](int64_t item) {
      spanning_kernels<T>().tangent(view, task, item);
      if_spoiled(view, item, [&](int64_t) { spoil_arcs(view, task.tangent, item); });
    });
  });
  return tangent;
}

std::tuple<Tensor, Tensor> spanning_best(Tensor arcs, std::optional<Tensor> mask, bool single_root) {
  const Given given(arcs, mask, single_root);
  Tensor heads = like(given.arcs, {given.batch, given.words}, ScalarType::Long);
  Tensor scores = like(given.arcs, {given.batch});
  by_type(given.arcs, [&](auto kind) {
    using T = decltype(kind);
    const Graph<T> view = given.view<T>();
    int64_t* found = write<int64_t>(heads);
    T* values = write<T>(scores);
    one_by_one(given.batch, [&](int64_t item) {
      spanning_kernels<T>().best(view, found, values, item);
    });
  });
  return {heads, scores};
}

std::tuple<Tensor, Tensor> spanning_sample(Tensor arcs, std::optional<Tensor> mask, Tensor seeds, bool single_root) {
  const Given given(arcs, mask, single_root);
  if (seeds.dim() != 2) refuse("seeds", "a tensor with two axes (S, B)", seeds);
  seeds = fitting("seeds", seeds, ScalarType::Long, {seeds.size(0), given.batch});
  const int64_t samples = seeds.size(0);
  Tensor heads = like(given.arcs, {samples, given.batch, given.words}, ScalarType::Long);
  Tensor possible = like(given.arcs, {given.batch}, ScalarType::Bool);
  const SpanningDraws draws{samples, given.batch, read<int64_t>(seeds), write<int64_t>(heads), write<bool>(possible)};
  by_type(given.arcs, [&](auto kind) {
    using T = decltype(kind);
    const Graph<T> view = given.view<T>();
    one_by_one(given.batch, [&](int64_t item) {
      spanning_kernels<T>().sample(view, draws, item);
      if_spoiled(view, item, [&](int64_t) { draws.possible[item] = false; });
    });
  });
  return {heads, possible};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(foveal_native, m) {
  m.def("spanning_log_partition(Tensor arcs, Tensor? mask, bool single_root) -> Tensor");
  m.def("spanning_marginals(Tensor arcs, Tensor? mask, bool single_root) -> (Tensor, Tensor, Tensor, Tensor)");
  m.def("spanning_tangent(Tensor arcs, Tensor? mask, Tensor kept, Tensor safe, Tensor direction, bool single_root) -> Tensor");
  m.def("spanning_best(Tensor arcs, Tensor? mask, bool single_root) -> (Tensor, Tensor)");
  m.def("spanning_sample(Tensor arcs, Tensor? mask, Tensor seeds, bool single_root) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(foveal_native, CPU, m) {
  m.impl("spanning_log_partition", TORCH_BOX(&spanning_log_partition));
  m.impl("spanning_marginals", TORCH_BOX(&spanning_marginals));
  m.impl("spanning_tangent", TORCH_BOX(&spanning_tangent));
  m.impl("spanning_best", TORCH_BOX(&spanning_best));
  m.impl("spanning_sample", TORCH_BOX(&spanning_sample));
}

}  // namespace foveal
