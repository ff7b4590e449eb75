/* asin and acos of float lanes: a polynomial up to 1/2, minimax in relative error; beyond, acos(|x|) = 2 asin(sqrt((1 -
   |x|) / 2)). Wrong by less than 1.04 ulp. */
#include "all_lanes.cl"
#define CLT_ASIN(F, I)                                                                                             \
  static inline F clt_asin_rest_##F(F s, F x) {                                                                    \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                               \
    F p = (F)(3.76964621e-2f) * s + (F)(1.43149635e-2f);                                                           \
    p = p * s + (F)(3.18390839e-2f);                                                                               \
    p = p * s + (F)(4.45133746e-2f);                                                                               \
    p = p * s + (F)(7.50052184e-2f);                                                                               \
    p = p * s + (F)(0.166666597f);                                                                                 \
    return p * (s * x);                                                                                            \
  }                                                                                                                \
  static inline F asin_##F(F x) {                                                                                  \
    const F t = CLT_ABS(F, I, x), s = t > (F)(0.5f) ? ((F)(1.0f) - t) * (F)(0.5f) : x * x;                         \
    const F r = t > (F)(0.5f) ? sqrt(s) : t, p = clt_asin_rest_##F(s, r);                                          \
    const F high = (F)(1.57079637f) - (r + r), low = (((F)(1.57079637f) - high) - (r + r)) + (F)(-4.37113883e-8f); \
    const F y = t > (F)(0.5f) ? high + (low - (p + p)) : r + p;                                                    \
    return as_##F(as_##I(y) | CLT_SIGN(I, x));                                                                     \
  }                                                                                                                \
  static inline F acos_##F(F x) {                                                                                  \
    const F t = CLT_ABS(F, I, x), s = t > (F)(0.5f) ? ((F)(1.0f) - t) * (F)(0.5f) : x * x;                         \
    const F r = t > (F)(0.5f) ? sqrt(s) : x, p = r + clt_asin_rest_##F(s, r);                                      \
    const F far = x < (F)(0.0f) ? (F)(3.14159274f) - ((p + p) - (F)(-8.74227766e-8f)) : p + p;                     \
    return t > (F)(0.5f) ? far : (F)(1.57079637f) - (p - (F)(-4.37113883e-8f));                                    \
  }
CLT_ALL_LANES(CLT_ASIN)
