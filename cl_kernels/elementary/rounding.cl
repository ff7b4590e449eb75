/* rint, floor, ceil and trunc of float vectors; the builtins are library calls on some drivers. Adding 2^23 to |x|
   rounds it to a whole number. With pip's PoCL each is one instruction, if its compiler has the builtins for it. */
#include "all_lanes.cl"
#if CLT_LANES > 1 && defined(__SSE4_1__) && defined(POCL_DEVICE_ADDRESS_BITS) && defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_floor) && __has_builtin(__builtin_elementwise_roundeven)
#define CLT_ROUNDS
#endif
#endif
#ifdef CLT_ROUNDS
#define CLT_ROUNDING(F, I)                                                             \
  static inline F rint_##F(F x) { return __builtin_elementwise_roundeven(x); }         \
  static inline F floor_##F(F x) { return __builtin_elementwise_floor(x); }            \
  static inline F ceil_##F(F x) { return __builtin_elementwise_ceil(x); }              \
  static inline F trunc_##F(F x) { return __builtin_elementwise_trunc(x); }
CLT_ALL_LANES(CLT_ROUNDING)
#elif CLT_LANES > 1
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
