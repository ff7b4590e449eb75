/* Mantissa in [0.5, 1) and exponent of floats (both 0 for 0; the number itself and 0 where it is not finite). */
#define CLT_FREXP(T)                                                                                                           \
  static inline T mantissa_##T(T x) {                                                                                          \
    int e;                                                                                                                     \
    return isfinite(x) ? frexp(x, &e) : x;                                                                                     \
  }                                                                                                                            \
  static inline T exponent_##T(T x) {                                                                                          \
    int e = 0;                                                                                                                 \
    if (isfinite(x)) frexp(x, &e);                                                                                             \
    return (T)e;                                                                                                               \
  }
CLT_FREXP(float)
#ifdef CLT_DOUBLE
CLT_FREXP(double)
#endif
