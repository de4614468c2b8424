// Semi-Markov models of few labels: one batch item in each lane, one register for each label.
// semi_markov.h has the recurrences; this file has the layout of the numbers, and the steps between
// segments:
//
//   s[t, j] = log sum_i exp( a[t-1, i] + e[t, i, j] ),    w[t, i, j] = exp( the same - highest ), kept with its sum
//
// Masked positions are removed from each item separately. All items then start in row 0, and each has its
// own end. Past its end, a lane has no score and no probability.

#pragma once

#include "chain_lanes.h"
#include "semi_markov_kernels.h"
#include "transposition.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace semi_markov {

using chain_lanes::Group;

constexpr double kNever = -std::numeric_limits<double>::infinity();

// The real positions of some items, in their order.
class Places {
 public:
  Places(const SemiMarkovSizes& sizes, int64_t first, int items)
      : length_(sizes.length), masked_(sizes.mask != nullptr), places_(masked_ ? items * length_ : 0) {
    std::fill(counts_, counts_ + kLanes, length_);
    longest_ = shortest_ = length_;
    if (!masked_) return;
    longest_ = 0;
    for (int l = 0; l < items; ++l) {
      const bool* row = sizes.mask + (first + l) * length_;
      int64_t count = 0;
      for (int64_t t = 0; t < length_; ++t) {
        if (row[t]) places_[l * length_ + count++] = t;
      }
      straight_ = straight_ && (count == 0 || places_[l * length_ + count - 1] == count - 1);
      counts_[l] = count;
      longest_ = std::max(longest_, count);
      shortest_ = std::min(shortest_, count);
    }
    std::fill(counts_ + items, counts_ + kLanes, counts_[0]);
  }
  int64_t length() const { return length_; }
  int64_t count(int item) const { return counts_[item]; }
  int64_t longest() const { return longest_; }
  int64_t shortest() const { return shortest_; }
  bool straight() const { return straight_; }  // nothing is left out before an end
  int64_t at(int item, int64_t row) const { return masked_ ? places_[item * length_ + row] : row; }

 private:
  int64_t length_;
  bool masked_, straight_ = true;
  Buffer<int64_t> places_;
  int64_t counts_[kLanes], longest_, shortest_;
};

template <class T>
class BatchSteps;
template <class T>
class BatchStepTangent;

template <class T>
class Batch {
 public:
  using Number = T;
  using Steps = BatchSteps<T>;
  using StepTangent = BatchStepTangent<T>;

  Batch(const SemiMarkovSizes& sizes, Group group)
      : sizes_(sizes), group_(group), places_(sizes, group.first, group.lanes) {
    for (int l = 0; l < kLanes; ++l) counts_.set_lane(l, static_cast<double>(places_.count(l)));
  }
  int64_t rows() const { return places_.longest(); }
  int64_t width() const { return sizes_.labels; }
  const SemiMarkovSizes& sizes() const { return sizes_; }
  const Group& group() const { return group_; }
  int items() const { return group_.lanes; }
  int64_t item(int index) const { return group_.first + index; }
  const Places& places() const { return places_; }

  // Loads rows `first` .. of a tensor (B, T - first, size) into lanes; if positions were removed, 0 past the end.
  void load(const T* from, int64_t item_stride, int64_t size, int64_t first, Lanes<T>* out) const {
    const int64_t count = (rows() - first) * size;
    if (count <= 0) return;
    from += group_.first * item_stride;
    if (places_.straight()) return gather(from, item_stride, group_.lanes, count, out);
    Buffer<T> dense(group_.lanes * count);
    std::fill(dense.data(), dense.data() + group_.lanes * count, T(0));
    for (int l = 0; l < group_.lanes; ++l) {
      for (int64_t r = first; r < places_.count(l); ++r) {
        const T* row = from + l * item_stride + (places_.at(l, r) - first) * size;
        std::copy(row, row + size, dense.data() + l * count + (r - first) * size);
      }
    }
    gather(dense.data(), count, group_.lanes, count, out);
  }

