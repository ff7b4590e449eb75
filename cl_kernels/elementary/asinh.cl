/* asinh, acosh and atanh of float lanes, by log1p: wrong by less than 1.6, 2.1 and 2 ulp. */
#include "elementary/log1p.cl"
#define CLT_LOG_HYPERBOLIC(F, I)                                                                                             \
  static inline F asinh_##F(F x) {                                                                                           \
    const F t = CLT_ABS(F, I, x), s = t * t, more = t + s / ((F)(1.0f) + sqrt(s + (F)(1.0f)));                               \
    const F y = log1p_##F(t > (F)(1e9f) ? t : more) + (t > (F)(1e9f) ? (F)(0.693147182f) : (F)(0.0f));                       \
    return as_##F(as_##I(y) | CLT_SIGN(I, x));                                                                               \
  }                                                                                                                          \
  static inline F acosh_##F(F x) {                                                                                           \
    const F t = x - (F)(1.0f), more = t + sqrt(t * (x + (F)(1.0f)));                                                         \
    return x < (F)(1.0f) ? (F)(NAN) : log1p_##F(x > (F)(1e9f) ? x : more) + (x > (F)(1e9f) ? (F)(0.693147182f) : (F)(0.0f)); \
  }                                                                                                                          \
  static inline F atanh_##F(F x) {                                                                                           \
    const F t = CLT_ABS(F, I, x), y = log1p_##F((t + t) / ((F)(1.0f) - t)) * (F)(0.5f);                                      \
    return as_##F(as_##I(y) | CLT_SIGN(I, x));                                                                               \
  }
CLT_ALL_LANES(CLT_LOG_HYPERBOLIC)
