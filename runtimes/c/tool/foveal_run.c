/* foveal-run MODEL < lines: answer every line of the standard input.
 *
 *     source <TAB> rank <TAB> output <TAB> score <TAB> confidence
 *
 * A model that reads features takes them from the second column.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../foveal.h"

enum { DONE, FAILED, WRONG_USE };
enum { FIRST_LINE = 256, MOST_LINE = 1 << 24 };

static const char usage[] =
    "usage: foveal-run MODEL [--nbest N] [--beam-size N] [--max-length N] [--length-penalty X]\n"
    "                  [--format tsv|jsonl] [--attention] [--self-test]\n"
    "\n"
    "Answer every line of the standard input with a model that foveal export --plain has written.\n"
    "\n"
    "  MODEL              the exported folder, or its file model.plain\n"
    "  --nbest N          answers for each line, best first (1)\n"
    "  --beam-size N      1 is greedy search; default: of the model\n"
    "  --max-length N     maximum number of output tokens; default: of the model\n"
    "  --length-penalty X larger values favor longer outputs; default: of the model\n"
    "  --format FORMAT    tsv, or jsonl with token probabilities\n"
    "  --attention        with --format jsonl\n"
    "  --self-test        compare with the answers stored at export\n";

typedef struct {
    const char *path, *nbest, *beam_size, *max_length, *length_penalty, *format;
    bool attention, self_test;
} arguments;

static bool parse(int count, char **words, arguments *given) {
    const struct {
        const char *name, **value;
    } with_value[] = {{"--nbest", &given->nbest},
                      {"--beam-size", &given->beam_size},
                      {"--max-length", &given->max_length},
                      {"--length-penalty", &given->length_penalty},
                      {"--format", &given->format}};
    for (int i = 1; i < count; i++) {
        size_t number = 0, most = sizeof with_value / sizeof *with_value;
        while (number < most && strcmp(words[i], with_value[number].name)) {
            number++;
        }
        if (number < most) {
            if (++i == count) {
                return false;
            }
            *with_value[number].value = words[i];
        } else if (!strcmp(words[i], "--attention")) {
            given->attention = true;
        } else if (!strcmp(words[i], "--self-test")) {
            given->self_test = true;
        } else if (words[i][0] == '-' || given->path) {
            return false;
        } else {
            given->path = words[i];
        }
    }
    return given->path && (!strcmp(given->format, "tsv") || !strcmp(given->format, "jsonl"));
}

/* A positive number, or leave the value as it is. */
static bool set_number(const char *text, int *value) {
    if (!text) {
        return true;
    }
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno || *end || end == text || number < 1 || number > 1000000) {
        return false;
    }
    *value = (int)number;
    return true;
}

static bool set_options(const arguments *given, foveal_options *options) {
    options->nbest = 1;
    options->attention = given->attention;
    if (given->length_penalty) {
        char *end;
        options->length_penalty = strtod(given->length_penalty, &end);
        if (*end || end == given->length_penalty) {
            return false;
        }
    }
    return set_number(given->nbest, &options->nbest) && set_number(given->beam_size, &options->beam_size) &&
           set_number(given->max_length, &options->max_length);
}

/* The next line without its end, to free; NULL at the end, or with `failed` if there is no memory. */
static char *next_line(bool *failed) {
    size_t room = FIRST_LINE, size = 0;
    char *line = malloc(room);
    while (line && fgets(line + size, (int)(room - size), stdin)) {
        size += strlen(line + size);
        if (size && line[size - 1] == '\n') {
            break;
        }
        if (size + 1 == room) {
            char *larger = room < MOST_LINE ? realloc(line, 2 * room) : NULL;
            if (!larger) {
                free(line);
            }
            line = larger;
            room *= 2;
        }
    }
    *failed = !line;
    if (line && !size) {
        free(line);
        return NULL;
    }
    while (line && size && (line[size - 1] == '\n' || line[size - 1] == '\r')) {
        line[--size] = 0;
    }
    return line;
}

static void print_text(const char *text) {
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            printf("\\%c", c);
        } else if (c < 0x20) {
            printf("\\u%04x", c);
        } else {
            putchar(c);
        }
    }
    putchar('"');
}

