/* Tokens and their ids. */
#ifndef VOCABULARY_H
#define VOCABULARY_H

#include "base.h"

enum { PADDING, UNKNOWN, BEGIN, END, NUM_SPECIAL };
enum { NOT_FOUND = -1 };

typedef struct {
    size_t count;
    slice *tokens;
    int32_t *places; /* a hash table of numbers of tokens, -1 where it is empty */
    size_t num_places;
} vocabulary;

/* Number the tokens of a vocabulary, whose `count` and `tokens` are set. */
bool index_vocabulary(vocabulary *words, arena *memory);

/* The number of a token from 0, or NOT_FOUND. */
int32_t find_token(const vocabulary *words, slice token);

bool same_text(slice first, slice second);

#endif
