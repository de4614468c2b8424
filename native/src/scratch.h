// Working memory of a thread. It is kept between calls, because getting megabytes from the operating
// system each time takes longer than a small kernel.

#pragma once

#include <cstddef>
#include <cstdint>

namespace foveal {

// A block of the thread's memory; blocks are released in reverse order, at the end of a scope.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <class Item>
  Item* as() const {
    return static_cast<Item*>(data_);
  }

 private:
  void* data_;
};

// `count` items, aligned for any register, not initialized.
template <class Item>
class Buffer {
 public:
  explicit Buffer(int64_t count) : scratch_(static_cast<std::size_t>(count) * sizeof(Item)) {}
  Item* data() const { return scratch_.as<Item>(); }
  Item& operator[](int64_t index) const { return data()[index]; }

 private:
  Scratch scratch_;
};

}  // namespace foveal
