/* gelu(x) = x / 2 (1 + erf(x / sqrt 2)) of float lanes: erf(x / sqrt 2) as x p(x^2) / q(x^2) up to |x| = 5.6, where it
   becomes 1, minimax in absolute error. The error of gelu is mainly the rounding of erf: up to 9e-7 at -6, 2e-7 at -2,
   6e-8 at -1. Doubles use erf itself. */
#include "elementary/erf.cl"
#define CLT_GELU(F, I)                                     \
  /* erf(x / sqrt 2). */                                   \
  static inline F clt_gelu_erf_##F(F x) {                  \
    _Pragma("OPENCL FP_CONTRACT ON")                       \
    const F s = x * x;                                     \
    F p = (F)(-1.49359122e-10f) * s + (F)(1.05011189e-7f); \
    p = p * s + (F)(1.68665792e-5f);                       \
    p = p * s + (F)(3.39099002e-4f);                       \
    p = p * s + (F)(9.6005043e-3f);                        \
    p = p * s + (F)(6.53050393e-2f);                       \
    p = p * s + (F)(0.797884583f);                         \
    F q = (F)(1.99196597e-6f) * s + (F)(8.17225373e-5f);   \
    q = q * s + (F)(1.93045975e-3f);                       \
    q = q * s + (F)(2.84512937e-2f);                       \
    q = q * s + (F)(0.248514503f);                         \
    q = q * s + (F)(1.0f);                                 \
    const F far = x < (F)(0.0f) ? (F)(-1.0f) : (F)(1.0f);  \
    return s > (F)(31.36f) ? far : x * p / q;              \
  }                                                        \
  static inline F gelu_##F(F x) {                          \
    const F half_x = x * (F)(0.5f);                        \
    return half_x * clt_gelu_erf_##F(x) + half_x;          \
  }
CLT_ALL_LANES(CLT_GELU)
