/* log(1 + x): the logarithm of the rounded sum u = 1 + x, with the rounding error of u added to its f (see log.cl).
   Wrong by less than 1.03 ulp. For double lanes that error, divided by u, is added to the lower half of the logarithm:
   wrong by less than 0.7 ulp. */
#include "elementary/log.cl"
#define CLT_LOG1P(F, I)                                                                              \
  static inline F log1p_##F(F x) {                                                                   \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                 \
    const F u = x + (F)(1.0f), lost = x - (u - (F)(1.0f));                                           \
    const I i = (as_##I(u) - 0x3f2aaaab) & (I)(0xff800000);                                          \
    const F e = as_##F((i >> 23) + 0x4b400000) - (F)(12582912.0f);                                   \
    /* 2^-e, unless u is so large that 2^-e would be denormal: there u's rounding error does not matter. */ \
    const F scale = as_##F(0x3f800000 - (x < (F)(1e18f) ? i : (I)(0)));                              \
    const F f = as_##F(as_##I(u) - i) - (F)(1.0f), more = lost * scale;                              \
    const F near = f + (more + (e * (F)(1.42860677e-6f) + clt_log_rest_##F(f + more)));              \
    const F y = e * (F)(0.693145752f) + near;                                                        \
    return x == (F)(0.0f) ? x : clt_log_ends_##F(u, y);                                              \
  }
CLT_ALL_LANES(CLT_LOG1P)
#define CLT_LOG1P_DOUBLE(F, I)                                                                       \
  static inline F log1p_##F(F x) {                                                                   \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                 \
    const F u = x + (F)(1.0), lost = (x - (u - (F)(1.0))) / u;                                       \
    F e, low;                                                                                        \
    const F p = clt_log_parts_##F(u, &e, &low), a = e * (F)(0.693147180559663), t = a + p;           \
    const F y = t + (((a - t) + p) + (e * (F)(2.8235290563031577e-13) + (low + lost)));              \
    return x == (F)(0.0) ? x : clt_log_ends_##F(u, y);                                               \
  }
CLT_DOUBLE_LANES(CLT_LOG1P_DOUBLE)
