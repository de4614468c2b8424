/* The sections of a plain model file that describe the network. */

#include "model.h"

enum { MOST_WIDTH = 65536 };

static const size_t gates_of[] = {4, 3, 1};

static void read_stack(reader *from, stack *shape) {
    shape->cell = (cell_kind)read_kind(from, ELMAN, "unknown kind of a cell");
    shape->embedding_size = read_between(from, 1, MOST_WIDTH, "the width of an embedding is out of range");
    shape->hidden_size = read_between(from, 1, MOST_WIDTH, "the width of a state is out of range");
    shape->num_layers = read_between(from, 1, MOST_LAYERS, "the number of layers is out of range");
    shape->gates_size = shape->hidden_size * gates_of[shape->cell];
}

static bool take_matrix(reader *from, size_t rows, size_t columns, arena *memory, matrix *made) {
    stored_matrix found = read_matrix(from, rows, columns);
    return !from->failed && new_matrix(made, &found, memory);
}

static bool take_table(reader *from, size_t rows, size_t columns, arena *memory, table *made) {
    stored_matrix found = read_matrix(from, rows, columns);
    return !from->failed && new_table(made, &found, memory);
}

static bool take_vector(reader *from, size_t size, arena *memory, const float **made) {
    *made = read_vector(from, size, memory);
    return *made != NULL;
}

static bool read_direction(reader *from, const encoder *made, size_t input_size, arena *memory, layer *one) {
    const stack *shape = &made->shape;
    size_t gates = shape->gates_size, hidden = shape->hidden_size;
    if (!take_matrix(from, gates, input_size, memory, &one->input) ||
        !take_matrix(from, gates, hidden, memory, &one->state) || !take_vector(from, gates, memory, &one->bias)) {
        return false;
    }
    if (shape->cell == GRU && !take_vector(from, gates, memory, &one->state_bias)) {
        return false;
    }
    if (made->learned) {
        return take_vector(from, hidden, memory, &one->first_hidden) &&
               (shape->cell != LSTM || take_vector(from, hidden, memory, &one->first_memory));
    }
    return true;
}

static bool read_encoder(reader *from, size_t num_tokens, arena *memory, encoder *made) {
    stack *shape = &made->shape;
    read_stack(from, shape);
    made->num_directions = 1 + read_flag(from, "bidirectional is neither 0 nor 1");
    shape->residual = read_flag(from, "residual is neither 0 nor 1");
    shape->skip = read_flag(from, "skip is neither 0 nor 1");
    made->learned = read_flag(from, "learned is neither 0 nor 1");
    if (from->failed) {
        return false;
    }
    shape->input_size = shape->embedding_size;
    made->value_size = shape->hidden_size * made->num_directions;
    made->layers = NEW(memory, layer, shape->num_layers * made->num_directions);
    if (!made->layers || !take_table(from, num_tokens, shape->embedding_size, memory, &made->embedding)) {
        return false;
    }
    for (size_t number = 0; number < shape->num_layers * made->num_directions; number++) {
        bool is_lowest = number < made->num_directions;
        size_t above = made->value_size + (shape->skip ? shape->embedding_size : 0);
        if (!read_direction(from, made, is_lowest ? shape->embedding_size : above, memory, &made->layers[number])) {
            return false;
        }
    }
    return prepare_encoder(made, memory);
}

static bool is_latent(const decoder *made) {
    return made->attention == LATENT_HARD || made->attention == LATENT_MONOTONE;
}

/* Check the rules between the settings. */
static void check_decoder(reader *from, const decoder *made, size_t num_slots, size_t value_size) {
    bool attends = made->attention != NO_ATTENTION, reads_context = attends && !is_latent(made);
    const stack *shape = &made->shape;
    bool is_plain = !attends || (made->before && !made->deep);
    if ((made->scorer != NO_SCORER) != attends || (made->scorer_size > 0) != (made->scorer == ADDITIVE)) {
        refuse(from, "attention and scorer do not fit");
    } else if ((made->before || made->feeding || made->copy) && !reads_context) {
        refuse(from, "a setting of the decoder needs another attention");
    } else if ((made->before && made->feeding) || (made->deep && !made->before)) {
        refuse(from, "settings of the decoder exclude each other");
    } else if (made->copy ? made->attention != SOFTMAX && made->attention != HARD : num_slots > 0) {
        refuse(from, "copying does not fit");
    } else if (made->has_token_gates && (made->tied || shape->residual || (shape->skip && shape->num_layers > 1))) {
        refuse(from, "gates of tokens do not fit");
    } else if (made->scorer == DOT && shape->hidden_size != value_size) {
        refuse(from, "a dot product has two widths");
    } else if (is_plain && made->vector_size != shape->hidden_size) {
        refuse(from, "the output layer has a wrong width");
    }
}

