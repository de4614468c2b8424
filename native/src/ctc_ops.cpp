// The ops of CTC: tensors to pointers, items to threads.

#include <tuple>

#include "tensors.h"

namespace foveal {
namespace {

template <class T>
const CtcKernels<T>& ctc_kernels();

template <>
const CtcKernels<float>& ctc_kernels<float>() {
  return kernels().ctc_float;
}

template <>
const CtcKernels<double>& ctc_kernels<double>() {
  return kernels().ctc_double;
}

// Contiguous tensors that fit each other, with labels that are symbols.
struct Given {
  Tensor log_probs, labels;
  std::optional<Tensor> frame_mask, label_mask;
  int64_t blank, batch, frames, symbols, num_labels;

  Given(const Tensor& given_log_probs, const Tensor& given_labels, const std::optional<Tensor>& given_frame_mask,
        const std::optional<Tensor>& given_label_mask, int64_t blank)
      : log_probs(leading("log_probs", given_log_probs, 3, "(B, T, V)")), labels(given_labels), blank(blank),
        batch(log_probs.size(0)), frames(log_probs.size(1)), symbols(log_probs.size(2)) {
    require(0 <= blank && blank < symbols, "blank must be a symbol");
    if (given_labels.dim() != 2) refuse("labels", "Long (B, L)", given_labels);
    num_labels = given_labels.size(1);
    labels = fitting("labels", given_labels, ScalarType::Long, {batch, num_labels});
    frame_mask = fitting("frame_mask", given_frame_mask, ScalarType::Bool, {batch, frames});
    label_mask = fitting("label_mask", given_label_mask, ScalarType::Bool, {batch, num_labels});
    const int64_t* label = read<int64_t>(labels);
    const bool* real = read<bool>(label_mask);
    for (int64_t i = 0; i < batch * num_labels; ++i) {
      if (real != nullptr && !real[i]) continue;
      require(0 <= label[i] && label[i] < symbols && label[i] != blank,
              "labels of real positions must be symbols other than the blank");
    }
  }
  template <class T>
  Spellings<T> view() const {
    return {frames, symbols, num_labels, blank, read<T>(log_probs), read<int64_t>(labels), read<bool>(frame_mask),
            read<bool>(label_mask)};
  }
};

// The log-probabilities that an item reads: of the blank and of its labels, in real frames.
template <class T>
auto places_of(const Spellings<T>& view) {
  return [view](int64_t item, auto each) {
    for (int64_t t = 0; t < view.frames; ++t) {
      if (view.frame_mask != nullptr && !view.frame_mask[item * view.frames + t]) continue;
      each(t * view.symbols + view.blank);
      for (int64_t i = item * view.labels; i < (item + 1) * view.labels; ++i) {
        if (view.label_mask == nullptr || view.label_mask[i]) each(t * view.symbols + view.label[i]);
      }
    }
  };
}

// Calls spoil() if a log-probability that the item reads is NaN or +inf.
template <class T, class Spoil>
void if_spoiled(const Spellings<T>& view, int64_t item, Spoil spoil) {
  for_spoiled(view.log_probs, view.frames * view.symbols, item, item + 1, places_of(view), [&](int64_t) { spoil(); });
}

Tensor ctc_log_partition(Tensor log_probs, Tensor labels, std::optional<Tensor> frame_mask,
                         std::optional<Tensor> label_mask, int64_t blank) {
  const Given given(log_probs, labels, frame_mask, label_mask, blank);
  Tensor out = like(given.log_probs, {given.batch});
  by_type(given.log_probs, [&](auto kind) {
    using T = decltype(kind);
    const Spellings<T> view = given.view<T>();
    T* found = write<T>(out);
    one_by_one(given.batch, [&](int64_t item) {
      ctc_kernels<T>().log_partition(view, found, item);
      if_spoiled(view, item, [&] { found[item] = kNaN<T>; });
    });
  });
  return out;
}

std::tuple<Tensor, Tensor> ctc_marginals(Tensor log_probs, Tensor labels, std::optional<Tensor> frame_mask,
                                         std::optional<Tensor> label_mask, int64_t blank) {
  const Given given(log_probs, labels, frame_mask, label_mask, blank);
  Tensor log_partition = like(given.log_probs, {given.batch});
  Tensor marginals = like(given.log_probs, {given.batch, given.frames, given.symbols});
  by_type(given.log_probs, [&](auto kind) {
    using T = decltype(kind);
    const Spellings<T> view = given.view<T>();
    const SpellingMarginals<T> out{write<T>(log_partition), write<T>(marginals)};
    one_by_one(given.batch, [&](int64_t item) {
      ctc_kernels<T>().marginals(view, out, item);
      if_spoiled(view, item, [&] {
        out.log_partition[item] = kNaN<T>;
        fill_with_nan(out.marginals, view.frames * view.symbols, item, places_of(view));
      });
    });
  });
  return {log_partition, marginals};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(foveal_native, m) {
  m.def(
      "ctc_log_partition(Tensor log_probs, Tensor labels, Tensor? frame_mask, Tensor? label_mask, int blank) -> Tensor");
  m.def(
      "ctc_marginals(Tensor log_probs, Tensor labels, Tensor? frame_mask, Tensor? label_mask, int blank) -> "
      "(Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(foveal_native, CPU, m) {
  m.impl("ctc_log_partition", TORCH_BOX(&ctc_log_partition));
  m.impl("ctc_marginals", TORCH_BOX(&ctc_marginals));
}

}  // namespace foveal
