/* log, log2 and log10 of float lanes. x = 2^e (1 + f) with 1 + f in [2/3, 4/3); log(1 + f) = f + f^2 p(f), p of degree 8 being
   the best in relative error. The results are wrong by less than 0.86, 1.27 and 1.01 ulp. */
#include "all_lanes.cl"
#ifndef CLT_LOG
#define CLT_LOG(F, I)                                                                                                     \
  /* log(1 + f) - f, given f. */                                                                                          \
  static inline F clt_log_rest_##F(F f) {                                                                                 \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                      \
    const F s = f * f;                                                                                                    \
    F p = (F)(-0.12878491f) * f + (F)(0.139858261f);                                                                      \
    const F q = (F)(-0.121875949f) * f + (F)(0.140055045f), r = (F)(-0.166802153f) * f + (F)(0.200104371f);               \
    const F t = (F)(-0.249998048f) * f + (F)(0.333332151f);                                                               \
    p = p * s + q; p = p * s + r; p = p * s + t;                                                                          \
    return (p * f + (F)(-0.5f)) * s;                                                                                      \
  }                                                                                                                       \
  /* f, and e of a positive number; denormal ones are scaled up. */                                                       \
  static inline F clt_log_split_##F(F x, F *e) {                                                                          \
    const I bits = as_##I(x < (F)(1.17549435e-38f) ? x * (F)(8388608.0f) : x), i = (bits - 0x3f2aaaab) & (I)(0xff800000); \
    *e = as_##F((i >> 23) + 0x4b400000) - (x < (F)(1.17549435e-38f) ? (F)(12582935.0f) : (F)(12582912.0f));               \
    return as_##F(bits - i) - (F)(1.0f);                                                                                  \
  }                                                                                                                       \
  static inline F clt_log_ends_##F(F x, F y) {                                                                            \
    return x > (F)(0.0f) ? (x < (F)(INFINITY) ? y : x) : x == (F)(0.0f) ? (F)(-INFINITY) : (F)(NAN);                      \
  }                                                                                                                       \
  static inline F log_##F(F x) {                                                                                          \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                      \
    F e;                                                                                                                  \
    const F f = clt_log_split_##F(x, &e), near = f + (e * (F)(1.42860677e-6f) + clt_log_rest_##F(f));                     \
    return clt_log_ends_##F(x, e * (F)(0.693145752f) + near);                                                             \
  }                                                                                                                       \
  static inline F log2_##F(F x) {                                                                                         \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                      \
    F e;                                                                                                                  \
    const F f = clt_log_split_##F(x, &e), rest = clt_log_rest_##F(f) * (F)(1.44269502f);                                  \
    return clt_log_ends_##F(x, (e + f) + (f * (F)(0.44269504f) + rest));                                                  \
  }                                                                                                                       \
  static inline F log10_##F(F x) {                                                                                        \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                      \
    F e;                                                                                                                  \
    const F f = clt_log_split_##F(x, &e), rest = clt_log_rest_##F(f) * (F)(0.434294492f) + f * (F)(-1.0103051e-8f);       \
    const F near = f * (F)(0.434294492f) + (e * (F)(4.60503898e-6f) + rest);                                              \
    return clt_log_ends_##F(x, e * (F)(0.301025391f) + near);                                                             \
  }
CLT_ALL_LANES(CLT_LOG)
#endif
