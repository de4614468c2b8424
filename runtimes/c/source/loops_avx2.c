/* The loops for x86-64 processors since 2013, which have wider vectors and fused additions. */

#include "kernels.h"

#if HAS_PROCESSORS
/* gcc chooses the registers of a vector type by what it can use where the type is declared. */
#if !defined(__clang__)
#pragma GCC target("avx2,fma")
#endif
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8
#define TABLE avx2_loops

#include "loops_body.h"
#else
typedef int no_loops; /* a file of C may not be empty */
#endif
