// Semi-Markov models of many labels: one item at a time, its labels in the lanes of one or several
// registers. semi_markov.h has the recurrences, and semi_markov_batch.h the recurrences of the steps between
// segments, which here read and write (K, K) tables in place.
//
// Lanes past the last label have no score and no probability.

#pragma once

#include "chain_states.h"
#include "semi_markov_batch.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace semi_markov {

template <class T>
class LabelSteps;
template <class T>
class LabelStepTangent;

template <class T>
class Labels {
 public:
  using Number = T;
  using Steps = LabelSteps<T>;
  using StepTangent = LabelStepTangent<T>;

  Labels(const SemiMarkovSizes& sizes, int64_t item)
      : sizes_(sizes), item_(item), places_(sizes, item, 1), blocks_((sizes.labels + kLanes - 1) / kLanes) {}
  int64_t rows() const { return places_.count(0); }
  int64_t width() const { return blocks_; }
  const SemiMarkovSizes& sizes() const { return sizes_; }
  int items() const { return 1; }
  int64_t item(int) const { return item_; }
  const Places& places() const { return places_; }
  int64_t edges() const { return sizes_.labels * sizes_.labels; }
  // The index of the step into a row among the T - 1 steps; `steps` is the offset of an item in (B, T-1, K, K).
  int64_t step(int64_t row) const { return places_.at(0, row) - 1; }
  int64_t steps() const { return item_ * (sizes_.length - 1) * edges(); }
  // Writes 0 for steps that join no real positions, in an item's (T-1, K, K).
  void clear_steps(T* pairs) const {
    if (rows() < sizes_.length) std::fill(pairs, pairs + (sizes_.length - 1) * edges(), T(0));
  }

  void load_scores(const T* from, Lanes<T>* out) const { load(from, T(kNever), out); }
  void load_segments(const T* from, Lanes<T>* out) const { load(from, T(0), out); }
  void store_segments(const Lanes<T>* from, T* to) const {
    const int64_t size = sizes_.length * sizes_.lengths * sizes_.labels;
    if (rows() < sizes_.length) std::fill(to + item_ * size, to + (item_ + 1) * size, T(0));
    each_segment([&](int64_t at, int64_t place, int64_t count) { store_first(to + place, count, from[at]); });
  }
  void take_last(int64_t row, Lanes<double>* ends, Lanes<double>* last) const {
    if (row + 1 == rows()) std::copy(ends, ends + blocks_, last);
  }
  void give_last(int64_t row, const Lanes<double>* last, Lanes<double>* ends) const {
    if (row + 1 == rows()) std::copy(last, last + blocks_, ends);
  }

  void finish(Lanes<double>* last, T* log_partition) const {
    double* scores = reinterpret_cast<double*>(last);
    const double top = *std::max_element(scores, scores + sizes_.labels);
    double total = 0;
    for (int64_t k = 0; k < blocks_ * kLanes; ++k) {
      scores[k] = top > kNever && k < sizes_.labels ? std::exp(scores[k] - top) : 0.0;
      total += scores[k];
    }
    for (int64_t k = 0; k < sizes_.labels; ++k) scores[k] = total > 0 ? scores[k] / total : 0.0;
    const double found = total > 0 ? top + std::log(total) : kNever;
    if (log_partition != nullptr) log_partition[item_] = rows() == 0 ? T(0) : static_cast<T>(found);
  }

  FOVEAL_INLINE Lanes<double> over_labels(const Lanes<T>& x) const {
    return Lanes<double>::of(static_cast<double>(sum(x)));
  }

  template <class U>
  U element(const Lanes<U>* row, int64_t label, int) const {
    return reinterpret_cast<const U*>(row)[label];
  }

