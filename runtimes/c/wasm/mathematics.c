/* Exponentials and logarithms for the WebAssembly build, in double precision.
 *
 *     e^x    = 2^n e^r,  |r| <= log(2) / 2, by the Taylor series
 *     log(x) = n log 2 + 2 (s + s^3 / 3 + s^5 / 5 + ...),   s = (m - 1) / (m + 1),   x = 2^n m,  m near 1
 */

#include <math.h>
#include <stdint.h>

#define LOG_2_HIGH 6.93147180369123816490e-01
#define LOG_2_LOW 1.90821492927058770002e-10

enum { EXPONENT_BITS = 52, BIAS = 1023, EXP_TERMS = 14, LOG_TERMS = 11 };

static double with_bits(uint64_t bits) {
    union {
        uint64_t bits;
        double value;
    } number = {bits};
    return number.value;
}

static uint64_t bits_of(double value) {
    union {
        double value;
        uint64_t bits;
    } number = {value};
    return number.bits;
}

double exp(double x) {
    if (!(x < 709.0)) {
        return x > 0 ? INFINITY : x;
    }
    if (x < -708.0) {
        return 0;
    }
    double n = floor(x * 1.44269504088896340736 + 0.5), r = (x - n * LOG_2_HIGH) - n * LOG_2_LOW, sum = 1;
    for (int i = EXP_TERMS; i > 0; i--) {
        sum = 1 + sum * r / i;
    }
    return sum * with_bits((uint64_t)((int64_t)n + BIAS) << EXPONENT_BITS);
}

/* Numbers below 2^-1022 count as 0. */
double log(double x) {
    if (!(x > 0)) {
        return x < 0 ? NAN : x == 0 ? -INFINITY : x;
    }
    uint64_t bits = bits_of(x);
    int n = (int)(bits >> EXPONENT_BITS) - BIAS;
    if (n == -BIAS || n > BIAS) {
        return n > 0 ? x : -INFINITY;
    }
    double m = with_bits((bits & (((uint64_t)1 << EXPONENT_BITS) - 1)) | (uint64_t)BIAS << EXPONENT_BITS);
    if (m > 1.41421356237309504880) {
        m /= 2;
        n++;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int i = LOG_TERMS; i >= 0; i--) {
        sum = sum * square + 1.0 / (2 * i + 1);
    }
    return n * LOG_2_HIGH + (2 * s * sum + n * LOG_2_LOW);
}

float expf(float x) { return (float)exp(x); }

float logf(float x) { return (float)log(x); }

/* The library asks for sums of probabilities, where the absolute error counts. */
float log1pf(float x) { return (float)log(1 + (double)x); }

float powf(float base, float exponent) { return (float)exp(exponent * log(base)); }
