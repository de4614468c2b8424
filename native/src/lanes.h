// SIMD lanes with one interface for every instruction set.
//
// `Lanes<T>` holds `kLanes` numbers: one register of floats, or two registers of doubles. The same lane of
// both is the same sentence (or state, or span), and a kernel can keep its sums in double and its
// probabilities in T. Arithmetic uses GCC's vector extension. The including file selects the instruction set
// with a pragma, defines the width of a register (a pragma defines no macro in C++) and the namespace,
// `FOVEAL_ISA`.
//
// exp and log are polynomials: exp(x) is exactly 0 below the smallest normal number (-inf
// included) and NaN for NaN, x must not be above 88; log needs a positive normal number.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#if defined(FOVEAL_X86)
#include <immintrin.h>
#endif

#define FOVEAL_INLINE inline __attribute__((always_inline))

namespace foveal {
namespace FOVEAL_ISA {

constexpr int kLanes = FOVEAL_REGISTER_BYTES / sizeof(float);

// Flushes subnormal numbers to 0 during its lifetime. Products with subnormal numbers are slow, and if
// probabilities fall by a factor with each step away from a path, many are subnormal. On other CPUs than
// x86 it does nothing, which costs only time.
class FlushSubnormals {
 public:
#if defined(FOVEAL_X86)
  FlushSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
  ~FlushSubnormals() { _mm_setcsr(before_); }

 private:
  const unsigned before_;
#else
  FlushSubnormals() {}
  ~FlushSubnormals() {}
#endif
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;
};

template <class T>
struct Lanes {
  static constexpr int parts = sizeof(T) / sizeof(float);
  static constexpr int width = kLanes / parts;  // numbers in one register
  typedef T Register __attribute__((vector_size(FOVEAL_REGISTER_BYTES)));
  typedef T Unaligned __attribute__((vector_size(FOVEAL_REGISTER_BYTES), aligned(sizeof(T))));

  Register part[parts];

