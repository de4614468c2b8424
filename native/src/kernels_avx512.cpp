// The kernels for AVX-512.

#if defined(FOVEAL_X86)

// Shared headers come first: only the code below the pragma is compiled for AVX-512.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <immintrin.h>

#include "kernels.h"
#include "scratch.h"

#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,prefer-vector-width=512")
#define FOVEAL_ISA avx512
#define FOVEAL_REGISTER_BYTES 64

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

const Kernels avx512_kernels = {
    "avx512",
    avx512::chain::table<float>(),
    avx512::chain::table<double>(),
    avx512::projective::table<float>(),
    avx512::projective::table<double>(),
    avx512::span::table<float>(),
    avx512::span::table<double>(),
    avx512::semi_markov::table<float>(),
    avx512::semi_markov::table<double>(),
    avx512::alignment::table<float>(),
    avx512::alignment::table<double>(),
    avx512::ctc::table<float>(),
    avx512::ctc::table<double>(),
    avx512::spanning::table<float>(),
    avx512::spanning::table<double>(),
    avx512::k_subset::table<float>(),
    avx512::k_subset::table<double>(),
    avx512::may_be_spoiled<float>,
    avx512::may_be_spoiled<double>,
};

}  // namespace foveal

#endif
