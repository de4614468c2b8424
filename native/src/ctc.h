// CTC: the paths of frames through the states blank, label 0, blank, label 1, ..., blank.
//
//   inside     blank'[i] = ( blank[i] + label[i-1] ) p(blank)
//              label'[i] = ( label[i] + blank[i] + label[i-1], if it is another label ) p(label i)
//   weights    the parts of a sum, divided by it: p( state in the frame before | state in this frame )
//   outside    sums of weights times the probabilities of the next frame's states
//
// The lanes hold consecutive labels, each with the blank before it; the blank after the last label comes with a
// label that is impossible. Sums over paths are doubles with a separate exponent (`scaled.h`): no range of
// log-probabilities loses a path. Weights and marginals are probabilities of type T.

#pragma once

#include "ctc_kernels.h"
#include "lanes.h"
#include "scaled.h"
#include "scratch.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace ctc {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// A mantissa grows by less than 2^2.1 and shrinks by at most 2^0.5 per frame: far from the range of doubles.
constexpr int64_t kFrames = 64;

// The real frames and labels of one item.
template <class T>
class Item {
 public:
  Item(const Spellings<T>& given, int64_t item)
      : log_probs_(given.log_probs + item * given.frames * given.symbols),
        symbols_(given.symbols),
        blank_(given.blank),
        frame_(given.frames),
        label_(given.labels) {
    for (int64_t t = 0; t < given.frames; ++t) {
      if (given.frame_mask == nullptr || given.frame_mask[item * given.frames + t]) frame_[frames_++] = t;
    }
    for (int64_t i = 0; i < given.labels; ++i) {
      const int64_t place = item * given.labels + i;
      if (given.label_mask == nullptr || given.label_mask[place]) label_[labels_++] = given.label[place];
    }
  }
  int64_t frames() const { return frames_; }
  int64_t labels() const { return labels_; }
  int64_t groups() const { return labels_ / kLanes + 1; }
  int64_t label(int64_t i) const { return label_[i]; }
  int64_t blank() const { return blank_; }
  // Where the row of the t-th real frame begins in (T, V).
  int64_t row(int64_t t) const { return frame_[t] * symbols_; }
  const T* log_probs(int64_t t) const { return log_probs_ + row(t); }

 private:
  const T* log_probs_;
  const int64_t symbols_, blank_;
  int64_t frames_ = 0, labels_ = 0;
  Buffer<int64_t> frame_, label_;
};

// Sums over the paths to the states of a group, in one frame. A sum that is 0 has an exponent below all others.
struct Sums {
  Scaled<double> blank, label;
};

// The weights of the states of a group; `from` is the state of the frame before.
template <class T>
struct Weights {
  Lanes<T> blank_from_blank, blank_from_label, label_from_label, label_from_blank, label_from_other;
};

FOVEAL_INLINE Scaled<double> nothing() {
  return {Lanes<double>::of(0.0), Lanes<double>::of(kLowestExponent)};
}

// The states before the first frame: only the first blank.
inline void begin(int64_t groups, Sums* sums) {
  for (int64_t g = 0; g < groups; ++g) sums[g] = {nothing(), nothing()};
  sums[0].blank.mantissa.set_lane(0, 1.0);
  sums[0].blank.exponent.set_lane(0, 0.0);
}

// The log-probabilities of the labels in a frame; -inf in the lanes after the last label.
template <class T>
FOVEAL_INLINE void gather(const Item<T>& item, const T* row, T* out) {
  for (int64_t i = 0; i < item.labels(); ++i) out[i] = row[item.label(i)];
}

FOVEAL_INLINE Lanes<double> largest_of(const Lanes<double>& a, const Lanes<double>& b) {
  // If all states are unreachable, both may be -inf, and differences would be NaN.
  return max(max(a, b), Lanes<double>::of(kLowestExponent));
}