  static FOVEAL_INLINE Lanes of(T value) {
    Lanes out;
    for (int p = 0; p < parts; ++p) out.part[p] = value - Register{};  // adding 0 would change -0
    return out;
  }
  static FOVEAL_INLINE Lanes load(const T* from) {
    Lanes out;
    for (int p = 0; p < parts; ++p) {
      out.part[p] = *reinterpret_cast<const Unaligned*>(from + p * width);
    }
    return out;
  }
  FOVEAL_INLINE void store(T* to) const {
    for (int p = 0; p < parts; ++p) *reinterpret_cast<Unaligned*>(to + p * width) = part[p];
  }
  FOVEAL_INLINE T lane(int index) const { return part[index / width][index % width]; }
  FOVEAL_INLINE void set_lane(int index, T value) { part[index / width][index % width] = value; }
};

#define FOVEAL_OPERATOR(op)                                                   \
  template <class T>                                                             \
  FOVEAL_INLINE Lanes<T> operator op(const Lanes<T>& a, const Lanes<T>& b) {  \
    Lanes<T> out;                                                                \
    for (int p = 0; p < Lanes<T>::parts; ++p) out.part[p] = a.part[p] op b.part[p]; \
    return out;                                                                  \
  }                                                                              \
  template <class T>                                                             \
  FOVEAL_INLINE Lanes<T> operator op(const Lanes<T>& a, T b) {                \
    return a op Lanes<T>::of(b);                                                 \
  }                                                                              \
  template <class T>                                                             \
  FOVEAL_INLINE Lanes<T>& operator op##=(Lanes<T>& a, const Lanes<T>& b) {    \
    return a = a op b;                                                           \
  }
FOVEAL_OPERATOR(+)
FOVEAL_OPERATOR(-)
FOVEAL_OPERATOR(*)
FOVEAL_OPERATOR(/)
#undef FOVEAL_OPERATOR

// a < b ? then : otherwise, lane by lane; values that are not chosen have no effect.
template <class T>
FOVEAL_INLINE Lanes<T> where_less(const Lanes<T>& a, const Lanes<T>& b, const Lanes<T>& then,
                                     const Lanes<T>& otherwise) {
  Lanes<T> out;
  for (int p = 0; p < Lanes<T>::parts; ++p) {
    out.part[p] = a.part[p] < b.part[p] ? then.part[p] : otherwise.part[p];
  }
  return out;
}

template <class T>
FOVEAL_INLINE Lanes<T> max(const Lanes<T>& a, const Lanes<T>& b) {
  return where_less(a, b, b, a);
}

// condition > 0 ? then : otherwise
template <class T>
FOVEAL_INLINE Lanes<T> where_positive(const Lanes<T>& condition, const Lanes<T>& then,
                                         const Lanes<T>& otherwise) {
  return where_less(Lanes<T>::of(T(0)), condition, then, otherwise);
}

// 1 / x, and 0 where x is 0: an impossible part has weight 0.
template <class T>
FOVEAL_INLINE Lanes<T> reciprocal_or_zero(const Lanes<T>& x) {
  const auto zero = Lanes<T>::of(T(0));
  return where_less(Lanes<T>::of(std::numeric_limits<T>::min()), x, Lanes<T>::of(T(1)) / x, zero);
}

template <class T>
FOVEAL_INLINE T sum(const Lanes<T>& x) {
  typename Lanes<T>::Register all = x.part[0];
  for (int p = 1; p < Lanes<T>::parts; ++p) all += x.part[p];
#if FOVEAL_REGISTER_BYTES == 64
  if constexpr (sizeof(T) == 4) return _mm512_reduce_add_ps((__m512)all);
  if constexpr (sizeof(T) == 8) return _mm512_reduce_add_pd((__m512d)all);
#endif
  T total = 0;
  for (int i = 0; i < Lanes<T>::width; ++i) total += all[i];
  return total;
}

template <class T>
FOVEAL_INLINE T largest(const Lanes<T>& x) {
  T found = x.lane(0);
  for (int i = 1; i < kLanes; ++i) found = std::max(found, x.lane(i));
  return found;
}

// Whether any lane is above `limit`.
template <class T>
FOVEAL_INLINE bool any_above(const Lanes<T>& x, T limit) {
#if FOVEAL_REGISTER_BYTES == 64
  if constexpr (sizeof(T) == 4) return _mm512_cmp_ps_mask((__m512)x.part[0], _mm512_set1_ps(limit), _CMP_GT_OQ) != 0;
#elif FOVEAL_REGISTER_BYTES == 32
  if constexpr (sizeof(T) == 4) {
    return _mm256_movemask_ps(_mm256_cmp_ps((__m256)x.part[0], _mm256_set1_ps(limit), _CMP_GT_OQ)) != 0;
  }
#endif
  bool found = false;
  for (int i = 0; i < kLanes; ++i) found = found || x.lane(i) > limit;
  return found;
}

// The first `count` numbers from memory, `fill` in the other lanes; reads nothing beyond them.
template <class T>
FOVEAL_INLINE Lanes<T> load_first(const T* from, int64_t count, T fill) {
  if (count >= kLanes) return Lanes<T>::load(from);
#if FOVEAL_REGISTER_BYTES == 64
  Lanes<T> out;
  if constexpr (sizeof(T) == 4) {
    const auto mask = static_cast<__mmask16>((1u << count) - 1);
    out.part[0] = _mm512_mask_loadu_ps(_mm512_set1_ps(fill), mask, from);
  } else {
    const unsigned mask = (1u << count) - 1;
    out.part[0] = _mm512_mask_loadu_pd(_mm512_set1_pd(fill), static_cast<__mmask8>(mask), from);
    out.part[1] =
        _mm512_mask_loadu_pd(_mm512_set1_pd(fill), static_cast<__mmask8>(mask >> 8), from + 8);
  }
  return out;
#else
  T buffer[kLanes];
  for (int i = 0; i < kLanes; ++i) buffer[i] = i < count ? from[i] : fill;
  return Lanes<T>::load(buffer);
#endif
}

template <class T>
FOVEAL_INLINE void store_first(T* to, int64_t count, const Lanes<T>& x) {
  if (count >= kLanes) return x.store(to);
#if FOVEAL_REGISTER_BYTES == 64
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), (__m512)x.part[0]);
  } else {
    const unsigned mask = (1u << count) - 1;
    _mm512_mask_storeu_pd(to, static_cast<__mmask8>(mask), (__m512d)x.part[0]);
    _mm512_mask_storeu_pd(to + 8, static_cast<__mmask8>(mask >> 8), (__m512d)x.part[1]);
  }
#else
  T buffer[kLanes];
  x.store(buffer);
  std::memcpy(to, buffer, count * sizeof(T));
#endif
}

