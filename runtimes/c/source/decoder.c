#include "decoder.h"

#include <math.h>
#include <string.h>

#include "attention.h"
#include "numeric.h"
#include "loops.h"

/* The logarithms of probabilities are larger, or -infinity. */
static const float least_log = -1e30f;

static float *row(vectors all, size_t number) { return all.values + number * all.stride; }

static bool reads_summary(const decoder *with) {
    return with->bridge == EVERY_STEP || with->bridge == FIRST_AND_EVERY_STEP;
}

static bool is_latent(const decoder *with) {
    return with->attention == LATENT_HARD || with->attention == LATENT_MONOTONE;
}

/* Whether the stack or the output reads its input itself, not only the gates that follow from it. */
static bool needs_inputs(const decoder *with) {
    const stack *shape = &with->shape;
    return shape->residual || (shape->skip && shape->num_layers > 1) || with->deep;
}

static bool new_rooms(decoding *made, size_t most, arena *memory) {
    const decoder *with = made->with;
    const stack *shape = &with->shape;
    size_t hidden = shape->hidden_size;
    made->scratch = NEW(memory, float, with->num_tokens);
    if (!made->scratch) {
        return false;
    }
    for (size_t number = 0; number < shape->num_layers; number++) {
        if (!new_vectors(&made->hidden[number], most, hidden, memory) ||
            (shape->cell == LSTM && !new_vectors(&made->memory[number], most, hidden, memory))) {
            return false;
        }
    }
    return new_vectors(&made->next, most, hidden, memory) && new_vectors(&made->gates, most, shape->gates_size, memory) &&
           (shape->cell != GRU || new_vectors(&made->of_state, most, shape->gates_size, memory)) &&
           new_vectors(&made->inputs, most, shape->input_size, memory) &&
           (!shape->skip || new_vectors(&made->reads, most, hidden + shape->input_size, memory)) &&
           (!shape->residual || new_vectors(&made->outputs, most, hidden, memory)) &&
           new_vectors(&made->vector, most, with->vector_size, memory) &&
           new_vectors(&made->log_probs, most, with->num_tokens, memory);
}

static bool new_attention_rooms(decoding *made, size_t most, arena *memory) {
    const decoder *with = made->with;
    size_t count = made->num_positions, width = with->value_size > with->vector_size ? with->value_size : with->vector_size;
    made->terms = NEW(memory, float, count);
    if (!made->terms || !new_vectors(&made->scores, most, count, memory) ||
        !new_vectors(&made->context, most, width, memory)) {
        return false;
    }
    if (with->deep) {
        size_t joined = with->shape.hidden_size + with->shape.embedding_size + with->value_size;
        if (!new_vectors(&made->joined, most, joined, memory) ||
            !new_vectors(&made->units, most, 2 * with->vector_size, memory)) {
            return false;
        }
    }
    if (with->copy) {
        made->pointed = NEW(memory, float, with->num_tokens);
        if (!made->pointed || !new_vectors(&made->copy_gate, most, 1, memory)) {
            return false;
        }
    }
    if (is_latent(with) && (count > SIZE_MAX / most || !new_vectors(&made->at_positions, most * count, with->vector_size, memory) ||
                            !new_vectors(&made->found, most * count, with->num_tokens, memory))) {
        return false;
    }
    if (with->attention == LATENT_MONOTONE) {
        return new_vectors(&made->norms, most, count, memory) &&
               new_vectors(&made->filtered, most, count, memory) && new_vectors(&made->next_filtered, most, count, memory);
    }
    return true;
}

/* The state before the first token, of one hypothesis. */
static void first_state(decoding *made) {
    const decoder *with = made->with;
    const stack *shape = &with->shape;
    vectors summary = {(float *)made->summary, 1, padded(with->value_size)};
    bool computes = with->bridge == FIRST_STATE || with->bridge == FIRST_AND_EVERY_STEP;
    for (size_t number = 0; number < shape->num_layers && (computes || with->bridge == LEARNED); number++) {
        const layer *one = &with->layers[number];
        memcpy(made->hidden[number].values, one->first_hidden, shape->hidden_size * sizeof(float));
        if (computes) {
            multiply_add(&with->first_hidden[number], summary, made->hidden[number]);
            loops()->tanh_row(made->hidden[number].values, made->hidden[number].values, shape->hidden_size);
        }
        if (shape->cell != LSTM) {
            continue;
        }
        memcpy(made->memory[number].values, one->first_memory, shape->hidden_size * sizeof(float));
        if (computes) {
            multiply_add(&with->first_memory[number], summary, made->memory[number]);
        }
    }
}

