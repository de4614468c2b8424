/* Answers: split and number a text, search, calibrate, write the outputs. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibration.h"
#include "search.h"

enum { MOST_LIMIT = 100000, MOST_WORK = 1 << 24 };

static const char unknown_text[] = "\xEF\xBF\xBD"; /* U+FFFD */
static const double near = 1e-4;                   /* a gap between scores that rounding can close */

typedef struct {
    foveal_answer public;
    arena memory;
} owned_answer;

typedef struct {
    size_t count; /* of positions: features, then tokens of the text */
    int32_t *ids;
    slice *names;
    size_t num_tokens; /* of the text */
    size_t num_slots;  /* filled */
    slice *slots;
} source;

/* The id of a token of the text that may be new: in its slot, or unknown. */
static int32_t unseen_id(const foveal_model *model, slice token, source *made) {
    size_t slot = 0;
    while (slot < made->num_slots && !same_text(made->slots[slot], token)) {
        slot++;
    }
    if (slot == model->num_slots) {
        return UNKNOWN;
    }
    made->slots[slot] = token;
    made->num_slots += slot == made->num_slots;
    return (int32_t)(NUM_SPECIAL + model->source_words.count + slot);
}

static bool number_source(const foveal_model *model, slice text, slice features, arena *memory, source *made) {
    token_list words = {NULL, 0}, given = {NULL, 0};
    if (!encode_text(&model->source, text, memory, &words) || !encode_text(&model->features, features, memory, &given)) {
        return false;
    }
    size_t count = words.count + given.count;
    if (count > model->max_source) {
        return fail(memory->error, "a text may have at most %u tokens, got %u. Split it.", model->max_source, count);
    }
    *made = (source){count, NEW(memory, int32_t, count + 1), NEW(memory, slice, count + 1), words.count, 0,
                     NEW(memory, slice, model->num_slots + 1)};
    if (!made->ids || !made->names || !made->slots) {
        return false;
    }
    int32_t after = (int32_t)(NUM_SPECIAL + model->source_words.count + model->num_slots);
    for (size_t i = 0; i < given.count; i++) {
        int32_t number = find_token(&model->feature_words, given.items[i]);
        made->ids[i] = after + (number == NOT_FOUND ? UNKNOWN : NUM_SPECIAL + number);
        made->names[i] = given.items[i];
    }
    for (size_t i = 0; i < words.count; i++) {
        int32_t number = find_token(&model->source_words, words.items[i]);
        made->ids[given.count + i] = number == NOT_FOUND ? unseen_id(model, words.items[i], made) : NUM_SPECIAL + number;
        made->names[given.count + i] = words.items[i];
    }
    if (!words.count) { /* an attention needs a position, so an empty text is one unknown token */
        made->ids[made->count] = UNKNOWN;
        made->names[made->count++] = (slice){"", 0};
        made->num_tokens = 1;
    }
    return true;
}

/* The longest output, with the end token. */
static bool limit_of(const foveal_model *model, const foveal_options *options, size_t num_tokens, foveal_error *error,
                     search_settings *settings) {
    double longest = floor(1.2 * (model->ratio * (double)num_tokens + model->slack)) + 2;
    if (options->max_length > 0) {
        longest = (double)options->max_length + 1;
    }
    if (longest > MOST_LIMIT || longest * (double)settings->beam_size > MOST_WORK) {
        return fail(error,
                    "an output may have at most %d tokens, and all hypotheses together %d, but the limit is larger. "
                    "Set max_length, or a smaller beam_size.",
                    (int)MOST_LIMIT, (int)MOST_WORK);
    }
    settings->limit = (size_t)longest;
    return true;
}