// Stores numbers from .. end - 1 of one register at the same offsets in memory; an empty range stores nothing.
template <class T>
FOVEAL_INLINE void store_between(T* to, int64_t from, int64_t end, const typename Lanes<T>::Register& x) {
  if (from >= end) return;
#if FOVEAL_REGISTER_BYTES == 64
  const unsigned mask = (1u << end) - (1u << from);
  if constexpr (sizeof(T) == 4) _mm512_mask_storeu_ps(to, static_cast<__mmask16>(mask), (__m512)x);
  if constexpr (sizeof(T) == 8) _mm512_mask_storeu_pd(to, static_cast<__mmask8>(mask), (__m512d)x);
#else
  T buffer[Lanes<T>::width];
  std::memcpy(buffer, &x, sizeof(buffer));
  for (int64_t i = from; i < end; ++i) to[i] = buffer[i];
#endif
}

FOVEAL_INLINE Lanes<double> widen(const Lanes<double>& x) { return x; }

FOVEAL_INLINE Lanes<double> widen(const Lanes<float>& x) {
  Lanes<double> out;
#if FOVEAL_REGISTER_BYTES == 64
  out.part[0] = (Lanes<double>::Register)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)x.part[0]));
  out.part[1] = (Lanes<double>::Register)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)x.part[0], 1));
#elif FOVEAL_REGISTER_BYTES == 32
  out.part[0] = (Lanes<double>::Register)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x.part[0]));
  out.part[1] = (Lanes<double>::Register)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x.part[0], 1));
#else
  for (int i = 0; i < kLanes; ++i) out.set_lane(i, x.lane(i));
#endif
  return out;
}

template <class T>
Lanes<T> narrow(const Lanes<double>& x);

template <>
FOVEAL_INLINE Lanes<double> narrow<double>(const Lanes<double>& x) {
  return x;
}

template <>
FOVEAL_INLINE Lanes<float> narrow<float>(const Lanes<double>& x) {
  Lanes<float> out;
#if FOVEAL_REGISTER_BYTES == 64
  const __m256 low = _mm512_cvtpd_ps((__m512d)x.part[0]), high = _mm512_cvtpd_ps((__m512d)x.part[1]);
  out.part[0] = (Lanes<float>::Register)_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
#elif FOVEAL_REGISTER_BYTES == 32
  const __m128 low = _mm256_cvtpd_ps((__m256d)x.part[0]), high = _mm256_cvtpd_ps((__m256d)x.part[1]);
  out.part[0] = (Lanes<float>::Register)_mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
#else
  for (int i = 0; i < kLanes; ++i) out.set_lane(i, static_cast<float>(x.lane(i)));
#endif
  return out;
}

// Constants of a floating-point type for exp and log.
template <class T>
struct Format;

template <>
struct Format<float> {
  typedef int32_t Bits __attribute__((vector_size(FOVEAL_REGISTER_BYTES)));
  static constexpr int mantissa = 23;
  static constexpr int32_t root_half = 0x3f3504f3;  // the bits of sqrt(1/2)
  static constexpr float magic = 12582912.0f;       // 1.5 * 2^23: adding it rounds to an integer
  static constexpr int32_t magic_bits = 0x4b400000;
  static constexpr float bias = 127;  // of exponents
  static constexpr float lowest_exponent = -87.3f;
  static constexpr float log2_high = 0.693359375f, log2_low = -2.12194440e-4f;
  static constexpr int exp_order = 7, log_terms = 4;
};

template <>
struct Format<double> {
  typedef int64_t Bits __attribute__((vector_size(FOVEAL_REGISTER_BYTES)));
  static constexpr int mantissa = 52;
  static constexpr int64_t root_half = 0x3fe6a09e667f3bcd;
  static constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr int64_t magic_bits = 0x4338000000000000;
  static constexpr double bias = 1023;
  static constexpr double lowest_exponent = -708.0;
  static constexpr double log2_high = 6.93145751953125e-1, log2_low = 1.42860682030941723212e-6;
  static constexpr int exp_order = 13, log_terms = 10;
};

// exp(r) for |r| <= log(2) / 2, by its Taylor series.
template <class T>
FOVEAL_INLINE typename Lanes<T>::Register exp_series(const typename Lanes<T>::Register& r) {
  using Register = typename Lanes<T>::Register;
  constexpr int order = Format<T>::exp_order;
  constexpr T inverse_factorial[] = {1,
                                     1,
                                     T(1.0 / 2),
                                     T(1.0 / 6),
                                     T(1.0 / 24),
                                     T(1.0 / 120),
                                     T(1.0 / 720),
                                     T(1.0 / 5040),
                                     T(1.0 / 40320),
                                     T(1.0 / 362880),
                                     T(1.0 / 3628800),
                                     T(1.0 / 39916800),
                                     T(1.0 / 479001600),
                                     T(1.0 / 6227020800.0)};
  Register y = Register{} + inverse_factorial[order];
  for (int k = order - 1; k >= 0; --k) y = y * r + inverse_factorial[k];
  return y;
}