  // Stores lanes back into a tensor, 0 on padding.
  void store(const Lanes<T>* from, int64_t size, int64_t first, T* to) const {
    const int64_t count = std::max<int64_t>(0, rows() - first) * size, item_stride = (places_.length() - first) * size;
    to += group_.first * item_stride;
    const bool straight = places_.straight();
    for (int l = 0; l < group_.lanes; ++l) {
      std::fill(to + l * item_stride + (straight ? count : 0), to + (l + 1) * item_stride, T(0));
    }
    if (straight) return scatter(from, item_stride, group_.lanes, count, to);
    Buffer<T> dense(group_.lanes * count);
    scatter(from, count, group_.lanes, count, dense.data());
    for (int l = 0; l < group_.lanes; ++l) {
      for (int64_t r = first; r < places_.count(l); ++r) {
        const T* row = dense.data() + l * count + (r - first) * size;
        std::copy(row, row + size, to + l * item_stride + (places_.at(l, r) - first) * size);
      }
    }
  }

  void load_scores(const T* from, Lanes<T>* out) const {
    load_segments(from, out);
    forbid(out);
  }
  void load_segments(const T* from, Lanes<T>* out) const {
    const int64_t size = sizes_.lengths * sizes_.labels;
    load(from, sizes_.length * size, size, 0, out);
  }
  void store_segments(const Lanes<T>* from, T* to) const { store(from, sizes_.lengths * sizes_.labels, 0, to); }

  // Whether a lane has this row.
  template <class U>
  FOVEAL_INLINE Lanes<U> where_row(int64_t row, const Lanes<U>& then, const Lanes<U>& otherwise) const {
    return where_less(Lanes<U>::of(static_cast<U>(row)), narrow<U>(counts_), then, otherwise);
  }
  // In lanes whose last row this is, `last` takes the scores of the ends, and no segment follows.
  void take_last(int64_t row, Lanes<double>* ends, Lanes<double>* last) const {
    if (row + 1 < places_.shortest()) return;
    for (int64_t c = 0; c < width(); ++c) {
      const auto follows = where_row(row + 1, ends[c], Lanes<double>::of(kNever));
      last[c] = where_row(row, where_row(row + 1, last[c], ends[c]), last[c]);
      ends[c] = follows;
    }
  }
  void give_last(int64_t row, const Lanes<double>* last, Lanes<double>* ends) const {
    if (row + 1 < places_.shortest()) return;
    for (int64_t c = 0; c < width(); ++c) {
      ends[c] = where_row(row, where_row(row + 1, ends[c], last[c]), ends[c]);
    }
  }

  // Computes log Z of the items, if requested, and turns the scores of the last ends into probabilities.
  void finish(Lanes<double>* last, T* log_partition) const {
    auto highest = Lanes<double>::of(std::numeric_limits<double>::lowest());
    for (int64_t c = 0; c < width(); ++c) highest = max(highest, last[c]);
    auto total = Lanes<double>::of(0.0);
    for (int64_t c = 0; c < width(); ++c) {
      last[c] = exp(last[c] - highest);
      total += last[c];
    }
    const auto scale = reciprocal_or_zero(total);
    for (int64_t c = 0; c < width(); ++c) last[c] = last[c] * scale;
    const auto found = where_positive(total, highest + log(total), Lanes<double>::of(kNever));
    for (int l = 0; l < group_.lanes && log_partition != nullptr; ++l) {
      // A sequence without real positions has one segmentation, the empty one.
      log_partition[group_.first + l] = places_.count(l) == 0 ? T(0) : static_cast<T>(found.lane(l));
    }
  }

  // A number for each item, already summed over labels.
  FOVEAL_INLINE Lanes<double> over_labels(const Lanes<T>& x) const { return widen(x); }

  // The number of a label of an item in one row of a table.
  template <class U>
  U element(const Lanes<U>* row, int64_t label, int item) const {
    return reinterpret_cast<const U*>(row + label)[item];
  }