 private:
  void load(const T* from, T fill, Lanes<T>* out) const {
    each_segment([&](int64_t at, int64_t place, int64_t count) { out[at] = load_first(from + place, count, fill); });
  }
  // Calls each(register, offset in (B, T, D, K), number of labels from there) for the registers of all rows.
  template <class Each>
  void each_segment(Each each) const {
    const int64_t lengths = sizes_.lengths, labels = sizes_.labels;
    int64_t at = 0;
    for (int64_t r = 0; r < rows(); ++r) {
      int64_t place = (item_ * sizes_.length + places_.at(0, r)) * lengths * labels;
      for (int64_t d = 0; d < lengths; ++d, place += labels) {
        for (int64_t block = 0; block < labels; block += kLanes) each(at++, place + block, labels - block);
      }
    }
  }

  SemiMarkovSizes sizes_;
  int64_t item_;
  Places places_;
  int64_t blocks_;
};

// The steps between segments. Weights are kept at the item's offset in `pairs` (B, T-1, K, K) or, if it is
// null, in memory of this object; the backward pass turns them into pair marginals.
template <class T>
class LabelSteps {
 public:
  LabelSteps(const Labels<T>& layout, const SemiMarkov<T>& model, bool keep, T* pairs)
      : layout_(layout), labels_(layout.sizes().labels), step_stride_(model.step_stride),
        transitions_(model.transitions + layout.item(0) * model.item_stride),
        own_(keep && pairs == nullptr ? (layout.sizes().length - 1) * layout.edges() : 0) {
    weights_ = pairs ? pairs + layout.steps() : own_.data();
    if (pairs != nullptr) layout.clear_steps(weights_);
  }
  void store() const {}  // the pair marginals are already in place

  void onward(int64_t r, const Lanes<double>* from, Lanes<double>* starts, Lanes<double>* scales) const {
    if (std::is_same_v<T, float> && onward_in<false>(r, from, starts, scales)) return;
    onward_in<true>(r, from, starts, scales);
  }

  void best_onward(int64_t r, const Lanes<double>* from, Lanes<double>* starts, Lanes<T>* places) const {
    const T* edges = transitions_ + layout_.step(r) * step_stride_;
    const double* ends = reinterpret_cast<const double*>(from);
    for (int64_t block = 0; block < labels_; block += kLanes) {
      const int64_t count = labels_ - block;
      auto highest = widen(load_first(edges + block, count, T(kNever))) + ends[0], place = Lanes<double>::of(0.0);
      for (int64_t i = 1; i < labels_; ++i) {
        const auto joined = widen(load_first(edges + i * labels_ + block, count, T(kNever))) + ends[i];
        place = where_less(highest, joined, Lanes<double>::of(static_cast<double>(i)), place);
        highest = max(highest, joined);
      }
      starts[block / kLanes] = highest;
      places[block / kLanes] = narrow<T>(place);
    }
  }

  void back(int64_t r, const Lanes<double>* scaled, Lanes<double>* ends) const {
    T* pair = row(r);
    double* out = reinterpret_cast<double*>(ends);
    for (int64_t i = 0; i < labels_; ++i) {
      auto total = Lanes<double>::of(0.0);
      for (int64_t block = 0; block < labels_; block += kLanes) {
        T* place = pair + i * labels_ + block;
        const auto both = widen(load_first(place, labels_ - block, T(0))) * scaled[block / kLanes];
        store_first(place, labels_ - block, narrow<T>(both));
        total += both;
      }
      out[i] = sum(total);
    }
  }

  T weight(int64_t r, int64_t i, int64_t j, int) const { return row(r)[i * labels_ + j]; }

 private:
  T* row(int64_t r) const { return weights_ + layout_.step(r) * layout_.edges(); }

  // Returns false if numbers left the range of T, which cannot happen in double.
  template <bool in_double>
  bool onward_in(int64_t r, const Lanes<double>* from, Lanes<double>* starts, Lanes<double>* scales) const {
    const T* edges = transitions_ + layout_.step(r) * step_stride_;
    const double* ends = reinterpret_cast<const double*>(from);
    T* weights = scales ? row(r) : nullptr;
    const double top = *std::max_element(ends, ends + labels_), reference = top > kNever ? top : 0.0;
    for (int64_t block = 0; block < labels_; block += kLanes) {
      chain_states::StepTerms<in_double, T> terms(ends, reference, edges, labels_, block);
      auto total = Lanes<double>::of(0.0);
      for (int64_t i = 0; i < labels_; ++i) {
        const auto weight = terms.weight(i);
        total += widen(weight);
        if (scales != nullptr) store_first(weights + i * labels_ + block, labels_ - block, weight);
      }
      if (!terms.is_in_range(narrow<T>(total))) return false;
      if (scales != nullptr) scales[block / kLanes] = reciprocal_or_zero(total);
      const auto reached = terms.highest() + widen(log(narrow<T>(total))) + reference;
      starts[block / kLanes] = where_positive(total, reached, Lanes<double>::of(kNever));
    }
    return true;
  }

