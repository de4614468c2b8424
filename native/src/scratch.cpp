#include "scratch.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <vector>

namespace foveal {
namespace {

constexpr std::size_t kAlignment = 64;

// Blocks in use form a stack; blocks above `used` are free and are reused.
struct Pool {
  struct Block {
    void* data;
    std::size_t bytes;
  };
  std::vector<Block> blocks;
  std::size_t used = 0;

  ~Pool() {
    for (const Block& block : blocks) std::free(block.data);
  }
};

thread_local Pool pool;

}  // namespace

Scratch::Scratch(std::size_t bytes) {
  bytes = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (pool.used == pool.blocks.size()) pool.blocks.push_back({nullptr, 0});
  Pool::Block& block = pool.blocks[pool.used];
  if (block.bytes < bytes) {
    std::free(block.data);
    block = {nullptr, 0};
    block.data = std::aligned_alloc(kAlignment, bytes);
    if (block.data == nullptr) throw std::bad_alloc();
    block.bytes = bytes;
  }
  data_ = block.data;
  ++pool.used;
}

Scratch::~Scratch() { --pool.used; }

}  // namespace foveal
