/* Errors and memory. Everything that belongs to a model or to an answer is in one arena, which is freed as a whole. */
#ifndef BASE_H
#define BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../foveal.h"

typedef struct arena_block arena_block;

typedef struct {
    arena_block *blocks;
    foveal_error *error; /* gets a message when memory runs out */
} arena;

/* Memory for `count` items of `size` bytes, all 0; NULL and a message if there is none. */
void *arena_array(arena *memory, size_t count, size_t size);

/* A copy of `size` bytes with a zero byte after them. */
char *arena_text(arena *memory, const char *text, size_t size);

void arena_free(arena *memory);

#define NEW(memory, type, count) ((type *)arena_array((memory), (count), sizeof(type)))

typedef struct {
    const char *bytes;
    size_t size;
} slice;

/* Write a message: texts, and numbers as %u (size_t) or %d (int); return false. A text is cut after 60 bytes. */
bool fail(foveal_error *error, const char *format, ...);

#endif
