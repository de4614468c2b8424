#include "reader.h"

#include <math.h>
#include <string.h>

#include "text.h"

enum { MOST_STRING = 1 << 20 };

static uint32_t little(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static float float_at(const uint8_t *at) {
    uint32_t bits = little(at);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The value of 16 bits: a sign, 5 bits of exponent, 10 bits of fraction. */
static float half_at(const uint8_t *at) {
    uint32_t bits = (uint32_t)at[0] | (uint32_t)at[1] << 8;
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                                : (float)(exponent ? fraction + 1024 : fraction) * 5.9604644775390625e-8f; /* 2^-24 */
    for (uint32_t i = 1; exponent != 31 && i < exponent; i++) {
        size *= 2;
    }
    return bits >> 15 ? -size : size;
}

void refuse(reader *from, const char *what) {
    if (!from->failed) {
        from->failed = true;
        fail(from->error, "the model file is damaged: %s. Restore the file, or export the model again.", what);
    }
}

static bool has(reader *from, size_t size) {
    if (!from->failed && (size_t)(from->end - from->at) < size) {
        refuse(from, "it ends too early");
    }
    return !from->failed;
}

static const uint8_t *take(reader *from, size_t size) {
    const uint8_t *found = from->at;
    from->at += size;
    return found;
}

uint32_t read_u8(reader *from) { return has(from, 1) ? *take(from, 1) : 0; }

uint32_t read_u32(reader *from) { return has(from, 4) ? little(take(from, 4)) : 0; }

float read_f32(reader *from) {
    float value = has(from, 4) ? float_at(take(from, 4)) : 0;
    if (!isfinite(value)) {
        refuse(from, "a number is not finite");
        return 0;
    }
    return value;
}

double read_f64(reader *from) {
    if (!has(from, 8)) {
        return 0;
    }
    const uint8_t *at = take(from, 8);
    uint64_t bits = little(at) | (uint64_t)little(at + 4) << 32;
    double value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) {
        refuse(from, "a number is not finite");
        return 0;
    }
    return value;
}

uint32_t read_between(reader *from, uint32_t least, uint32_t most, const char *what) {
    uint32_t number = read_u32(from);
    if (!from->failed && (number < least || number > most)) {
        refuse(from, what);
    }
    return from->failed ? 0 : number;
}

uint32_t read_kind(reader *from, uint32_t most, const char *what) {
    uint32_t number = read_u8(from);
    if (number > most) {
        refuse(from, what);
    }
    return from->failed ? 0 : number;
}

bool read_flag(reader *from, const char *what) { return read_kind(from, 1, what); }

double read_double_between(reader *from, double least, double most, const char *what) {
    double number = read_f64(from);
    if (number < least || number > most) {
        refuse(from, what);
    }
    return from->failed ? 0 : number;
}

size_t read_count(reader *from, size_t size, size_t most, const char *what) {
    size_t count = read_u32(from);
    if (!from->failed && (count > most || count > (size_t)(from->end - from->at) / size)) {
        refuse(from, what);
    }
    return from->failed ? 0 : count;
}

slice read_string(reader *from) {
    slice text = {"", read_count(from, 1, MOST_STRING, "a text is too long")};
    if (text.size) {
        text.bytes = (const char *)take(from, text.size);
        if (!is_utf8(text.bytes, text.size)) {
            refuse(from, "a text is not UTF-8");
        }
    }
    return from->failed ? (slice){"", 0} : text;
}

float *read_vector(reader *from, size_t size, arena *memory) {
    if (read_u32(from) != size) {
        refuse(from, "a vector has a wrong size");
    }
    if (from->failed || !has(from, 4 * size)) {
        return NULL;
    }
    float *values = NEW(memory, float, size);
    if (!values) {
        from->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < size; i++) {
        values[i] = read_f32(from);
    }
    return values;
}

stored_matrix read_matrix(reader *from, size_t rows, size_t columns) {
    static const size_t sizes[] = {4, 2, 1};
    stored_matrix found = {read_kind(from, STORED_INT8, "unknown storage of a matrix"), rows, columns, NULL, NULL};
    if (read_u32(from) != rows || read_u32(from) != columns) {
        refuse(from, "a matrix has a wrong shape");
    }
    size_t scales = found.kind == STORED_INT8 ? 4 : 0, size = sizes[found.kind];
    /* By division, because the product may be larger than size_t. */
    if (!from->failed && (size_t)(from->end - from->at) / rows < scales + columns * size) {
        refuse(from, "it ends too early");
    }
    if (from->failed) {
        return (stored_matrix){STORED_FLOAT32, 0, 0, NULL, NULL};
    }
    found.scale = take(from, scales * rows);
    found.values = take(from, rows * columns * size);
    for (size_t row = 0; row < rows; row++) {
        bool is_finite = isfinite(stored_scale(&found, row));
        for (size_t column = 0; column < columns && found.kind != STORED_INT8; column++) {
            is_finite = is_finite && isfinite(stored_value(&found, row, column));
        }
        if (!is_finite) {
            refuse(from, "a weight is not finite");
            break;
        }
    }
    return found;
}

float stored_value(const stored_matrix *matrix, size_t row, size_t column) {
    size_t number = row * matrix->columns + column;
    switch (matrix->kind) {
    case STORED_FLOAT32:
        return float_at(matrix->values + 4 * number);
    case STORED_FLOAT16:
        return half_at(matrix->values + 2 * number);
    default:
        return (float)(int8_t)matrix->values[number];
    }
}

float stored_scale(const stored_matrix *matrix, size_t row) {
    return matrix->kind == STORED_INT8 ? float_at(matrix->scale + 4 * row) : 1;
}
