// From tensors to pointers, for the op wrappers.

#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>
#include <torch/headeronly/util/Exception.h>

#include <numeric>
#include <vector>

#include "arguments.h"
#include "kernels.h"
#include "nan_rule.h"

namespace foveal {

template <class T>
const T* read(const Tensor& tensor) {
  return static_cast<const T*>(tensor.const_data_ptr());
}

template <class T>
const T* read(const std::optional<Tensor>& tensor) {
  return tensor.has_value() ? read<T>(*tensor) : nullptr;
}

template <class T>
T* write(const Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

inline int32_t code_of(ScalarType type) {
  switch (type) {
    case ScalarType::Float: return aoti_torch_dtype_float32();
    case ScalarType::Long: return aoti_torch_dtype_int64();
    case ScalarType::Bool: return aoti_torch_dtype_bool();
    default: return aoti_torch_dtype_float64();
  }
}

// Creates a contiguous CPU tensor directly, because a call through the dispatcher by name takes longer than a
// small kernel.
inline Tensor like(const Tensor& tensor, std::initializer_list<int64_t> sizes,
                   std::optional<ScalarType> type = std::nullopt) {
  const int64_t* size = sizes.begin();
  const int64_t axes = static_cast<int64_t>(sizes.size());
  int64_t strides[5];
  for (int64_t axis = axes - 1, stride = 1; axis >= 0; --axis) {
    strides[axis] = stride;
    const int64_t factor = size[axis] > 0 ? size[axis] : 1;
    require(!__builtin_mul_overflow(stride, factor, &stride), "the result would be too large");
  }
  AtenTensorHandle made;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(axes, size, strides, code_of(type.value_or(tensor.scalar_type())),
                                                         aoti_torch_device_type_cpu(), 0, &made));
  return Tensor(made);
}

// Calls `run` with a value of the tensor's scalar type, float32 or float64.
template <class Run>
void by_type(const Tensor& tensor, Run run) {
  if (tensor.scalar_type() == ScalarType::Float) {
    run(float());
  } else {
    run(double());
  }
}

// Splits `count` items over threads, in groups that fill the lanes.
template <class Run>
void in_groups(int64_t count, const Run& run) {
  const int64_t groups = (count + kGrain - 1) / kGrain;
  torch::stable::parallel_for(0, groups, 1, [&](int64_t first, int64_t last) {
    run(first * kGrain, last * kGrain < count ? last * kGrain : count);
  });
}

// Splits `count` items over threads, one after the other.
template <class Run>
void one_by_one(int64_t count, const Run& run) {
  torch::stable::parallel_for(0, count, 1, [&](int64_t first, int64_t last) {
    for (int64_t item = first; item < last; ++item) run(item);
  });
}

// The sentences of a batch, and their order of computation. Short sentences are computed together, sorted by
// length, which wastes few lanes.
class SentenceBatch {
 public:
  SentenceBatch(int64_t items, int64_t words, const bool* mask, int64_t most_words)
      : batch_{items, words, mask, nullptr, is_together(items, words, most_words)} {
    if (!batch_.together || mask == nullptr || items <= kGrain) return;
    std::vector<int64_t> lengths(items);
    for (int64_t item = 0; item < items; ++item) {
      lengths[item] = std::count(mask + item * words, mask + (item + 1) * words, true);
    }
    order_.resize(items);
    std::iota(order_.begin(), order_.end(), int64_t(0));
    std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return lengths[a] < lengths[b]; });
    batch_.order = order_.data();
  }
  const Batch& view() const { return batch_; }
  // The number of sentences for which the kept values need room.
  int64_t kept_items() const { return batch_.together ? (batch_.items + kGrain - 1) / kGrain * kGrain : batch_.items; }

  // Splits the batch over threads; the kernels take a range of positions in the order.
  template <class Run>
  void split(const Run& run) const {
    if (batch_.together) {
      in_groups(batch_.items, run);
    } else {
      one_by_one(batch_.items, [&](int64_t item) { run(item, item + 1); });
    }
  }

 private:
  Batch batch_;
  std::vector<int64_t> order_;
};

}  // namespace foveal