static void read_decoder_settings(reader *from, decoder *made, size_t num_slots, size_t value_size) {
    stack *shape = &made->shape;
    read_stack(from, shape);
    shape->residual = read_flag(from, "residual is neither 0 nor 1");
    shape->skip = read_flag(from, "skip is neither 0 nor 1");
    made->bridge = (bridge_kind)read_kind(from, NO_BRIDGE, "unknown bridge");
    made->attention = (attention_kind)read_kind(from, LATENT_MONOTONE, "unknown attention");
    made->scorer = (scorer_kind)read_kind(from, LINEAR, "unknown scorer");
    made->scorer_size = read_between(from, 0, MOST_WIDTH, "the width of a scorer is out of range");
    bool *flags[] = {&made->before, &made->deep, &made->feeding, &made->tied, &made->copy, &made->has_token_gates};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        *flags[i] = read_flag(from, "a setting of the decoder is neither 0 nor 1");
    }
    made->value_size = value_size;
    made->vector_size = made->tied ? shape->embedding_size : shape->hidden_size;
    made->context_size = made->before ? value_size : made->feeding ? made->vector_size : 0;
    bool reads_summary = made->bridge == EVERY_STEP || made->bridge == FIRST_AND_EVERY_STEP;
    shape->input_size = shape->embedding_size + (reads_summary ? value_size : 0) + made->context_size;
    if (!from->failed) {
        check_decoder(from, made, num_slots, value_size);
    }
}

/* The embedding is also the output layer where both are tied. */
static bool read_embedding(reader *from, arena *memory, decoder *made) {
    if (made->has_token_gates && !made->deep) {
        return true;
    }
    stored_matrix found = read_matrix(from, made->num_tokens, made->shape.embedding_size);
    return !from->failed && new_table(&made->embedding, &found, memory) &&
           (!made->tied || new_matrix(&made->output, &found, memory));
}

static bool read_decoder_stack(reader *from, arena *memory, decoder *made) {
    const stack *shape = &made->shape;
    size_t gates = shape->gates_size, hidden = shape->hidden_size;
    made->layers = NEW(memory, layer, shape->num_layers);
    if (!made->layers || !read_embedding(from, memory, made)) {
        return false;
    }
    if (made->has_token_gates) {
        if (!take_table(from, made->num_tokens, gates, memory, &made->token_gates)) {
            return false;
        }
    } else if (!take_matrix(from, gates, shape->embedding_size, memory, &made->of_token) ||
               !take_vector(from, gates, memory, &made->token_bias)) {
        return false;
    }
    bool reads_summary = made->bridge == EVERY_STEP || made->bridge == FIRST_AND_EVERY_STEP;
    if (reads_summary && !take_matrix(from, gates, made->value_size, memory, &made->of_summary)) {
        return false;
    }
    if (made->context_size && !take_matrix(from, gates, made->context_size, memory, &made->of_context)) {
        return false;
    }
    for (size_t number = 0; number < shape->num_layers; number++) {
        layer *one = &made->layers[number];
        if (number > 0 && (!take_matrix(from, gates, hidden + (shape->skip ? shape->input_size : 0), memory, &one->input) ||
                           !take_vector(from, gates, memory, &one->bias))) {
            return false;
        }
        if (!take_matrix(from, gates, hidden, memory, &one->state)) {
            return false;
        }
        if (shape->cell == GRU && !take_vector(from, gates, memory, &one->state_bias)) {
            return false;
        }
    }
    return true;
}

