/* Whether the program chooses between processors, and what the compiler should inline. */
#ifndef KERNELS_H
#define KERNELS_H

#if defined(__GNUC__) && defined(__x86_64__) && defined(__gnu_linux__) && !defined(ONE_PROCESSOR)
#define HAS_PROCESSORS 1
#else
#define HAS_PROCESSORS 0
#endif

/* A function that is part of every loop that calls it. */
#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

#endif
