#include "attention.h"

#include <math.h>
#include <string.h>

#include "numeric.h"
#include "loops.h"

static const float least_probability = 1.2e-38f;

static float *row(vectors all, size_t number) { return all.values + number * all.stride; }

bool prepare_keys(decoding *now, vectors values, arena *memory) {
    const decoder *with = now->with;
    if (with->scorer == DOT) {
        if (!new_vectors(&now->keys, values.count, with->value_size, memory)) {
            return false;
        }
        for (size_t p = 0; p < values.count; p++) {
            loops()->add_scaled_row(row(now->keys, p), row(values, p), with->dot_scale, with->value_size);
        }
        return true;
    }
    if (!new_vectors(&now->keys, values.count, with->key.rows, memory) ||
        !new_vectors(&now->queries, now->gates.count, with->query.rows, memory)) {
        return false;
    }
    if (with->scorer == ADDITIVE) {
        fill(now->keys, with->key_bias, with->scorer_size);
    }
    multiply_add(&with->key, values, now->keys);
    return true;
}

void score_positions(decoding *now, vectors queries) {
    const decoder *with = now->with;
    queries.count = now->num_rows;
    vectors asked = queries;
    if (with->scorer == ADDITIVE || with->scorer == LINEAR) {
        asked = now->queries;
        multiply(&with->query, queries, asked);
    }
    for (size_t k = 0; k < now->num_rows; k++) {
        float *scores = row(now->scores, k), *query = row(asked, k);
        for (size_t p = 0; p < now->num_positions; p++) {
            const float *key = row(now->keys, p);
            switch (with->scorer) {
            case ADDITIVE:
                scores[p] = loops()->additive_score(with->combine, query, key, now->keys.stride);
                break;
            case LINEAR:
                scores[p] = query[0] + key[0];
                break;
            default:
                scores[p] = loops()->dot_product(query, key, now->keys.stride);
            }
        }
    }
}

/* log((e^a + e^(x + b)) / (e^c + e^(x + d))): what a position hears from its neighbor in a chain of "skip" and "read". */
static float follow(float x, const float *odds) {
    float read = softplus(x + (float)((double)odds[1] - odds[0]));
    float skip = softplus(x + (float)((double)odds[3] - odds[2]));
    return read - skip + (float)((double)odds[0] - odds[2]);
}

static void weigh_segments(const decoding *now, float *scores) {
    const float *t = now->with->transitions, left[] = {t[1], t[3], t[0], t[2]}, right[] = {t[2], t[3], t[0], t[1]};
    size_t count = now->num_positions;
    float *heard = now->terms, message = 0, sum = 0;
    for (size_t p = 0; p < count; p++) {
        heard[p] = message;
        message = follow(message + scores[p], left);
    }
    message = 0;
    for (size_t p = count; p-- > 0;) {
        float score = scores[p];
        scores[p] = sigmoid(score + heard[p] + message);
        message = follow(message + score, right);
        sum += scores[p];
    }
    for (size_t p = 0; p < count && now->with->total > 0; p++) {
        scores[p] = scores[p] * now->with->total / sum;
    }
}

static void weigh_best(float *scores, size_t count) {
    size_t best = 0;
    for (size_t p = 1; p < count; p++) {
        best = scores[p] > scores[best] ? p : best;
    }
    memset(scores, 0, count * sizeof *scores);
    scores[best] = 1;
}

void weigh_positions(decoding *now) {
    for (size_t k = 0; k < now->num_rows; k++) {
        float *scores = row(now->scores, k);
        switch (now->with->attention) {
        case SIGMOID:
            for (size_t p = 0; p < now->num_positions; p++) {
                scores[p] = sigmoid(scores[p]);
            }
            break;
        case SEGMENT:
            weigh_segments(now, scores);
            break;
        case HARD:
            weigh_best(scores, now->num_positions);
            break;
        default:
            softmax_row(scores, now->num_positions);
        }
    }
}

