// The kernels of search for any CPU.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "scratch.h"
#include "search_kernels.h"

#define FOVEAL_ISA baseline
#define FOVEAL_REGISTER_BYTES 16  // SSE2 and NEON

#include "search.h"

namespace foveal {

const SearchKernels baseline_search = baseline::search::table();

}  // namespace foveal
