// The kernels for AVX2.

#if defined(FOVEAL_X86)

// Shared headers come first: only the code below the pragma is compiled for AVX2.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <immintrin.h>

#include "kernels.h"
#include "scratch.h"

#pragma GCC target("avx2,fma")
#define FOVEAL_ISA avx2
#define FOVEAL_REGISTER_BYTES 32

#include "alignment_search.h"
#include "chain.h"
#include "ctc.h"
#include "k_subset.h"
#include "projective_search.h"
#include "scan.h"
#include "semi_markov_search.h"
#include "span.h"
#include "spanning_search.h"

namespace foveal {

const Kernels avx2_kernels = {
    "avx2",
    avx2::chain::table<float>(),
    avx2::chain::table<double>(),
    avx2::projective::table<float>(),
    avx2::projective::table<double>(),
    avx2::span::table<float>(),
    avx2::span::table<double>(),
    avx2::semi_markov::table<float>(),
    avx2::semi_markov::table<double>(),
    avx2::alignment::table<float>(),
    avx2::alignment::table<double>(),
    avx2::ctc::table<float>(),
    avx2::ctc::table<double>(),
    avx2::spanning::table<float>(),
    avx2::spanning::table<double>(),
    avx2::k_subset::table<float>(),
    avx2::k_subset::table<double>(),
    avx2::may_be_spoiled<float>,
    avx2::may_be_spoiled<double>,
};

}  // namespace foveal

#endif
