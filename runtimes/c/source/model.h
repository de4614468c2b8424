/* What a plain model file contains; runtimes/plain_format.md has the equations. */
#ifndef MODEL_H
#define MODEL_H

#include "matrix.h"
#include "text.h"
#include "vocabulary.h"

enum { MOST_LAYERS = 64, MOST_BEAM = 10000 };
enum { NO_MAX_LENGTH = -1 };

typedef enum { LSTM, GRU, ELMAN } cell_kind;
typedef enum { FIRST_STATE, EVERY_STEP, FIRST_AND_EVERY_STEP, LEARNED, NO_BRIDGE } bridge_kind;
typedef enum { NO_ATTENTION, SOFTMAX, SIGMOID, SEGMENT, HARD, LATENT_HARD, LATENT_MONOTONE } attention_kind;
typedef enum { NO_SCORER, DOT, BILINEAR, ADDITIVE, LINEAR } scorer_kind;

/* One direction of a layer. */
typedef struct {
    matrix input;
    matrix state;
    const float *bias;       /* of the gates */
    const float *state_bias; /* GRU only */
    const float *first_hidden, *first_memory;
} layer;

typedef struct {
    cell_kind cell;
    size_t embedding_size, hidden_size, num_layers;
    size_t input_size; /* of the lowest layer */
    size_t gates_size;
    bool residual, skip;
} stack;

typedef struct {
    stack shape;
    size_t num_directions;
    bool learned;
    table embedding;
    layer *layers;      /* the directions of each layer, forward first */
    size_t value_size;  /* width of a value, and of the summary */
    float *token_gates; /* of the lowest layer, for each token and direction; NULL if there are too many tokens */
} encoder;

typedef struct {
    stack shape;
    bridge_kind bridge;
    attention_kind attention;
    scorer_kind scorer;
    size_t scorer_size;
    bool before, deep, feeding, tied, copy, has_token_gates;
    size_t num_tokens, vector_size, context_size, value_size;

    table embedding, token_gates;
    matrix of_token;
    const float *token_bias;
    matrix of_summary, of_context;
    layer *layers;                       /* the lowest has no `input` and no `bias` */
    matrix *first_hidden, *first_memory; /* of each layer, with bridge FIRST_STATE and FIRST_AND_EVERY_STEP */

    float dot_scale;
    matrix key, query;
    const float *key_bias;
    const float *combine; /* of an additive scorer */
    float transitions[4], total;
    matrix vector_of_context, vector_of_state;
    matrix deep_output;
    const float *deep_bias;
    matrix output;
    const float *output_bias;
    matrix copy_gate;
    float copy_bias;
} decoder;

typedef struct {
    double temperature, others;
    bool has_others;
} scaling;

typedef struct {
    slice text, features, output;
    double score;
} example;

struct foveal_model {
    arena memory;
    const char *license;
    tokenizer source, target, features;
    vocabulary source_words, target_words, feature_words;
    size_t num_slots, max_source;
    double ratio, slack;
    size_t beam_size, nbest;
    double length_penalty;
    int max_length; /* or NO_MAX_LENGTH */
    size_t num_scalings;
    scaling *scalings;
    encoder encoder;
    decoder decoder;
    size_t num_examples;
    example *examples;
};

/* Read the network; encoder.h and decoder.h compute with it. */
bool read_network(reader *from, foveal_model *model);

/* Compute the gates of each token in advance. */
bool prepare_encoder(encoder *made, arena *memory);

#endif
