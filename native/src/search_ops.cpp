// The ops of search: products with packed weights, LSTM cells, additive attention.

#include <tuple>

#include "search_kernels.h"
#include "tensors.h"

namespace foveal {
namespace {

constexpr int64_t kRowsAtOnce = 256;  // their arranged form stays in the cache while all columns are computed

int64_t blocks_of(int64_t columns) { return (columns + kColumns - 1) / kColumns; }
int64_t gates_of(int64_t units) { return (units + kUnits - 1) / kUnits * kColumns; }

const Products* products_of(bool half) {
  const Products* found = half ? half_products() : &search_kernels().products;
  require(found != nullptr, "this CPU has no kernels for half precision");
  return found;
}

// The packed weights of a matrix (width, columns), which `search_pack` made with the same settings.
struct Weights {
  const Products* products;
  Tensor blocks;
  int64_t width, columns;

  Weights(const Tensor& given, int64_t width, int64_t columns, bool half)
      : products(products_of(half)),
        blocks(fitting("packed", given, ScalarType::Float, {blocks_of(columns), products->block_size(width)})),
        width(width), columns(columns) {}
  Packed view() const { return {products, width, columns, read<float>(blocks)}; }
};

Tensor float_rows(const char* name, const Tensor& given, int64_t axes, const char* form) {
  const bool fits = given.is_cpu() && given.scalar_type() == ScalarType::Float && given.dim() == axes;
  if (!fits) refuse(name, std::string("float32 ") + form, given);
  return dense(given);
}

// Scores of gates: one row for each input, or a table of tokens.
struct Scores {
  Tensor table;
  std::optional<Tensor> tokens;

