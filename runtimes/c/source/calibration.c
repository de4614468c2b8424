#include "calibration.h"

#include <math.h>

/* Sums of probabilities in float32 are accurate to about this value. */
static const double least_rest = 1e-6;

bool calibrate(const foveal_model *model, const double *log_probs, size_t count, arena *memory, double *probabilities) {
    bool complete = !model->scalings[0].has_others;
    size_t first = complete || count < model->num_scalings ? count : model->num_scalings;
    const scaling *by = complete ? model->scalings : &model->scalings[first - 1];
    double *logits = NEW(memory, double, first + 1), sum = 0, highest = -INFINITY;
    if (!logits) {
        return false;
    }
    for (size_t i = 0; i < first; i++) {
        sum += exp(log_probs[i]);
        logits[i] = log_probs[i] / by->temperature;
    }
    double rest = log(1 - sum > least_rest ? 1 - sum : least_rest);
    logits[first] = complete ? -INFINITY : rest / by->temperature + by->others;
    for (size_t i = 0; i <= first; i++) {
        highest = logits[i] > highest ? logits[i] : highest;
    }
    double norm = 0;
    for (size_t i = 0; i <= first; i++) {
        norm += exp(logits[i] - highest);
    }
    for (size_t i = 0; i < first; i++) {
        probabilities[i] = exp(logits[i] - highest) / norm;
    }
    double others = exp(logits[first] - highest) / norm;
    for (size_t i = first; i < count; i++) {
        double share = exp(log_probs[i] - rest);
        probabilities[i] = others * (share < 1 ? share : 1);
    }
    return true;
}
