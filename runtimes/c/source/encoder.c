#include "encoder.h"

#include <string.h>

#include "loops.h"

enum { MOST_TOKEN_GATES = 1 << 20, TOGETHER = 64 };

void fill(vectors to, const float *row, size_t size) {
    for (size_t i = 0; i < to.count; i++) {
        memcpy(to.values + i * to.stride, row, size * sizeof *row);
    }
}

void advance_layer(const stack *shape, const layer *one, vectors gates, vectors of_state, vectors hidden, vectors memory) {
    size_t size = shape->hidden_size;
    if (shape->cell == GRU) {
        of_state.count = hidden.count;
        fill(of_state, one->state_bias, shape->gates_size);
        multiply_add(&one->state, hidden, of_state);
    } else {
        multiply_add(&one->state, hidden, gates);
    }
    for (size_t i = 0; i < hidden.count; i++) {
        float *mine = gates.values + i * gates.stride, *state = hidden.values + i * hidden.stride;
        switch (shape->cell) {
        case LSTM:
            loops()->lstm_cell(mine, size, state, memory.values + i * memory.stride);
            break;
        case GRU:
            loops()->gru_cell(mine, of_state.values + i * of_state.stride, size, state);
            break;
        case ELMAN:
            loops()->tanh_row(state, mine, size);
            break;
        }
    }
}

static vectors rows_of(vectors all, size_t first, size_t count) {
    return (vectors){all.values + first * all.stride, count, all.stride};
}

bool prepare_encoder(encoder *made, arena *memory) {
    const stack *shape = &made->shape;
    size_t gates = padded(shape->gates_size), stride = gates * made->num_directions;
    size_t num_tokens = made->embedding.rows;
    if (num_tokens > MOST_TOKEN_GATES / stride) {
        return true;
    }
    vectors embedded;
    made->token_gates = NEW(memory, float, num_tokens * stride);
    if (!made->token_gates || !new_vectors(&embedded, TOGETHER, shape->embedding_size, memory)) {
        return false;
    }
    for (size_t first = 0; first < num_tokens; first += TOGETHER) {
        size_t count = num_tokens - first < TOGETHER ? num_tokens - first : TOGETHER;
        for (size_t i = 0; i < count; i++) {
            look_up(&made->embedding, first + i, embedded.values + i * embedded.stride);
        }
        for (size_t direction = 0; direction < made->num_directions; direction++) {
            const layer *one = &made->layers[direction];
            vectors to = {made->token_gates + first * stride + direction * gates, count, stride};
            fill(to, one->bias, shape->gates_size);
            multiply_add(&one->input, rows_of(embedded, 0, count), to);
        }
    }
    return true;
}

/* What the layers of an encoder work with. */
typedef struct {
    vectors bottom;   /* the embeddings */
    vectors below;    /* the outputs of the layer below */
    vectors reads;    /* with skip: both */
    vectors outputs;  /* of this layer */
    vectors spare;    /* for the outputs of the next */
    vectors gates;    /* of all positions in one direction */
    vectors of_state; /* of one position */
    vectors hidden, memory;
    size_t below_size;
    float *summary;
} work;

/* Write the gates of all positions, as far as they follow from the input. */
static void input_gates(const encoder *with, const int32_t *ids, size_t number, size_t direction, work *at) {
    const stack *shape = &with->shape;
    const layer *one = &with->layers[number * with->num_directions + direction];
    if (number > 0 || !with->token_gates) {
        fill(at->gates, one->bias, shape->gates_size);
        multiply_add(&one->input, number > 0 && shape->skip ? at->reads : at->below, at->gates);
        return;
    }
    size_t gates = padded(shape->gates_size), stride = gates * with->num_directions;
    for (size_t i = 0; i < at->gates.count; i++) {
        const float *row = with->token_gates + (size_t)ids[i] * stride + direction * gates;
        memcpy(at->gates.values + i * at->gates.stride, row, gates * sizeof *row);
    }
}

static void run_direction(const encoder *with, const int32_t *ids, size_t number, size_t direction, work *at) {
    const stack *shape = &with->shape;
    const layer *one = &with->layers[number * with->num_directions + direction];
    size_t size = shape->hidden_size, count = at->gates.count;
    input_gates(with, ids, number, direction, at);
    memset(at->hidden.values, 0, at->hidden.stride * sizeof(float));
    memset(at->memory.values, 0, at->memory.stride * sizeof(float));
    if (with->learned) {
        fill(at->hidden, one->first_hidden, size);
        if (shape->cell == LSTM) {
            fill(at->memory, one->first_memory, size);
        }
    }
    for (size_t step = 0; step < count; step++) {
        size_t position = direction ? count - 1 - step : step;
        advance_layer(shape, one, rows_of(at->gates, position, 1), at->of_state, at->hidden, at->memory);
        float *output = at->outputs.values + position * at->outputs.stride + direction * size;
        memcpy(output, at->hidden.values, size * sizeof *output);
    }
    memcpy(at->summary + direction * size, at->hidden.values, size * sizeof(float));
}

static void run_layer(const encoder *with, const int32_t *ids, size_t number, work *at) {
    const stack *shape = &with->shape;
    size_t bytes = at->below_size * sizeof(float);
    for (size_t i = 0; i < at->below.count && shape->skip && number > 0; i++) {
        float *reads = at->reads.values + i * at->reads.stride;
        memcpy(reads, at->below.values + i * at->below.stride, bytes);
        memcpy(reads + at->below_size, at->bottom.values + i * at->bottom.stride, shape->embedding_size * sizeof(float));
    }
    for (size_t direction = 0; direction < with->num_directions; direction++) {
        run_direction(with, ids, number, direction, at);
    }
    if (shape->residual && at->below_size == with->value_size) {
        for (size_t i = 0; i < at->below.count; i++) {
            loops()->add_row(at->outputs.values + i * at->outputs.stride, at->below.values + i * at->below.stride, at->below_size);
        }
    }
    /* The lowest layer read the embeddings, which skip connections still need. */
    vectors next = number > 0 ? at->below : at->spare;
    at->below = at->outputs;
    at->outputs = next;
    at->below_size = with->value_size;
}

bool encode_source(const encoder *with, const int32_t *ids, size_t count, arena *memory, memory_of_source *made) {
    const stack *shape = &with->shape;
    size_t widest = with->value_size + shape->embedding_size;
    work at = {0};
    at.summary = NEW(memory, float, padded(with->value_size));
    if (!at.summary || !new_vectors(&at.bottom, count, shape->embedding_size, memory) ||
        !new_vectors(&at.reads, count, widest, memory) || !new_vectors(&at.outputs, count, with->value_size, memory) ||
        !new_vectors(&at.spare, count, with->value_size, memory) ||
        !new_vectors(&at.gates, count, shape->gates_size, memory) ||
        !new_vectors(&at.of_state, 1, shape->gates_size, memory) || !new_vectors(&at.hidden, 1, shape->hidden_size, memory) ||
        !new_vectors(&at.memory, 1, shape->hidden_size, memory)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        look_up(&with->embedding, (size_t)ids[i], at.bottom.values + i * at.bottom.stride);
    }
    at.below = at.bottom;
    at.below_size = shape->embedding_size;
    for (size_t number = 0; number < shape->num_layers; number++) {
        run_layer(with, ids, number, &at);
    }
    *made = (memory_of_source){at.below, at.summary};
    return true;
}
