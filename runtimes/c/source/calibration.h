/* Calibrated confidence. */
#ifndef CALIBRATION_H
#define CALIBRATION_H

#include "model.h"

/* The probability that each of `count` candidates is right, from their log-probabilities (best first; -infinity: none). */
bool calibrate(const foveal_model *model, const double *log_probs, size_t count, arena *memory, double *probabilities);

#endif
