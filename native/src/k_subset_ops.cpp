// The ops of subsets of k items: tensors to pointers, rows to threads.

#include <tuple>

#include "tensors.h"

namespace foveal {
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

// A contiguous tensor on items, and the real items.
struct Given {
  Tensor numbers;
  std::optional<Tensor> mask;
  int64_t batch, items;
  int64_t chosen;  // k, at most n + 1: every k > n is impossible

  Given(const char* name, const Tensor& given, const std::optional<Tensor>& given_mask, int64_t k)
      : numbers(leading(name, given, 2, "(B, n)")), mask(fitting_mask(given_mask, numbers.size(0), numbers.size(1))),
        batch(numbers.size(0)), items(numbers.size(1)), chosen(std::min(k, items + 1)) {
    require(k >= 0, "the number of items to choose, k, must be at least 0");
  }
  int64_t groups() const { return (batch + kGrain - 1) / kGrain; }

  template <class T>
  Items<T> view() const {
    return {items, chosen, read<T>(numbers), read<bool>(mask)};
  }
};

// The real items, if k is not 0.
template <class T>
auto items_of(const Items<T>& view) {
  return [view](int64_t row, auto each) {
    for (int64_t i = 0; i < view.items && view.chosen > 0; ++i) {
      if (view.mask == nullptr || view.mask[row * view.items + i]) each(i);
    }
  };
}

// Calls spoil(row) for the rows first .. last - 1 that have a NaN or +inf.
template <class T, class Spoil>
void for_spoiled_in(const Items<T>& view, int64_t first, int64_t last, Spoil spoil) {
  for_spoiled(view.scores, view.items, first, last, items_of(view), spoil);
}

Tensor k_subset_log_partition(Tensor scores, std::optional<Tensor> mask, int64_t k) {
  const Given given("scores", scores, mask, k);
  Tensor out = like(given.numbers, {given.batch});
  by_type(given.numbers, [&](auto kind) {
    using T = decltype(kind);
    const Items<T> view = given.view<T>();
    T* found = write<T>(out);
    in_groups(given.batch, [&](int64_t first, int64_t last) {
      item_kernels<T>().log_partition(view, found, first, last);
      for_spoiled_in(view, first, last, [&](int64_t row) { found[row] = kNaN<T>; });
    });
  });
  return out;
}

std::tuple<Tensor, Tensor, Tensor> k_subset_marginals(Tensor scores, std::optional<Tensor> mask, int64_t k) {
  const Given given("scores", scores, mask, k);
  Tensor log_partition = like(given.numbers, {given.batch});
  Tensor marginals = like(given.numbers, {given.batch, given.items});
  Tensor kept = like(given.numbers, {given.groups() * kGrain, given.items, given.chosen});
  by_type(given.numbers, [&](auto kind) {
    using T = decltype(kind);
    const Items<T> view = given.view<T>();
    const ItemMarginals<T> out{write<T>(log_partition), write<T>(marginals), write<T>(kept)};
    in_groups(given.batch, [&](int64_t first, int64_t last) {
      item_kernels<T>().marginals(view, out, first, last);
      for_spoiled_in(view, first, last, [&](int64_t row) {
        out.log_partition[row] = kNaN<T>;
        fill_with_nan(out.marginals, view.items, row, items_of(view));
      });
    });
  });
  return {log_partition, marginals, kept};
}

Tensor k_subset_tangent(Tensor marginals, Tensor kept, std::optional<Tensor> mask, Tensor direction) {
  if (kept.dim() != 3) refuse("kept", "a tensor with three axes, as k_subset_marginals gives it", kept);
  const Given given("direction", direction, mask, kept.size(2));
  const ScalarType type = given.numbers.scalar_type();
  marginals = fitting("marginals", marginals, type, {given.batch, given.items});
  kept = fitting("kept", kept, type, {given.groups() * kGrain, given.items, given.chosen});
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
  const Given given("scores", scores, mask, k);
  uniforms = fitting_draws("uniforms", uniforms, ScalarType::Double, given.batch, given.items);
  const int64_t samples = uniforms.size(0);
  Tensor chosen = like(given.numbers, {samples, given.batch, given.items}, ScalarType::Bool);
  Tensor possible = like(given.numbers, {given.batch}, ScalarType::Bool);
  const ItemDraws draws{samples, given.batch, read<double>(uniforms), write<bool>(chosen), write<bool>(possible)};
  by_type(given.numbers, [&](auto kind) {
    using T = decltype(kind);
    const Items<T> view = given.view<T>();
    in_groups(given.batch, [&](int64_t first, int64_t last) {
      item_kernels<T>().sample(view, draws, first, last);
      for_spoiled_in(view, first, last, [&](int64_t row) { draws.possible[row] = false; });
    });
  });
  return {chosen, possible};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(foveal_native, m) {
  m.def("k_subset_log_partition(Tensor scores, Tensor? mask, int k) -> Tensor");
  m.def("k_subset_marginals(Tensor scores, Tensor? mask, int k) -> (Tensor, Tensor, Tensor)");
  m.def("k_subset_tangent(Tensor marginals, Tensor kept, Tensor? mask, Tensor direction) -> Tensor");
  m.def("k_subset_sample(Tensor scores, Tensor? mask, int k, Tensor uniforms) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(foveal_native, CPU, m) {
  m.impl("k_subset_log_partition", TORCH_BOX(&k_subset_log_partition));
  m.impl("k_subset_marginals", TORCH_BOX(&k_subset_marginals));
  m.impl("k_subset_tangent", TORCH_BOX(&k_subset_tangent));
  m.impl("k_subset_sample", TORCH_BOX(&k_subset_sample));
}

}  // namespace foveal
