/* tanh of float lanes: a polynomial up to 0.55, minimax in relative error; beyond, 1 - 2 / (exp(2 x) + 1), which rounds
   to 1 for large x. Wrong by less than 1.41 ulp. */
#include "all_lanes.cl"
#include "elementary/exp.cl"
#define CLT_TANH(F, I)                                                                                                         \
  static inline F tanh_##F(F x) {                                                                                              \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                           \
    const F t = CLT_ABS(F, I, x), s = x * x, e = clt_exp_neg_##F((F)(-2.0f) * t), far = (F)(1.0f) - (e + e) / ((F)(1.0f) + e); \
    F p = (F)(-6.2428494e-3f) * s + (F)(2.1050714e-2f);                                                                        \
    p = p * s + (F)(-5.38475476e-2f);                                                                                          \
    p = p * s + (F)(0.133325443f);                                                                                             \
    p = p * s + (F)(-0.333333164f);                                                                                            \
    const F y = t < (F)(0.55f) ? p * (s * t) + t : far;                                                                        \
    return as_##F(as_##I(y) | CLT_SIGN(I, x));                                                                                 \
  }
CLT_ALL_LANES(CLT_TANH)
