/* The loops of loops.h. A file that includes this has named the table with TABLE, has set LANES to the numbers in a register, and
 * may set TARGET to the instructions of a processor.
 *
 * A slice is the outputs of two registers, a part of a panel. A tile is the products of up to six vectors with some slices.
 * Every sum of a tile has a name of its own, so that it stays in a register, and one pass over the weights serves all
 * vectors of the tile.
 */

#include <string.h>

#include "kernels.h"
#include "loops.h"
#include "numeric.h"

enum { SLICE = 2 * LANES, MOST_TOGETHER = 6, MOST_SLICES = 4 };

/* The numbers of a register: a vector of the compiler, or a plain array where there is none. */
#if defined(__GNUC__) && !defined(NO_VECTORS)
typedef float some_floats __attribute__((vector_size(4 * LANES)));
typedef uint32_t some_groups __attribute__((vector_size(4 * LANES)));
typedef int32_t some_integers __attribute__((vector_size(4 * LANES)));
#define ADD_PRODUCT(sum, weights, x) ((sum) += (weights) * (x))
#define UNPACK(to, groups, number) \
    ((to) = __builtin_convertvector((some_integers)((groups) << (24 - 8 * (number))) >> 24, some_floats))
#else
typedef struct {
    float part[LANES];
} some_floats;
typedef struct {
    uint32_t part[LANES];
} some_groups;
#define EACH_PART for (int part = 0; part < LANES; part++)
#define ADD_PRODUCT(sum, weights, x) EACH_PART(sum).part[part] += (weights).part[part] * (x)
#define UNPACK(to, groups, number) EACH_PART(to).part[part] = (float)(int8_t)((groups).part[part] >> 8 * (number))
#endif
#define LOAD(to, from) memcpy(&(to), (from), sizeof(to))
#define STORE(to, from) memcpy((to), &(from), sizeof(from))

typedef float tile_sums[SLICE];

#define VECTORS_1(DO, p) DO(p, 0)
#define VECTORS_2(DO, p) VECTORS_1(DO, p) DO(p, 1)
#define VECTORS_3(DO, p) VECTORS_2(DO, p) DO(p, 2)
#define VECTORS_4(DO, p) VECTORS_3(DO, p) DO(p, 3)
#define VECTORS_5(DO, p) VECTORS_4(DO, p) DO(p, 4)
#define VECTORS_6(DO, p) VECTORS_5(DO, p) DO(p, 5)
#define SLICES_1(DO, EACH_VECTOR) DO(EACH_VECTOR, 0)
#define SLICES_2(DO, EACH_VECTOR) SLICES_1(DO, EACH_VECTOR) DO(EACH_VECTOR, 1)
#define SLICES_3(DO, EACH_VECTOR) SLICES_2(DO, EACH_VECTOR) DO(EACH_VECTOR, 2)
#define SLICES_4(DO, EACH_VECTOR) SLICES_3(DO, EACH_VECTOR) DO(EACH_VECTOR, 3)

