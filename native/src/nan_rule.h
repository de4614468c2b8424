// NaN in, NaN out. An item with a NaN or +inf where its structure reads has no distribution: log Z and the
// marginals of everything it reads are NaN, and there is no sample. The best structure is unspecified, because
// finding it is faster than looking for a NaN: if a score may be NaN, compute log Z first.
// Kernels may compute anything for such an item, as long as it stays in its lane; the ops overwrite it with
// NaN. The other items of the batch, and the values that no structure reads, do not change.
//
// The ops sum the numbers of a batch first, which takes a fraction of a kernel's time and in most cases
// shows that there is nothing to do.

#pragma once

#include <algorithm>
#include <limits>

#include "kernels.h"

namespace foveal {

template <class T>
constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

inline bool may_be_spoiled(const float* from, int64_t count) { return kernels().may_be_spoiled_float(from, count); }
inline bool may_be_spoiled(const double* from, int64_t count) { return kernels().may_be_spoiled_double(from, count); }

template <class T>
bool is_spoiled(const T* from, int64_t count) {
  bool found = false;
  for (int64_t i = 0; i < count; ++i) found = found || !(from[i] < std::numeric_limits<T>::infinity());
  return found;
}

// Calls each(place) for the arcs [head, word] between the real ones of n words and from the root, in a square
// (n+1, n+1).
template <class Each>
void for_read_arcs(const bool* mask, int64_t words, Each each) {
  const auto real = [&](int64_t node) { return mask == nullptr || mask[node - 1]; };
  for (int64_t head = 0; head <= words; ++head) {
    if (head > 0 && !real(head)) continue;
    for (int64_t word = 1; word <= words; ++word) {
      if (word != head && real(word)) each(head * (words + 1) + word);
    }
  }
}

// For structures with consecutive items: `for_read(item, each)` calls each(place) for the numbers in `scores`
// (B, size) that an item's structure reads. Calls spoil(item) for items with a NaN or +inf.
template <class T, class ForRead, class Spoil>
void for_spoiled(const T* scores, int64_t size, int64_t first, int64_t last, ForRead for_read, Spoil spoil) {
  if (!may_be_spoiled(scores + first * size, (last - first) * size)) return;
  for (int64_t item = first; item < last; ++item) {
    bool found = false;
    for_read(item, [&](int64_t place) { found = found || is_spoiled(scores + item * size + place, 1); });
    if (found) spoil(item);
  }
}

// The same for the sentences at the places first .. last - 1 of a batch, in its order.
template <class T, class ForRead, class Spoil>
void for_spoiled(const Batch& batch, const T* scores, int64_t size, int64_t first, int64_t last, ForRead for_read,
                 Spoil spoil) {
  for (int64_t place = first; place < last; ++place) {
    const int64_t item = batch.order == nullptr ? place : batch.order[place];
    for_spoiled(scores, size, item, item + 1, for_read, spoil);
  }
}

// Tables of transitions (K, K) as chains and semi-Markov models have them, for items first .. last - 1 of
// `steps` steps.
template <class Model>
bool may_have_spoiled_steps(const Model& model, int64_t edges, int64_t steps, int64_t first, int64_t last) {
  if (steps == 0) return false;
  const int64_t tables = model.step_stride == 0 ? 1 : steps;
  const int64_t items = model.item_stride == 0 ? 1 : last - first;
  return may_be_spoiled(model.transitions + first * model.item_stride, items * tables * edges);
}

// Writes NaN at all positions of an item (B, size) that its structure reads, and 0 at the others.
template <class T, class ForRead>
void fill_with_nan(T* numbers, int64_t size, int64_t item, ForRead for_read) {
  std::fill(numbers + item * size, numbers + (item + 1) * size, T(0));
  for_read(item, [&](int64_t place) { numbers[item * size + place] = kNaN<T>; });
}

}  // namespace foveal
