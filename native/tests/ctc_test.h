// CTC: the kernels against a sum over all sequences of symbols.

#pragma once

#include <algorithm>

#include "check.h"

namespace foveal {

// Labels 1 .. V - 1 and the blank 0. Log-probabilities of padding, and labels of padding, are invalid: a kernel
// that reads them cannot hide it.
template <class T>
struct CtcCase {
  int64_t batch, frames, symbols, labels;
  std::vector<T> log_probs;
  std::vector<int64_t> label;
  Mask frame_mask, label_mask;

  CtcCase(std::mt19937& random, int64_t batch, int64_t frames, int64_t symbols, int64_t labels, bool masked,
          bool forbid)
      : batch(batch), frames(frames), symbols(symbols), labels(labels),
        log_probs(scores<T>(random, batch * frames * symbols, forbid)), label(batch * labels) {
    for (int64_t& one : label) one = 1 + static_cast<int64_t>(random() % (symbols - 1));
    if (!masked) return;
    frame_mask = random_mask(random, batch * frames);
    label_mask = random_mask(random, batch * labels);
    for (int64_t i = 0; i < batch * frames * symbols; ++i) {
      if (!frame_mask.bits[i / symbols]) log_probs[i] = std::numeric_limits<T>::quiet_NaN();
    }
    for (int64_t i = 0; i < batch * labels; ++i) {
      if (!label_mask.bits[i]) label[i] = int64_t(1) << 40;
    }
  }
  std::vector<int64_t> real(const Mask& mask, int64_t item, int64_t count) const {
    std::vector<int64_t> found;
    for (int64_t i = 0; i < count; ++i) {
      if (mask.bits.empty() || mask.bits[item * count + i]) found.push_back(i);
    }
    return found;
  }
};

// Sums over all sequences of one item.
template <class T>
struct CtcSums {
  double log_partition;
  std::vector<double> emitted;  // (T, V)

  CtcSums(const CtcCase<T>& given, int64_t item) : emitted(given.frames * given.symbols) {
    const auto frames = given.real(given.frame_mask, item, given.frames);
    std::vector<int64_t> wanted;
    for (int64_t i : given.real(given.label_mask, item, given.labels)) wanted.push_back(given.label[item * given.labels + i]);
    const int64_t length = static_cast<int64_t>(frames.size());
    std::vector<int64_t> path(length);
    double total = 0;
    while (true) {
      std::vector<int64_t> spelled;
      double score = 0;
      for (int64_t t = 0; t < length; ++t) {
        if (path[t] != 0 && (t == 0 || path[t] != path[t - 1])) spelled.push_back(path[t]);
        score += given.log_probs[(item * given.frames + frames[t]) * given.symbols + path[t]];
      }
      if (spelled == wanted) {
        total += std::exp(score);
        for (int64_t t = 0; t < length; ++t) emitted[frames[t] * given.symbols + path[t]] += std::exp(score);
      }
      int64_t next = 0;
      while (next < length && ++path[next] == given.symbols) path[next++] = 0;
      if (next == length) break;
    }
    log_partition = std::log(total);
    for (double& mass : emitted) mass = total > 0 ? mass / total : 0;
  }
};

template <class T>
struct CtcFound {
  std::vector<T> log_partition, again, emitted;

  CtcFound(const CtcKernels<T>& kernels, const CtcCase<T>& given)
      : log_partition(given.batch), again(given.batch), emitted(given.batch * given.frames * given.symbols) {
    const Spellings<T> view{given.frames,           given.symbols,      given.labels,            0,
                            given.log_probs.data(), given.label.data(), given.frame_mask.data(), given.label_mask.data()};
    for (int64_t item = 0; item < given.batch; ++item) {
      kernels.log_partition(view, log_partition.data(), item);
      kernels.marginals(view, {again.data(), emitted.data()}, item);
    }
  }
};

template <class T>
void check_ctc_of(const CtcKernels<T>& kernels, const CtcCase<T>& given, double tolerance) {
  const CtcFound<T> found(kernels, given);
  const int64_t size = given.frames * given.symbols;
  for (int64_t item = 0; item < given.batch; ++item) {
    const CtcSums<T> sums(given, item);
    expect("log partition of CTC", found.log_partition[item], sums.log_partition, tolerance);
    expect("log partition of CTC with marginals", found.again[item], sums.log_partition, tolerance);
    for (int64_t i = 0; i < size; ++i) expect("emission", found.emitted[item * size + i], sums.emitted[i], tolerance);
  }
}

// More labels than a register has lanes. If every frame is even, the number of paths that spell L labels without
// neighbors that are equal in T frames is the binomial coefficient (T + L over 2 L).
template <class T>
void check_ctc_of_many_labels(const CtcKernels<T>& kernels, int64_t frames, int64_t labels, double tolerance) {
  std::mt19937 random(0);
  CtcCase<T> given(random, 1, frames, 3, labels, false, false);
  std::fill(given.log_probs.begin(), given.log_probs.end(), T(0));
  for (int64_t i = 0; i < labels; ++i) given.label[i] = 1 + i % 2;
  const CtcFound<T> found(kernels, given);
  const double paths = std::lgamma(frames + labels + 1.0) - std::lgamma(2.0 * labels + 1) - std::lgamma(frames - labels + 1.0);
  expect("log number of spellings", found.log_partition[0], paths, tolerance);
  for (int64_t t = 0; t < frames; ++t) {
    const T* row = found.emitted.data() + 3 * t;
    expect("total of a frame", row[0] + row[1] + row[2], 1, tolerance);
    expect("first and last frames are alike", row[0], found.emitted[3 * (frames - 1 - t)], tolerance);
  }
}

// No frames, no labels, more labels than frames, and registers that labels fill.
template <class T>
void check_ctc(const CtcKernels<T>& kernels, double tolerance) {
  std::mt19937 random(0);
  const int64_t shapes[][3] = {{0, 3, 0}, {0, 3, 2}, {4, 1, 0}, {1, 2, 1}, {5, 3, 0}, {5, 3, 2}, {6, 4, 3}, {7, 3, 4}, {3, 3, 5}};
  for (int kind = 0; kind < 4; ++kind) {
    for (const auto& [frames, symbols, labels] : shapes) {
      check_ctc_of(kernels, CtcCase<T>(random, 3, frames, symbols, labels, kind & 1, kind & 2), tolerance);
    }
  }
  for (int64_t labels : {3, 4, 7, 8, 15, 16, 17, 31, 32, 40}) check_ctc_of_many_labels(kernels, 300, labels, tolerance);
}

}  // namespace foveal
