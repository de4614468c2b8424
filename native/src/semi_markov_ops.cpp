// The ops of semi-Markov models: tensors to pointers, batch items to threads.

#include <tuple>

#include "tensors.h"

namespace foveal {
namespace {

template <class T>
const SemiMarkovKernels<T>& semi_markov_kernels();

template <>
const SemiMarkovKernels<float>& semi_markov_kernels<float>() {
  return kernels().semi_markov_float;
}

template <>
const SemiMarkovKernels<double>& semi_markov_kernels<double>() {
  return kernels().semi_markov_double;
}

// The potentials, contiguous, and their sizes.
struct Segmented {
  Tensor segments, transitions;
  std::optional<Tensor> mask;
  int64_t batch;
  SemiMarkovSizes sizes;

  Segmented(const Tensor& given_segments, const Tensor& given_transitions, const std::optional<Tensor>& given_mask)
      : segments(leading("segments", given_segments, 4, "(B, T, D, K)")), batch(segments.size(0)),
        sizes{segments.size(1), segments.size(2), segments.size(3), nullptr} {
    if (sizes.length == 0 || sizes.lengths == 0 || sizes.labels == 0) {
      refuse("segments", "(B, T, D, K) with a position, a length and a label", segments);
    }
    transitions = fitting_transitions(given_transitions, segments.scalar_type(), batch, sizes.length - 1, sizes.labels);
    mask = fitting_mask(given_mask, batch, sizes.length);
    sizes.mask = read<bool>(mask);
  }