static bool start_attention(decoding *made, vectors values, const int32_t *ids, size_t most, arena *memory) {
    const decoder *with = made->with;
    if (!new_attention_rooms(made, most, memory) || !prepare_keys(made, values, memory)) {
        return false;
    }
    made->values = values;
    if (!with->before) {
        /* The matrix of the context is applied to the values, before the weights sum them up. */
        if (!new_vectors(&made->values, values.count, with->vector_size, memory)) {
            return false;
        }
        multiply(&with->vector_of_context, values, made->values);
    }
    made->copied = NEW(memory, int32_t, values.count);
    for (size_t p = 0; made->copied && p < values.count; p++) {
        made->copied[p] = (size_t)ids[p] < with->num_tokens ? ids[p] : UNKNOWN;
    }
    for (size_t p = 1; with->attention == LATENT_MONOTONE && p < values.count; p++) {
        made->filtered.values[p] = -INFINITY;
    }
    return made->copied != NULL;
}

bool start_decoding(const decoder *with, const memory_of_source *source, const int32_t *ids, size_t most, arena *memory,
                    decoding *made) {
    *made = (decoding){0};
    made->with = with;
    made->num_positions = source->values.count;
    made->num_rows = 1;
    made->summary = source->summary;
    if (!new_rooms(made, most, memory)) {
        return false;
    }
    first_state(made);
    if (reads_summary(with)) {
        vectors gates, summary = {(float *)source->summary, 1, padded(with->value_size)};
        if (!new_vectors(&gates, 1, with->shape.gates_size, memory)) {
            return false;
        }
        multiply(&with->of_summary, summary, gates);
        made->summary_gates = gates.values;
    }
    return with->attention == NO_ATTENTION || start_attention(made, source->values, ids, most, memory);
}

/* Write the inputs of the stack: token, summary, context. */
static void write_inputs(decoding *now, const int32_t *tokens) {
    const decoder *with = now->with;
    bool needs_embedding = !with->has_token_gates || needs_inputs(with);
    for (size_t k = 0; k < now->num_rows && needs_embedding; k++) {
        float *inputs = row(now->inputs, k) + with->shape.embedding_size;
        look_up(&with->embedding, (size_t)tokens[k], row(now->inputs, k));
        if (reads_summary(with)) {
            memcpy(inputs, now->summary, with->value_size * sizeof *inputs);
            inputs += with->value_size;
        }
        if (with->context_size) {
            memcpy(inputs, row(now->context, k), with->context_size * sizeof *inputs);
        }
    }
}

/* Write the gates of the lowest layer, as far as they follow from its input. */
static void write_gates(decoding *now, const int32_t *tokens) {
    const decoder *with = now->with;
    size_t size = with->shape.gates_size;
    if (with->has_token_gates) {
        for (size_t k = 0; k < now->num_rows; k++) {
            look_up(&with->token_gates, (size_t)tokens[k], row(now->gates, k));
        }
    } else {
        fill(now->gates, with->token_bias, size);
        multiply_add(&with->of_token, now->inputs, now->gates);
    }
    for (size_t k = 0; k < now->num_rows && now->summary_gates; k++) {
        loops()->add_row(row(now->gates, k), now->summary_gates, size);
    }
    if (with->context_size) {
        multiply_add(&with->of_context, now->context, now->gates);
    }
}

/* Advance all layers, and return the outputs of the stack. */
static vectors advance_stack(decoding *now) {
    const stack *shape = &now->with->shape;
    size_t hidden = shape->hidden_size;
    vectors below = now->inputs;
    for (size_t number = 0; number < shape->num_layers; number++) {
        const layer *one = &now->with->layers[number];
        vectors reads = below;
        if (number > 0 && shape->skip) {
            reads = now->reads;
            for (size_t k = 0; k < now->num_rows; k++) {
                memcpy(row(reads, k), row(below, k), hidden * sizeof(float));
                memcpy(row(reads, k) + hidden, row(now->inputs, k), shape->input_size * sizeof(float));
            }
        }
        if (number > 0) {
            fill(now->gates, one->bias, shape->gates_size);
            multiply_add(&one->input, reads, now->gates);
        }
        advance_layer(shape, one, now->gates, now->of_state, now->hidden[number], now->memory[number]);
        if (!shape->residual || (number == 0 && shape->input_size != hidden)) {
            below = now->hidden[number];
            continue;
        }
        for (size_t k = 0; k < now->num_rows; k++) {
            memmove(row(now->outputs, k), row(below, k), hidden * sizeof(float));
            loops()->add_row(row(now->outputs, k), row(now->hidden[number], k), hidden);
        }
        below = now->outputs;
    }
    return below;
}

/* Write the sum of the values, each with its weight. */
static void sum_values(const decoding *now, size_t size, vectors to, bool add) {
    for (size_t k = 0; k < now->num_rows; k++) {
        if (!add) {
            memset(row(to, k), 0, size * sizeof(float));
        }
        for (size_t p = 0; p < now->num_positions; p++) {
            loops()->add_scaled_row(row(to, k), row(now->values, p), row(now->scores, k)[p], size);
        }
    }
}

