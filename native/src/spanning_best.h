// The best spanning tree (Chu-Liu-Edmonds).
//
// Each component, at first a word, takes its best arc from outside. Components on a cycle merge, and the cost of
// an arc into them then includes the arc that it replaces. With a single root, any arc between words is better
// than a root arc, so the search uses no unnecessary root arc. A round is one pass over the scores; the number
// of rounds is the nesting depth of cycles.

#pragma once

#include "spanning.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace spanning {

// The state of the search and the rounds so far, for nodes 0 (the root) .. size - 1.
class Contraction {
 public:
  Contraction(const Square<double>& scores, int64_t size, bool single_root)
      : scores_(scores), size_(size), single_root_(single_root), offsets_(scores.stride()), values_(scores.stride()),
        heads_(scores.stride()), names_(scores.stride()), states_(size), rounds_(size * size * 4) {
    std::fill(offsets_.data(), offsets_.data() + scores.stride(), 0.0);
  }

  // Heads of the best tree, -1 for the root.
  void run(int64_t* heads) {
    for (int64_t node = 0; node < size_; ++node) component(0)[node] = node;
    int64_t round = 0;
    for (enter(round); join(round); enter(round)) ++round;
    std::fill(heads, heads + size_, int64_t(-1));
    for (int64_t last = round; round >= 0; --round) expand(round, round == last, heads);
  }

 private:
  // For each round: the component of each node; for each component, whether it merges and the arc into it.
  int64_t* component(int64_t round) const { return rounds_.data() + round * size_ * 4; }
  int64_t* joined(int64_t round) const { return component(round) + size_; }
  int64_t* head(int64_t round) const { return component(round) + 2 * size_; }
  int64_t* word(int64_t round) const { return component(round) + 3 * size_; }

  // The best arc into each component.
  void enter(int64_t round) {
    const int64_t* own = component(round);
    Buffer<double> best(size_), of_root(size_);
    for (int64_t d = 0; d < size_; ++d) {
      best[d] = of_root[d] = kNever;
      head(round)[d] = 0;
      word(round)[d] = d;
    }
    search(own);
    for (int64_t d = 1; d < size_; ++d) {
      const int64_t c = own[d];
      if (values_[d] > best[c]) {
        best[c] = values_[d];
        head(round)[c] = static_cast<int64_t>(heads_[d]);
        word(round)[c] = d;
      }
    }
    for (int64_t d = 1; d < size_; ++d) {
      const int64_t c = own[d];
      const double value = scores_.row(0)[d] - offsets_[d];
      const bool comes_first = single_root_ ? best[c] == kNever : value >= best[c];
      if (!comes_first || !(value > of_root[c])) continue;
      of_root[c] = value;
      head(round)[c] = 0;
      word(round)[c] = d;
    }
    for (int64_t c = 1; c < size_; ++c) values_[c] = head(round)[c] == 0 ? of_root[c] : best[c];
  }

  // The best head of each word among the words of other components, and its value.
  void search(const int64_t* own) {
    const auto never = Lanes<double>::of(kNever);
    for (int64_t d = 0; d < scores_.stride(); ++d) names_[d] = d < size_ ? static_cast<double>(own[d]) : 0;
    for (int64_t c = 0; c < size_; c += kLanes) {
      const auto names = Lanes<double>::load(&names_[c]), offsets = Lanes<double>::load(&offsets_[c]);
      auto value = never, head = Lanes<double>::of(0.0);
      for (int64_t h = 1; h < size_; ++h) {
        const auto inside = Lanes<double>::of(names_[h]);
        const auto found = Lanes<double>::load(scores_.at(h, c)) - offsets;
        const auto outside = where_less(names, inside, found, where_less(inside, names, found, never));
        head = where_less(value, outside, Lanes<double>::of(static_cast<double>(h)), head);
        value = max(value, outside);
      }
      value.store(&values_[c]);
      head.store(&heads_[c]);
    }
  }

  // Merges the components on cycles; returns false if there are none.
  bool join(int64_t round) {
    const int64_t* own = component(round);
    std::fill(joined(round), joined(round) + size_, int64_t(0));
    std::fill(states_.data(), states_.data() + size_, int64_t(0));
    bool found = false;
    Buffer<int64_t> names(size_);
    for (int64_t c = 0; c < size_; ++c) names[c] = c;
    for (int64_t start = 1; start < size_; ++start) {
      if (own[start] != start) continue;
      int64_t c = start;
      while (c != 0 && states_[c] == 0) {
        states_[c] = start;
        c = own[head(round)[c]];
      }
      if (c == 0 || states_[c] != start) continue;  // the root, or an earlier path
      found = true;
      const int64_t name = c;
      do {
        joined(round)[c] = 1;
        names[c] = name;
        c = own[head(round)[c]];
      } while (c != name);
    }
    if (!found) return false;
    for (int64_t d = 1; d < size_; ++d) {
      if (joined(round)[own[d]]) offsets_[d] += values_[own[d]];
    }
    for (int64_t d = 0; d < size_; ++d) component(round + 1)[d] = names[own[d]];
    return true;
  }

  // The last round enters every component; earlier rounds enter the components that later rounds left open.
  void expand(int64_t round, bool is_last, int64_t* heads) const {
    const int64_t* own = component(round);
    Buffer<int64_t> is_entered(size_);
    std::fill(is_entered.data(), is_entered.data() + size_, int64_t(0));
    for (int64_t d = 1; d < size_; ++d) {
      if (heads[d] >= 0) is_entered[own[d]] = 1;
    }
    for (int64_t c = 1; c < size_; ++c) {
      const bool enters = own[c] == c && (is_last || (joined(round)[c] && !is_entered[c]));
      if (enters) heads[word(round)[c]] = head(round)[c];
    }
  }

  const Square<double>& scores_;
  int64_t size_;
  bool single_root_;
  Buffer<double> offsets_, values_, heads_, names_;
  Buffer<int64_t> states_, rounds_;
};

template <class T>
void best(const Graph<T>& arcs, int64_t* heads, T* scores, int64_t item) {
  const Graph<T> one_root{arcs.words, false, arcs.scores, arcs.mask};
  const Sentence sentence(one_root, item);
  const int64_t size = arcs.words + 1;
  const Square<double> square(sentence);
  read(sentence, arcs.scores + item * size * size, size, kNever, square);
  Buffer<int64_t> found(sentence.size());
  Contraction(square, sentence.size(), arcs.single_root).run(found.data());
  int64_t* out = heads + item * arcs.words;
  std::fill(out, out + arcs.words, int64_t(0));
  double total = 0;
  int64_t num_roots = 0;
  for (int64_t word = 1; word < sentence.size(); ++word) {
    total += *square.at(found[word], word);
    num_roots += found[word] == 0;
    out[sentence.place(word) - 1] = sentence.place(found[word]);
  }
  scores[item] = static_cast<T>(arcs.single_root && num_roots > 1 ? kNever : total);
}

}  // namespace spanning
}  // namespace FOVEAL_ISA
}  // namespace foveal
