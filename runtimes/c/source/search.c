#include "search.h"

#include <math.h>
#include <string.h>

/* A continuation of a hypothesis. */
typedef struct {
    float score;
    int32_t parent, token;
} continuation;

typedef struct {
    size_t count;
    continuation *best; /* best first */
} beam;

static float divisor(size_t length, float penalty) { return powf(((float)length + 5.0f) / 6.0f, penalty); }

/* Insert into a list of at most `most`, behind equal scores. */
static void insert(beam *into, size_t most, continuation one) {
    size_t at = into->count < most ? into->count++ : most - 1;
    for (; at > 0 && into->best[at - 1].score < one.score; at--) {
        into->best[at] = into->best[at - 1];
    }
    into->best[at] = one;
}

/* The best continuations of all hypotheses. */
static void choose(const decoding *now, const float *scores, size_t most, beam *into) {
    into->count = 0;
    for (size_t k = 0; k < now->num_rows; k++) {
        const float *log_probs = now->log_probs.values + k * now->log_probs.stride;
        float least = into->count < most ? -INFINITY : into->best[most - 1].score;
        for (size_t y = NUM_SPECIAL; y < now->with->num_tokens; y++) {
            float score = log_probs[y] + scores[k];
            if (score > least) {
                insert(into, most, (continuation){score, (int32_t)k, (int32_t)y});
                least = into->count < most ? -INFINITY : into->best[most - 1].score;
            }
        }
    }
}

static void end_hypothesis(search_result *found, size_t most, ended one) {
    size_t at = found->num_ended;
    if (at == most) {
        at = most - 1;
        if (!(one.score > found->pool[at].score)) {
            return;
        }
    } else {
        found->num_ended++;
    }
    for (; at > 0 && found->pool[at - 1].score < one.score; at--) {
        found->pool[at] = found->pool[at - 1];
    }
    found->pool[at] = one;
}

/* End the hypotheses whose end is among the best continuations. */
static void end_some(const decoding *now, const float *scores, float worst, size_t step, const search_settings *settings,
                     search_result *found) {
    float by = divisor(step + 1, settings->length_penalty);
    for (size_t k = 0; k < now->num_rows; k++) {
        float log_prob = now->log_probs.values[k * now->log_probs.stride + END], ending = log_prob + scores[k];
        if (ending >= worst && ending > -INFINITY) {
            end_hypothesis(found, settings->beam_size, (ended){ending / by, step, (int32_t)k, log_prob});
        }
    }
}

static bool write_journal(const decoding *now, const beam *kept, bool attention, arena *memory, journal_step *step) {
    step->count = kept->count;
    step->parents = NEW(memory, int32_t, 2 * kept->count);
    step->log_probs = NEW(memory, float, kept->count);
    if (!step->parents || !step->log_probs) {
        return false;
    }
    step->tokens = step->parents + kept->count;
    for (size_t i = 0; i < kept->count; i++) {
        const continuation *one = &kept->best[i];
        step->parents[i] = one->parent;
        step->tokens[i] = one->token;
        step->log_probs[i] = now->log_probs.values[(size_t)one->parent * now->log_probs.stride + (size_t)one->token];
    }
    if (attention) {
        size_t count = now->num_positions;
        step->weights = NEW(memory, float, now->num_rows * count);
        for (size_t k = 0; step->weights && k < now->num_rows; k++) {
            memcpy(step->weights + k * count, now->scores.values + k * now->scores.stride, count * sizeof(float));
        }
        return step->weights != NULL;
    }
    return true;
}

/* Whether no continuation can be better than the answers that there are. */
static bool is_beaten(const search_result *found, const beam *kept, const search_settings *settings) {
    if (!kept->count) {
        return true;
    }
    float best = kept->best[0].score / divisor(settings->limit, settings->length_penalty);
    return found->num_ended == settings->beam_size && found->pool[settings->beam_size - 1].score >= best;
}

bool search(decoding *now, const search_settings *settings, arena *memory, search_result *found) {
    size_t most = settings->beam_size;
    static const int32_t first_token = BEGIN;
    const int32_t *tokens = &first_token;
    beam kept = {0, NEW(memory, continuation, most)};
    float *scores = NEW(memory, float, most);
    *found = (search_result){0, NEW(memory, ended, most), NEW(memory, journal_step, settings->limit), now->num_positions};
    if (!kept.best || !scores || !found->pool || !found->journal) {
        return false;
    }
    for (size_t step = 0; step < settings->limit; step++) {
        bool at_limit = step + 1 == settings->limit;
        take_step(now, tokens);
        kept.count = 0;
        if (!at_limit) {
            choose(now, scores, most, &kept);
        }
        end_some(now, scores, kept.count < most ? -INFINITY : kept.best[most - 1].score, step, settings, found);
        journal_step *written = &found->journal[step];
        if (!write_journal(now, &kept, settings->attention, memory, written)) {
            return false;
        }
        if (at_limit || is_beaten(found, &kept, settings)) {
            break;
        }
        for (size_t i = 0; i < kept.count; i++) {
            scores[i] = kept.best[i].score;
        }
        tokens = written->tokens;
        go_on(now, written->parents, tokens, kept.count);
    }
    return true;
}

void trace(const search_result *found, const ended *last, int32_t *tokens, float *log_probs, int32_t *hypotheses) {
    int32_t hypothesis = last->hypothesis;
    for (size_t step = last->steps; step-- > 0;) {
        const journal_step *at = &found->journal[step];
        tokens[step] = at->tokens[hypothesis];
        log_probs[step] = at->log_probs[hypothesis];
        hypothesis = at->parents[hypothesis];
        hypotheses[step] = hypothesis;
    }
}
