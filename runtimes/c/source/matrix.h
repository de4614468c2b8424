/* Products of matrices with the vectors of several hypotheses, and tables of rows.
 *
 * A matrix is stored in panels of 16 outputs: column after column, 16 weights each. Each sum has its own accumulator, which
 * adds the columns in their order, so that no sum depends on the other vectors. 8-bit weights stay in 8 bits: four columns
 * of an output share a number of 32 bits, and the sum of a row is multiplied by the scale of the row.
 *
 * Vectors of outputs have room for a multiple of 16 numbers.
 */
#ifndef MATRIX_H
#define MATRIX_H

#include "reader.h"

enum { PANEL = 16, GROUP = 4 };

typedef struct {
    size_t rows, columns;
    const float *values;    /* panels of 32-bit weights, or */
    const uint32_t *groups; /* of groups of 8-bit weights, the first column in the lowest bits, */
    const float *scale;     /* with a scale for each row */
} matrix;

typedef struct {
    size_t rows, columns;
    const float *values;
    const int8_t *numbers;
    const float *scale;
} table;

/* Vectors: `count` of them, one every `stride` numbers. */
typedef struct {
    float *values;
    size_t count, stride;
} vectors;

/* `size` with room for whole panels. */
size_t padded(size_t size);

/* `count` vectors of `size` numbers, all 0. */
bool new_vectors(vectors *made, size_t count, size_t size, arena *memory);

bool new_matrix(matrix *made, const stored_matrix *from, arena *memory);
bool new_table(table *made, const stored_matrix *from, arena *memory);

/* to = M from, and to += M from. */
void multiply(const matrix *by, vectors from, vectors to);
void multiply_add(const matrix *by, vectors from, vectors to);

void look_up(const table *in, size_t row, float *to);

#endif
