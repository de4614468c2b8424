/* The encoder, and the layers that the decoder has too. */
#ifndef ENCODER_H
#define ENCODER_H

#include "model.h"

typedef struct {
    vectors values;       /* one for each position */
    const float *summary; /* padded */
} memory_of_source;

bool encode_source(const encoder *with, const int32_t *ids, size_t count, arena *memory, memory_of_source *made);

/* The new state of `hidden.count` hypotheses in one layer. `gates` has the part of the input and the bias; `of_state` is room for
 * the gates of the state of a GRU. */
void advance_layer(const stack *shape, const layer *one, vectors gates, vectors of_state, vectors hidden, vectors memory);

/* Set every vector to the first `size` numbers of a row. */
void fill(vectors to, const float *row, size_t size);

#endif