  Scores(const Tensor& scores, const std::optional<Tensor>& given, int64_t batch, int64_t each, int64_t gates)
      : table(float_rows("scores", scores, 2, "(N, gates)")),
        tokens(fitting("tokens", given, ScalarType::Long, {batch, each})) {
    const int64_t rows = table.size(0);
    fitting("scores", table, ScalarType::Float, {tokens.has_value() ? rows : batch * each, gates});
    if (!tokens.has_value()) return;
    const int64_t* ids = read<int64_t>(*tokens);
    const bool known = std::all_of(ids, ids + batch * each, [&](int64_t id) { return 0 <= id && id < rows; });
    require(known, "tokens must be rows of the table of scores");
  }
};

Tensor search_pack(Tensor weight, bool half) {
  weight = float_rows("weight", weight, 2, "(D, G)");
  const Products& products = *products_of(half);
  const int64_t width = weight.size(0), columns = weight.size(1), size = products.block_size(width);
  require(width > 0, "a matrix must have at least one row");
  Tensor packed = like(weight, {blocks_of(columns), size});
  for (int64_t block = 0; block < blocks_of(columns); ++block) {
    products.pack(read<float>(weight), width, columns, block * kColumns, write<float>(packed) + block * size);
  }
  return packed;
}

// Fills `out` with the products of `count` rows, whatever the axes of the two tensors.
void multiply(const Tensor& rows, int64_t count, const Weights& weights, const std::optional<Tensor>& bias,
              const Tensor& out) {
  const ProductTask task{weights.view(), read<float>(rows), read<float>(bias), write<float>(out)};
  torch::stable::parallel_for(0, (count + kRowsAtOnce - 1) / kRowsAtOnce, 1, [&](int64_t first, int64_t last) {
    for (int64_t group = first; group < last; ++group) {
      search_kernels().product(task, group * kRowsAtOnce, std::min(count, (group + 1) * kRowsAtOnce));
    }
  });
}

Tensor search_product(Tensor rows, Tensor packed, std::optional<Tensor> bias, int64_t columns, bool half) {
  rows = float_rows("rows", rows, 2, "(N, D)");
  require(columns >= 0, "the number of columns must be at least 0");
  const Weights weights(packed, rows.size(1), columns, half);
  bias = fitting("bias", bias, ScalarType::Float, {columns});
  Tensor out = like(rows, {rows.size(0), columns});
  multiply(rows, rows.size(0), weights, bias, out);
  return out;
}

std::tuple<Tensor, Tensor> search_step(Tensor scores, std::optional<Tensor> tokens, std::optional<Tensor> of_item,
                                       Tensor hidden, Tensor memory, Tensor packed, bool half) {
  hidden = float_rows("hidden", hidden, 3, "(B, K, H)");
  const int64_t batch = hidden.size(0), each = hidden.size(1), units = hidden.size(2), gates = gates_of(units);
  memory = fitting("memory", memory, ScalarType::Float, {batch, each, units});
  of_item = fitting("of_item", of_item, ScalarType::Float, {batch, gates});
  const Scores inputs(scores, tokens, batch, each, gates);
  const Weights weights(packed, units, gates, half);
  Tensor next_hidden = like(hidden, {batch, each, units}), next_memory = like(hidden, {batch, each, units});
  if (hidden.numel() == 0) return {next_hidden, next_memory};
  const LstmStep task{weights.view(), each, units, read<float>(inputs.table), read<int64_t>(inputs.tokens),
                      read<float>(of_item), read<float>(hidden), read<float>(memory), write<float>(next_hidden),
                      write<float>(next_memory)};
  torch::stable::parallel_for(0, batch, kTogether, [&](int64_t first, int64_t last) {
    search_kernels().step(task, first, last);
  });
  return {next_hidden, next_memory};
}

void search_sequence(Tensor scores, std::optional<Tensor> tokens, Tensor lengths, Tensor packed, bool backward,
                     bool half, int64_t units, int64_t offset, Tensor outputs) {
  const bool fits = outputs.is_cpu() && outputs.scalar_type() == ScalarType::Float && outputs.dim() == 3;
  if (!fits || !outputs.is_contiguous()) refuse("outputs", "contiguous float32 (B, T, width)", outputs);
  const int64_t batch = outputs.size(0), length = outputs.size(1), stride = outputs.size(2);
  const int64_t gates = gates_of(std::max<int64_t>(units, 0));
  require(units > 0 && units <= stride && offset >= 0 && offset <= stride - units, "the outputs are too narrow");
  lengths = fitting("lengths", lengths, ScalarType::Long, {batch});
  const Scores inputs(scores, tokens, batch, length, gates);
  const Weights weights(packed, units, gates, half);
  const int64_t* each = read<int64_t>(lengths);
  const bool sorted = std::is_sorted(each, each + batch, std::greater<int64_t>());
  require(batch == 0 || (sorted && each[0] <= length && each[batch - 1] >= 0), "lengths must be sorted, longest first");
  const LstmSequence task{weights.view(), length, units, backward, read<float>(inputs.table),
                          read<int64_t>(inputs.tokens), each, write<float>(outputs) + offset, stride};
  torch::stable::parallel_for(0, (batch + kTogether - 1) / kTogether, 1, [&](int64_t first, int64_t last) {
    search_kernels().sequence(task, first * kTogether, std::min(batch, last * kTogether));
  });
}

std::tuple<Tensor, Tensor> search_attend(Tensor products, Tensor keys, Tensor weight, Tensor values,
                                         std::optional<Tensor> shut) {
  products = float_rows("products", products, 3, "(B, K, Q + A)");
  values = float_rows("values", values, 3, "(B, S, A)");
  const int64_t batch = products.size(0), each = products.size(1), positions = values.size(1), width = values.size(2);
  const int64_t query = products.size(2) - width;
  require(query >= 0 && positions > 0 && values.size(0) == batch, "the values must fit the products");
  keys = fitting("keys", keys, ScalarType::Float, {batch, positions, query});
  weight = fitting("weight", weight, ScalarType::Float, {query});
  shut = fitting("shut", shut, ScalarType::Float, {batch, 1, positions});
  Tensor vectors = like(products, {batch, each, width}), weights = like(products, {batch, each, positions});
  const AttendTask task{each, positions, query, width, read<float>(products), read<float>(keys), read<float>(weight),
                        read<float>(values), read<float>(shut), write<float>(vectors), write<float>(weights)};
  torch::stable::parallel_for(0, batch, 1, [&](int64_t first, int64_t last) {
    search_kernels().attend(task, first, last);
  });
  return {vectors, weights};
}

// A whole step of a decoder: its LSTM, its attention, and the log-probabilities of the next token.
std::tuple<Tensor, Tensor, Tensor, Tensor> search_decode(Tensor table, Tensor tokens, std::optional<Tensor> of_item,
                                                         Tensor hidden, Tensor memory, Tensor of_state,
                                                         Tensor of_hidden, Tensor keys, Tensor weight, Tensor values,
                                                         std::optional<Tensor> shut, Tensor output, Tensor bias,
                                                         bool half) {
  auto [after, after_memory] = search_step(table, tokens, of_item, hidden, memory, of_state, half);
  if (values.dim() != 3 || weight.dim() != 1) refuse("values", "a tensor (B, S, A) for a weight (Q,)", values);
  if (bias.dim() != 1) refuse("bias", "a tensor (W,)", bias);
  const int64_t batch = after.size(0), each = after.size(1), units = after.size(2), size = bias.size(0);
  const int64_t width = weight.size(0) + values.size(2), count = batch * each;
  const Weights to_products(of_hidden, units, width, half), to_scores(output, values.size(2), size, half);
  bias = fitting("bias", bias, ScalarType::Float, {size});
  Tensor products = like(after, {batch, each, width}), scores = like(after, {batch, each, size});
  multiply(after, count, to_products, std::nullopt, products);
  auto [vectors, weights] = search_attend(products, keys, weight, values, shut);
  multiply(vectors, count, to_scores, bias, scores);
  torch::stable::parallel_for(0, count, kRowsAtOnce, [&](int64_t first, int64_t last) {
    search_kernels().log_softmax(write<float>(scores), size, first, last);
  });
  return {after, after_memory, weights, scores};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(foveal_native, m) {
  m.def("search_pack(Tensor weight, bool half) -> Tensor");
  m.def("search_product(Tensor rows, Tensor packed, Tensor? bias, int columns, bool half) -> Tensor");
  m.def("search_step(Tensor scores, Tensor? tokens, Tensor? of_item, Tensor hidden, Tensor memory, Tensor packed, "
        "bool half) -> (Tensor, Tensor)");
  m.def("search_sequence(Tensor scores, Tensor? tokens, Tensor lengths, Tensor packed, bool backward, bool half, "
        "int units, int offset, Tensor(a!) outputs) -> ()");
  m.def("search_decode(Tensor table, Tensor tokens, Tensor? of_item, Tensor hidden, Tensor memory, Tensor of_state, "
        "Tensor of_hidden, Tensor keys, Tensor weight, Tensor values, Tensor? shut, Tensor output, Tensor bias, "
        "bool half) -> (Tensor, Tensor, Tensor, Tensor)");
  m.def("search_attend(Tensor products, Tensor keys, Tensor weight, Tensor values, Tensor? shut) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(foveal_native, CPU, m) {
  m.impl("search_pack", TORCH_BOX(&search_pack));
  m.impl("search_product", TORCH_BOX(&search_product));
  m.impl("search_step", TORCH_BOX(&search_step));
  m.impl("search_sequence", TORCH_BOX(&search_sequence));
  m.impl("search_decode", TORCH_BOX(&search_decode));
  m.impl("search_attend", TORCH_BOX(&search_attend));
}

}  // namespace foveal
