/* Text to tokens: code points, grapheme clusters, words, features. */
#ifndef TEXT_H
#define TEXT_H

#include "base.h"

typedef enum { NO_TOKENIZER, GRAPHEMES, CODE_POINTS, WHITESPACE, FEATURES } tokenizer_kind;

typedef struct {
    tokenizer_kind kind;
    bool drop; /* remove whitespace first */
    slice separator;
} tokenizer;

typedef struct {
    slice *items;
    size_t count;
} token_list;

/* Whether the bytes are UTF-8. */
bool is_utf8(const char *bytes, size_t size);

/* Split a text; the tokens point into it, or into a copy in the arena. */
bool encode_text(const tokenizer *how, slice text, arena *memory, token_list *found);

/* Join tokens to a text with a zero byte after it. */
bool decode_tokens(const tokenizer *how, const token_list *given, arena *memory, slice *text);

#endif
