/* Loading a model from a file. The WebAssembly build has no files. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

enum { FIRST_SIZE = 1 << 16 };

static const size_t most_size = 0x7FFFFFFF;
static const char name[] = "/model.plain";

static FILE *open_model(const char *path) {
    size_t size = strlen(path);
    char *inside = malloc(size + sizeof name);
    if (!inside) {
        return NULL;
    }
    memcpy(inside, path, size);
    memcpy(inside + size, name, sizeof name);
    FILE *file = fopen(inside, "rb");
    free(inside);
    return file ? file : fopen(path, "rb");
}

/* The content of a file, to free; NULL if it cannot be read or is too large. */
static uint8_t *content_of(FILE *file, size_t *size) {
    size_t room = FIRST_SIZE;
    uint8_t *content = malloc(room);
    *size = 0;
    while (content) {
        *size += fread(content + *size, 1, room - *size, file);
        if (*size < room) {
            break;
        }
        room *= 2;
        uint8_t *larger = room <= 2 * most_size ? realloc(content, room) : NULL;
        if (!larger) {
            free(content);
        }
        content = larger;
    }
    if (content && ferror(file)) {
        free(content);
        content = NULL;
    }
    return content;
}

foveal_model *foveal_load_file(const char *path, foveal_error *error) {
    FILE *file = open_model(path);
    if (!file) {
        fail(error, "%s: no such file, and no folder with model.plain. Export the model with --plain.", path);
        return NULL;
    }
    size_t size;
    uint8_t *content = content_of(file, &size);
    fclose(file);
    if (!content) {
        fail(error, "%s: cannot be read, or is too large. Export the model with --plain.", path);
        return NULL;
    }
    foveal_model *model = foveal_load(content, size, error);
    free(content);
    return model;
}
