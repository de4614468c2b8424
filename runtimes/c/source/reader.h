/* Reads the types of a plain model file. After the first error, every read returns 0 and `failed` is set. */
#ifndef READER_H
#define READER_H

#include "base.h"

typedef struct {
    const uint8_t *at, *end;
    bool failed;
    foveal_error *error;
} reader;

/* Storage of a matrix in the file. */
typedef enum { STORED_FLOAT32, STORED_FLOAT16, STORED_INT8 } storage;

/* A matrix in the file; the pointers are into the file. */
typedef struct {
    storage kind;
    size_t rows, columns;
    const uint8_t *scale, *values;
} stored_matrix;

/* Set the error of a reader, if it has none. */
void refuse(reader *from, const char *what);

uint32_t read_u8(reader *from);
uint32_t read_u32(reader *from);
float read_f32(reader *from);
double read_f64(reader *from);

/* A number between two limits. */
uint32_t read_between(reader *from, uint32_t least, uint32_t most, const char *what);
uint32_t read_kind(reader *from, uint32_t most, const char *what);
bool read_flag(reader *from, const char *what);
double read_double_between(reader *from, double least, double most, const char *what);

/* A count of things of which each has at least `size` bytes. */
size_t read_count(reader *from, size_t size, size_t most, const char *what);

/* UTF-8, which still is in the file. */
slice read_string(reader *from);

/* A vector of exactly `size` numbers, in the arena. */
float *read_vector(reader *from, size_t size, arena *memory);

/* A matrix of exactly this shape. */
stored_matrix read_matrix(reader *from, size_t rows, size_t columns);

/* One weight without its scale, and the scale of a row (1 for floats). */
float stored_value(const stored_matrix *matrix, size_t row, size_t column);
float stored_scale(const stored_matrix *matrix, size_t row);

#endif