// exp(x) = 2^n exp(r) with |r| <= log(2) / 2.
template <class T>
FOVEAL_INLINE Lanes<T> exp(const Lanes<T>& x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  using Register = typename Lanes<T>::Register;
  const Register lowest = Register{} + F::lowest_exponent;
  Lanes<T> out;
  for (int p = 0; p < Lanes<T>::parts; ++p) {
    const Register z = x.part[p] < lowest ? lowest : x.part[p];
    const Register shifted = z * T(1.44269504088896340736) + (F::magic + F::bias);
    const Register n = shifted - (F::magic + F::bias);
    Register r = z - n * F::log2_high;
    r = r - n * F::log2_low;
    const Register y = exp_series<T>(r);
    const Register power = (Register)((Bits)shifted << F::mantissa);  // n + bias is in the low bits
    out.part[p] = x.part[p] < lowest ? Register{} : y * power;
  }
  return out;
}

// log(x) = n log(2) + 2 artanh( (m - 1) / (m + 1) ) with x = 2^n m, sqrt(1/2) <= m < sqrt(2).
template <class T>
FOVEAL_INLINE Lanes<T> log(const Lanes<T>& x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  using Register = typename Lanes<T>::Register;
  Lanes<T> out;
  for (int p = 0; p < Lanes<T>::parts; ++p) {
    const Bits n = ((Bits)x.part[p] - F::root_half) >> F::mantissa;
    const Register m = (Register)((Bits)x.part[p] - (n << F::mantissa));
    const Register count = (Register)(n + F::magic_bits) - F::magic;
    const Register s = (m - T(1)) / (m + T(1));
    const Register square = s * s;
    Register series = Register{} + T(1.0 / (2 * F::log_terms + 1));
    for (int k = F::log_terms - 1; k >= 1; --k) series = series * square + T(1.0 / (2 * k + 1));
    const Register tail = s * square * series;
    out.part[p] = count * F::log2_high + (T(2) * s + (T(2) * tail + count * F::log2_low));
  }
  return out;
}

// Lane l takes lane index[l] of the registers `a` and `b`, one after the other. `index` must be a constant after
// inlining. Clang has no such builtin for an index in a variable, and finds the instruction in the loop.
template <class Register, class Index>
FOVEAL_INLINE Register shuffle(const Register& a, const Register& b, const Index& index) {
#if defined(__clang__)
  constexpr int width = sizeof(Register) / sizeof(a[0]);
  Register out{};
  for (int l = 0; l < width; ++l) out[l] = index[l] < width ? a[index[l]] : b[index[l] - width];
  return out;
#else
  return __builtin_shuffle(a, b, index);
#endif
}

// Lane l takes the value of lane l - 1, the first lane takes `before`.
template <class T>
FOVEAL_INLINE Lanes<T> shift_in(const Lanes<T>& x, T before) {
  typename Format<T>::Bits index{};
  for (int l = 0; l < Lanes<T>::width; ++l) index[l] = Lanes<T>::width - 1 + l;
  typename Lanes<T>::Register previous = typename Lanes<T>::Register{} + before;
  Lanes<T> out;
  for (int p = 0; p < Lanes<T>::parts; ++p) {
    out.part[p] = shuffle(previous, x.part[p], index);
    previous = x.part[p];
  }
  return out;
}

// Lane l takes the value of lane l + 1, the last lane takes `after`.
template <class T>
FOVEAL_INLINE Lanes<T> shift_out(const Lanes<T>& x, T after) {
  typename Format<T>::Bits index{};
  for (int l = 0; l < Lanes<T>::width; ++l) index[l] = l + 1;
  typename Lanes<T>::Register next = typename Lanes<T>::Register{} + after;
  Lanes<T> out;
  for (int p = Lanes<T>::parts - 1; p >= 0; --p) {
    out.part[p] = shuffle(x.part[p], next, index);
    next = x.part[p];
  }
  return out;
}

}  // namespace FOVEAL_ISA
}  // namespace foveal