static bool settings_of(const foveal_model *model, const foveal_options *options, foveal_error *error,
                        search_settings *settings) {
    int most = (int)model->beam_size > options->nbest ? (int)model->beam_size : options->nbest;
    int beam_size = options->beam_size ? options->beam_size : most;
    if (options->nbest < 1 || options->nbest > beam_size || beam_size > MOST_BEAM) {
        return fail(error, "expected 1 <= nbest <= beam_size <= %d, got nbest=%d and beam_size=%d. Set beam_size.",
                    (int)MOST_BEAM, options->nbest, beam_size);
    }
    if (options->max_length < 0 || !isfinite(options->length_penalty)) {
        return fail(error, "expected max_length >= 0 and a finite length_penalty, got others. Correct the options.");
    }
    settings->beam_size = (size_t)beam_size;
    settings->length_penalty = (float)options->length_penalty;
    settings->attention = options->attention && model->decoder.attention != NO_ATTENTION;
    return true;
}

static slice token_text(const foveal_model *model, const source *from, int32_t id) {
    size_t number = (size_t)id - NUM_SPECIAL, slot = number - model->target_words.count;
    if (number < model->target_words.count) {
        return model->target_words.tokens[number];
    }
    return slot < from->num_slots ? from->slots[slot] : (slice){unknown_text, sizeof unknown_text - 1};
}

/* Copies of texts with zero bytes after them. */
static bool copy_names(const slice *names, size_t count, arena *memory, const char *const **copies) {
    const char **made = NEW(memory, const char *, count);
    for (size_t i = 0; made && i < count; i++) {
        made[i] = arena_text(memory, names[i].bytes, names[i].size);
        if (!made[i]) {
            return false;
        }
    }
    *copies = made;
    return made != NULL;
}

/* What belongs to one hypothesis, read back from the journal. */
typedef struct {
    int32_t *ids, *hypotheses;
    float *log_probs;
    slice *names;
} traced;

static float trace_total(const search_result *found, const ended *one, traced *into) {
    trace(found, one, into->ids, into->log_probs, into->hypotheses);
    float total = 0;
    for (size_t t = 0; t < one->steps; t++) {
        total += into->log_probs[t];
    }
    return total + one->end_log_prob;
}

/* The tokens, probabilities and attention of the best output. */
static bool write_best(const search_result *found, const source *from, const traced *best, bool attention, owned_answer *answer) {
    arena *memory = &answer->memory;
    foveal_answer *to = &answer->public;
    float *probabilities = NEW(memory, float, to->num_targets), *weights = NULL;
    to->num_sources = from->count;
    if (!probabilities || !copy_names(best->names, to->num_targets, memory, &to->targets) ||
        !copy_names(from->names, from->count, memory, &to->sources)) {
        return false;
    }
    for (size_t t = 0; t < to->num_targets; t++) {
        probabilities[t] = expf(best->log_probs[t]);
    }
    to->token_probabilities = probabilities;
    if (attention) {
        weights = NEW(memory, float, to->num_targets * to->num_sources);
        if (!weights) {
            return false;
        }
        for (size_t t = 0; t < to->num_targets; t++) {
            const float *row = found->journal[t].weights + (size_t)best->hypotheses[t] * found->num_positions;
            memcpy(weights + t * to->num_sources, row, to->num_sources * sizeof *weights);
        }
        to->attention = weights;
    }
    return true;
}

static bool write_answer(const foveal_model *model, const source *from, const search_result *found, size_t beam_size,
                         size_t nbest, bool attention, arena *scratch, owned_answer *answer) {
    arena *memory = &answer->memory;
    size_t longest = 1, count = found->num_ended < nbest ? found->num_ended : nbest;
    for (size_t i = 0; i < found->num_ended; i++) {
        longest = found->pool[i].steps > longest ? found->pool[i].steps : longest;
    }
    traced one = {NEW(scratch, int32_t, longest), NEW(scratch, int32_t, longest), NEW(scratch, float, longest),
                  NEW(scratch, slice, longest)};
    double *totals = NEW(scratch, double, beam_size), *confidence = NEW(scratch, double, beam_size);
    foveal_candidate *candidates = NEW(memory, foveal_candidate, count);
    if (!one.ids || !one.hypotheses || !one.log_probs || !one.names || !totals || !confidence || !candidates) {
        return false;
    }
    answer->public.candidates = candidates;
    answer->public.num_candidates = count;
    for (size_t i = beam_size; i-- > 0;) {
        totals[i] = i < found->num_ended ? (double)trace_total(found, &found->pool[i], &one) : -INFINITY;
        if (i >= count) {
            continue;
        }
        slice output;
        token_list list = {one.names, found->pool[i].steps};
        for (size_t t = 0; t < list.count; t++) {
            one.names[t] = token_text(model, from, one.ids[t]);
        }
        if (!decode_tokens(&model->target, &list, memory, &output)) {
            return false;
        }
        candidates[i] = (foveal_candidate){output.bytes, output.size, found->pool[i].score, 0};
    }
    if (!calibrate(model, totals, beam_size, scratch, confidence)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        candidates[i].confidence = confidence[i];
    }
    answer->public.num_targets = found->pool[0].steps; /* the best was traced last */
    return write_best(found, from, &one, attention, answer);
}

