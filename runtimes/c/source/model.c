/* Loading a model: the checksum, texts and settings, the network, the examples. */

#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sha256.h"

enum { VERSION = 1, MAGIC_SIZE = 8, HEAD_SIZE = MAGIC_SIZE + 4 + SHA256_SIZE };
enum { MOST_LINES = 1000, MOST_TOKENS = 100000000, MOST_EXAMPLES = 200, MOST_SCALINGS = 10000 };
enum { MOST_SLOTS = 65536, MOST_SOURCE = 1000000, MOST_MAX_LENGTH = 1000000, MOST_SIZE = 0x7FFFFFFF };

static const uint8_t magic[MAGIC_SIZE] = {0x89, 'F', 'V', 'L', '\r', '\n', 0x1A, '\n'};

/* A copy of a text, which outlives the content of the file. */
static slice keep_string(reader *from, arena *memory) {
    slice text = read_string(from);
    text.bytes = arena_text(memory, text.bytes, text.size);
    if (!text.bytes) {
        from->failed = true;
        return (slice){"", 0};
    }
    return text;
}

static void read_tokenizer(reader *from, arena *memory, tokenizer *made) {
    made->kind = (tokenizer_kind)read_kind(from, FEATURES, "unknown tokenizer");
    made->drop = read_flag(from, "a setting of a tokenizer is neither 0 nor 1");
    made->separator = keep_string(from, memory);
    bool has_characters = made->kind == GRAPHEMES || made->kind == CODE_POINTS;
    if ((made->drop && !has_characters) || (made->separator.size && made->kind != FEATURES)) {
        refuse(from, "a tokenizer has a setting of another one");
    }
}

static bool read_vocabulary(reader *from, arena *memory, vocabulary *made) {
    made->count = read_count(from, 4, MOST_TOKENS, "a vocabulary is longer than the file");
    made->tokens = NEW(memory, slice, made->count);
    for (size_t i = 0; made->tokens && i < made->count && !from->failed; i++) {
        made->tokens[i] = keep_string(from, memory);
    }
    return made->tokens && !from->failed && index_vocabulary(made, memory);
}

static bool read_texts(reader *from, foveal_model *model) {
    arena *memory = &model->memory;
    read_string(from);
    model->license = keep_string(from, memory).bytes;
    size_t count = read_count(from, 4, MOST_LINES, "there are too many lines about the data");
    for (size_t i = 0; i < count; i++) {
        read_string(from);
    }
    read_tokenizer(from, memory, &model->source);
    read_tokenizer(from, memory, &model->target);
    read_tokenizer(from, memory, &model->features);
    if (model->source.kind == NO_TOKENIZER || model->target.kind == NO_TOKENIZER) {
        refuse(from, "a tokenizer is missing");
    }
    if (from->failed || !read_vocabulary(from, memory, &model->source_words) ||
        !read_vocabulary(from, memory, &model->target_words) || !read_vocabulary(from, memory, &model->feature_words)) {
        return false;
    }
    if (model->features.kind == NO_TOKENIZER && model->feature_words.count) {
        refuse(from, "features have no tokenizer");
    }
    return !from->failed;
}

