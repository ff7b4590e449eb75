/* sinh and cosh of float lanes, from half of exp(|x|); sinh up to 1 by a polynomial, the best in relative error.
   Wrong by less than 1.61 and 1.27 ulp. */
#include "all_lanes.cl"
#include "elementary/exp.cl"
#define CLT_SINH(F, I)                                                                                               \
  static inline F clt_exp_half_##F(F t) {                                                                            \
    F z;                                                                                                             \
    const F y = clt_exp_part_##F(t > (F)(90.0f) ? (F)(90.0f) : t, &z) * as_##F((as_##I(z) << 23) + (I)(0x3e800000)); \
    return y + y;                                                                                                    \
  }                                                                                                                  \
  static inline F clt_sinh_near_##F(F x) {                                                                           \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                 \
    const F s = x * x;                                                                                               \
    F p = (F)(2.78221319e-6f) * s + (F)(1.98428956e-4f);                                                             \
    p = p * s + (F)(8.33331048e-3f);                                                                                 \
    p = p * s + (F)(0.166666672f);                                                                                   \
    return p * (s * x) + x;                                                                                          \
  }                                                                                                                  \
  static inline F sinh_##F(F x) {                                                                                    \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                 \
    const F t = CLT_ABS(F, I, x), e = clt_exp_half_##F(t), far = e - (F)(0.25f) / e;                                 \
    return t < (F)(1.0f) ? clt_sinh_near_##F(x) : x < (F)(0.0f) ? -far : far;                                        \
  }                                                                                                                  \
  static inline F cosh_##F(F x) {                                                                                    \
    const F e = clt_exp_half_##F(CLT_ABS(F, I, x));                                                                  \
    return e + (F)(0.25f) / e;                                                                                       \
  }
CLT_ALL_LANES(CLT_SINH)