static void print_texts(const char *const *texts, size_t count) {
    putchar('[');
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", " : "", stdout);
        print_text(texts[i]);
    }
    putchar(']');
}

static void print_numbers(const float *numbers, size_t count) {
    putchar('[');
    for (size_t i = 0; i < count; i++) {
        printf("%s%.9g", i ? ", " : "", (double)numbers[i]);
    }
    putchar(']');
}

static void print_candidate(const foveal_candidate *one) {
    fputs("\"output\": ", stdout);
    print_text(one->output);
    printf(", \"score\": %.9g, \"confidence\": %.17g", (double)one->score, one->confidence);
}

static void print_json(const char *source, const foveal_answer *answer) {
    fputs("{\"source\": ", stdout);
    print_text(source);
    fputs(", ", stdout);
    print_candidate(&answer->candidates[0]);
    fputs(", \"nbest\": [", stdout);
    for (size_t i = 0; i < answer->num_candidates; i++) {
        fputs(i ? ", {" : "{", stdout);
        print_candidate(&answer->candidates[i]);
        putchar('}');
    }
    fputs("], \"token_probabilities\": ", stdout);
    print_numbers(answer->token_probabilities, answer->num_targets);
    if (answer->attention) {
        fputs(", \"attention\": {\"sources\": ", stdout);
        print_texts(answer->sources, answer->num_sources);
        fputs(", \"targets\": ", stdout);
        print_texts(answer->targets, answer->num_targets);
        fputs(", \"weights\": [", stdout);
        for (size_t t = 0; t < answer->num_targets; t++) {
            fputs(t ? ", " : "", stdout);
            print_numbers(answer->attention + t * answer->num_sources, answer->num_sources);
        }
        fputs("]}", stdout);
    }
    fputs("}\n", stdout);
}

static void print_table(const char *source, const foveal_answer *answer) {
    for (size_t i = 0; i < answer->num_candidates; i++) {
        const foveal_candidate *one = &answer->candidates[i];
        printf("%s\t%zu\t%s\t%.4f\t%.4f\n", source, i + 1, one->output, (double)one->score, one->confidence);
    }
}

static int answer_line(const foveal_model *model, char *line, const foveal_options *options, bool json) {
    foveal_error error;
    char *features = strchr(line, '\t');
    if (features) {
        *features++ = 0;
        features[strcspn(features, "\t")] = 0;
    }
    foveal_answer *answer = foveal_predict(model, line, features ? features : "", options, &error);
    if (!answer) {
        fprintf(stderr, "foveal-run: %s\n", error.message);
        return FAILED;
    }
    (json ? print_json : print_table)(line, answer);
    foveal_answer_free(answer);
    return ferror(stdout) ? FAILED : DONE;
}

static int run(const foveal_model *model, const arguments *given) {
    foveal_error error;
    if (given->self_test) {
        int count = foveal_self_test(model, &error);
        if (count < 0) {
            fprintf(stderr, "foveal-run: %s\n", error.message);
            return FAILED;
        }
        printf("%s: %d answers are as expected\n", given->path, count);
        return DONE;
    }
    foveal_options options = foveal_defaults(model);
    if (!set_options(given, &options)) {
        fputs(usage, stderr);
        return WRONG_USE;
    }
    int result = DONE;
    bool failed = false;
    for (char *line; result == DONE && (line = next_line(&failed)); free(line)) {
        result = answer_line(model, line, &options, !strcmp(given->format, "jsonl"));
    }
    if (failed) {
        fprintf(stderr, "foveal-run: a line has more than %d bytes. Split it.\n", (int)MOST_LINE);
        return FAILED;
    }
    return result;
}

int main(int count, char **words) {
    arguments given = {NULL, NULL, NULL, NULL, NULL, "tsv", false, false};
    if (!parse(count, words, &given)) {
        fputs(usage, stderr);
        return WRONG_USE;
    }
    foveal_error error;
    foveal_model *model = foveal_load_file(given.path, &error);
    if (!model) {
        fprintf(stderr, "foveal-run: %s\n", error.message);
        return FAILED;
    }
    int result = run(model, &given);
    foveal_free(model);
    return result;
}
