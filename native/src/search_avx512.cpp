// The kernels of search for AVX-512.

#if defined(FOVEAL_X86)

// Shared headers come first: only the code below the pragma is compiled for AVX-512.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <immintrin.h>

#include "scratch.h"
#include "search_kernels.h"

#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,prefer-vector-width=512")
#define FOVEAL_ISA avx512
#define FOVEAL_REGISTER_BYTES 64

#include "search.h"

namespace foveal {

const SearchKernels avx512_search = avx512::search::table();

}  // namespace foveal

#endif
