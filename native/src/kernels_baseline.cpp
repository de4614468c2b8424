// The kernels for any CPU.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels.h"
#include "scratch.h"

#define FOVEAL_ISA baseline
#define FOVEAL_REGISTER_BYTES 16  // SSE2 and NEON

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

const Kernels baseline_kernels = {
    "baseline",
    baseline::chain::table<float>(),
    baseline::chain::table<double>(),
    baseline::projective::table<float>(),
    baseline::projective::table<double>(),
    baseline::span::table<float>(),
    baseline::span::table<double>(),
    baseline::semi_markov::table<float>(),
    baseline::semi_markov::table<double>(),
    baseline::alignment::table<float>(),
    baseline::alignment::table<double>(),
    baseline::ctc::table<float>(),
    baseline::ctc::table<double>(),
    baseline::spanning::table<float>(),
    baseline::spanning::table<double>(),
    baseline::k_subset::table<float>(),
    baseline::k_subset::table<double>(),
    baseline::may_be_spoiled<float>,
    baseline::may_be_spoiled<double>,
};

}  // namespace foveal
