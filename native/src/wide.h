// Numbers of any magnitude: a double and a separate exponent.
//
//   value = digits * 2^exponent,      1 <= |digits| < 2, or both are 0
//
// They have fifteen digits like a double, and a range up to exp(1e12): products of thousands of such numbers
// still have a valid exponent. NaN and infinity cannot be represented. They serve the few cases that leave the
// range of doubles, because each operation takes some nanoseconds.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace foveal {
namespace FOVEAL_ISA {

struct Wide {
  double digits = 0;
  int64_t exponent = 0;

  Wide() = default;
  Wide(double value) : digits(value) { normalize(); }
  Wide(double digits, int64_t exponent) : digits(digits), exponent(exponent) { normalize(); }

  // The bits of a double contain its exponent; products and sums of digits are never subnormal.
  void normalize() {
    if (digits == 0) {
      exponent = 0;
      return;
    }
    constexpr int64_t field = int64_t(0x7ff) << 52, one = int64_t(0x3ff) << 52;
    int64_t bits;
    std::memcpy(&bits, &digits, sizeof(bits));
    exponent += ((bits & field) >> 52) - 0x3ff;
    bits = (bits & ~field) | one;
    std::memcpy(&digits, &bits, sizeof(bits));
  }
};

inline Wide operator*(const Wide& a, const Wide& b) { return {a.digits * b.digits, a.exponent + b.exponent}; }
inline Wide operator/(const Wide& a, const Wide& b) { return {a.digits / b.digits, a.exponent - b.exponent}; }
inline Wide operator-(const Wide& a) {
  Wide out = a;
  out.digits = -out.digits;
  return out;
}
inline Wide operator+(const Wide& a, const Wide& b) {
  if (a.digits == 0) return b;
  if (b.digits == 0) return a;
  const Wide& high = a.exponent < b.exponent ? b : a;
  const Wide& low = a.exponent < b.exponent ? a : b;
  const int64_t apart = high.exponent - low.exponent;
  if (apart > 100) return high;
  return {high.digits + std::ldexp(low.digits, -static_cast<int>(apart)), high.exponent};
}
inline Wide operator-(const Wide& a, const Wide& b) { return a + -b; }
inline Wide& operator+=(Wide& a, const Wide& b) { return a = a + b; }
inline Wide& operator*=(Wide& a, const Wide& b) { return a = a * b; }
inline bool operator==(const Wide& a, const Wide& b) { return a.digits == b.digits && a.exponent == b.exponent; }

// Converts to a double, if it is in range.
inline double value_of(const Wide& x) {
  if (x.exponent < -2000) return 0;
  return std::ldexp(x.digits, static_cast<int>(x.exponent < 2000 ? x.exponent : 2000));
}
inline double value_of(double x) { return x; }

// The lowest argument of wide_exp other than -inf.
constexpr double kLowestLog = -1e14;

// exp(x) = 2^n exp(r), for kLowestLog <= x <= 0 and -inf. The products with both parts of log(2) are exact,
// so r has all digits of x.
inline Wide wide_exp(double x) {
  if (x == -std::numeric_limits<double>::infinity()) return {};
  const double n = std::floor(x * 1.44269504088896340736);
  const double r = std::fma(-n, 2.3190468138462996e-17, std::fma(-n, 0.69314718055994530942, x));
  return {std::exp(r), static_cast<int64_t>(n)};
}

// The log of a product of numbers. Exponents are added as whole numbers: they may be large and cancel.
inline double log_of_product(const Wide* numbers, int64_t count) {
  __int128 exponent = 0;
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    exponent += numbers[i].exponent;
    total += std::log(numbers[i].digits);
  }
  const double n = static_cast<double>(exponent);
  return n * 6.93145751953125e-1 + (total + n * 1.42860682030941723212e-6);
}
inline double log_of_product(const double* numbers, int64_t count) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += std::log(numbers[i]);
  return total;
}

}  // namespace FOVEAL_ISA
}  // namespace foveal
