/* Damages a plain model file in many ways, and loads and asks every damaged copy: `mutations FILE COUNT`.
 *
 * Half of the copies get a checksum that fits, so that the damage reaches the code behind it. Prints how many copies were
 * refused with the wrong checksum, refused with the right one, and answered. A crash or an endless loop ends the program.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "foveal.h"
#include "source/sha256.h"

enum { HEAD = 44, DIGEST_AT = 12, MOST_SECONDS = 60, SETTINGS = 600 };

static uint64_t state = 88172645463325252u;

static size_t chance(size_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state >> 11) % below;
}

/* A place in the file: half of the time in the texts and settings at its start. */
static size_t place(size_t size) { return HEAD + chance(chance(2) && size > HEAD + SETTINGS ? SETTINGS : size - HEAD); }

static void set_number(uint8_t *at, uint32_t number) {
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(number >> 8 * i);
    }
}

/* Change a file of `size` bytes with room for twice as many; the new size. */
static size_t damage(uint8_t *file, size_t size) {
    static const uint32_t extreme[] = {0, 1, 4, 255, 65535, 65536, 65537, 0x7FFFFFFF, 0x80000000u, 0xFFFFFFFFu, 0x7F800000, 0x7FC00000};
    size_t at = place(size), other = place(size), count = 1 + chance(64);
    switch (chance(6)) {
    case 0:
        for (size_t flips = 1 + chance(8); flips > 0; flips--) {
            file[place(size)] ^= (uint8_t)(1u << chance(8));
        }
        return size;
    case 1:
        return HEAD + chance(size - HEAD);
    case 2:
        if (at + 4 <= size) {
            set_number(file + at, extreme[chance(sizeof extreme / sizeof *extreme)]);
        }
        return size;
    case 3: /* two fields exchanged */
        for (size_t i = 0; i < 4 && at + i < size && other + i < size; i++) {
            uint8_t kept = file[at + i];
            file[at + i] = file[other + i];
            file[other + i] = kept;
        }
        return size;
    case 4: /* a part twice */
        memmove(file + at + count, file + at, size - at);
        return size + count;
    default: /* a part left out */
        count = count < size - at ? count : size - at;
        memmove(file + at, file + at + count, size - at - count);
        return size - count;
    }
}

static int answers(const foveal_model *model) {
    foveal_error error;
    foveal_options options = foveal_defaults(model);
    options.attention = 1;
    foveal_answer *answer = foveal_predict(model, "bad x", "a;b", &options, &error);
    foveal_answer_free(answer);
    return answer != NULL || error.message[0] != 0;
}

int main(int count, char **words) {
    FILE *file = count == 3 ? fopen(words[1], "rb") : NULL;
    if (!file) {
        return 2;
    }
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file), refused[2] = {0, 0}, loaded[2] = {0, 0};
    rewind(file);
    uint8_t *whole = malloc(size);
    if (!whole || fread(whole, 1, size, file) != size) {
        return 2;
    }
    fclose(file);
    for (long i = atol(words[2]); i > 0; i--) {
        uint8_t *copy = malloc(2 * size);
        memcpy(copy, whole, size);
        size_t left = damage(copy, size);
        int repaired = (int)(i % 2);
        if (left == size && !memcmp(copy, whole, size)) {
            free(copy);
            i++; /* nothing changed: try again */
            continue;
        }
        if (repaired) {
            sha256(copy + HEAD, left - HEAD, copy + DIGEST_AT);
        }
        /* Exactly as many bytes as there are, so that a read behind them is found. */
        uint8_t *exact = malloc(left);
        memcpy(exact, copy, left);
        free(copy);
        foveal_error error = {{0}};
        alarm(MOST_SECONDS);
        foveal_model *model = foveal_load(exact, left, &error);
        free(exact);
        if (!model && !error.message[0]) {
            return 3; /* no reason given */
        }
        if (model && !answers(model)) {
            return 4;
        }
        (model ? loaded : refused)[repaired]++;
        foveal_free(model);
    }
    free(whole);
    printf("%zu %zu %zu %zu\n", refused[0], loaded[0], refused[1], loaded[1]);
    return 0;
}
