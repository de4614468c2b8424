/* The loops in which the time goes: products of matrices, cells, exponentials. They are compiled for every processor and, on x86-64
 * Linux, for processors with wider vectors too; a table has the functions of one kind.
 *
 * Sizes of vectors that are summed up are padded with zeros to whole panels.
 */
#ifndef LOOPS_H
#define LOOPS_H

#include "kernels.h"
#include "matrix.h"

typedef struct {
    /* to = M from, or to += M from. */
    void (*multiply)(const matrix *by, vectors from, vectors to, bool add);

    /* One step of a cell of `size` units: gates in, and the state is replaced. */
    void (*lstm_cell)(const float *gates, size_t size, float *hidden, float *memory);
    void (*gru_cell)(const float *of_input, const float *of_state, size_t size, float *hidden);

    void (*add_row)(float *to, const float *from, size_t size);
    void (*add_scaled_row)(float *to, const float *from, float scale, size_t size);

    /* to = tanh(first + second). */
    void (*tanh_of_sum)(float *to, const float *first, const float *second, size_t size);
    void (*tanh_row)(float *to, const float *from, size_t size);

    /* The sum of first[i] second[i], and of combine[i] tanh(query[i] + key[i]); `size` is a number of whole panels. */
    float (*dot_product)(const float *first, const float *second, size_t size);
    float (*additive_score)(const float *combine, const float *query, const float *key, size_t size);

    /* Set `to` to e^(score - largest), and return the sum; the largest is written too. `to` may be `scores`. */
    float (*exponentials)(float *to, const float *scores, size_t size, float *largest);
} loop_table;

/* The table for this processor. */
const loop_table *loops(void);

/* Turn scores into probabilities, or into their logarithms. */
void softmax_row(float *row, size_t size);
void log_softmax_row(float *row, size_t size, float *scratch);

extern const loop_table plain_loops;
#if HAS_PROCESSORS
extern const loop_table avx2_loops;
#endif

#endif