// One frame of one group. `before` is the label before each lane's label, in the frame before, and `other` its
// exponent, or -inf if it is the same label.
template <bool keep, class T>
FOVEAL_INLINE void advance(Sums& sums, const Scaled<double>& before, const Lanes<double>& other,
                           const Scaled<double>& p_blank, const Scaled<double>& p_label, Weights<T>* weights) {
  const auto blank_top = largest_of(sums.blank.exponent, before.exponent);
  const auto stay = sums.blank.mantissa * power_of_two<double>(sums.blank.exponent - blank_top);
  const auto enter = before.mantissa * power_of_two<double>(before.exponent - blank_top);
  const auto blank = stay + enter;

  const auto label_top = largest_of(max(sums.label.exponent, sums.blank.exponent), other);
  const auto repeat = sums.label.mantissa * power_of_two<double>(sums.label.exponent - label_top);
  const auto follow = sums.blank.mantissa * power_of_two<double>(sums.blank.exponent - label_top);
  const auto jump = before.mantissa * power_of_two<double>(other - label_top);
  const auto label = repeat + follow + jump;
  if (keep) {
    const auto of_blank = reciprocal_or_zero(blank), of_label = reciprocal_or_zero(label);
    *weights = {narrow<T>(stay * of_blank), narrow<T>(enter * of_blank), narrow<T>(repeat * of_label),
                narrow<T>(follow * of_label), narrow<T>(jump * of_label)};
  }
  sums.blank = {blank * p_blank.mantissa, blank_top + p_blank.exponent};
  sums.label = {label * p_label.mantissa, label_top + p_label.exponent};
}

// The inside pass over all frames: leaves the sums of the last frame, and keeps the weights of all frames.
template <bool keep, class T>
void inside(const Item<T>& item, Sums* sums, Weights<T>* weights) {
  const int64_t groups = item.groups();
  Buffer<Lanes<double>> penalties(groups);  // -inf where the label before is the same or does not exist
  for (int64_t i = 0; i < groups * kLanes; ++i) {
    const bool differs = i > 0 && i < item.labels() && item.label(i) != item.label(i - 1);
    penalties[i / kLanes].set_lane(static_cast<int>(i % kLanes), differs ? 0.0 : kNever);
  }
  Buffer<T> emitted(groups * kLanes);
  std::fill(emitted.data(), emitted.data() + groups * kLanes, -std::numeric_limits<T>::infinity());
  begin(groups, sums);
  for (int64_t t = 0; t < item.frames(); ++t) {
    const T* row = item.log_probs(t);
    gather(item, row, emitted.data());
    const auto p_blank = split_exp(widen(Lanes<T>::of(row[item.blank()])));
    double mantissa = 0.0, exponent = kLowestExponent;  // of the last label of the group before
    for (int64_t g = 0; g < groups; ++g) {
      const Scaled<double> before{shift_in(sums[g].label.mantissa, mantissa),
                                  shift_in(sums[g].label.exponent, exponent)};
      mantissa = sums[g].label.mantissa.lane(kLanes - 1);
      exponent = sums[g].label.exponent.lane(kLanes - 1);
      const auto p_label = split_exp(widen(Lanes<T>::load(emitted.data() + g * kLanes)));
      Weights<T>* kept = keep ? weights + t * groups + g : nullptr;
      advance<keep>(sums[g], before, before.exponent + penalties[g], p_blank, p_label, kept);
      if (t % kFrames == 0) sums[g] = {normalized(sums[g].blank), normalized(sums[g].label)};
    }
  }
}

// A path ends in the last blank or in the last label.
struct Ends {
  double blank, label;  // probabilities of the ends; both are 0 if there is no path
  double log_partition;
};

inline Ends ends_of(int64_t labels, const Sums* sums) {
  const int64_t last = labels - 1;
  const auto& blank = sums[labels / kLanes].blank;
  double mantissa[2] = {blank.mantissa.lane(static_cast<int>(labels % kLanes)), 0.0};
  double exponent[2] = {blank.exponent.lane(static_cast<int>(labels % kLanes)), kLowestExponent};
  if (labels > 0) {
    const auto& label = sums[last / kLanes].label;
    mantissa[1] = label.mantissa.lane(static_cast<int>(last % kLanes));
    exponent[1] = label.exponent.lane(static_cast<int>(last % kLanes));
  }
  const double top = std::max({exponent[0], exponent[1], kLowestExponent});
  for (int end = 0; end < 2; ++end) {
    if (mantissa[end] > 0) mantissa[end] *= std::exp2(exponent[end] - top);
  }
  const double total = mantissa[0] + mantissa[1];
  if (!(total > 0)) return {0.0, 0.0, kNever};
  constexpr double log_two = 0.69314718055994530942;
  return {mantissa[0] / total, mantissa[1] / total, std::log(total) + top * log_two};
}

