// Inputs and outputs of the kernels of search: products with packed weights, LSTM cells, additive attention.
//
// A product adds up in an order that depends only on its width, so a row has the same bits in any batch.

#pragma once

#include <cstdint>

namespace foveal {

constexpr int64_t kUnits = 16;              // hidden units that a block of columns computes
constexpr int64_t kColumns = 4 * kUnits;    // columns of a block: four gates of these units
constexpr int64_t kRows = 32;               // rows of a block
constexpr int64_t kTogether = 4 * kRows;    // rows of a step that share each block of weights while it is in the cache

// Multiplies rows and packed weights, block by block.
struct Products {
  // The numbers of a packed block of columns, and of `kRows` arranged rows, in floats.
  int64_t (*block_size)(int64_t width);
  int64_t (*rows_size)(int64_t width);
  // Packs columns first .. first + kColumns - 1 of a matrix (width, columns); columns beyond it are 0.
  void (*pack)(const float* weight, int64_t width, int64_t columns, int64_t first, float* to);
  void (*arrange)(const float* const* rows, int64_t count, int64_t width, float* to);
  // Writes the products of `count` arranged rows and a block, (count, kColumns).
  void (*multiply)(const float* rows, int64_t count, int64_t width, const float* block, float* to);
  void (*finish)();  // after the last product of a task
};

// A packed matrix (width, columns).
struct Packed {
  const Products* products;
  int64_t width, columns;
  const float* blocks;
};

struct ProductTask {
  Packed weights;
  const float* rows;  // (N, width)
  const float* bias;  // (columns) or null
  float* out;         // (N, columns)
};

// One step of an LSTM for B items with K rows each. Scores of gates are in groups of `kUnits` units: their input,
// forget, output and new gates.
struct LstmStep {
  Packed weights;         // from the hidden vector to the gates
  int64_t each, units;    // K and H
  const float* scores;    // of a row's input: (N, gates), or a table (W, gates) with `tokens`
  const int64_t* tokens;  // (B, K) or null
  const float* of_item;   // (B, gates), added to the scores of all rows of an item; or null
  const float* hidden;    // (B, K, H)
  const float* memory;
  float* next_hidden;
  float* next_memory;
};

// All steps of an LSTM for B texts, longest first, which read forward or backward.
struct LstmSequence {
  Packed weights;
  int64_t length, units;
  bool backward;
  const float* scores;     // (B, T, gates), or a table (W, gates) with `tokens`
  const int64_t* tokens;   // (B, T) or null
  const int64_t* lengths;  // (B)
  float* outputs;          // (B, T) rows of H numbers, `stride` apart; 0 after the end of a text
  int64_t stride;
};

// Softmax attention with additive scores, K queries for each of B items, and the vector before the output layer.
struct AttendTask {
  int64_t each, positions, query, width;  // K, S, Q, A
  const float* products;  // (B, K, Q + A): the query, and the part of the vector from the hidden state
  const float* keys;      // (B, S, Q)
  const float* weight;    // (Q)
  const float* values;    // (B, S, A), multiplied already
  const float* shut;      // (B, S): 0, or -inf on padding; or null
  float* vectors;         // (B, K, A)
  float* weights;         // (B, K, S)
};

// Kernels for items first .. last - 1, or rows of a product.
struct SearchKernels {
  Products products;
  void (*product)(const ProductTask&, int64_t first, int64_t last);
  void (*step)(const LstmStep&, int64_t first, int64_t last);
  void (*sequence)(const LstmSequence&, int64_t first, int64_t last);
  void (*attend)(const AttendTask&, int64_t first, int64_t last);
  void (*log_softmax)(float* scores, int64_t size, int64_t first, int64_t last);  // in place, for rows of this size
};

extern const SearchKernels baseline_search;
#if defined(FOVEAL_X86)
extern const SearchKernels avx2_search;
extern const SearchKernels avx512_search;
#endif

// The kernels of the instruction set in use, and products in bfloat16, or null if there are none.
const SearchKernels& search_kernels();
const Products* half_products();

// Products in the matrix unit of the CPU (AMX), or null if it has none.
const Products* tile_products();

}  // namespace foveal
