// Checks the arguments of an op. Kernels work on bare pointers and trust every size. An op makes each tensor
// contiguous with these functions, which reject tensors that a kernel cannot read.

#pragma once

#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

namespace foveal {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

inline std::string shape_of(const int64_t* sizes, int64_t axes) {
  std::ostringstream text;
  text << "(";
  for (int64_t axis = 0; axis < axes; ++axis) text << (axis > 0 ? ", " : "") << sizes[axis];
  text << (axes == 1 ? ",)" : ")");
  return text.str();
}

// Throws "what must be expected, got the tensor".
[[noreturn]] inline void refuse(const char* name, const std::string& expected, const Tensor& got) {
  std::ostringstream text;
  text << "foveal_native: " << name << " must be " << expected << " on the CPU, got "
       << torch::headeronly::toString(got.scalar_type()) << " " << shape_of(got.sizes().data(), got.dim())
       << (got.is_cpu() ? "" : " on another device");
  throw std::runtime_error(text.str());
}

inline Tensor dense(const Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

inline bool is_floating(const Tensor& tensor) {
  return tensor.scalar_type() == ScalarType::Float || tensor.scalar_type() == ScalarType::Double;
}

// The tensor that determines the sizes of all others: float32 or float64, with this number of axes. `form`
// names the axes, such as "(B, T, K)".
inline Tensor leading(const char* name, const Tensor& given, int64_t axes, const char* form) {
  if (given.is_cpu() && is_floating(given) && given.dim() == axes) return dense(given);
  refuse(name, std::string("float32 or float64 ") + form, given);
}

inline bool has_sizes(const Tensor& tensor, std::initializer_list<int64_t> sizes) {
  return tensor.dim() == static_cast<int64_t>(sizes.size()) &&
         std::equal(sizes.begin(), sizes.end(), tensor.sizes().data());
}

// A tensor of exactly this type and these sizes.
inline Tensor fitting(const char* name, const Tensor& given, ScalarType type, std::initializer_list<int64_t> sizes) {
  if (given.is_cpu() && given.scalar_type() == type && has_sizes(given, sizes)) return dense(given);
  const std::string shape = shape_of(sizes.begin(), static_cast<int64_t>(sizes.size()));
  refuse(name, std::string(torch::headeronly::toString(type)) + " " + shape, given);
}

inline std::optional<Tensor> fitting(const char* name, const std::optional<Tensor>& given, ScalarType type,
                                     std::initializer_list<int64_t> sizes) {
  return given.has_value() ? std::optional<Tensor>(fitting(name, *given, type, sizes)) : std::nullopt;
}

inline std::optional<Tensor> fitting_mask(const std::optional<Tensor>& given, int64_t batch, int64_t places) {
  return fitting("mask", given, ScalarType::Bool, {batch, places});
}

// Uniform random numbers for each item, float64 (S, B, places), with any S.
inline Tensor fitting_draws(const char* name, const Tensor& given, ScalarType type, int64_t batch, int64_t places) {
  if (given.dim() != 3) refuse(name, "a tensor with three axes (S, B, draws)", given);
  return fitting(name, given, type, {given.size(0), batch, places});
}

// Tables (K, K), one for each item and step; either axis may have size 1, which shares a table.
inline Tensor fitting_transitions(const Tensor& given, ScalarType type, int64_t batch, int64_t steps, int64_t states) {
  if (given.dim() != 4) refuse("transitions", "a tensor (B or 1, T-1 or 1, K, K)", given);
  const int64_t items = given.size(0) == 1 ? 1 : batch, tables = given.size(1) == 1 ? 1 : steps;
  return fitting("transitions", given, type, {items, tables, states, states});
}

// Numbers on pairs of positions, float32 or float64.
inline Tensor fitting_squares(const char* name, const Tensor& given, const char* form) {
  const Tensor squares = leading(name, given, 3, form);
  if (squares.size(1) != squares.size(2)) refuse(name, form, given);
  return squares;
}

// Numbers on arcs of n words and the root.
inline Tensor fitting_arcs(const char* name, const Tensor& given) {
  const Tensor arcs = fitting_squares(name, given, "(B, n+1, n+1)");
  if (arcs.size(1) == 0) refuse(name, "(B, n+1, n+1)", given);
  return arcs;
}

inline void require(bool condition, const char* message) {
  if (!condition) throw std::runtime_error(std::string("foveal_native: ") + message);
}

}  // namespace foveal
