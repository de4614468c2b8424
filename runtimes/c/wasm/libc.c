/* Memory and strings for the WebAssembly build, which has no C library.
 *
 * Sizes are rounded up to classes, eight for each power of two. Freed memory goes to the list of its class.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 65536, STEPS = 8, LEAST_BITS = 4, NUM_CLASSES = STEPS * 32 };

typedef struct block {
    struct block *next;
    size_t kind;
    double start; /* aligns what follows to 16 bytes */
} block;

extern unsigned char __heap_base;

static block *freed[NUM_CLASSES];
static uintptr_t top, end;

/* The class of a size, and the size rounded up. */
static size_t class_of(size_t *size) {
    size_t bits = LEAST_BITS;
    while (bits < 31 && *size > (size_t)1 << bits) {
        bits++;
    }
    size_t step = ((size_t)1 << bits) / (2 * STEPS), half = ((size_t)1 << bits) / 2;
    if (bits == LEAST_BITS) {
        *size = (size_t)1 << bits;
        return 0;
    }
    size_t number = (*size - half + step - 1) / step;
    *size = half + number * step;
    return STEPS * (bits - LEAST_BITS) + number;
}

static void *take(size_t size) {
    if (!top) {
        top = ((uintptr_t)&__heap_base + 15) & ~(uintptr_t)15;
        end = (uintptr_t)__builtin_wasm_memory_size(0) * PAGE;
    }
    size = (size + 15) & ~(size_t)15;
    if (end - top < size) {
        size_t pages = (size - (end - top) + PAGE - 1) / PAGE;
        if (__builtin_wasm_memory_grow(0, pages) == SIZE_MAX) {
            return NULL;
        }
        end += pages * PAGE;
    }
    void *found = (void *)top;
    top += size;
    return found;
}

void *calloc(size_t count, size_t size) {
    if (size && count > (SIZE_MAX / 4) / size) {
        return NULL;
    }
    size_t room = count * size, kind = class_of(&room);
    block *made = freed[kind];
    if (made) {
        freed[kind] = made->next;
    } else {
        made = take(sizeof *made + room);
    }
    if (!made) {
        return NULL;
    }
    made->kind = kind;
    return memset(made + 1, 0, count * size);
}

void free(void *memory) {
    if (memory) {
        block *before = (block *)memory - 1;
        before->next = freed[before->kind];
        freed[before->kind] = before;
    }
}

int memcmp(const void *first, const void *second, size_t size) {
    const unsigned char *a = first, *b = second;
    for (size_t i = 0; i < size; i++) {
        if (a[i] != b[i]) {
            return a[i] - b[i];
        }
    }
    return 0;
}

size_t strlen(const char *text) {
    size_t size = 0;
    while (text[size]) {
        size++;
    }
    return size;
}
