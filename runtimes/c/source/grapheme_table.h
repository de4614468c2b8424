/* Classes of code points for grapheme clusters. */
#ifndef GRAPHEME_TABLE_H
#define GRAPHEME_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    OTHER,
    CR,
    LF,
    CONTROL,
    EXTEND,
    JOINER,
    FLAG,
    PREPEND,
    SPACING,
    HANGUL_L,
    HANGUL_V,
    HANGUL_T,
    HANGUL_LV,
    HANGUL_LVT,
    PICTURE
} grapheme_class;

typedef struct {
    uint32_t first, last;
    grapheme_class kind;
} grapheme_range;

extern const grapheme_range grapheme_ranges[];
extern const size_t num_grapheme_ranges;

#endif
