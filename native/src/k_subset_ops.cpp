// The ops of subsets of k items: tensors to pointers, rows to threads.

#include <tuple>

#include "tensors.h"

namespace sightline {
namespace {

template <class T>
const ItemKernels<T>& item_kernels();

template <>
const ItemKernels<float>& item_kernels<float>() {
  return kernels().k_subset_float;
}

template <>
const ItemKernels<double>& item_kernels<double>() {
  return kernels().k_subset_double;
}

// Something on items, contiguous, and which are real.
struct Given {
  Tensor numbers;
  std::optional<Tensor> mask;
  int64_t batch, items, chosen;

  Given(const Tensor& given, const std::optional<Tensor>& given_mask, int64_t chosen)
      : numbers(dense(given)), mask(dense(given_mask)), batch(numbers.size(0)), items(numbers.size(1)), chosen(chosen) {
    STD_TORCH_CHECK(numbers.dim() == 2 && chosen >= 0, "sightline_native: a subset wants scores (B, n) and k >= 0");
  }
  int64_t groups() const { return (batch + kGrain - 1) / kGrain; }

  template <class T>
  Items<T> view() const {
    return {items, chosen, read<T>(numbers), read<bool>(mask)};
  }
};

Tensor k_subset_log_partition(Tensor scores, std::optional<Tensor> mask, int64_t k) {
  const Given given(scores, mask, k);
  Tensor out = like(given.numbers, {given.batch});
  by_type(given.numbers, [&](auto kind) {
    using T = decltype(kind);
    const Items<T> view = given.view<T>();
    T* found = write<T>(out);
    in_groups(given.batch, [&](int64_t first, int64_t last) { item_kernels<T>().log_partition(view, found, first, last); });
  });
  return out;
}

std::tuple<Tensor, Tensor, Tensor> k_subset_marginals(Tensor scores, std::optional<Tensor> mask, int64_t k) {
  const Given given(scores, mask, k);
  Tensor log_partition = like(given.numbers, {given.batch});
  Tensor marginals = like(given.numbers, {given.batch, given.items});
  Tensor kept = like(given.numbers, {given.groups() * kGrain, given.items, k});
  by_type(given.numbers, [&](auto kind) {
    using T = decltype(kind);
    const Items<T> view = given.view<T>();
    const ItemMarginals<T> out{write<T>(log_partition), write<T>(marginals), write<T>(kept)};
    in_groups(given.batch, [&](int64_t first, int64_t last) { item_kernels<T>().marginals(view, out, first, last); });
  });
  return {log_partition, marginals, kept};
}

Tensor k_subset_tangent(Tensor marginals, Tensor kept, std::optional<Tensor> mask, Tensor direction) {
  const Given given(direction, mask, kept.size(2));
  marginals = dense(marginals);
  kept = dense(kept);
  Tensor tangent = like(given.numbers, {given.batch, given.items});
  by_type(given.numbers, [&](auto kind) {
    using T = decltype(kind);
    const Items<T> view = given.view<T>();
    const ItemTangent<T> task{read<T>(marginals), read<T>(kept), read<T>(given.numbers), write<T>(tangent)};
    in_groups(given.batch, [&](int64_t first, int64_t last) { item_kernels<T>().tangent(view, task, first, last); });
  });
  return tangent;
}

std::tuple<Tensor, Tensor> k_subset_sample(Tensor scores, std::optional<Tensor> mask, int64_t k, Tensor uniforms) {
  const Given given(scores, mask, k);
  uniforms = dense(uniforms);
  const int64_t samples = uniforms.size(0);
  Tensor chosen = like(given.numbers, {samples, given.batch, given.items}, ScalarType::Bool);
  Tensor possible = like(given.numbers, {given.batch}, ScalarType::Bool);
  const ItemDraws draws{samples, given.batch, read<double>(uniforms), write<bool>(chosen), write<bool>(possible)};
  by_type(given.numbers, [&](auto kind) {
    using T = decltype(kind);
    const Items<T> view = given.view<T>();
    in_groups(given.batch, [&](int64_t first, int64_t last) { item_kernels<T>().sample(view, draws, first, last); });
  });
  return {chosen, possible};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(sightline_native, m) {
  m.def("k_subset_log_partition(Tensor scores, Tensor? mask, int k) -> Tensor");
  m.def("k_subset_marginals(Tensor scores, Tensor? mask, int k) -> (Tensor, Tensor, Tensor)");
  m.def("k_subset_tangent(Tensor marginals, Tensor kept, Tensor? mask, Tensor direction) -> Tensor");
  m.def("k_subset_sample(Tensor scores, Tensor? mask, int k, Tensor uniforms) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(sightline_native, CPU, m) {
  m.impl("k_subset_log_partition", TORCH_BOX(&k_subset_log_partition));
  m.impl("k_subset_marginals", TORCH_BOX(&k_subset_marginals));
  m.impl("k_subset_tangent", TORCH_BOX(&k_subset_tangent));
  m.impl("k_subset_sample", TORCH_BOX(&k_subset_sample));
}

}  // namespace sightline