static bool read_bridge(reader *from, arena *memory, decoder *made) {
    const stack *shape = &made->shape;
    size_t hidden = shape->hidden_size, num_parts = shape->cell == LSTM ? 2 : 1;
    bool computes = made->bridge == FIRST_STATE || made->bridge == FIRST_AND_EVERY_STEP;
    made->first_hidden = NEW(memory, matrix, shape->num_layers);
    made->first_memory = NEW(memory, matrix, shape->num_layers);
    if (!made->first_hidden || !made->first_memory) {
        return false;
    }
    for (size_t number = 0; number < shape->num_layers; number++) {
        matrix *matrices[] = {&made->first_hidden[number], &made->first_memory[number]};
        const float **first[] = {&made->layers[number].first_hidden, &made->layers[number].first_memory};
        for (size_t part = 0; part < num_parts && (computes || made->bridge == LEARNED); part++) {
            if ((computes && !take_matrix(from, hidden, made->value_size, memory, matrices[part])) ||
                !take_vector(from, hidden, memory, first[part])) {
                return false;
            }
        }
    }
    return true;
}

/* The weights of the last step of an additive score, with their scale. */
static bool read_combine(reader *from, arena *memory, decoder *made) {
    stored_matrix found = read_matrix(from, 1, made->scorer_size);
    float *combine = from->failed ? NULL : NEW(memory, float, made->scorer_size);
    if (!combine) {
        return false;
    }
    for (size_t i = 0; i < made->scorer_size; i++) {
        combine[i] = stored_value(&found, 0, i) * stored_scale(&found, 0);
    }
    made->combine = combine;
    return true;
}

static bool read_scorer(reader *from, arena *memory, decoder *made) {
    size_t values = made->value_size, hidden = made->shape.hidden_size;
    switch (made->scorer) {
    case DOT:
        made->dot_scale = read_f32(from);
        return !from->failed;
    case BILINEAR:
        return take_matrix(from, hidden, values, memory, &made->key);
    case ADDITIVE:
        return take_matrix(from, made->scorer_size, values, memory, &made->key) &&
               take_vector(from, made->scorer_size, memory, &made->key_bias) &&
               take_matrix(from, made->scorer_size, hidden, memory, &made->query) && read_combine(from, memory, made);
    case LINEAR:
        return take_matrix(from, 1, values, memory, &made->key) && take_matrix(from, 1, hidden, memory, &made->query);
    default:
        return true;
    }
}

static bool read_attention(reader *from, arena *memory, decoder *made) {
    if (!read_scorer(from, memory, made)) {
        return false;
    }
    if (made->attention == SEGMENT) {
        for (int i = 0; i < 4; i++) {
            made->transitions[i] = read_f32(from);
        }
        made->total = read_f32(from);
        if (made->total < 0) {
            refuse(from, "the total of an attention is negative");
        }
    }
    return made->before ||
           (take_matrix(from, made->vector_size, made->value_size, memory, &made->vector_of_context) &&
            take_matrix(from, made->vector_size, made->shape.hidden_size, memory, &made->vector_of_state));
}

static bool read_output(reader *from, arena *memory, decoder *made) {
    size_t joined = made->shape.hidden_size + made->shape.embedding_size + made->value_size, size = made->vector_size;
    if (made->deep && (!take_matrix(from, 2 * size, joined, memory, &made->deep_output) ||
                       !take_vector(from, 2 * size, memory, &made->deep_bias))) {
        return false;
    }
    if (!made->tied && !take_matrix(from, made->num_tokens, size, memory, &made->output)) {
        return false;
    }
    if (!take_vector(from, made->num_tokens, memory, &made->output_bias)) {
        return false;
    }
    if (made->copy) {
        if (!take_matrix(from, 1, size, memory, &made->copy_gate)) {
            return false;
        }
        made->copy_bias = read_f32(from);
    }
    return !from->failed;
}

bool read_network(reader *from, foveal_model *model) {
    arena *memory = &model->memory;
    decoder *made = &model->decoder;
    size_t num_tokens = NUM_SPECIAL + model->source_words.count + model->num_slots;
    if (model->features.kind != NO_TOKENIZER) {
        num_tokens += NUM_SPECIAL + model->feature_words.count;
    }
    if (!read_encoder(from, num_tokens, memory, &model->encoder)) {
        return false;
    }
    made->num_tokens = NUM_SPECIAL + model->target_words.count + model->num_slots;
    read_decoder_settings(from, made, model->num_slots, model->encoder.value_size);
    if (made->copy && model->source_words.count != model->target_words.count) {
        refuse(from, "copying needs one vocabulary");
    }
    return !from->failed && read_decoder_stack(from, memory, made) && read_bridge(from, memory, made) &&
           (made->attention == NO_ATTENTION || read_attention(from, memory, made)) && read_output(from, memory, made);
}