static bool answer_text(const foveal_model *model, slice text, slice features, const foveal_options *options,
                        arena *scratch, owned_answer *answer) {
    foveal_error *error = scratch->error;
    search_settings settings = {0};
    source from = {0};
    memory_of_source encoded = {0};
    decoding *now = NEW(scratch, decoding, 1);
    search_result found = {0};
    if (!is_utf8(text.bytes, text.size) || !is_utf8(features.bytes, features.size)) {
        return fail(error, "a text must be UTF-8, got other bytes. Convert it.");
    }
    if (!now || !settings_of(model, options, error, &settings) || !number_source(model, text, features, scratch, &from) ||
        !limit_of(model, options, from.num_tokens, error, &settings) ||
        !encode_source(&model->encoder, from.ids, from.count, scratch, &encoded) ||
        !start_decoding(&model->decoder, &encoded, from.ids, settings.beam_size, scratch, now) ||
        !search(now, &settings, scratch, &found)) {
        return false;
    }
    if (!found.num_ended) {
        return fail(error, "the model has no answer: all scores are -infinity or no numbers. Export the model again.");
    }
    return write_answer(model, &from, &found, settings.beam_size, (size_t)options->nbest, settings.attention, scratch, answer);
}

foveal_answer *foveal_predict(const foveal_model *model, const char *text, const char *features,
                              const foveal_options *options, foveal_error *error) {
    owned_answer *answer = calloc(1, sizeof *answer);
    if (!answer) {
        fail(error, "out of memory: an answer. Free memory.");
        return NULL;
    }
    arena scratch = {NULL, error};
    answer->memory.error = error;
    slice given = {text, strlen(text)}, asked = {features, strlen(features)};
    bool is_done = answer_text(model, given, asked, options, &scratch, answer);
    arena_free(&scratch);
    answer->memory.error = NULL; /* belongs to the caller */
    if (!is_done) {
        foveal_answer_free(&answer->public);
        return NULL;
    }
    return &answer->public;
}

void foveal_answer_free(foveal_answer *answer) {
    if (answer) {
        owned_answer *owned = (owned_answer *)answer; /* `public` is the first member */
        arena_free(&owned->memory);
        free(owned);
    }
}

int foveal_self_test(const foveal_model *model, foveal_error *error) {
    foveal_options options = foveal_defaults(model);
    for (size_t i = 0; i < model->num_examples; i++) {
        const example *one = &model->examples[i];
        foveal_answer *answer = foveal_predict(model, one->text.bytes, one->features.bytes, &options, error);
        if (!answer) {
            return -1;
        }
        const foveal_candidate *best = &answer->candidates[0];
        bool is_same = same_text(one->output, (slice){best->output, best->output_size});
        if (!is_same && !(fabs(best->score - one->score) <= near)) {
            fail(error, "the answer to %s is %s, but it was %s when the model was exported. Export the model again.",
                 one->text.bytes, best->output, one->output.bytes);
            foveal_answer_free(answer);
            return -1;
        }
        foveal_answer_free(answer);
    }
    return (int)model->num_examples;
}
