#include "base.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SHOWN = 60 };

struct arena_block {
    arena_block *before;
    double start; /* aligns what follows */
};

void *arena_array(arena *memory, size_t count, size_t size) {
    if (size && count > (SIZE_MAX - sizeof(arena_block)) / size) {
        fail(memory->error, "out of memory: %u items of %u bytes. Free memory, or use a smaller model.", count, size);
        return NULL;
    }
    arena_block *block = calloc(1, sizeof(arena_block) + count * size);
    if (!block) {
        fail(memory->error, "out of memory: %u items of %u bytes. Free memory, or use a smaller model.", count, size);
        return NULL;
    }
    block->before = memory->blocks;
    memory->blocks = block;
    return block + 1;
}

char *arena_text(arena *memory, const char *text, size_t size) {
    if (size == SIZE_MAX) {
        return NULL;
    }
    char *copy = arena_array(memory, size + 1, 1);
    if (copy && size) {
        memcpy(copy, text, size);
    }
    return copy;
}

void arena_free(arena *memory) {
    while (memory->blocks) {
        arena_block *block = memory->blocks;
        memory->blocks = block->before;
        free(block);
    }
}

static size_t append(char *message, size_t at, size_t size, const char *text, size_t most) {
    for (size_t number = 0; text[number] && number < most && at + 1 < size; number++) {
        message[at++] = text[number];
    }
    return at;
}

static size_t append_number(char *message, size_t at, size_t size, size_t number) {
    char digits[24];
    size_t first = sizeof digits - 1;
    digits[first] = 0;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    return append(message, at, size, digits + first, SIZE_MAX);
}

/* The WebAssembly build has no printf, so the few formats are written out. */
bool fail(foveal_error *error, const char *format, ...) {
    if (!error) {
        return false;
    }
    va_list values;
    va_start(values, format);
    size_t at = 0, size = sizeof error->message;
    for (; *format; format++) {
        if (*format != '%') {
            at = append(error->message, at, size, format, 1);
            continue;
        }
        format++;
        if (*format == 's') {
            at = append(error->message, at, size, va_arg(values, const char *), MOST_SHOWN);
        } else if (*format == 'u') {
            at = append_number(error->message, at, size, va_arg(values, size_t));
        } else {
            int number = va_arg(values, int);
            if (number < 0) {
                at = append(error->message, at, size, "-", 1);
            }
            at = append_number(error->message, at, size, number < 0 ? 0 - (size_t)number : (size_t)number);
        }
    }
    va_end(values);
    error->message[at] = 0;
    return false;
}