/* The vector before the output layer of a decoder with a deep output. */
static void read_deep(decoding *now, vectors states) {
    const decoder *with = now->with;
    size_t hidden = with->shape.hidden_size, embedding = with->shape.embedding_size;
    for (size_t k = 0; k < now->num_rows; k++) {
        float *joined = row(now->joined, k);
        memcpy(joined, row(states, k), hidden * sizeof *joined);
        memcpy(joined + hidden, row(now->inputs, k), embedding * sizeof *joined);
        memcpy(joined + hidden + embedding, row(now->context, k), with->value_size * sizeof *joined);
    }
    fill(now->units, with->deep_bias, 2 * with->vector_size);
    multiply_add(&with->deep_output, now->joined, now->units);
    for (size_t k = 0; k < now->num_rows; k++) {
        const float *units = row(now->units, k);
        for (size_t j = 0; j < with->vector_size; j++) {
            row(now->vector, k)[j] = units[2 * j] > units[2 * j + 1] ? units[2 * j] : units[2 * j + 1];
        }
    }
}

/* Mix the probabilities of a hypothesis with those of the tokens that it copies. */
static void copy_tokens(decoding *now, size_t k) {
    const decoder *with = now->with;
    float gate = row(now->copy_gate, k)[0] + with->copy_bias, *log_probs = row(now->log_probs, k);
    float kept = softplus(-gate), copied = softplus(gate);
    memset(now->pointed, 0, with->num_tokens * sizeof(float));
    for (size_t p = 0; p < now->num_positions; p++) {
        now->pointed[now->copied[p]] += row(now->scores, k)[p];
    }
    for (size_t y = 0; y < with->num_tokens; y++) {
        float generated = log_probs[y] - kept, pointed = logf(now->pointed[y]) - copied;
        generated = generated > least_log ? generated : least_log;
        pointed = pointed > least_log ? pointed : least_log;
        float high = generated > pointed ? generated : pointed, low = generated > pointed ? pointed : generated;
        float mixed = high + log1pf(exponential(low - high));
        log_probs[y] = mixed < least_log / 2 ? -INFINITY : mixed;
    }
}

/* Write the log-probabilities of tokens from the vectors before the output layer. */
static void predict(decoding *now, vectors from) {
    const decoder *with = now->with;
    fill(now->log_probs, with->output_bias, with->num_tokens);
    multiply_add(&with->output, from, now->log_probs);
    for (size_t k = 0; k < now->num_rows; k++) {
        log_softmax_row(row(now->log_probs, k), with->num_tokens, now->scratch);
    }
    if (with->copy) {
        multiply(&with->copy_gate, from, now->copy_gate);
        for (size_t k = 0; k < now->num_rows; k++) {
            copy_tokens(now, k);
        }
    }
}

static void count_rows(decoding *now) {
    vectors *all[] = {&now->gates,  &now->of_state, &now->inputs, &now->reads, &now->outputs,   &now->queries,  &now->scores,
                      &now->context, &now->vector,   &now->joined, &now->units, &now->log_probs, &now->copy_gate};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        all[i]->count = now->num_rows;
    }
    for (size_t number = 0; number < now->with->shape.num_layers; number++) {
        now->hidden[number].count = now->memory[number].count = now->num_rows;
    }
}

void take_step(decoding *now, const int32_t *tokens) {
    const decoder *with = now->with;
    count_rows(now);
    if (with->before) {
        score_positions(now, now->hidden[with->shape.num_layers - 1]);
        weigh_positions(now);
        sum_values(now, with->value_size, now->context, false);
    }
    write_inputs(now, tokens);
    write_gates(now, tokens);
    vectors states = advance_stack(now);
    if (with->attention == NO_ATTENTION || (with->before && !with->deep)) {
        predict(now, states);
    } else if (with->before) {
        read_deep(now, states);
        predict(now, now->vector);
    } else if (is_latent(with)) {
        score_positions(now, states);
        sum_over_positions(now, states);
    } else {
        score_positions(now, states);
        weigh_positions(now);
        multiply(&with->vector_of_state, states, now->vector);
        sum_values(now, with->vector_size, now->vector, true);
        for (size_t k = 0; k < now->num_rows; k++) {
            loops()->tanh_row(row(now->vector, k), row(now->vector, k), with->vector_size);
        }
        predict(now, now->vector);
    }
}

/* Put the rows of the hypotheses that go on into their new order. */
static void reorder(vectors *state, vectors *next, const int32_t *parents, size_t count) {
    for (size_t k = 0; k < count; k++) {
        memcpy(row(*next, k), row(*state, (size_t)parents[k]), state->stride * sizeof(float));
    }
    vectors before = *state;
    *state = *next;
    *next = before;
}

void go_on(decoding *now, const int32_t *parents, const int32_t *tokens, size_t count) {
    const stack *shape = &now->with->shape;
    for (size_t number = 0; number < shape->num_layers; number++) {
        reorder(&now->hidden[number], &now->next, parents, count);
        if (shape->cell == LSTM) {
            reorder(&now->memory[number], &now->next, parents, count);
        }
    }
    for (size_t k = 0; k < count && now->with->feeding; k++) {
        memcpy(row(now->context, k), row(now->vector, (size_t)parents[k]), now->with->vector_size * sizeof(float));
    }
    if (now->with->attention == LATENT_MONOTONE) {
        filter_positions(now, parents, tokens, count);
    }
    now->num_rows = count;
}
