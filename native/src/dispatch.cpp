#include <cstdlib>
#include <string>

#include "kernels.h"
#include "search_kernels.h"

namespace foveal {
namespace {

const Kernels& best_for_this_processor() {
#if defined(FOVEAL_X86)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    return avx512_kernels;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2_kernels;
#endif
  return baseline_kernels;
}

const Kernels& choose() {
  const char* wanted = std::getenv("FOVEAL_KERNELS");
  const std::string name = wanted == nullptr ? "" : wanted;
  const Kernels& best = best_for_this_processor();
  if (name == "baseline") return baseline_kernels;
#if defined(FOVEAL_X86)
  // A CPU with the wider instructions also has the narrower ones.
  if (name == "avx2" && &best != &baseline_kernels) return avx2_kernels;
#endif
  return best;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

const SearchKernels& search_kernels() {
#if defined(FOVEAL_X86)
  if (&kernels() == &avx512_kernels) return avx512_search;
  if (&kernels() == &avx2_kernels) return avx2_search;
#endif
  return baseline_search;
}

const Products* half_products() {
#if defined(FOVEAL_X86)
  if (&kernels() == &avx512_kernels) return tile_products();
#endif
  return nullptr;
}

}  // namespace foveal
