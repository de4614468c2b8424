/* Beam search. */
#ifndef SEARCH_H
#define SEARCH_H

#include "decoder.h"

/* One step of a search, for `count` hypotheses after it. */
typedef struct {
    size_t count;
    int32_t *parents, *tokens;
    float *log_probs;
    float *weights; /* of the positions, for each hypothesis before the step; NULL if not requested */
} journal_step;

typedef struct {
    float score;      /* with the length penalty */
    size_t steps;     /* number of tokens */
    int32_t hypothesis; /* the one that ended */
    float end_log_prob;
} ended;

typedef struct {
    size_t beam_size, limit; /* the limit counts the end token */
    float length_penalty;
    bool attention;
} search_settings;

typedef struct {
    size_t num_ended;
    ended *pool; /* best first */
    journal_step *journal;
    size_t num_positions;
} search_result;

bool search(decoding *now, const search_settings *settings, arena *memory, search_result *found);

/* Trace a hypothesis back: its tokens, their log-probabilities, and the hypothesis before each step. Each array has room for
 * `steps` numbers. */
void trace(const search_result *found, const ended *last, int32_t *tokens, float *log_probs, int32_t *hypotheses);

#endif