static bool read_settings(reader *from, foveal_model *model) {
    model->num_slots = read_between(from, 0, MOST_SLOTS, "the number of slots is out of range");
    model->max_source = read_between(from, 1, MOST_SOURCE, "the maximum of source tokens is out of range");
    model->ratio = read_double_between(from, 0, 1000, "the ratio of lengths is out of range");
    model->slack = read_double_between(from, 0, 1e6, "the slack of lengths is out of range");
    model->beam_size = read_between(from, 1, MOST_BEAM, "the beam size is out of range");
    model->nbest = read_between(from, 1, (uint32_t)model->beam_size, "nbest is out of range");
    model->length_penalty = read_double_between(from, -100, 100, "the length penalty is out of range");
    uint32_t max_length = read_u32(from);
    if (max_length != UINT32_MAX && (!max_length || max_length > MOST_MAX_LENGTH)) {
        refuse(from, "the maximum length is out of range");
    }
    model->max_length = max_length == UINT32_MAX ? NO_MAX_LENGTH : (int)max_length;
    model->num_scalings = read_count(from, 17, MOST_SCALINGS, "there are too many scalings");
    model->scalings = NEW(&model->memory, scaling, model->num_scalings);
    for (size_t i = 0; model->scalings && i < model->num_scalings; i++) {
        scaling *one = &model->scalings[i];
        one->temperature = read_f64(from);
        one->has_others = read_flag(from, "a setting of the calibration is neither 0 nor 1");
        one->others = read_f64(from);
        if (!(one->temperature > 0) || (model->num_scalings > 1 && !one->has_others)) {
            refuse(from, "a scaling is out of range");
        }
    }
    if (!model->num_scalings) {
        refuse(from, "the calibration is missing");
    }
    return model->scalings && !from->failed;
}

static bool read_examples(reader *from, foveal_model *model) {
    model->num_examples = read_count(from, 20, MOST_EXAMPLES, "there are too many examples");
    model->examples = NEW(&model->memory, example, model->num_examples);
    for (size_t i = 0; model->examples && i < model->num_examples; i++) {
        example *one = &model->examples[i];
        one->text = keep_string(from, &model->memory);
        one->features = keep_string(from, &model->memory);
        one->output = keep_string(from, &model->memory);
        one->score = read_f64(from);
    }
    return model->examples && !from->failed;
}

static bool read_model(reader *from, foveal_model *model) {
    if (!read_texts(from, model) || !read_settings(from, model) || !read_network(from, model) ||
        !read_examples(from, model)) {
        return false;
    }
    if (from->at != from->end) {
        refuse(from, "there are bytes after its end");
    }
    return !from->failed;
}

/* Check the first bytes and the checksum. */
static bool check_head(const uint8_t *bytes, size_t size, foveal_error *error) {
    if (size < HEAD_SIZE || size > MOST_SIZE || memcmp(bytes, magic, MAGIC_SIZE)) {
        return fail(error, "expected a plain model file, got another file of %u bytes. Export the model with --plain.", size);
    }
    reader head = {bytes + MAGIC_SIZE, bytes + HEAD_SIZE, false, error};
    uint32_t version = read_u32(&head);
    if (version != VERSION) {
        return fail(error, "the model file has version %u, this library reads version %d. Install a newer library.",
                    (size_t)version, VERSION);
    }
    uint8_t digest[SHA256_SIZE];
    sha256(bytes + HEAD_SIZE, size - HEAD_SIZE, digest);
    if (memcmp(digest, head.at, SHA256_SIZE)) {
        return fail(error, "the model file has a wrong SHA-256 checksum. Restore the file, or export the model again.");
    }
    return true;
}

foveal_model *foveal_load(const void *content, size_t size, foveal_error *error) {
    const uint8_t *bytes = content;
    if (!check_head(bytes, size, error)) {
        return NULL;
    }
    foveal_model *model = calloc(1, sizeof *model);
    if (!model) {
        fail(error, "out of memory: a model. Free memory.");
        return NULL;
    }
    model->memory.error = error;
    reader from = {bytes + HEAD_SIZE, bytes + size, false, error};
    if (!read_model(&from, model)) {
        foveal_free(model);
        return NULL;
    }
    model->memory.error = NULL; /* belongs to the caller */
    return model;
}

void foveal_free(foveal_model *model) {
    if (model) {
        arena_free(&model->memory);
        free(model);
    }
}

const char *foveal_license(const foveal_model *model) { return model->license; }

foveal_options foveal_defaults(const foveal_model *model) {
    int max_length = model->max_length == NO_MAX_LENGTH ? 0 : model->max_length;
    return (foveal_options){0, (int)model->nbest, model->length_penalty, max_length, 0};
}
