// The kernels of search for AVX2.

#if defined(FOVEAL_X86)

// Shared headers come first: only the code below the pragma is compiled for AVX2.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <immintrin.h>

#include "scratch.h"
#include "search_kernels.h"

#pragma GCC target("avx2,fma")
#define FOVEAL_ISA avx2
#define FOVEAL_REGISTER_BYTES 32

#include "search.h"

namespace foveal {

const SearchKernels avx2_search = avx2::search::table();

}  // namespace foveal

#endif
