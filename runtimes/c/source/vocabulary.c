#include "vocabulary.h"

#include <string.h>

/* FNV-1a. */
static uint32_t hash_of(slice text) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < text.size; i++) {
        hash = (hash ^ (uint8_t)text.bytes[i]) * 16777619u;
    }
    return hash;
}

bool same_text(slice first, slice second) {
    return first.size == second.size && (!first.size || !memcmp(first.bytes, second.bytes, first.size));
}

/* The place of a token in the table, or the empty place where it would be. */
static size_t place_of(const vocabulary *words, slice token) {
    size_t place = hash_of(token) & (words->num_places - 1);
    while (words->places[place] != NOT_FOUND && !same_text(words->tokens[words->places[place]], token)) {
        place = (place + 1) & (words->num_places - 1);
    }
    return place;
}

bool index_vocabulary(vocabulary *words, arena *memory) {
    words->num_places = 4;
    while (words->num_places < 2 * words->count) {
        words->num_places *= 2;
    }
    words->places = NEW(memory, int32_t, words->num_places);
    if (!words->places) {
        return false;
    }
    for (size_t i = 0; i < words->num_places; i++) {
        words->places[i] = NOT_FOUND;
    }
    for (size_t i = 0; i < words->count; i++) {
        size_t place = place_of(words, words->tokens[i]);
        if (words->places[place] != NOT_FOUND) {
            return fail(memory->error, "a vocabulary has a token twice. Export the model again.");
        }
        words->places[place] = (int32_t)i;
    }
    return true;
}

int32_t find_token(const vocabulary *words, slice token) { return words->places[place_of(words, token)]; }