#define START_SUM(p, i) some_floats low##p##i = {0}, high##p##i = {0};
#define START_SUMS(EACH_VECTOR, p) EACH_VECTOR(START_SUM, p)
#define READ_NUMBER(p, i) const float x##i = from.values[i * from.stride + column];
#define ADD_TO_SUM(p, i)                \
    ADD_PRODUCT(low##p##i, left, x##i); \
    ADD_PRODUCT(high##p##i, right, x##i);
#define ADD_FLOATS(EACH_VECTOR, p)                        \
    {                                                     \
        some_floats left, right;                          \
        LOAD(left, weights##p + column * PANEL);          \
        LOAD(right, weights##p + column * PANEL + LANES); \
        EACH_VECTOR(ADD_TO_SUM, p)                        \
    }
#define LOAD_GROUPS(EACH_VECTOR, p)                   \
    some_groups left_groups##p, right_groups##p;      \
    LOAD(left_groups##p, weights##p + group * PANEL); \
    LOAD(right_groups##p, weights##p + group * PANEL + LANES);
#define ADD_BYTES(EACH_VECTOR, p)               \
    {                                           \
        some_floats left, right;                \
        UNPACK(left, left_groups##p, number);   \
        UNPACK(right, right_groups##p, number); \
        EACH_VECTOR(ADD_TO_SUM, p)              \
    }
#define WRITE_SUM(p, i)                            \
    STORE(sums[p * MOST_TOGETHER + i], low##p##i); \
    STORE(sums[p * MOST_TOGETHER + i] + LANES, high##p##i);
#define WRITE_SUMS(EACH_VECTOR, p) EACH_VECTOR(WRITE_SUM, p)

/* The products with one of four columns, whose weights share a group. */
#define ADD_COLUMN(EACH_SLICE, EACH_VECTOR, which)   \
    {                                                \
        const size_t column = GROUP * group + which; \
        const int number = (int)which;               \
        EACH_VECTOR(READ_NUMBER, 0)                  \
        EACH_SLICE(ADD_BYTES, EACH_VECTOR)           \
    }

/* The weights of a slice. */
#define FLOATS_OF_SLICE(EACH_VECTOR, p) const float *weights##p = by->values + slice_start(first + p, columns);
#define GROUPS_OF_SLICE(EACH_VECTOR, p) const uint32_t *weights##p = by->groups + slice_start(first + p, num_groups);

/* Where a slice starts in the weights of a matrix. */
INLINE size_t slice_start(size_t number, size_t columns) {
    return number * SLICE / PANEL * PANEL * columns + number * SLICE % PANEL;
}

/* Two functions for tiles: sums[6 p + i] is the product of vector i with slice first + p. */
#define TILE(count, slices, EACH_SLICE, EACH_VECTOR)                                                              \
    TARGET INLINE void floats_##count##_##slices(const matrix *by, size_t first, vectors from, tile_sums *sums) { \
        const size_t columns = by->columns;                                                                       \
        EACH_SLICE(FLOATS_OF_SLICE, EACH_VECTOR)                                                                  \
        EACH_SLICE(START_SUMS, EACH_VECTOR)                                                                       \
        for (size_t column = 0; column < columns; column++) {                                                     \
            EACH_VECTOR(READ_NUMBER, 0)                                                                           \
            EACH_SLICE(ADD_FLOATS, EACH_VECTOR)                                                                   \
        }                                                                                                         \
        EACH_SLICE(WRITE_SUMS, EACH_VECTOR)                                                                       \
    }                                                                                                             \
    TARGET INLINE void bytes_##count##_##slices(const matrix *by, size_t first, vectors from, tile_sums *sums) {  \
        const size_t columns = by->columns, num_groups = (columns + GROUP - 1) / GROUP;                           \
        EACH_SLICE(GROUPS_OF_SLICE, EACH_VECTOR)                                                                  \
        EACH_SLICE(START_SUMS, EACH_VECTOR)                                                                       \
        size_t group = 0;                                                                                         \
        for (; group < columns / GROUP; group++) {                                                                \
            EACH_SLICE(LOAD_GROUPS, EACH_VECTOR)                                                                  \
            ADD_COLUMN(EACH_SLICE, EACH_VECTOR, 0)                                                                \
            ADD_COLUMN(EACH_SLICE, EACH_VECTOR, 1)                                                                \
            ADD_COLUMN(EACH_SLICE, EACH_VECTOR, 2)                                                                \
            ADD_COLUMN(EACH_SLICE, EACH_VECTOR, 3)                                                                \
        }                                                                                                         \
        for (size_t left_over = 0; left_over < columns % GROUP; left_over++) {                                    \
            EACH_SLICE(LOAD_GROUPS, EACH_VECTOR)                                                                  \
            ADD_COLUMN(EACH_SLICE, EACH_VECTOR, left_over)                                                        \
        }                                                                                                         \
        EACH_SLICE(WRITE_SUMS, EACH_VECTOR)                                                                       \
    }

TILE(1, 4, SLICES_4, VECTORS_1)
TILE(1, 1, SLICES_1, VECTORS_1)
TILE(2, 3, SLICES_3, VECTORS_2)
TILE(2, 1, SLICES_1, VECTORS_2)
TILE(3, 2, SLICES_2, VECTORS_3)
TILE(3, 1, SLICES_1, VECTORS_3)
TILE(4, 1, SLICES_1, VECTORS_4)
TILE(5, 1, SLICES_1, VECTORS_5)
TILE(6, 1, SLICES_1, VECTORS_6)

/* Write the sums of a tile, with the scale of each row. */
TARGET INLINE void write_tile(const matrix *by, tile_sums *sums, size_t first, size_t slices, vectors to, bool adds) {
    for (size_t number = 0; number < slices; number++) {
        for (size_t i = 0; i < to.count; i++) {
            size_t row = (first + number) * SLICE;
            float *found = sums[number * MOST_TOGETHER + i], *target = to.values + i * to.stride + row;
            for (size_t j = 0; j < SLICE && by->scale; j++) {
                found[j] *= by->scale[row + j];
            }
            for (size_t j = 0; j < SLICE; j++) {
                target[j] = adds ? target[j] + found[j] : found[j];
            }
        }
    }
}

/* All slices, some together as long as there are enough: few vectors need several, because each sum waits for its last
 * addition. */
#define MULTIPLY_SLICES(count, together)                     \
    for (size_t at = 0, some; at < slices; at += some) {     \
        some = at + together <= slices ? together : 1;       \
        if (by->groups && some == together) {                \
            bytes_##count##_##together(by, at, from, sums);  \
        } else if (by->groups) {                             \
            bytes_##count##_1(by, at, from, sums);           \
        } else if (some == together) {                       \
            floats_##count##_##together(by, at, from, sums); \
        } else {                                             \
            floats_##count##_1(by, at, from, sums);          \
        }                                                    \
        write_tile(by, sums, at, some, to, adds);            \
    }

TARGET static void multiply_all(const matrix *by, vectors from, vectors to, bool adds) {
    tile_sums sums[MOST_SLICES * MOST_TOGETHER];
    size_t slices = padded(by->rows) / SLICE, left = from.count;
    while (left) {
        from.count = to.count = left < MOST_TOGETHER ? left : MOST_TOGETHER;
        switch (from.count) {
        case 1:
            MULTIPLY_SLICES(1, 4)
            break;
        case 2:
            MULTIPLY_SLICES(2, 3)
            break;
        case 3:
            MULTIPLY_SLICES(3, 2)
            break;
        case 4:
            MULTIPLY_SLICES(4, 1)
            break;
        case 5:
            MULTIPLY_SLICES(5, 1)
            break;
        default:
            MULTIPLY_SLICES(6, 1)
        }
        from.values += from.count * from.stride;
        to.values += to.count * to.stride;
        left -= from.count;
    }
}

TARGET static void lstm_step(const float *gates, size_t size, float *hidden, float *memory) {
    const float *input = gates, *forget = gates + size, *cell = gates + 2 * size, *output = gates + 3 * size;
    for (size_t i = 0; i < size; i++) {
        float kept = sigmoid(forget[i]) * memory[i] + sigmoid(input[i]) * hyperbolic_tangent(cell[i]);
        memory[i] = kept;
        hidden[i] = sigmoid(output[i]) * hyperbolic_tangent(kept);
    }
}

TARGET static void gru_step(const float *of_input, const float *of_state, size_t size, float *hidden) {
    for (size_t i = 0; i < size; i++) {
        float reset = sigmoid(of_input[i] + of_state[i]);
        float update = sigmoid(of_input[size + i] + of_state[size + i]);
        float made = hyperbolic_tangent(of_input[2 * size + i] + reset * of_state[2 * size + i]);
        hidden[i] = (1.0f - update) * made + update * hidden[i];
    }
}

TARGET static void add(float *to, const float *from, size_t size) {
    for (size_t i = 0; i < size; i++) {
        to[i] += from[i];
    }
}

TARGET static void add_scaled(float *to, const float *from, float scale, size_t size) {
    for (size_t i = 0; i < size; i++) {
        to[i] += scale * from[i];
    }
}

TARGET static void tanh_sum(float *to, const float *first, const float *second, size_t size) {
    for (size_t i = 0; i < size; i++) {
        to[i] = hyperbolic_tangent(first[i] + second[i]);
    }
}

TARGET static void tanh_all(float *to, const float *from, size_t size) {
    for (size_t i = 0; i < size; i++) {
        to[i] = hyperbolic_tangent(from[i]);
    }
}

TARGET INLINE float sum_of(const float *lanes) {
    float sum = 0;
    for (size_t i = 0; i < PANEL; i++) {
        sum += lanes[i];
    }
    return sum;
}

TARGET static float dot(const float *first, const float *second, size_t size) {
    float lanes[PANEL] = {0};
    for (size_t start = 0; start < size; start += PANEL) {
        for (size_t i = 0; i < PANEL; i++) {
            lanes[i] += first[start + i] * second[start + i];
        }
    }
    return sum_of(lanes);
}

TARGET static float score(const float *combine, const float *query, const float *key, size_t size) {
    float lanes[PANEL] = {0};
    for (size_t start = 0; start < size; start += PANEL) {
        for (size_t i = 0; i < PANEL; i++) {
            lanes[i] += combine[start + i] * hyperbolic_tangent(query[start + i] + key[start + i]);
        }
    }
    return sum_of(lanes);
}

TARGET static float raise(float *to, const float *scores, size_t size, float *largest) {
    float lanes[PANEL], sums[PANEL] = {0}, highest = -INFINITY, sum = 0;
    size_t whole = size / PANEL * PANEL;
    for (size_t i = 0; i < PANEL; i++) {
        lanes[i] = -INFINITY;
    }
    for (size_t start = 0; start < whole; start += PANEL) {
        for (size_t i = 0; i < PANEL; i++) {
            lanes[i] = scores[start + i] > lanes[i] ? scores[start + i] : lanes[i];
        }
    }
    for (size_t i = whole; i < size; i++) {
        highest = scores[i] > highest ? scores[i] : highest;
    }
    for (size_t i = 0; i < PANEL; i++) {
        highest = lanes[i] > highest ? lanes[i] : highest;
    }
    for (size_t start = 0; start < whole; start += PANEL) {
        for (size_t i = 0; i < PANEL; i++) {
            float power = exponential(scores[start + i] - highest);
            to[start + i] = power;
            sums[i] += power;
        }
    }
    for (size_t i = whole; i < size; i++) {
        to[i] = exponential(scores[i] - highest);
        sum += to[i];
    }
    *largest = highest;
    return sum + sum_of(sums);
}

const loop_table TABLE = {multiply_all, lstm_step, gru_step, add, add_scaled, tanh_sum, tanh_all, dot, score, raise};