/* log(e^a + e^b). */
static float log_add(float a, float b) {
    float high = a > b ? a : b, low = a > b ? b : a;
    return low > -INFINITY ? high + log1pf(exponential(low - high)) : high;
}

/* Set scores to log p(position), if the walk never goes back. */
static void walk(const decoding *now, size_t k) {
    float *scores = row(now->scores, k), *left = now->terms, sum = -INFINITY;
    const float *filtered = row(now->filtered, k);
    for (size_t i = now->num_positions; i-- > 0;) {
        sum = log_add(sum, scores[i]);
        left[i] = sum > -INFINITY ? filtered[i] - sum : -INFINITY;
    }
    sum = -INFINITY;
    for (size_t j = 0; j < now->num_positions; j++) {
        sum = log_add(sum, left[j]);
        scores[j] += sum;
    }
}

/* The probabilities of the tokens, if the hypothesis reads one position. */
static void predict_at_positions(decoding *now, vectors states) {
    const decoder *with = now->with;
    vectors queries = now->vector;
    queries.count = states.count = now->num_rows;
    multiply(&with->vector_of_state, states, queries);
    size_t size = padded(with->vector_size), count = now->num_positions;
    for (size_t k = 0; k < now->num_rows; k++) {
        for (size_t p = 0; p < count; p++) {
            loops()->tanh_of_sum(row(now->at_positions, k * count + p), row(queries, k), row(now->values, p), size);
        }
    }
    now->at_positions.count = now->found.count = now->num_rows * count;
    fill(now->found, with->output_bias, with->num_tokens);
    multiply_add(&with->output, now->at_positions, now->found);
}

/* Replace the scores of positions by weights; a walk remembers their logarithms. */
static void weigh_latent(decoding *now, size_t k) {
    float *scores = row(now->scores, k);
    if (now->with->attention != LATENT_MONOTONE) {
        softmax_row(scores, now->num_positions);
        return;
    }
    walk(now, k);
    memcpy(row(now->filtered, k), scores, now->num_positions * sizeof *scores);
    for (size_t p = 0; p < now->num_positions; p++) {
        scores[p] = exponential(scores[p]);
    }
}

void sum_over_positions(decoding *now, vectors states) {
    size_t count = now->num_positions, num_tokens = now->with->num_tokens;
    bool is_walk = now->with->attention == LATENT_MONOTONE;
    predict_at_positions(now, states);
    for (size_t k = 0; k < now->num_rows; k++) {
        float *mixed = row(now->log_probs, k);
        weigh_latent(now, k);
        memset(mixed, 0, num_tokens * sizeof *mixed);
        for (size_t p = 0; p < count; p++) {
            /* A walk still needs the scores, when it knows the token. */
            float largest, sum = loops()->exponentials(now->scratch, row(now->found, k * count + p), num_tokens, &largest);
            if (is_walk) {
                row(now->norms, k)[p] = largest + logf(sum);
            }
            loops()->add_scaled_row(mixed, now->scratch, row(now->scores, k)[p] / sum, num_tokens);
        }
        for (size_t y = 0; y < num_tokens; y++) {
            mixed[y] = logf(mixed[y] > least_probability ? mixed[y] : least_probability);
        }
    }
}

void filter_positions(decoding *now, const int32_t *parents, const int32_t *tokens, size_t count) {
    for (size_t k = 0; k < count; k++) {
        size_t parent = (size_t)parents[k], size = now->num_positions;
        const float *predicted = row(now->filtered, parent), *norms = row(now->norms, parent);
        float *filtered = row(now->next_filtered, k);
        for (size_t p = 0; p < size; p++) {
            filtered[p] = predicted[p] + row(now->found, parent * size + p)[tokens[k]] - norms[p];
        }
        log_softmax_row(filtered, size, now->terms);
    }
    vectors before = now->filtered;
    now->filtered = now->next_filtered;
    now->next_filtered = before;
}
