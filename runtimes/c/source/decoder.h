/* The decoder: one step of several hypotheses, and the choice of those that go on. */
#ifndef DECODER_H
#define DECODER_H

#include "encoder.h"

typedef struct {
    const decoder *with;
    size_t num_positions, num_rows; /* positions of the source; hypotheses */
    vectors hidden[MOST_LAYERS], memory[MOST_LAYERS], next;
    float *summary_gates;
    const float *summary;
    int32_t *copied; /* the id that a position can copy */
    vectors keys;    /* of the scorer */
    vectors values;  /* what the weights sum up */

    vectors gates, of_state;
    vectors inputs;  /* of the stack: token, summary, context */
    vectors reads;   /* of a layer with a skip connection: the layer below, then `inputs` */
    vectors outputs; /* of the stack, with residual connections */
    vectors queries; /* of the scorer */
    vectors scores;  /* and then the weights of the positions */
    vectors context; /* that the stack reads */
    vectors vector;  /* before the output layer */
    vectors joined, units; /* of a deep output */
    vectors log_probs, copy_gate;
    float *pointed; /* probabilities of copied tokens */

    vectors at_positions, found; /* of latent attention: for each hypothesis, a row for each position */
    vectors norms;               /* of `found` */
    vectors filtered, next_filtered;
    float *terms; /* of all positions */
    float *scratch; /* of all tokens */
} decoding;

/* Prepare a source for `most` hypotheses at once. `source` are its ids. */
bool start_decoding(const decoder *with, const memory_of_source *source, const int32_t *ids, size_t most, arena *memory,
                    decoding *made);

/* Feed one token to each of the `num_rows` hypotheses: `log_probs` and `scores`, the attention, are set. */
void take_step(decoding *now, const int32_t *tokens);

/* Go on with `count` hypotheses: number i was number parents[i], and goes on with tokens[i]. */
void go_on(decoding *now, const int32_t *parents, const int32_t *tokens, size_t count);

#endif
