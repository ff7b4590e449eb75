/* rint, floor, ceil and trunc of float vectors, which are calls on some drivers: adding 2^23 to |x| rounds it to a whole number. */
#include "all_lanes.cl"
#if CLT_LANES > 1
#define CLT_ROUNDING(F, I)                                                                       \
  static inline F clt_signed_##F(F x, F y) { return as_##F(as_##I(y) | CLT_SIGN(I, x)); }        \
  static inline F rint_##F(F x) {                                                                \
    const F a = CLT_ABS(F, I, x);                                                                \
    return a < (F)(8388608.0f) ? clt_signed_##F(x, (a + (F)(8388608.0f)) - (F)(8388608.0f)) : x; \
  }                                                                                              \
  static inline F floor_##F(F x) {                                                               \
    const F near = rint_##F(x);                                                                  \
    return near > x ? near - (F)(1.0f) : near;                                                   \
  }                                                                                              \
  static inline F ceil_##F(F x) {                                                                \
    const F near = rint_##F(x);                                                                  \
    return near < x ? clt_signed_##F(x, near + (F)(1.0f)) : near;                                \
  }                                                                                              \
  static inline F trunc_##F(F x) { return clt_signed_##F(x, floor_##F(CLT_ABS(F, I, x))); }
CLT_ALL_LANES(CLT_ROUNDING)
#else
#define rint_float rint
#define floor_float floor
#define ceil_float ceil
#define trunc_float trunc
#endif