 private:
  // -inf for segments that end in a row from which an item has ended.
  void forbid(Lanes<T>* segments) const {
    const auto never = Lanes<T>::of(T(kNever));
    const int64_t lengths = sizes_.lengths;
    for (int64_t r = std::max<int64_t>(0, places_.shortest() - lengths + 1); r < rows(); ++r) {
      for (int64_t d = std::max<int64_t>(0, places_.shortest() - r); d < lengths && r + d < rows(); ++d) {
        Lanes<T>* at = segments + (r * lengths + d) * width();
        for (int64_t c = 0; c < width(); ++c) at[c] = where_row(r + d, at[c], never);
      }
    }
  }

  SemiMarkovSizes sizes_;
  Group group_;
  Places places_;
  Lanes<double> counts_;
};

// The steps between segments. Weights are kept by row and become pair marginals on the way back.
template <class T>
class BatchSteps {
 public:
  BatchSteps(const Batch<T>& batch, const SemiMarkov<T>& model, bool keep, T* pairs)
      : batch_(batch), labels_(static_cast<int>(batch.width())), edges_(labels_ * labels_), shared_(model.step_stride == 0), pairs_(pairs),
        table_(shared_ ? edges_ : 0), weights_(shared_ && !keep ? 0 : std::max<int64_t>(0, batch.rows() - 1) * edges_) {
    if (shared_) {
      const Group group = batch.group();
      gather(model.transitions + group.first * model.item_stride, model.item_stride, group.lanes, edges_, table_.data());
      // The table of an item that has no step is not read.
      for (int64_t e = 0; e < edges_; ++e) table_[e] = batch.where_row(1, table_[e], Lanes<T>::of(T(kNever)));
      return;
    }
    batch.load(model.transitions, model.item_stride, edges_, 1, weights_.data());
    const auto never = Lanes<T>::of(T(kNever));
    for (int64_t r = std::max<int64_t>(1, batch.places().shortest()); r < batch.rows(); ++r) {
      Lanes<T>* at = row(r);
      for (int64_t e = 0; e < edges_; ++e) at[e] = batch.where_row(r, at[e], never);
    }
  }
  void store() const { batch_.store(weights_.data(), edges_, 1, pairs_); }

  // Computes the scores of starts in `r` from the scores of ends; keeps weights and scales unless they are null.
  void onward(int64_t r, const Lanes<double>* ends, Lanes<double>* starts, Lanes<double>* scales) const {
    const Lanes<T>* edge = shared_ ? table_.data() : row(r);
    for (int j = 0; j < labels_; ++j) {
      Lanes<double> joined[kFewLabels];
      auto highest = Lanes<double>::of(std::numeric_limits<double>::lowest());
      for (int i = 0; i < labels_; ++i) {
        joined[i] = ends[i] + widen(edge[i * labels_ + j]);
        highest = max(highest, joined[i]);
      }
      auto total = Lanes<double>::of(0.0);
      for (int i = 0; i < labels_; ++i) {
        const auto weight = exp(narrow<T>(joined[i] - highest));
        total += widen(weight);
        if (scales != nullptr) row(r)[i * labels_ + j] = weight;
      }
      if (scales != nullptr) scales[j] = reciprocal_or_zero(total);
      const auto reached = highest + widen(log(narrow<T>(total)));
      starts[j] = where_positive(total, reached, Lanes<double>::of(kNever));
    }
  }

  // The same step with the maximum instead of the sum, and the label that attains it.
  void best_onward(int64_t r, const Lanes<double>* ends, Lanes<double>* starts, Lanes<T>* from) const {
    const Lanes<T>* edge = shared_ ? table_.data() : row(r);
    for (int j = 0; j < labels_; ++j) {
      auto highest = ends[0] + widen(edge[j]), place = Lanes<double>::of(0.0);
      for (int i = 1; i < labels_; ++i) {
        const auto joined = ends[i] + widen(edge[i * labels_ + j]);
        place = where_less(highest, joined, Lanes<double>::of(i), place);
        highest = max(highest, joined);
      }
      starts[j] = highest;
      from[j] = narrow<T>(place);
    }
  }

