/* The weights of the positions. */
#ifndef ATTENTION_H
#define ATTENTION_H

#include "decoder.h"

/* Compute the keys of the scorer. */
bool prepare_keys(decoding *now, vectors values, arena *memory);

/* Set `scores` to the scores of the positions for queries. */
void score_positions(decoding *now, vectors queries);

/* Turn the scores into weights. */
void weigh_positions(decoding *now);

/* Latent attention: the probabilities of tokens, summed over positions; `scores` becomes the weights. */
void sum_over_positions(decoding *now, vectors states);

/* For latent monotone attention: the position of the last step, now that its token is known. */
void filter_positions(decoding *now, const int32_t *parents, const int32_t *tokens, size_t count);

#endif