// The probabilities of the states of one group, in one frame.
template <class T>
struct States {
  Lanes<T> blank, label;
};

// Writes the probabilities of the symbols in a frame. The states of a frame have total 1; rounding errors
// accumulate with every frame, and the division removes them.
template <class T>
void write_frame(const Item<T>& item, const States<T>* states, T* probabilities, T* out) {
  auto blank = Lanes<T>::of(T(0)), label = blank;
  for (int64_t g = 0; g < item.groups(); ++g) {
    blank += states[g].blank;
    label += states[g].label;
    states[g].label.store(probabilities + g * kLanes);
  }
  const T of_blank = sum(blank), total = of_blank + sum(label);
  const T scale = total > 0 ? 1 / total : T(0);
  out[item.blank()] = of_blank * scale;
  for (int64_t i = 0; i < item.labels(); ++i) out[item.label(i)] += probabilities[i] * scale;
}

// Replaces the probabilities of the states of a frame with those of the frame before.
template <class T>
FOVEAL_INLINE void retreat(int64_t groups, const Weights<T>* weights, States<T>* states) {
  T after = 0;  // what the first lane of the next group passes to the label before it
  for (int64_t g = groups - 1; g >= 0; --g) {
    const Weights<T>& weight = weights[g];
    const States<T> here = states[g];
    const auto to_before = weight.blank_from_label * here.blank + weight.label_from_other * here.label;
    states[g] = {weight.blank_from_blank * here.blank + weight.label_from_blank * here.label,
                 weight.label_from_label * here.label + shift_out(to_before, after)};
    after = to_before.lane(0);
  }
}

template <class T>
void log_partition(const Spellings<T>& given, T* out, int64_t number) {
  const FlushSubnormals flushing;
  const Item<T> item(given, number);
  Buffer<Sums> sums(item.groups());
  inside<false, T>(item, sums.data(), nullptr);
  out[number] = static_cast<T>(ends_of(item.labels(), sums.data()).log_partition);
}

template <class T>
void marginals(const Spellings<T>& given, const SpellingMarginals<T>& out, int64_t number) {
  const FlushSubnormals flushing;
  const Item<T> item(given, number);
  const int64_t groups = item.groups(), labels = item.labels(), size = given.frames * given.symbols;
  Buffer<Sums> sums(groups);
  Buffer<Weights<T>> weights(item.frames() * groups);
  inside<true>(item, sums.data(), weights.data());
  const Ends ends = ends_of(labels, sums.data());
  out.log_partition[number] = static_cast<T>(ends.log_partition);

  T* marginals = out.marginals + number * size;
  std::fill(marginals, marginals + size, T(0));
  Buffer<States<T>> states(groups);
  Buffer<T> probabilities(groups * kLanes);
  for (int64_t g = 0; g < groups; ++g) states[g] = {Lanes<T>::of(T(0)), Lanes<T>::of(T(0))};
  states[labels / kLanes].blank.set_lane(static_cast<int>(labels % kLanes), static_cast<T>(ends.blank));
  if (labels > 0) {
    states[(labels - 1) / kLanes].label.set_lane(static_cast<int>((labels - 1) % kLanes), static_cast<T>(ends.label));
  }
  for (int64_t t = item.frames() - 1; t >= 0; --t) {
    write_frame(item, states.data(), probabilities.data(), marginals + item.row(t));
    retreat(groups, weights.data() + t * groups, states.data());
  }
}

template <class T>
constexpr CtcKernels<T> table() {
  return {&log_partition<T>, &marginals<T>};
}

}  // namespace ctc
}  // namespace FOVEAL_ISA
}  // namespace foveal