  const Labels<T>& layout_;
  int64_t labels_, step_stride_;
  const T* transitions_;
  Buffer<T> own_;
  T* weights_;
};

// The tangent pass over the steps.
template <class T>
class LabelStepTangent {
 public:
  LabelStepTangent(const Labels<T>& layout, const SemiMarkovTangent<T>& task)
      : layout_(layout), labels_(layout.sizes().labels), pairs_(task.pairs + layout.steps()),
        directions_(task.on_pairs ? task.on_pairs + layout.steps() : nullptr),
        out_(task.pair_tangent ? task.pair_tangent + layout.steps() : nullptr) {
    if (out_ != nullptr) layout.clear_steps(out_);
  }
  void store() const {}  // the derivative is already in place

  Lanes<T> past(int64_t r, const Lanes<T>* from, Lanes<T>* starts) const {
    const auto zero = Lanes<T>::of(T(0));
    const int64_t offset = layout_.step(r) * layout_.edges();
    const T* pair = pairs_ + offset;
    const T* direction = directions_ ? directions_ + offset : nullptr;
    const T* ends = reinterpret_cast<const T*>(from);
    auto gain = zero;
    for (int64_t block = 0; block < labels_; block += kLanes) {
      const int64_t count = labels_ - block;
      auto total = zero, weight = zero;
      for (int64_t i = 0; i < labels_; ++i) {
        const auto p = load_first(pair + i * labels_ + block, count, T(0));
        auto term = Lanes<T>::of(ends[i]);
        if (direction != nullptr) {
          const auto g = where_positive(p, load_first(direction + i * labels_ + block, count, T(0)), zero);
          gain += p * g;
          term += g;
        }
        total += p * term;
        weight += p;
      }
      starts[block / kLanes] = total * reciprocal_or_zero(weight);
    }
    return gain;
  }

  void future(int64_t r, const Lanes<T>* starts, const Lanes<T>* past_ends, const Lanes<T>& rest, Lanes<T>* ends) const {
    const auto zero = Lanes<T>::of(T(0));
    const int64_t offset = layout_.step(r) * layout_.edges();
    const T* pair = pairs_ + offset;
    const T* direction = directions_ ? directions_ + offset : nullptr;
    const T* past = reinterpret_cast<const T*>(past_ends);
    T* along = out_ ? out_ + offset : nullptr;
    T* out = reinterpret_cast<T*>(ends);
    for (int64_t i = 0; i < labels_; ++i) {
      auto total = zero, weight = zero;
      const auto before = Lanes<T>::of(past[i]) - rest;
      for (int64_t block = 0; block < labels_; block += kLanes) {
        const int64_t count = labels_ - block, place = i * labels_ + block;
        const auto p = load_first(pair + place, count, T(0));
        auto term = starts[block / kLanes];
        if (direction != nullptr) term += where_positive(p, load_first(direction + place, count, T(0)), zero);
        const auto share = p * term;
        total += share;
        weight += p;
        if (along != nullptr) store_first(along + place, count, share + p * before);
      }
      const T all = sum(weight);
      out[i] = all > std::numeric_limits<T>::min() ? sum(total) / all : T(0);
    }
  }

 private:
  const Labels<T>& layout_;
  int64_t labels_;
  const T* pairs_;
  const T* directions_;
  T* out_;
};

}  // namespace semi_markov
}  // namespace FOVEAL_ISA
}  // namespace foveal
