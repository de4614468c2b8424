/* The functions of <math.h> that the library uses. */
#ifndef MATH_H
#define MATH_H

#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
#define isfinite(x) __builtin_isfinite(x)
#define fabs __builtin_fabs
#define floor __builtin_floor

double exp(double x);
double log(double x);
float expf(float x);
float logf(float x);
float log1pf(float x);
float powf(float base, float exponent);

#endif