  template <class T>
  SemiMarkov<T> view() const {
    const int64_t edges = sizes.labels * sizes.labels;
    const int64_t step_stride = transitions.size(1) == 1 ? 0 : edges;
    const int64_t item_stride = transitions.size(0) == 1 ? 0 : transitions.size(1) * edges;
    return {sizes, read<T>(segments), read<T>(transitions), item_stride, step_stride};
  }
};

// Splits the items over threads, in groups where the kernels take them in groups.
template <class Run>
void in_parts(const Segmented& given, const Run& run) {
  if (given.sizes.labels <= kFewLabels) return in_groups(given.batch, run);
  one_by_one(given.batch, [&](int64_t item) { run(item, item + 1); });
}

// Calls segment(t, d) for the possible segments of an item: d + 1 real positions from the real position t,
// skipping masked positions; and step(t) for the steps t, t + 1 to all real positions except the first.
template <class Segment, class Step>
void for_read(const SemiMarkovSizes& sizes, int64_t item, Segment segment, Step step) {
  const bool* mask = sizes.mask ? sizes.mask + item * sizes.length : nullptr;
  int64_t left = mask ? std::count(mask, mask + sizes.length, true) : sizes.length;
  bool started = false;
  for (int64_t t = 0; t < sizes.length; ++t) {
    if (mask != nullptr && !mask[t]) continue;
    for (int64_t d = 0; d < std::min(sizes.lengths, left); ++d) segment(t, d);
    if (started) step(t - 1);
    started = true;
    --left;
  }
}

// Calls spoil(item) for the items first .. last - 1 that have a NaN or +inf in one of their segments or steps.
template <class T, class Spoil>
void for_spoiled_in(const SemiMarkov<T>& model, int64_t first, int64_t last, Spoil spoil) {
  const auto& [length, lengths, labels, mask] = model.sizes;
  const int64_t edges = labels * labels, size = length * lengths * labels, count = labels, row = lengths;
  if (!may_be_spoiled(model.segments + first * size, (last - first) * size) &&
      !may_have_spoiled_steps(model, edges, length - 1, first, last)) {
    return;
  }
  for (int64_t item = first; item < last; ++item) {
    bool found = false;
    for_read(model.sizes, item, [&](int64_t t, int64_t d) {
      found = found || is_spoiled(model.segments + item * size + (t * row + d) * count, count);
    }, [&](int64_t t) {
      const T* table = model.transitions + item * model.item_stride + t * model.step_stride;
      found = found || is_spoiled(table, edges);
    });
    if (found) spoil(item);
  }
}

// NaN on the segments (B, T, D, K) and steps (B, T-1, K, K) of an item, 0 elsewhere.
template <class T>
void spoil_item(const SemiMarkovSizes& sizes, int64_t item, T* segments, T* pairs) {
  const int64_t labels = sizes.labels, edges = labels * labels, row = sizes.lengths * labels;
  segments += item * sizes.length * row, pairs += item * (sizes.length - 1) * edges;
  std::fill_n(segments, sizes.length * row, T(0));
  std::fill_n(pairs, (sizes.length - 1) * edges, T(0));
  for_read(sizes, item, [&](int64_t t, int64_t d) { std::fill_n(segments + t * row + d * labels, labels, kNaN<T>); },
           [&](int64_t t) { std::fill_n(pairs + t * edges, edges, kNaN<T>); });
}

Tensor semi_markov_log_partition(Tensor segments, Tensor transitions, std::optional<Tensor> mask) {
  const Segmented given(segments, transitions, mask);
  Tensor out = like(given.segments, {given.batch});
  by_type(given.segments, [&](auto kind) {
    using T = decltype(kind);
    const SemiMarkov<T> model = given.view<T>();
    T* found = write<T>(out);
    in_parts(given, [&](int64_t first, int64_t last) {
      semi_markov_kernels<T>().log_partition(model, found, first, last);
      for_spoiled_in(model, first, last, [&](int64_t item) { found[item] = kNaN<T>; });
    });
  });
  return out;
}

std::tuple<Tensor, Tensor, Tensor> semi_markov_marginals(Tensor segments, Tensor transitions, std::optional<Tensor> mask) {
  const Segmented given(segments, transitions, mask);
  const auto& [length, lengths, labels, real] = given.sizes;
  Tensor log_partition = like(given.segments, {given.batch});
  Tensor marginals = like(given.segments, {given.batch, length, lengths, labels});
  Tensor pairs = like(given.segments, {given.batch, length - 1, labels, labels});
  by_type(given.segments, [&](auto kind) {
    using T = decltype(kind);
    const SemiMarkov<T> model = given.view<T>();
    const SemiMarkovMarginals<T> out{write<T>(log_partition), write<T>(marginals), write<T>(pairs)};
    in_parts(given, [&](int64_t first, int64_t last) {
      semi_markov_kernels<T>().marginals(model, out, first, last);
      for_spoiled_in(model, first, last, [&](int64_t item) {
        out.log_partition[item] = kNaN<T>;
        spoil_item(model.sizes, item, out.segments, out.pairs);
      });
    });
  });
  return {log_partition, marginals, pairs};
}

std::tuple<Tensor, Tensor> semi_markov_tangent(Tensor segments, Tensor pairs, std::optional<Tensor> mask,
                                               std::optional<Tensor> on_segments, std::optional<Tensor> on_pairs,
                                               bool want_pairs) {
  const Segmented given(segments, pairs, mask);
  const auto& [length, lengths, labels, real] = given.sizes;
  const ScalarType type = given.segments.scalar_type();
  fitting("pairs", pairs, type, {given.batch, length - 1, labels, labels});  // one for each item and step
  on_segments = fitting("on_segments", on_segments, type, {given.batch, length, lengths, labels});
  on_pairs = fitting("on_pairs", on_pairs, type, {given.batch, length - 1, labels, labels});
  Tensor segment_tangent = like(given.segments, {given.batch, length, lengths, labels});
  Tensor pair_tangent =
      want_pairs ? like(given.segments, {given.batch, length - 1, labels, labels}) : like(given.segments, {0});
  by_type(given.segments, [&](auto kind) {
    using T = decltype(kind);
    const SemiMarkovTangent<T> task{given.sizes,
                                    read<T>(given.segments),
                                    read<T>(given.transitions),
                                    read<T>(on_segments),
                                    read<T>(on_pairs),
                                    write<T>(segment_tangent),
                                    want_pairs ? write<T>(pair_tangent) : nullptr};
    in_parts(given, [&](int64_t first, int64_t last) {
      semi_markov_kernels<T>().tangent(task, first, last);
    });
  });
  return {segment_tangent, pair_tangent};
}

std::tuple<Tensor, Tensor> semi_markov_best(Tensor segments, Tensor transitions, std::optional<Tensor> mask) {
  const Segmented given(segments, transitions, mask);
  Tensor labels = like(given.segments, {given.batch, given.sizes.length}, ScalarType::Long);
  Tensor scores = like(given.segments, {given.batch});
  by_type(given.segments, [&](auto kind) {
    using T = decltype(kind);
    const SemiMarkov<T> model = given.view<T>();
    int64_t* found = write<int64_t>(labels);
    T* values = write<T>(scores);
    in_parts(given, [&](int64_t first, int64_t last) {
      semi_markov_kernels<T>().best(model, found, values, first, last);
    });
  });
  return {labels, scores};
}

std::tuple<Tensor, Tensor> semi_markov_sample(Tensor segments, Tensor transitions, std::optional<Tensor> mask, Tensor uniforms) {
  const Segmented given(segments, transitions, mask);
  uniforms = fitting_draws("uniforms", uniforms, ScalarType::Double, given.batch, 2 * given.sizes.length);
  const int64_t samples = uniforms.size(0);
  Tensor labels = like(given.segments, {samples, given.batch, given.sizes.length}, ScalarType::Long);
  Tensor possible = like(given.segments, {given.batch}, ScalarType::Bool);
  const SemiMarkovDraws draws{samples, given.batch, read<double>(uniforms), write<int64_t>(labels), write<bool>(possible)};
  by_type(given.segments, [&](auto kind) {
    using T = decltype(kind);
    const SemiMarkov<T> model = given.view<T>();
    in_parts(given, [&](int64_t first, int64_t last) {
      semi_markov_kernels<T>().sample(model, draws, first, last);
      for_spoiled_in(model, first, last, [&](int64_t item) { draws.possible[item] = false; });
    });
  });
  return {labels, possible};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(foveal_native, m) {
  m.def("semi_markov_log_partition(Tensor segments, Tensor transitions, Tensor? mask) -> Tensor");
  m.def("semi_markov_marginals(Tensor segments, Tensor transitions, Tensor? mask) -> (Tensor, Tensor, Tensor)");
  m.def("semi_markov_tangent(Tensor segments, Tensor pairs, Tensor? mask, Tensor? on_segments, Tensor? on_pairs, bool want_pairs) -> (Tensor, Tensor)");
  m.def("semi_markov_best(Tensor segments, Tensor transitions, Tensor? mask) -> (Tensor, Tensor)");
  m.def("semi_markov_sample(Tensor segments, Tensor transitions, Tensor? mask, Tensor uniforms) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(foveal_native, CPU, m) {
  m.impl("semi_markov_log_partition", TORCH_BOX(&semi_markov_log_partition));
  m.impl("semi_markov_marginals", TORCH_BOX(&semi_markov_marginals));
  m.impl("semi_markov_tangent", TORCH_BOX(&semi_markov_tangent));
  m.impl("semi_markov_best", TORCH_BOX(&semi_markov_best));
  m.impl("semi_markov_sample", TORCH_BOX(&semi_markov_sample));
}

}  // namespace foveal
