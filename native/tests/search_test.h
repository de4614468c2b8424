// The kernels of search against plain loops in double. Arrays have exactly the size that a kernel may access.

#pragma once

#include <algorithm>
#include <utility>

#include "check.h"
#include "search_kernels.h"

namespace foveal {

inline std::vector<const SearchKernels*> search_tables() {
  std::vector<const SearchKernels*> found;
  for (const Kernels* table : tables()) {
    const SearchKernels* search = &baseline_search;
#if defined(FOVEAL_X86)
    if (table == &avx2_kernels) search = &avx2_search;
    if (table == &avx512_kernels) search = &avx512_search;
#endif
    found.push_back(search);
  }
  return found;
}

// A matrix (width, columns), packed.
struct PackedCase {
  std::vector<float> weight, blocks;
  Packed packed;

  PackedCase(std::mt19937& random, const Products& products, int64_t width, int64_t columns)
      : weight(scores<float>(random, width * columns, false)) {
    const int64_t size = products.block_size(width), count = (columns + kColumns - 1) / kColumns;
    blocks.resize(static_cast<std::size_t>(count * size));
    for (int64_t block = 0; block < count; ++block) {
      products.pack(weight.data(), width, columns, block * kColumns, blocks.data() + block * size);
    }
    packed = {&products, width, columns, blocks.data()};
  }
  double product(const float* row, int64_t column) const {
    double total = 0;
    for (int64_t k = 0; k < packed.width; ++k) total += double(row[k]) * weight[k * packed.columns + column];
    return total;
  }
};

inline void check_products(const SearchKernels& kernels, const Products& products, double tolerance) {
  std::mt19937 random(0);
  for (const int64_t count : {1, 7, 35}) {
    const int64_t width = 37, columns = 70;
    const PackedCase given(random, products, width, columns);
    const auto rows = scores<float>(random, count * width, false), bias = scores<float>(random, columns, false);
    std::vector<float> out(static_cast<std::size_t>(count * columns));
    kernels.product({given.packed, rows.data(), bias.data(), out.data()}, 0, count);
    for (int64_t i = 0; i < count * columns; ++i) {
      const double expected = given.product(rows.data() + i / columns * width, i % columns) + bias[i % columns];
      expect("product", out[i], expected, tolerance);
    }
  }
}

// A step from a state, and a sequence of one step, whose state is 0.
inline void check_cells(const SearchKernels& kernels, const Products& products, double tolerance) {
  std::mt19937 random(0);
  const int64_t batch = 9, each = 5, units = 21, gates = 2 * kColumns, count = batch * each;
  const PackedCase given(random, products, units, gates);
  const auto inputs = scores<float>(random, count * gates, false), memory = scores<float>(random, count * units, false);
  auto hidden = scores<float>(random, count * units, false);
  std::copy_n(hidden.begin(), units, hidden.begin() + 2 * units);  // equal rows of an item
  std::vector<float> next(hidden.size()), next_memory(hidden.size()), first(hidden.size());
  const std::vector<int64_t> lengths(static_cast<std::size_t>(count), 1);
  kernels.step({given.packed, each, units, inputs.data(), nullptr, nullptr, hidden.data(), memory.data(), next.data(),
                next_memory.data()}, 0, batch);
  kernels.sequence({given.packed, 1, units, true, inputs.data(), nullptr, lengths.data(), first.data(), units}, 0, count);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (int64_t i = 0; i < count * units; ++i) {
    const int64_t row = i / units, at = i % units / kUnits * kColumns + i % units % kUnits;
    const auto after = [&](double before, bool with_state) {
      double gate[4];
      for (int64_t g = 0; g < 4; ++g) {
        gate[g] = inputs[row * gates + at + g * kUnits];
        if (with_state) gate[g] += given.product(hidden.data() + row * units, at + g * kUnits);
      }
      const double cell = sigmoid(gate[1]) * before + sigmoid(gate[0]) * std::tanh(gate[3]);
      return std::pair<double, double>(cell, sigmoid(gate[2]) * std::tanh(cell));
    };
    expect("memory", next_memory[i], after(memory[i], true).first, tolerance);
    expect("hidden", next[i], after(memory[i], true).second, tolerance);
    expect("first hidden", first[i], after(0, false).second, tolerance);
  }
}

inline void check_attention(const SearchKernels& kernels) {
  std::mt19937 random(0);
  const int64_t batch = 3, each = 2, positions = 5, query = 19, width = 21;
  const auto products = scores<float>(random, batch * each * (query + width), false);
  const auto keys = scores<float>(random, batch * positions * query, false), weight = scores<float>(random, query, false);
  const auto values = scores<float>(random, batch * positions * width, false);
  std::vector<float> shut(static_cast<std::size_t>(batch * positions), 0.0f);
  shut[1] = -std::numeric_limits<float>::infinity();
  std::vector<float> vectors(static_cast<std::size_t>(batch * each * width));
  std::vector<float> weights(static_cast<std::size_t>(batch * each * positions));
  kernels.attend({each, positions, query, width, products.data(), keys.data(), weight.data(), values.data(), shut.data(),
                  vectors.data(), weights.data()}, 0, batch);
  for (int64_t row = 0; row < batch * each; ++row) {
    const float* product = products.data() + row * (query + width);
    std::vector<double> exact;
    double total = 0;
    for (int64_t s = 0; s < positions; ++s) {
      const int64_t place = row / each * positions + s;
      double score = shut[place];
      for (int64_t q = 0; q < query; ++q) score += weight[q] * std::tanh(double(product[q]) + keys[place * query + q]);
      exact.push_back(std::exp(score));
      total += exact.back();
    }
    for (int64_t s = 0; s < positions; ++s) expect("weight", weights[row * positions + s], exact[s] / total, 1e-5);
    for (int64_t a = 0; a < width; ++a) {
      double sum = product[query + a];
      for (int64_t s = 0; s < positions; ++s) sum += exact[s] / total * values[(row / each * positions + s) * width + a];
      expect("vector", vectors[row * width + a], std::tanh(sum), 1e-5);
    }
  }
}

inline void check_log_softmax(const SearchKernels& kernels) {
  std::mt19937 random(0);
  auto given = scores<float>(random, 2 * 37, true), found = given;
  kernels.log_softmax(found.data(), 37, 0, 2);
  for (int64_t row = 0; row < 2; ++row) {
    double total = 0;
    for (int64_t w = 0; w < 37; ++w) total += std::exp(double(given[row * 37 + w]));
    for (int64_t w = 0; w < 37; ++w) expect("log-probability", found[row * 37 + w], given[row * 37 + w] - std::log(total), 1e-5);
  }
}

inline void check_search(const SearchKernels& kernels) {
  check_products(kernels, kernels.products, 2e-5);
  check_cells(kernels, kernels.products, 2e-5);
  check_attention(kernels);
  check_log_softmax(kernels);
  if (const Products* tiles = tile_products()) {  // 8 bits; sums of 37 products of numbers up to 6
    check_products(kernels, *tiles, 0.2);
    check_cells(kernels, *tiles, 0.2);
  }
}

}  // namespace foveal
