// The ops of monotone alignments: tensors to pointers, items to threads.

#include <tuple>

#include "tensors.h"

namespace foveal {
namespace {

template <class T>
const AlignmentKernels<T>& alignment_kernels();

template <>
const AlignmentKernels<float>& alignment_kernels<float>() {
  return kernels().alignment_float;
}

template <>
const AlignmentKernels<double>& alignment_kernels<double>() {
  return kernels().alignment_double;
}

// A contiguous tensor on moves, and the real items.
struct Given {
  Tensor moves;
  std::optional<Tensor> mask;
  int64_t batch, rows, columns;

  Given(const Tensor& given_moves, const std::optional<Tensor>& given_mask)
      : moves(leading("moves", given_moves, 4, "(B, R, C, 3)")), batch(moves.size(0)), rows(moves.size(1)),
        columns(moves.size(2)) {
    if (rows == 0 || columns == 0 || moves.size(3) != 3) refuse("moves", "(B, R, C, 3) with a row and a column", moves);
    mask = fitting_mask(given_mask, batch, rows + columns - 2);
  }
  template <class T>
  Alignments<T> view() const {
    return {rows, columns, read<T>(moves), read<bool>(mask)};
  }
};

// The moves between real nodes. The first row and the first column of nodes are always real.
template <class T>
auto moves_of(const Alignments<T>& view) {
  return [view](int64_t item, auto each) {
    const bool* source = view.mask ? view.mask + item * (view.rows + view.columns - 2) : nullptr;
    const bool* target = source ? source + view.rows - 1 : nullptr;
    for (int64_t i = 0; i < view.rows; ++i) {
      if (source != nullptr && i > 0 && !source[i - 1]) continue;
      for (int64_t j = 0; j < view.columns; ++j) {
        if (target != nullptr && j > 0 && !target[j - 1]) continue;
        const int64_t place = (i * view.columns + j) * 3;
        if (i > 0 && j > 0) each(place);
        if (i > 0) each(place + 1);
        if (j > 0) each(place + 2);
      }
    }
  };
}

template <class T>
int64_t size_of(const Alignments<T>& view) {
  return view.rows * view.columns * 3;
}

// Calls spoil() if a move that a path of the item may have is NaN or +inf.
template <class T, class Spoil>
void if_spoiled(const Alignments<T>& view, int64_t item, Spoil spoil) {
  for_spoiled(view.moves, size_of(view), item, item + 1, moves_of(view), [&](int64_t) { spoil(); });
}

Tensor alignment_log_partition(Tensor moves, std::optional<Tensor> mask) {
  const Given given(moves, mask);
  Tensor out = like(given.moves, {given.batch});
  by_type(given.moves, [&](auto kind) {
    using T = decltype(kind);
    const Alignments<T> view = given.view<T>();
    T* found = write<T>(out);
    one_by_one(given.batch, [&](int64_t item) {
      alignment_kernels<T>().log_partition(view, found, item);
      if_spoiled(view, item, [&] { found[item] = kNaN<T>; });
    });
  });
  return out;
}

std::tuple<Tensor, Tensor> alignment_marginals(Tensor moves, std::optional<Tensor> mask) {
  const Given given(moves, mask);
  Tensor log_partition = like(given.moves, {given.batch});
  Tensor marginals = like(given.moves, {given.batch, given.rows, given.columns, 3});
  by_type(given.moves, [&](auto kind) {
    using T = decltype(kind);
    const Alignments<T> view = given.view<T>();
    const AlignmentMarginals<T> out{write<T>(log_partition), write<T>(marginals)};
    one_by_one(given.batch, [&](int64_t item) {
      alignment_kernels<T>().marginals(view, out, item);
      if_spoiled(view, item, [&] {
        out.log_partition[item] = kNaN<T>;
        fill_with_nan(out.marginals, size_of(view), item, moves_of(view));
      });
    });
  });
  return {log_partition, marginals};
}

Tensor alignment_tangent(Tensor marginals, std::optional<Tensor> mask, Tensor direction) {
  const Given given(direction, mask);
  marginals = fitting("marginals", marginals, given.moves.scalar_type(), {given.batch, given.rows, given.columns, 3});
  Tensor tangent = like(given.moves, {given.batch, given.rows, given.columns, 3});
  by_type(given.moves, [&](auto kind) {
    using T = decltype(kind);
    const Alignments<T> view = given.view<T>();
    const AlignmentTangent<T> task{read<T>(marginals), read<T>(given.moves), write<T>(tangent)};
    one_by_one(given.batch, [&](int64_t item) { alignment_kernels<T>().tangent(view, task, item); });
  });
  return tangent;
}

std::tuple<Tensor, Tensor> alignment_best(Tensor moves, std::optional<Tensor> mask) {
  const Given given(moves, mask);
  Tensor paths = like(given.moves, {given.batch, given.rows, given.columns, 3}, ScalarType::Bool);
  Tensor scores = like(given.moves, {given.batch});
  by_type(given.moves, [&](auto kind) {
    using T = decltype(kind);
    const Alignments<T> view = given.view<T>();
    bool* found = write<bool>(paths);
    T* values = write<T>(scores);
    one_by_one(given.batch, [&](int64_t item) {
      alignment_kernels<T>().best(view, found, values, item);
    });
  });
  return {paths, scores};
}

std::tuple<Tensor, Tensor> alignment_sample(Tensor moves, std::optional<Tensor> mask, Tensor uniforms) {
  const Given given(moves, mask);
  uniforms = fitting_draws("uniforms", uniforms, ScalarType::Double, given.batch, given.rows + given.columns - 2);
  const int64_t samples = uniforms.size(0);
  Tensor paths = like(given.moves, {samples, given.batch, given.rows, given.columns, 3}, ScalarType::Bool);
  Tensor possible = like(given.moves, {given.batch}, ScalarType::Bool);
  const AlignmentDraws draws{samples, given.batch, read<double>(uniforms), write<bool>(paths), write<bool>(possible)};
  by_type(given.moves, [&](auto kind) {
    using T = decltype(kind);
    const Alignments<T> view = given.view<T>();
    one_by_one(given.batch, [&](int64_t item) {
      alignment_kernels<T>().sample(view, draws, item);
      if_spoiled(view, item, [&] { draws.possible[item] = false; });
    });
  });
  return {paths, possible};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(foveal_native, m) {
  m.def("alignment_log_partition(Tensor moves, Tensor? mask) -> Tensor");
  m.def("alignment_marginals(Tensor moves, Tensor? mask) -> (Tensor, Tensor)");
  m.def("alignment_tangent(Tensor marginals, Tensor? mask, Tensor direction) -> Tensor");
  m.def("alignment_best(Tensor moves, Tensor? mask) -> (Tensor, Tensor)");
  m.def("alignment_sample(Tensor moves, Tensor? mask, Tensor uniforms) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(foveal_native, CPU, m) {
  m.impl("alignment_log_partition", TORCH_BOX(&alignment_log_partition));
  m.impl("alignment_marginals", TORCH_BOX(&alignment_marginals));
  m.impl("alignment_tangent", TORCH_BOX(&alignment_tangent));
  m.impl("alignment_best", TORCH_BOX(&alignment_best));
  m.impl("alignment_sample", TORCH_BOX(&alignment_sample));
}

}  // namespace foveal
