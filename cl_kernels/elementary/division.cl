/* fmod of floating-point lanes, and Python's remainder and floor division, which are computed from it. A quotient of
   floats below 2^22, or of doubles below 2^51, is rounded to a whole number q, and the result is x - q y. With a fused
   multiply-add, which x86 compilers announce by __FMA__, that is exact, as the remainder has no more digits than y.
   Larger quotients are left to the builtin, which goes bit by bit. */
#include "all_lanes.cl"
#ifdef __FMA__
#define CLT_FMOD(F, I)                                                                                          \
  static inline F fmod_##F(F x, F y) {                                                                          \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                            \
    const F a = CLT_ABS(F, I, x), b = CLT_ABS(F, I, y), v = a / b, q = (v + (F)(8388608.0f)) - (F)(8388608.0f); \
    F r = a - q * b;                                                                                            \
    r = r < (F)(0.0f) ? r + b : r;                                                                              \
    r = as_##F(as_##I(a < b ? a : r) | CLT_SIGN(I, x));                                                         \
    const I far = !(v < (F)(4194304.0f));                                                                       \
    if (CLT_ANY_##I(far) != 0) r = far ? CLT_SOUND_##F(fmod, x, y) : r;                                         \
    return r;                                                                                                   \
  }
#define CLT_FMOD_DOUBLE(F, I)                                                                                   \
  static inline F fmod_##F(F x, F y) {                                                                          \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                            \
    const F a = as_##F(as_##I(x) & (I)(0x7fffffffffffffffL)), b = as_##F(as_##I(y) & (I)(0x7fffffffffffffffL)); \
    const F v = a / b, q = (v + (F)(4503599627370496.0)) - (F)(4503599627370496.0);                             \
    F r = a - q * b;                                                                                            \
    r = r < (F)(0.0) ? r + b : r;                                                                               \
    r = as_##F(as_##I(a < b ? a : r) | (as_##I(x) & (I)(0x8000000000000000L)));                                 \
    const I far = !(v < (F)(2251799813685248.0));                                                               \
    if (CLT_ANY_##I(far) != 0) r = far ? CLT_SOUND_##F(fmod, x, y) : r;                                         \
    return r;                                                                                                   \
  }
#else
#define CLT_FMOD(F, I) static inline F fmod_##F(F x, F y) { return CLT_SOUND_##F(fmod, x, y); }
#define CLT_FMOD_DOUBLE(F, I) CLT_FMOD(F, I)
#endif
#define CLT_DIVISION(F)                                                                                 \
  static inline F floor_rest_##F(F x, F y) {                                                            \
    const F m = fmod_##F(x, y);                                                                         \
    return m != (F)(0) && ((m < (F)(0)) != (y < (F)(0))) ? m + y : m;                                   \
  }                                                                                                     \
  /* The whole number nearest to q; the plain quotient gives a zero its sign. */                        \
  static inline F floor_settled_##F(F q, F plain, F y) {                                                \
    const F whole = floor(q), rounded = q - whole > (F)(0.5f) ? whole + (F)(1) : whole;                 \
    return y == (F)(0) ? plain : q == (F)(0) ? (F)(0) * plain : rounded;                                \
  }                                                                                                     \
  static inline F floor_quotient_##F(F x, F y) {                                                        \
    const F m = fmod_##F(x, y), near = (x - m) / y;                                                     \
    const F q = m != (F)(0) && ((m < (F)(0)) != (y < (F)(0))) ? near - (F)(1) : near;                   \
    return floor_settled_##F(q, x / y, y);                                                              \
  }
#define CLT_DIVISION_SINGLE(F, I) CLT_FMOD(F, I) CLT_DIVISION(F)
#define CLT_DIVISION_DOUBLE(F, I) CLT_FMOD_DOUBLE(F, I) CLT_DIVISION(F)
CLT_ALL_LANES(CLT_DIVISION_SINGLE)
CLT_DOUBLE_LANES(CLT_DIVISION_DOUBLE)
