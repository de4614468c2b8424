#include "matrix.h"

#include <string.h>

#include "loops.h"

size_t padded(size_t size) { return (size + PANEL - 1) / PANEL * PANEL; }

bool new_vectors(vectors *made, size_t count, size_t size, arena *memory) {
    size_t stride = padded(size);
    *made = (vectors){NULL, count, stride};
    if (count && stride > SIZE_MAX / sizeof(float) / count) {
        return fail(memory->error, "out of memory: %u vectors of %u numbers. Use a smaller beam or text.", count, size);
    }
    made->values = NEW(memory, float, count * stride);
    return made->values != NULL;
}

static float *new_scale(const stored_matrix *from, arena *memory) {
    float *scale = NEW(memory, float, padded(from->rows));
    for (size_t row = 0; scale && row < from->rows; row++) {
        scale[row] = stored_scale(from, row);
    }
    return scale;
}

static bool pack_floats(matrix *made, const stored_matrix *from, arena *memory) {
    float *values = NEW(memory, float, padded(from->rows) * from->columns);
    made->values = values;
    for (size_t row = 0; values && row < from->rows; row++) {
        size_t first = row / PANEL * PANEL * from->columns + row % PANEL;
        for (size_t column = 0; column < from->columns; column++) {
            values[first + column * PANEL] = stored_value(from, row, column);
        }
    }
    return values != NULL;
}

static bool pack_bytes(matrix *made, const stored_matrix *from, arena *memory) {
    size_t num_groups = (from->columns + GROUP - 1) / GROUP;
    uint32_t *groups = NEW(memory, uint32_t, padded(from->rows) * num_groups);
    made->groups = groups;
    made->scale = new_scale(from, memory);
    for (size_t row = 0; groups && row < from->rows; row++) {
        size_t first = row / PANEL * PANEL * num_groups + row % PANEL;
        for (size_t column = 0; column < from->columns; column++) {
            uint32_t weight = (uint8_t)(int8_t)stored_value(from, row, column);
            groups[first + column / GROUP * PANEL] |= weight << 8 * (column % GROUP);
        }
    }
    return groups && made->scale;
}

bool new_matrix(matrix *made, const stored_matrix *from, arena *memory) {
    *made = (matrix){from->rows, from->columns, NULL, NULL, NULL};
    return from->kind == STORED_INT8 ? pack_bytes(made, from, memory) : pack_floats(made, from, memory);
}

bool new_table(table *made, const stored_matrix *from, arena *memory) {
    *made = (table){from->rows, from->columns, NULL, NULL, NULL};
    size_t count = from->rows * from->columns;
    if (from->kind == STORED_INT8) {
        int8_t *numbers = NEW(memory, int8_t, count);
        made->numbers = numbers;
        made->scale = new_scale(from, memory);
        if (!numbers || !made->scale) {
            return false;
        }
        memcpy(numbers, from->values, count);
        return true;
    }
    float *values = NEW(memory, float, count);
    made->values = values;
    for (size_t row = 0; values && row < from->rows; row++) {
        for (size_t column = 0; column < from->columns; column++) {
            *values++ = stored_value(from, row, column);
        }
    }
    return made->values != NULL;
}

void look_up(const table *in, size_t row, float *to) {
    if (in->values) {
        memcpy(to, in->values + row * in->columns, in->columns * sizeof *to);
        return;
    }
    const int8_t *numbers = in->numbers + row * in->columns;
    for (size_t i = 0; i < in->columns; i++) {
        to[i] = (float)numbers[i] * in->scale[row];
    }
}

void multiply(const matrix *by, vectors from, vectors to) { loops()->multiply(by, from, to, false); }

void multiply_add(const matrix *by, vectors from, vectors to) { loops()->multiply(by, from, to, true); }
