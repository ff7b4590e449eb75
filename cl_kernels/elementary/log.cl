/* log, log2 and log10 of float lanes. x = 2^e (1 + f) with 1 + f in [2/3, 4/3); log(1 + f) = f + f^2 p(f), p of degree
   8 being minimax in relative error. The results are wrong by less than 0.86, 1.27 and 1.01 ulp. For double lanes 1 + f
   is in [sqrt(1/2), sqrt(2)) and log(1 + f) = 2 atanh(s), s = f / (2 + f). f and f - f^2 / 2 are split into halves, so
   that the square of f's upper half and the products with the upper half of the latter are exact. Wrong by less than
   0.65 ulp. */
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
  /* Returns f, and sets e, of a positive number; denormal numbers are scaled up first. */                                \
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
#define CLT_LOG_DOUBLE(F, I)                                                                                                      \
  /* Returns the upper half of log(1 + f), sets low to the rest of it and e, of a positive number; denormal numbers are scaled up first. */ \
  static inline F clt_log_parts_##F(F x, F *e, F *low) {                                                                          \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                              \
    const I bits = as_##I(x < (F)(2.2250738585072014e-308) ? x * (F)(18014398509481984.0) : x);                                   \
    const I i = (bits - (I)(0x3fe6a09e667f3bcdL)) & (I)(0xfff0000000000000UL);                                                    \
    *e = as_##F((((i >> 52) + 2048) & 4095) | (I)(0x4330000000000000L))                                                           \
         - (x < (F)(2.2250738585072014e-308) ? (F)(4503599627372598.0) : (F)(4503599627372544.0));                                \
    const F f = as_##F(bits - i) - (F)(1.0), s = f / (f + (F)(2.0)), z = s * s;                                                   \
    const F f0 = as_##F(as_##I(f) & (I)(0xfffffffff8000000UL)), down = f0 * f0 * (F)(0.5), more = (f - f0) * (f + f0) * (F)(0.5); \
    F p = (F)(0.14616585424888623) * z + (F)(0.15331710618210773);                                                                \
    p = p * z + (F)(0.18182889455674947);                                                                                         \
    p = p * z + (F)(0.22222211130259878);                                                                                         \
    p = p * z + (F)(0.2857142862600327);                                                                                          \
    p = p * z + (F)(0.39999999999899444);                                                                                         \
    p = p * z + (F)(0.666666666666667);                                                                                           \
    const F high = as_##F(as_##I(f - down) & (I)(0xffffffff00000000UL));                                                          \
    *low = ((f - high) - down) + ((p * z + (down + more)) * s - more);                                                            \
    return high;                                                                                                                  \
  }                                                                                                                               \
  static inline F clt_log_ends_##F(F x, F y) {                                                                                    \
    return x > (F)(0.0) ? (x < (F)(INFINITY) ? y : x) : x == (F)(0.0) ? (F)(-INFINITY) : (F)(NAN);                                \
  }                                                                                                                               \
  static inline F log_##F(F x) {                                                                                                  \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                              \
    F e, low;                                                                                                                     \
    const F p = clt_log_parts_##F(x, &e, &low), a = e * (F)(0.693147180559663), t = a + p;                                        \
    return clt_log_ends_##F(x, t + (((a - t) + p) + (e * (F)(2.8235290563031577e-13) + low)));                                    \
  }                                                                                                                               \
  static inline F log2_##F(F x) {                                                                                                 \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                              \
    F e, low;                                                                                                                     \
    const F high = clt_log_parts_##F(x, &e, &low), p = high * (F)(1.442695040255785), t = e + p;                                  \
    low = high * (F)(6.331784189566044e-10) + low * (F)(1.4426950408889634);                                                      \
    return clt_log_ends_##F(x, t + (((e - t) + p) + low));                                                                        \
  }                                                                                                                               \
  static inline F log10_##F(F x) {                                                                                                \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                              \
    F e, low;                                                                                                                     \
    const F high = clt_log_parts_##F(x, &e, &low), p = high * (F)(0.43429448176175356);                                           \
    const F a = e * (F)(0.30102999566361177), t = a + p;                                                                          \
    low = e * (F)(3.694239077158931e-13) + (high * (F)(1.414982685385801e-10) + low * (F)(0.4342944819032518));                   \
    return clt_log_ends_##F(x, t + (((a - t) + p) + low));                                                                        \
  }
CLT_DOUBLE_LANES(CLT_LOG_DOUBLE)
#endif
