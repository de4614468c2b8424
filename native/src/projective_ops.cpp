// The ops of projective trees: tensors to pointers, sentences to threads.

#include <tuple>

#include "tensors.h"

namespace foveal {
namespace {

template <class T>
const ArcKernels<T>& arc_kernels();

template <>
const ArcKernels<float>& arc_kernels<float>() {
  return kernels().projective_float;
}

template <>
const ArcKernels<double>& arc_kernels<double>() {
  return kernels().projective_double;
}

// The arcs that trees of an item may have.
template <class T>
auto places_of(const Arcs<T>& view) {
  return [batch = view.batch](int64_t item, auto each) {
    for_read_arcs(batch.mask ? batch.mask + item * batch.words : nullptr, batch.words, each);
  };
}

template <class T>
int64_t area_of(const Arcs<T>& view) {
  return (view.batch.words + 1) * (view.batch.words + 1);
}

// Calls spoil(item) for the items at the places first .. last - 1 that have a NaN or +inf.
template <class T, class Spoil>
void for_spoiled_in(const Arcs<T>& view, int64_t first, int64_t last, Spoil spoil) {
  for_spoiled(view.batch, view.scores, area_of(view), first, last, places_of(view), spoil);
}

// A contiguous tensor on arcs, and the real words.
struct Given {
  Tensor arcs;
  std::optional<Tensor> mask;
  bool single_root;
  int64_t batch, words;
  SentenceBatch sentences;

  Given(const char* name, const Tensor& given_arcs, const std::optional<Tensor>& given_mask, bool single_root)
      : arcs(fitting_arcs(name, given_arcs)), mask(fitting_mask(given_mask, arcs.size(0), arcs.size(1) - 1)),
        single_root(single_root), batch(arcs.size(0)), words(arcs.size(1) - 1),
        sentences(batch, words, read<bool>(mask), kMostWordsWithArcs) {}
  int64_t kept_size() const {
    return 3 * kept_of_sentence(single_root ? words : words + 1, sentences.view().together);
  }

