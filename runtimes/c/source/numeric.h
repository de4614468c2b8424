/* Exponential functions, written so that loops over them become vector instructions.
 *
 *     e^x = 2^n e^r,   n = round(x / log 2),   |r| <= log(2) / 2, e^r - 1 by a polynomial
 *     tanh(x) = e / (e + 2),   e = e^(2 x) - 1, which keeps its digits near 0
 */
#ifndef NUMERIC_H
#define NUMERIC_H

#include <math.h>
#include <stdint.h>

#include "kernels.h"

/* Adding 1.5 * 2^23 leaves the rounded number in the lowest bits of a float. */
#define ROUNDING 12582912.0f
#define LEAST_EXPONENT (-87.0f)
#define LARGEST_EXPONENT 88.0f
#define FLAT 10.0f /* tanh is 1 in float32 beyond this */

/* 2^n, for the n whose rounding sum is given. */
INLINE float power_of_two(float rounded) {
    union {
        float number;
        uint32_t bits;
    } value = {rounded};
    value.bits = (value.bits << 23) + 0x3f800000u;
    return value.number;
}

/* e^r - 1 for small r. */
INLINE float small_expm1(float r) {
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return p * r * r + r;
}

INLINE float remainder_of(float x, float n) { return (x - n * 0.693359375f) + n * 2.12194440e-4f; }

/* e^x; 0 below e^-87. */
INLINE float exponential(float x) {
    float bounded = x < LARGEST_EXPONENT ? x : LARGEST_EXPONENT;
    bounded = bounded > LEAST_EXPONENT ? bounded : LEAST_EXPONENT;
    float rounded = bounded * 1.44269504088896341f + ROUNDING;
    float r = remainder_of(bounded, rounded - ROUNDING), power = power_of_two(rounded);
    float value = power + power * small_expm1(r);
    return x < LEAST_EXPONENT ? 0.0f : value;
}

INLINE float hyperbolic_tangent(float x) {
    float bounded = x < FLAT ? x : FLAT;
    bounded = 2.0f * (bounded > -FLAT ? bounded : -FLAT);
    float rounded = bounded * 1.44269504088896341f + ROUNDING;
    float r = remainder_of(bounded, rounded - ROUNDING), power = power_of_two(rounded);
    float e = power * small_expm1(r) + (power - 1.0f);
    return e / (e + 2.0f);
}

INLINE float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

/* log(1 + e^x). */
INLINE float softplus(float x) { return (x > 0 ? x : 0) + log1pf(exponential(x > 0 ? -x : x)); }

#endif
