/* The derivative of gelu for float lanes: (1 + erf(x / sqrt 2)) / 2 + x exp(-x^2 / 2) / sqrt(2 pi). Wrong by less than 3e-7. */
#include "elementary/exp.cl"
#include "elementary/gelu.cl"
#define CLT_GELU_SLOPE(F, I)                                                   \
  static inline F gelu_slope_##F(F x) {                                        \
    _Pragma("OPENCL FP_CONTRACT ON")                                           \
    const F density = clt_exp_neg_##F(x * x * (F)(-0.5f)) * (F)(0.398942292f); \
    return x * density + (clt_gelu_erf_##F(x) * (F)(0.5f) + (F)(0.5f));        \
  }
CLT_ALL_LANES(CLT_GELU_SLOPE)
