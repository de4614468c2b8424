#include "text.h"

#include <string.h>

#include "grapheme_table.h"

enum { HANGUL_FIRST = 0xAC00, HANGUL_LAST = 0xD7A3, HANGUL_TAILS = 28 };

/* The code point at the start of `bytes`, and its size; size 0 if it is not UTF-8. */
static uint32_t code_point(const char *bytes, size_t left, size_t *size) {
    const uint8_t *at = (const uint8_t *)bytes;
    uint32_t first = at[0];
    *size = 0;
    if (first < 0x80) {
        *size = 1;
        return first;
    }
    size_t wanted = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || left < wanted) {
        return 0;
    }
    uint32_t number = first & (0x7Fu >> wanted);
    for (size_t i = 1; i < wanted; i++) {
        if ((at[i] & 0xC0) != 0x80) {
            return 0;
        }
        number = number << 6 | (at[i] & 0x3F);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (number < least[wanted] || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000)) {
        return 0;
    }
    *size = wanted;
    return number;
}

bool is_utf8(const char *bytes, size_t size) {
    for (size_t at = 0, step; at < size; at += step) {
        code_point(bytes + at, size - at, &step);
        if (!step) {
            return false;
        }
    }
    return true;
}

/* Whether Python's str.isspace is true. */
static bool is_space(uint32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

static bool separates_words(uint32_t c) { return is_space(c) && c != 0xA0 && c != 0x2007 && c != 0x202F; }

static grapheme_class class_of(uint32_t c) {
    if (c >= HANGUL_FIRST && c <= HANGUL_LAST) {
        return (c - HANGUL_FIRST) % HANGUL_TAILS ? HANGUL_LVT : HANGUL_LV;
    }
    size_t low = 0, high = num_grapheme_ranges;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c > grapheme_ranges[middle].last) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_inside = low < num_grapheme_ranges && c >= grapheme_ranges[low].first;
    return is_inside ? grapheme_ranges[low].kind : OTHER;
}

typedef struct {
    grapheme_class last;
    bool after_picture; /* a picture and extending marks, perhaps with a joiner after them */
    bool odd_flags;     /* an odd number of flag letters */
} cluster;

/* Whether a cluster goes on with a code point (rules GB3 to GB13, without GB9c). */
static bool goes_on(const cluster *now, grapheme_class next) {
    grapheme_class last = now->last;
    if (last == CR && next == LF) {
        return true;
    }
    if (last == CR || last == LF || last == CONTROL || next == CR || next == LF || next == CONTROL) {
        return false;
    }
    if (last == HANGUL_L) {
        if (next == HANGUL_L || next == HANGUL_V || next == HANGUL_LV || next == HANGUL_LVT) {
            return true;
        }
    }
    if ((last == HANGUL_LV || last == HANGUL_V) && (next == HANGUL_V || next == HANGUL_T)) {
        return true;
    }
    if ((last == HANGUL_LVT || last == HANGUL_T) && next == HANGUL_T) {
        return true;
    }
    if (next == EXTEND || next == JOINER || next == SPACING || last == PREPEND) {
        return true;
    }
    if (last == JOINER && next == PICTURE && now->after_picture) {
        return true;
    }
    return last == FLAG && next == FLAG && now->odd_flags;
}

static void add_to(cluster *now, grapheme_class next) {
    now->after_picture =
        next == PICTURE || (now->after_picture && now->last != JOINER && (next == EXTEND || next == JOINER));
    now->odd_flags = next == FLAG && !(now->last == FLAG && now->odd_flags);
    now->last = next;
}

static void split_characters(slice text, bool graphemes, token_list *found) {
    cluster now = {OTHER, false, false};
    for (size_t at = 0, size; at < text.size; at += size) {
        uint32_t number = code_point(text.bytes + at, text.size - at, &size);
        grapheme_class next = graphemes ? class_of(number) : OTHER;
        if (graphemes && found->count && goes_on(&now, next)) {
            found->items[found->count - 1].size += size;
        } else {
            found->items[found->count++] = (slice){text.bytes + at, size};
            now = (cluster){OTHER, false, false};
        }
        add_to(&now, next);
    }
}

static void split_words(slice text, token_list *found) {
    bool inside = false;
    for (size_t at = 0, size; at < text.size; at += size) {
        bool is_part = !separates_words(code_point(text.bytes + at, text.size - at, &size));
        if (is_part && inside) {
            found->items[found->count - 1].size += size;
        } else if (is_part) {
            found->items[found->count++] = (slice){text.bytes + at, size};
        }
        inside = is_part;
    }
}

/* Remove whitespace from both ends. */
static slice stripped(slice text) {
    slice kept = {text.bytes, 0};
    for (size_t at = 0, size; at < text.size; at += size) {
        if (is_space(code_point(text.bytes + at, text.size - at, &size))) {
            continue;
        }
        if (!kept.size) {
            kept.bytes = text.bytes + at;
        }
        kept.size = (size_t)(text.bytes + at + size - kept.bytes);
    }
    return kept;
}

static void split_features(slice text, slice separator, token_list *found) {
    size_t start = 0;
    for (size_t at = 0; at <= text.size;) {
        bool at_end = at == text.size;
        bool is_separator = !at_end && separator.size && text.size - at >= separator.size &&
                            !memcmp(text.bytes + at, separator.bytes, separator.size);
        if (!at_end && !is_separator) {
            at++;
            continue;
        }
        slice part = stripped((slice){text.bytes + start, at - start});
        if (part.size) {
            found->items[found->count++] = part;
        }
        at += at_end ? 1 : separator.size;
        start = at;
    }
}

static bool without_spaces(slice *text, arena *memory) {
    char *copy = arena_text(memory, text->bytes, text->size);
    if (!copy) {
        return false;
    }
    size_t kept = 0;
    for (size_t at = 0, size; at < text->size; at += size) {
        if (!is_space(code_point(text->bytes + at, text->size - at, &size))) {
            memcpy(copy + kept, text->bytes + at, size);
            kept += size;
        }
    }
    *text = (slice){copy, kept};
    return true;
}

bool encode_text(const tokenizer *how, slice text, arena *memory, token_list *found) {
    found->count = 0;
    found->items = NEW(memory, slice, text.size + 1);
    if (!found->items || (how->drop && !without_spaces(&text, memory))) {
        return false;
    }
    switch (how->kind) {
    case NO_TOKENIZER:
        break;
    case GRAPHEMES:
    case CODE_POINTS:
        split_characters(text, how->kind == GRAPHEMES, found);
        break;
    case WHITESPACE:
        split_words(text, found);
        break;
    case FEATURES:
        split_features(text, how->separator, found);
        break;
    }
    return true;
}

bool decode_tokens(const tokenizer *how, const token_list *given, arena *memory, slice *text) {
    slice between = {" ", 1};
    if (how->kind == FEATURES) {
        between = how->separator;
    } else if (how->kind != WHITESPACE) {
        between.size = 0;
    }
    size_t size = 0;
    for (size_t i = 0; i < given->count; i++) {
        size += given->items[i].size + (i ? between.size : 0);
    }
    char *joined = NEW(memory, char, size + 1);
    if (!joined) {
        return false;
    }
    *text = (slice){joined, size};
    for (size_t i = 0; i < given->count; i++) {
        if (i && between.size) {
            memcpy(joined, between.bytes, between.size);
            joined += between.size;
        }
        if (given->items[i].size) {
            memcpy(joined, given->items[i].bytes, given->items[i].size);
            joined += given->items[i].size;
        }
    }
    return true;
}
