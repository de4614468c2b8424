// The kernels of the linear chain: selects the layout by the number of states.

#pragma once

#include "chain_lanes.h"
#include "chain_search.h"
#include "chain_shared.h"
#include "chain_states.h"

namespace foveal {
namespace FOVEAL_ISA {
namespace chain {

using chain_lanes::Group;
using chain_lanes::kMostStates;

template <class Each>
void for_groups(int64_t first, int64_t last, Each each) {
  for (int64_t item = first; item < last; item += kLanes) {
    each(Group{item, static_cast<int>(std::min<int64_t>(kLanes, last - item))});
  }
}

template <class T>
void log_partition(const Chain<T>& chain, T* out, int64_t first, int64_t last) {
  if (chain.states > kMostStates) {
    for (int64_t item = first; item < last; ++item) chain_states::log_partition(chain, out, item);
    return;
  }
  for_groups(first, last, [&](Group group) {
    FOVEAL_BY_STATES(chain.states, chain_lanes::log_partition, chain, out, group)
  });
}

template <class T>
void marginals(const Chain<T>& chain, const ChainMarginals<T>& out, int64_t first, int64_t last) {
  if (chain.states > kMostStates) {
    for (int64_t item = first; item < last; ++item) chain_states::marginals(chain, out, item);
    return;
  }
  for_groups(first, last, [&](Group group) {
    FOVEAL_BY_STATES(chain.states, chain_lanes::marginals, chain, out, group)
  });
}

template <class T>
void tangent(const ChainTangent<T>& task, int64_t first, int64_t last) {
  if (task.states > kMostStates) {
    for (int64_t item = first; item < last; ++item) chain_states::tangent(task, item);
    return;
  }
  for_groups(first, last, [&](Group group) {
    FOVEAL_BY_STATES(task.states, chain_lanes::tangent, task, group)
  });
}

template <class T>
void best(const Chain<T>& chain, int64_t* labels, T* scores, int64_t first, int64_t last) {
  if (chain.states > kMostStates) {
    for (int64_t item = first; item < last; ++item) {
      chain_search::best_by_states(chain, labels, scores, item);
    }
    return;
  }
  for_groups(first, last, [&](Group group) {
    FOVEAL_BY_STATES(chain.states, chain_search::best_in_lanes, chain, labels, scores, group)
  });
}

template <class T>
void sample(const Chain<T>& chain, const ChainDraws& draws, int64_t first, int64_t last) {
  for (int64_t item = first; item < last; ++item) chain_search::sample(chain, draws, item);
}

template <class T>
constexpr ChainKernels<T> table() {
  return {log_partition<T>, marginals<T>, tangent<T>, chain_shared::nodes<T>, chain_shared::tangent<T>, best<T>, sample<T>};
}

}  // namespace chain
}  // namespace FOVEAL_ISA
}  // namespace foveal