  // Computes the probabilities of ends in the previous row from scaled probabilities of starts; weights become
  // pair marginals.
  void back(int64_t r, const Lanes<double>* scaled, Lanes<double>* ends) const {
    Lanes<T>* pair = row(r);
    for (int i = 0; i < labels_; ++i) {
      auto total = Lanes<double>::of(0.0);
      for (int j = 0; j < labels_; ++j) {
        const auto both = widen(pair[i * labels_ + j]) * scaled[j];
        pair[i * labels_ + j] = narrow<T>(both);
        total += both;
      }
      ends[i] = total;
    }
  }

  T weight(int64_t r, int64_t i, int64_t j, int item) const { return batch_.element(row(r), i * labels_ + j, item); }

 private:
  Lanes<T>* row(int64_t r) const { return weights_.data() + (r - 1) * edges_; }

  const Batch<T>& batch_;
  int labels_;
  int64_t edges_;
  bool shared_;
  T* pairs_;
  Buffer<Lanes<T>> table_, weights_;
};

// The tangent pass over the steps; the recurrences are in semi_markov.h.
template <class T>
class BatchStepTangent {
 public:
  BatchStepTangent(const Batch<T>& batch, const SemiMarkovTangent<T>& task)
      : batch_(batch), labels_(static_cast<int>(batch.width())), edges_(labels_ * labels_),
        out_(task.pair_tangent), directed_(task.on_pairs != nullptr),
        pairs_(std::max<int64_t>(0, batch.rows() - 1) * edges_), along_(std::max<int64_t>(0, batch.rows() - 1) * edges_) {
    const int64_t stride = (task.sizes.length - 1) * edges_;
    batch.load(task.pairs, stride, edges_, 1, pairs_.data());
    if (directed_) batch.load(task.on_pairs, stride, edges_, 1, along_.data());
  }
  void store() const {
    if (out_ != nullptr) batch_.store(along_.data(), edges_, 1, out_);
  }

  // Computes past_start of row r from past_end of the previous row; returns E[g] of the step.
  Lanes<T> past(int64_t r, const Lanes<T>* ends, Lanes<T>* starts) const {
    const auto zero = Lanes<T>::of(T(0));
    const Lanes<T>* pair = pairs_.data() + (r - 1) * edges_;
    Lanes<T>* direction = along_.data() + (r - 1) * edges_;
    auto gain = zero;
    for (int j = 0; j < labels_; ++j) {
      auto total = zero, weight = zero;
      for (int i = 0; i < labels_; ++i) {
        const auto p = pair[i * labels_ + j];
        auto term = ends[i];
        if (directed_) {
          const auto g = where_positive(p, direction[i * labels_ + j], zero);
          direction[i * labels_ + j] = g;
          gain += p * g;
          term += g;
        }
        total += p * term;
        weight += p;
      }
      starts[j] = total * reciprocal_or_zero(weight);
    }
    return gain;
  }

  // Computes future_end of the previous row from future_start of row r; the direction becomes the derivative.
  void future(int64_t r, const Lanes<T>* starts, const Lanes<T>* past_ends, const Lanes<T>& rest, Lanes<T>* ends) const {
    const auto zero = Lanes<T>::of(T(0));
    const Lanes<T>* pair = pairs_.data() + (r - 1) * edges_;
    Lanes<T>* along = along_.data() + (r - 1) * edges_;
    for (int i = 0; i < labels_; ++i) {
      auto total = zero, weight = zero;
      const auto before = past_ends[i] - rest;
      for (int j = 0; j < labels_; ++j) {
        const auto p = pair[i * labels_ + j];
        const auto share = p * (directed_ ? starts[j] + along[i * labels_ + j] : starts[j]);
        total += share;
        weight += p;
        along[i * labels_ + j] = share + p * before;
      }
      ends[i] = total * reciprocal_or_zero(weight);
    }
  }

 private:
  const Batch<T>& batch_;
  int labels_;
  int64_t edges_;
  T* out_;
  bool directed_;
  Buffer<Lanes<T>> pairs_, along_;
};

}  // namespace semi_markov
}  // namespace FOVEAL_ISA
}  // namespace foveal
