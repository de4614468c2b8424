// The ops of bracketings: tensors to pointers, sentences to threads.

#include <tuple>

#include "tensors.h"

namespace foveal {
namespace {

template <class T>
const SpanKernels<T>& span_kernels();

template <>
const SpanKernels<float>& span_kernels<float>() {
  return kernels().span_float;
}

template <>
const SpanKernels<double>& span_kernels<double>() {
  return kernels().span_double;
}

// Calls each(place) for the spans between real words, in a square (n, n).
template <class Each>
void for_read_spans(const bool* mask, int64_t words, Each each) {
  const auto real = [&](int64_t word) { return mask == nullptr || mask[word]; };
  for (int64_t i = 0; i < words; ++i) {
    for (int64_t j = i; j < words && real(i); ++j) {
      if (real(j)) each(i * words + j);
    }
  }
}

// The spans that bracketings of an item may have.
template <class T>
auto places_of(const Spans<T>& view) {
  return [batch = view.batch](int64_t item, auto each) {
    for_read_spans(batch.mask ? batch.mask + item * batch.words : nullptr, batch.words, each);
  };
}

template <class T>
int64_t area_of(const Spans<T>& view) {
  return view.batch.words * view.batch.words;
}

// Calls spoil(item) for the items at the places first .. last - 1 that have a NaN or +inf.
template <class T, class Spoil>
void for_spoiled_in(const Spans<T>& view, int64_t first, int64_t last, Spoil spoil) {
  for_spoiled(view.batch, view.scores, area_of(view), first, last, places_of(view), spoil);
}

// A contiguous tensor on spans, and the real words.
struct Given {
  Tensor spans;
  std::optional<Tensor> mask;
  int64_t batch, words;
  SentenceBatch sentences;

  Given(const char* name, const Tensor& given_spans, const std::optional<Tensor>& given_mask)
      : spans(fitting_squares(name, given_spans, "(B, n, n)")), mask(fitting_mask(given_mask, spans.size(0), spans.size(1))),
        batch(spans.size(0)), words(spans.size(1)), sentences(batch, words, read<bool>(mask), kMostWordsWithSpans) {}
  template <class T>
  Spans<T> view() const {
    return {sentences.view(), read<T>(spans)};
  }
  int64_t kept_size() const { return kept_of_sentence(words, sentences.view().together); }
};

Tensor span_log_partition(Tensor spans, std::optional<Tensor> mask) {
  const Given given("spans", spans, mask);
  Tensor out = like(given.spans, {given.batch});
  by_type(given.spans, [&](auto kind) {
    using T = decltype(kind);
    const Spans<T> view = given.view<T>();
    T* found = write<T>(out);
    given.sentences.split([&](int64_t first, int64_t last) {
      span_kernels<T>().log_partition(view, found, first, last);
      for_spoiled_in(view, first, last, [&](int64_t item) { found[item] = kNaN<T>; });
    });
  });
  return out;
}

std::tuple<Tensor, Tensor, Tensor> span_marginals(Tensor spans, std::optional<Tensor> mask, bool keep) {
  const Given given("spans", spans, mask);
  const int64_t kept_size = given.kept_size();
  Tensor log_partition = like(given.spans, {given.batch});
  Tensor marginals = like(given.spans, {given.batch, given.words, given.words});
  Tensor kept = keep ? like(given.spans, {given.sentences.kept_items(), kept_size}) : like(given.spans, {0});
  by_type(given.spans, [&](auto kind) {
    using T = decltype(kind);
    const Spans<T> view = given.view<T>();
    const SpanMarginals<T> out{write<T>(log_partition), write<T>(marginals), keep ? write<T>(kept) : nullptr, kept_size};
    given.sentences.split([&](int64_t first, int64_t last) {
      span_kernels<T>().marginals(view, out, first, last);
      for_spoiled_in(view, first, last, [&](int64_t item) {
        out.log_partition[item] = kNaN<T>;
        fill_with_nan(out.marginals, area_of(view), item, places_of(view));
      });
    });
  });
  return {log_partition, marginals, kept};
}

Tensor span_tangent(Tensor kept, std::optional<Tensor> mask, Tensor direction) {
  const Given given("direction", direction, mask);
  kept = fitting("kept", kept, given.spans.scalar_type(), {given.sentences.kept_items(), given.kept_size()});
  Tensor tangent = like(given.spans, {given.batch, given.words, given.words});
  by_type(given.spans, [&](auto kind) {
    using T = decltype(kind);
    const Spans<T> view = given.view<T>();
    const SpanTangent<T> task{read<T>(kept), given.kept_size(), read<T>(given.spans), write<T>(tangent)};
    given.sentences.split([&](int64_t first, int64_t last) { span_kernels<T>().tangent(view, task, first, last); });
  });
  return tangent;
}

std::tuple<Tensor, Tensor> span_best(Tensor spans, std::optional<Tensor> mask) {
  const Given given("spans", spans, mask);
  Tensor chosen = like(given.spans, {given.batch, given.words, given.words}, ScalarType::Bool);
  Tensor scores = like(given.spans, {given.batch});
  by_type(given.spans, [&](auto kind) {
    using T = decltype(kind);
    const Spans<T> view = given.view<T>();
    bool* found = write<bool>(chosen);
    T* values = write<T>(scores);
    one_by_one(given.batch, [&](int64_t place) {
      span_kernels<T>().best(view, found, values, place);
    });
  });
  return {chosen, scores};
}

std::tuple<Tensor, Tensor> span_sample(Tensor spans, std::optional<Tensor> mask, Tensor uniforms) {
  const Given given("spans", spans, mask);
  uniforms = fitting_draws("uniforms", uniforms, ScalarType::Double, given.batch, given.words);
  const int64_t samples = uniforms.size(0);
  Tensor chosen = like(given.spans, {samples, given.batch, given.words, given.words}, ScalarType::Bool);
  Tensor possible = like(given.spans, {given.batch}, ScalarType::Bool);
  const SpanDraws draws{samples, read<double>(uniforms), write<bool>(chosen), write<bool>(possible)};
  by_type(given.spans, [&](auto kind) {
    using T = decltype(kind);
    const Spans<T> view = given.view<T>();
    one_by_one(given.batch, [&](int64_t place) {
      span_kernels<T>().sample(view, draws, place);
      for_spoiled_in(view, place, place + 1, [&](int64_t item) { draws.possible[item] = false; });
    });
  });
  return {chosen, possible};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(foveal_native, m) {
  m.def("span_log_partition(Tensor spans, Tensor? mask) -> Tensor");
  m.def("span_marginals(Tensor spans, Tensor? mask, bool keep) -> (Tensor, Tensor, Tensor)");
  m.def("span_tangent(Tensor kept, Tensor? mask, Tensor direction) -> Tensor");
  m.def("span_best(Tensor spans, Tensor? mask) -> (Tensor, Tensor)");
  m.def("span_sample(Tensor spans, Tensor? mask, Tensor uniforms) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(foveal_native, CPU, m) {
  m.impl("span_log_partition", TORCH_BOX(&span_log_partition));
  m.impl("span_marginals", TORCH_BOX(&span_marginals));
  m.impl("span_tangent", TORCH_BOX(&span_tangent));
  m.impl("span_best", TORCH_BOX(&span_best));
  m.impl("span_sample", TORCH_BOX(&span_sample));
}

}  // namespace foveal
