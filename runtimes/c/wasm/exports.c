/* The functions that a host of the WebAssembly module calls; foveal.mjs calls them. */

#include <stdlib.h>

#include "../foveal.h"

static foveal_error error;

void *allocate(size_t size) { return calloc(size ? size : 1, 1); }

void release(void *memory) { free(memory); }

/* The message of the last failure. */
const char *message(void) { return error.message; }

foveal_model *load(const void *content, size_t size) { return foveal_load(content, size, &error); }

void unload(foveal_model *model) { foveal_free(model); }

/* `nbest`, `max_length` of 0 and a `length_penalty` that is no number: those of the model. */
foveal_answer *answer(const foveal_model *model, const char *text, const char *features, int beam_size, int nbest,
                      double length_penalty, int max_length, int attention) {
    foveal_options options = foveal_defaults(model);
    options.beam_size = beam_size;
    options.nbest = nbest ? nbest : options.nbest;
    options.length_penalty = length_penalty == length_penalty ? length_penalty : options.length_penalty;
    options.max_length = max_length ? max_length : options.max_length;
    options.attention = attention;
    return foveal_predict(model, text, features, &options, &error);
}

void forget(foveal_answer *given) { foveal_answer_free(given); }

int self_test(const foveal_model *model) { return foveal_self_test(model, &error); }
