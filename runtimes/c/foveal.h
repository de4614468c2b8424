/* foveal: answers of models that `foveal export --plain` has written, without any dependency.
 *
 *     foveal_error error;
 *     foveal_model *model = foveal_load_file("ice.export/model.plain", &error);
 *     foveal_options options = foveal_defaults(model);
 *     foveal_answer *answer = foveal_predict(model, "reykjavik", "", &options, &error);
 *     puts(answer->candidates[0].output);
 *     foveal_answer_free(answer);
 *     foveal_free(model);
 *
 * A function that fails returns NULL (or -1) and writes a message. A loaded model does not change: several threads may
 * use it at once. All texts are UTF-8.
 */
#ifndef FOVEAL_H
#define FOVEAL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct foveal_model foveal_model;

typedef struct {
    char message[400]; /* what is wrong, what was found and expected, and what to do */
} foveal_error;

typedef struct {
    int beam_size;         /* number of hypotheses; 0: the setting of the model, or nbest if it is larger */
    int nbest;             /* number of candidates */
    double length_penalty; /* larger values favor longer outputs */
    int max_length;        /* maximum number of output tokens; 0: follows from the length of the source */
    int attention;         /* whether to return the attention */
} foveal_options;

typedef struct {
    const char *output;
    size_t output_size; /* in bytes, without the final zero byte */
    float score;        /* the score that ranks answers */
    double confidence;  /* the calibrated probability that the output is right */
} foveal_candidate;

typedef struct {
    size_t num_candidates; /* at least 1, best first */
    const foveal_candidate *candidates;
    size_t num_targets; /* tokens of the best output */
    const char *const *targets;
    const float *token_probabilities; /* of each token of the best output */
    size_t num_sources;               /* features, then tokens of the text */
    const char *const *sources;
    const float *attention; /* num_targets rows of num_sources weights; NULL if not requested or without attention */
} foveal_answer;

/* Read a model from the content of a model.plain file, which may be freed afterwards. */
foveal_model *foveal_load(const void *content, size_t size, foveal_error *error);

/* Read a model from a file, or from the file model.plain of a folder. */
foveal_model *foveal_load_file(const char *path, foveal_error *error);

void foveal_free(foveal_model *model);

/* The settings of the model, without attention. */
foveal_options foveal_defaults(const foveal_model *model);

/* The license of the weights, or an empty text. */
const char *foveal_license(const foveal_model *model);

/* Answer one text. `features` is empty for a model without features. */
foveal_answer *foveal_predict(const foveal_model *model, const char *text, const char *features,
                              const foveal_options *options, foveal_error *error);

void foveal_answer_free(foveal_answer *answer);

/* Answer the examples in the file and compare; the number of examples, or -1 at the first difference. */
int foveal_self_test(const foveal_model *model, foveal_error *error);

#ifdef __cplusplus
}
#endif

#endif
