// Positive numbers of any size: a mantissa in T, and its power of two in double.
//
// A sum over structures is a sum of products of exp(score). With logarithms, each step of a recursion
// waits for an exp and a log; with a separate exponent, it waits only for a product and a sum, and the exps
// of the scores are computed before. Nothing overflows or underflows, so no range checks are needed. 0 has
// mantissa 0 and the lowest exponent, or -inf.

#pragma once

#include "lanes.h"

namespace foveal {
namespace FOVEAL_ISA {

template <class T>
struct Scaled {
  Lanes<T> mantissa;
  Lanes<double> exponent;
};

constexpr double kLowestExponent = std::numeric_limits<double>::lowest();

// exp(x) as 2^n y with sqrt(1/2) <= y <= sqrt(2), and 0 for -inf. If x is so large that T has no fractional
// digits, the remainder of x is clipped to the range of y, an error below the rounding error of x. If
// x / log(2) is beyond the range of T, it counts as infinite.
template <class T>
FOVEAL_INLINE Scaled<T> split_exp(const Lanes<T>& x) {
  using F = Format<T>;
  const auto half = Lanes<T>::of(T(0.34657359027997264)), zero = Lanes<T>::of(T(0));  // log(2) / 2
  const auto n = (x * T(1.44269504088896340736) + F::magic) - F::magic;
  const auto r = max((x - n * F::log2_high) - n * F::log2_low, zero - half);
  const auto cut = where_less(half, r, half, r);
  Lanes<T> mantissa;
  for (int p = 0; p < Lanes<T>::parts; ++p) mantissa.part[p] = exp_series<T>(cut.part[p]);
  const auto lowest = Lanes<T>::of(T(0.69) * std::numeric_limits<T>::lowest());
  return {where_less(x, lowest, zero, mantissa), widen(n)};
}

// 2^n for whole numbers n <= 0, and exactly 0 below the smallest normal number.
template <class T>
FOVEAL_INLINE Lanes<T> power_of_two(const Lanes<double>& n) {
  using F = Format<T>;
  using Register = typename Lanes<T>::Register;
  constexpr T bias = std::numeric_limits<T>::max_exponent - 1;
  const auto cut = max(narrow<T>(n), Lanes<T>::of(-bias));
  Lanes<T> out;
  for (int p = 0; p < Lanes<T>::parts; ++p) {
    const Register shifted = cut.part[p] + (F::magic + bias);  // n + bias is in the low bits
    out.part[p] = (Register)((typename F::Bits)shifted << F::mantissa);
  }
  return out;
}

// The same number with 1 <= mantissa < 2; the mantissa must not be subnormal.
template <class T>
FOVEAL_INLINE Scaled<T> normalized(const Scaled<T>& x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  using Register = typename Lanes<T>::Register;
  constexpr int bias = std::numeric_limits<T>::max_exponent - 1;
  Lanes<T> mantissa, exponent;
  for (int p = 0; p < Lanes<T>::parts; ++p) {
    const Register given = x.mantissa.part[p];
    const Bits n = ((Bits)given >> F::mantissa) - bias;
    mantissa.part[p] = given > Register{} ? (Register)((Bits)given - (n << F::mantissa)) : given;
    exponent.part[p] = (Register)(n + F::magic_bits) - F::magic;
  }
  return {mantissa, x.exponent + widen(exponent)};
}

}  // namespace FOVEAL_ISA
}  // namespace foveal
