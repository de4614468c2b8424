// The sentences that are computed together, and squares of numbers on pairs of their words.
//
// Masked words are removed, and the following words move up. Sentences in lanes may differ in length; values
// beyond the end of a sentence are replaced when they are read.

#pragma once

#include "charts.h"
#include "transposition.h"

namespace foveal {
namespace FOVEAL_ISA {

// `Layout` is charts::Starts or charts::Items; a square has `before` positions (for the root) before the words,
// which are never removed.
template <class Layout>
class Sentences {
 public:
  Sentences(const Batch& batch, int64_t before, int64_t first, int lanes)
      : size_(before + batch.words), lanes_(lanes),
        places_(batch.mask == nullptr ? 0 : Layout::sentences * size_) {
    for (int l = 0; l < Layout::sentences; ++l) {
      const int64_t place = first + (l < lanes ? l : 0);  // unused lanes repeat the first sentence
      items_[l] = batch.order == nullptr ? place : batch.order[place];
      counts_[l] = batch.mask == nullptr ? size_ : find(batch.mask + items_[l] * batch.words, before, l);
    }
    longest_ = *std::max_element(counts_, counts_ + Layout::sentences);
    shortest_ = *std::min_element(counts_, counts_ + Layout::sentences);
  }
  int lanes() const { return lanes_; }
  int64_t size() const { return size_; }                    // both axes of a square
  int64_t item(int lane) const { return items_[lane]; }     // its index in the batch
  int64_t count(int lane) const { return counts_[lane]; }   // the positions of a square in use
  int64_t longest() const { return longest_; }
  // The original position of the `index`-th real word of the first sentence.
  int64_t place(int64_t index) const { return has_gaps(0) ? places_[index] : index; }

  // Loads squares of a batch without masked words; `value` beyond the end of a sentence.
  template <class T>
  void read(const T* squares, T value, charts::Entry<Layout, T>* to) const {
    const int64_t area = size_ * size_;
    if constexpr (Layout::sentences == 1) {
      compact(0, squares + items_[0] * area, to);
    } else {
      Buffer<T> moved(has_gaps() ? kLanes * area : 0);
      const T* rows[kLanes];
      for (int l = 0; l < kLanes; ++l) {
        rows[l] = squares + items_[l] * area;
        if (!has_gaps(l)) continue;
        compact(l, rows[l], moved.data() + l * area);
        rows[l] = moved.data() + l * area;
      }
      gather(rows, longest_ * size_, to);
      end_sentences(value, to);
    }
  }

  // Stores squares back; `from` must hold 0 beyond the end of a sentence.
  template <class T>
  void write(const charts::Entry<Layout, T>* from, T* squares) const {
    const int64_t area = size_ * size_;
    if constexpr (Layout::sentences == 1) {
      expand(0, from, squares + items_[0] * area);
    } else {
      Buffer<T> moved(has_gaps() ? kLanes * area : 0);
      T* rows[kLanes];
      for (int l = 0; l < lanes_; ++l) {
        rows[l] = has_gaps(l) ? moved.data() + l * area : squares + items_[l] * area;
      }
      scatter(from, lanes_, area, rows);
      for (int l = 0; l < lanes_; ++l) {
        if (has_gaps(l)) expand(l, rows[l], squares + items_[l] * area);
      }
    }
  }

 private:
  int64_t find(const bool* real, int64_t before, int lane) const {
    int64_t* places = places_.data() + lane * size_;
    int64_t count = 0;
    while (count < before) places[count] = count, ++count;
    for (int64_t place = before; place < size_; ++place) {
      if (real[place - before]) places[count++] = place;
    }
    return count;
  }
  bool has_gaps(int lane) const {
    const int64_t count = counts_[lane];
    return count < size_ && count > 0 && places_[lane * size_ + count - 1] != count - 1;
  }
  bool has_gaps() const {
    for (int l = 0; l < Layout::sentences; ++l) {
      if (has_gaps(l)) return true;
    }
    return false;
  }
  template <class T>
  void compact(int lane, const T* from, T* to) const {
    const bool gaps = has_gaps(lane);
    const int64_t* places = places_.data() + lane * size_;
    for (int64_t i = 0; i < counts_[lane]; ++i) {
      const T* row = from + (gaps ? places[i] : i) * size_;
      if (!gaps) std::copy(row, row + counts_[lane], to + i * size_);
      for (int64_t j = 0; gaps && j < counts_[lane]; ++j) to[i * size_ + j] = row[places[j]];
    }
  }
  template <class T>
  void expand(int lane, const T* from, T* to) const {
    if (!has_gaps(lane)) {
      std::copy(from, from + size_ * size_, to);
      return;
    }
    const int64_t* places = places_.data() + lane * size_;
    std::fill(to, to + size_ * size_, T(0));
    for (int64_t i = 0; i < counts_[lane]; ++i) {
      for (int64_t j = 0; j < counts_[lane]; ++j) to[places[i] * size_ + places[j]] = from[i * size_ + j];
    }
  }
  template <class T>
  void end_sentences(T value, Lanes<T>* squares) const {
    Lanes<T> counts;
    for (int l = 0; l < kLanes; ++l) counts.set_lane(l, static_cast<T>(counts_[l]));
    for (int64_t i = 0; i < longest_; ++i) {
      for (int64_t j = i < shortest_ ? shortest_ : 0; j < longest_; ++j) {
        Lanes<T>& entry = squares[i * size_ + j];
        entry = where_less(Lanes<T>::of(static_cast<T>(std::max(i, j))), counts, entry, Lanes<T>::of(value));
      }
    }
  }

  int64_t size_;
  int lanes_;
  Buffer<int64_t> places_;
  int64_t items_[Layout::sentences], counts_[Layout::sentences];
  int64_t longest_, shortest_;
};

// Calls each(layout, first, lanes) for the sentences first .. last - 1, one by one or in groups that fill the
// lanes.
template <class Each>
void for_sentences(const Batch& batch, int64_t first, int64_t last, Each each) {
  if (!batch.together) {
    for (int64_t item = first; item < last; ++item) each(charts::Starts{}, item, 1);
    return;
  }
  for (int64_t item = first; item < last; item += kLanes) {
    each(charts::Items{}, item, static_cast<int>(std::min<int64_t>(kLanes, last - item)));
  }
}

}  // namespace FOVEAL_ISA
}  // namespace foveal