  template <class T>
  Arcs<T> view() const {
    return {sentences.view(), single_root, read<T>(arcs)};
  }
};

Tensor projective_log_partition(Tensor arcs, std::optional<Tensor> mask, bool single_root) {
  const Given given("arcs", arcs, mask, single_root);
  Tensor out = like(given.arcs, {given.batch});
  by_type(given.arcs, [&](auto kind) {
    using T = decltype(kind);
    const Arcs<T> view = given.view<T>();
    T* found = write<T>(out);
    given.sentences.split([&](int64_t first, int64_t last) {
      arc_kernels<T>().log_partition(view, found, first, last);
      for_spoiled_in(view, first, last, [&](int64_t item) { found[item] = kNaN<T>; });
    });
  });
  return out;
}

std::tuple<Tensor, Tensor, Tensor> projective_marginals(Tensor arcs, std::optional<Tensor> mask, bool single_root,
                                                        bool keep) {
  const Given given("arcs", arcs, mask, single_root);
  const int64_t size = given.words + 1, kept_size = given.kept_size();
  Tensor log_partition = like(given.arcs, {given.batch});
  Tensor marginals = like(given.arcs, {given.batch, size, size});
  Tensor kept = keep ? like(given.arcs, {given.sentences.kept_items(), kept_size}) : like(given.arcs, {0});
  by_type(given.arcs, [&](auto kind) {
    using T = decltype(kind);
    const Arcs<T> view = given.view<T>();
    const ArcMarginals<T> out{write<T>(log_partition), write<T>(marginals), keep ? write<T>(kept) : nullptr, kept_size};
    given.sentences.split([&](int64_t first, int64_t last) {
      arc_kernels<T>().marginals(view, out, first, last);
      for_spoiled_in(view, first, last, [&](int64_t item) {
        out.log_partition[item] = kNaN<T>;
        fill_with_nan(out.marginals, area_of(view), item, places_of(view));
      });
    });
  });
  return {log_partition, marginals, kept};
}

Tensor projective_tangent(Tensor marginals, Tensor kept, std::optional<Tensor> mask, Tensor direction, bool single_root) {
  const Given given("marginals", marginals, mask, single_root);
  const int64_t size = given.words + 1;
  const ScalarType type = given.arcs.scalar_type();
  kept = fitting("kept", kept, type, {given.sentences.kept_items(), given.kept_size()});
  direction = fitting("direction", direction, type, {given.batch, size, size});
  Tensor tangent = like(given.arcs, {given.batch, size, size});
  by_type(given.arcs, [&](auto kind) {
    using T = decltype(kind);
    const Arcs<T> view = given.view<T>();
    const ArcTangent<T> task{read<T>(given.arcs), read<T>(kept), given.kept_size(), read<T>(direction), write<T>(tangent)};
    given.sentences.split([&](int64_t first, int64_t last) { arc_kernels<T>().tangent(view, task, first, last); });
  });
  return tangent;
}

std::tuple<Tensor, Tensor> projective_best(Tensor arcs, std::optional<Tensor> mask, bool single_root) {
  const Given given("arcs", arcs, mask, single_root);
  Tensor heads = like(given.arcs, {given.batch, given.words}, ScalarType::Long);
  Tensor scores = like(given.arcs, {given.batch});
  by_type(given.arcs, [&](auto kind) {
    using T = decltype(kind);
    const Arcs<T> view = given.view<T>();
    int64_t* found = write<int64_t>(heads);
    T* values = write<T>(scores);
    one_by_one(given.batch, [&](int64_t place) {
      arc_kernels<T>().best(view, found, values, place);
    });
  });
  return {heads, scores};
}

std::tuple<Tensor, Tensor> projective_sample(Tensor arcs, std::optional<Tensor> mask, Tensor uniforms, bool single_root) {
  const Given given("arcs", arcs, mask, single_root);
  uniforms = fitting_draws("uniforms", uniforms, ScalarType::Double, given.batch, 2 * given.words + 2);
  const int64_t samples = uniforms.size(0);
  Tensor heads = like(given.arcs, {samples, given.batch, given.words}, ScalarType::Long);
  Tensor possible = like(given.arcs, {given.batch}, ScalarType::Bool);
  const ArcDraws draws{samples, read<double>(uniforms), write<int64_t>(heads), write<bool>(possible)};
  by_type(given.arcs, [&](auto kind) {
    using T = decltype(kind);
    const Arcs<T> view = given.view<T>();
    one_by_one(given.batch, [&](int64_t place) {
      arc_kernels<T>().sample(view, draws, place);
      for_spoiled_in(view, place, place + 1, [&](int64_t item) { draws.possible[item] = false; });
    });
  });
  return {heads, possible};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(foveal_native, m) {
  m.def("projective_log_partition(Tensor arcs, Tensor? mask, bool single_root) -> Tensor");
  m.def("projective_marginals(Tensor arcs, Tensor? mask, bool single_root, bool keep) -> (Tensor, Tensor, Tensor)");
  m.def("projective_tangent(Tensor marginals, Tensor kept, Tensor? mask, Tensor direction, bool single_root) -> Tensor");
  m.def("projective_best(Tensor arcs, Tensor? mask, bool single_root) -> (Tensor, Tensor)");
  m.def("projective_sample(Tensor arcs, Tensor? mask, Tensor uniforms, bool single_root) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(foveal_native, CPU, m) {
  m.impl("projective_log_partition", TORCH_BOX(&projective_log_partition));
  m.impl("projective_marginals", TORCH_BOX(&projective_marginals));
  m.impl("projective_tangent", TORCH_BOX(&projective_tangent));
  m.impl("projective_best", TORCH_BOX(&projective_best));
  m.impl("projective_sample", TORCH_BOX(&projective_sample));
}

}  // namespace foveal
