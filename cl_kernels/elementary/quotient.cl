/* Quotients of integer lanes, rounded towards zero, and their remainders, for divisors other than 0. CPUs divide
   integers one at a time, in eight cycles or more; with AVX2 lanes are multiplied by the floating-point reciprocal
   instead, which is computed once where all lanes have one divisor; integers of 64 bits only with AVX-512, for AVX2 has
   no conversions of them. For 32 bits, as doubles, the reciprocal is made too large by 2^-40: that outweighs the
   rounding errors, and is less than what a quotient lacks to the next whole number, at least 2^-32 of itself, so
   truncation gives the exact quotient. Likewise for 16 bits and less, as floats, with 2^-20. For 64 bits the quotient
   of the operands rounded to double is off by at most 2^12; a second quotient, of what the first leaves, reduces the
   error to 1 at most, which comparisons correct. */
#if CLT_LANES > 1
#define CLT_QUOTIENT_REST(T) \
  static inline T clt_rest_##T(T x, T y) { return x - clt_quotient_##T(x, y) * y; }
#ifdef __AVX2__
#define CLT_QUOTIENT_BY(T, I, F, ONE)                                                                    \
  static inline T clt_quotient_##T(T x, T y) {                                                           \
    const F by = (F)(ONE) / __builtin_convertvector(__builtin_convertvector(y, I), F);                   \
    const F a = __builtin_convertvector(__builtin_convertvector(x, I), F);                               \
    return __builtin_convertvector(__builtin_convertvector(a * by, I), T);                               \
  }                                                                                                      \
  CLT_QUOTIENT_REST(T)
#else
#define CLT_QUOTIENT_BY(T, I, F, ONE) \
  static inline T clt_quotient_##T(T x, T y) { return x / y; } CLT_QUOTIENT_REST(T)
#endif
#ifdef __AVX512DQ__
#define CLT_QUOTIENT_LONG(T, U, F)                                                                       \
  static inline T clt_quotient_##T(T x, T y) {                                                           \
    const U a = as_##U(x < (T)(0) ? -x : x), b = as_##U(y < (T)(0) ? -y : y);                            \
    const F by = (F)(1.0) / __builtin_convertvector(b, F);                                               \
    U q = __builtin_convertvector(__builtin_convertvector(a, F) * by, U);                                \
    const T left = as_##T(a - q * b), more = __builtin_convertvector(__builtin_convertvector(left, F) * by, T); \
    const T rest = left - more * as_##T(b);                                                              \
    q += as_##U(more);                                                                                   \
    q = rest < (T)(0) ? q - (U)(1) : as_##U(rest) >= b ? q + (U)(1) : q;                                 \
    return (x ^ y) < (T)(0) ? -as_##T(q) : as_##T(q);                                                    \
  }                                                                                                      \
  CLT_QUOTIENT_REST(T)
#else
#define CLT_QUOTIENT_LONG(T, U, F) CLT_QUOTIENT_PLAIN(T)
#endif
#define CLT_QUOTIENT_PLAIN(T) \
  static inline T clt_quotient_##T(T x, T y) { return x / y; } CLT_QUOTIENT_REST(T)
#define CLT_QUOTIENT_ALL(N)                                                                              \
  CLT_QUOTIENT_BY(char##N, int##N, float##N, 1.00000095f) CLT_QUOTIENT_BY(uchar##N, int##N, float##N, 1.00000095f)    \
  CLT_QUOTIENT_BY(short##N, int##N, float##N, 1.00000095f) CLT_QUOTIENT_BY(ushort##N, int##N, float##N, 1.00000095f)  \
  CLT_QUOTIENT_BY(int##N, int##N, double##N, 1.0000000000009095) CLT_QUOTIENT_BY(uint##N, uint##N, double##N, 1.0000000000009095) \
  CLT_QUOTIENT_LONG(long##N, ulong##N, double##N) CLT_QUOTIENT_PLAIN(ulong##N)
#if CLT_LANES == 16
CLT_QUOTIENT_ALL(16)
#elif CLT_LANES == 8
CLT_QUOTIENT_ALL(8)
#elif CLT_LANES == 4
CLT_QUOTIENT_ALL(4)
#else
CLT_QUOTIENT_ALL(2)
#endif
#endif
