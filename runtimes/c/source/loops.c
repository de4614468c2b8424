#include "loops.h"

#include <math.h>

#include "kernels.h"

const loop_table *loops(void) {
#if HAS_PROCESSORS
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &avx2_loops;
    }
#endif
    return &plain_loops;
}

void softmax_row(float *row, size_t size) {
    float largest, scale = 1.0f / loops()->exponentials(row, row, size, &largest);
    for (size_t i = 0; i < size; i++) {
        row[i] *= scale;
    }
}

void log_softmax_row(float *row, size_t size, float *scratch) {
    float largest, norm = logf(loops()->exponentials(scratch, row, size, &largest));
    for (size_t i = 0; i < size; i++) {
        row[i] -= largest + norm;
    }
}
