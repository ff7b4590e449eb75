/* log |Gamma| of float lanes. Up to 4.5 by a polynomial for log Gamma(2 + z) plus the logarithm of the recurrence's
   factors, near 1 by a polynomial with log(x) - z, beyond 4.5 by Stirling's series (DLMF 5.11.1). Below zero by
   reflection, where a lane needs it. Wrong by less than 3.1 ulp above zero; below, where two logarithms may cancel, by
   less than 6 epsilons times the greater of 1 and the value. */
#include "elementary/log.cl"
#include "elementary/sine.cl"
#define CLT_LGAMMA(F, I)                                                                                                                             \
  static inline F clt_lgamma_positive_##F(F x) {                                                                                                     \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                                                 \
    const I one = x >= (F)(0.6666667f) && x < (F)(1.3333333f);                                                                                       \
    const F whole = x < (F)(0.5f) ? (F)(0.0f) : x < (F)(1.3333333f) ? (F)(1.0f) : x < (F)(2.5f) ? (F)(2.0f) : x < (F)(3.5f) ? (F)(3.0f) : (F)(4.0f); \
    const F z = x - whole, below = x - (F)(1.0f);                                                                                                    \
    F p = (F)(2.01504907e-4f) * z + (F)(-2.28888804e-4f);                                                                                            \
    p = p * z + (F)(4.55939302e-4f);                                                                                                                 \
    p = p * z + (F)(-1.19836744e-3f);                                                                                                                \
    p = p * z + (F)(2.90059236e-3f);                                                                                                                 \
    p = p * z + (F)(-7.38422651e-3f);                                                                                                                \
    p = p * z + (F)(2.05800858e-2f);                                                                                                                 \
    p = p * z + (F)(-6.73523774e-2f);                                                                                                                \
    p = p * z + (F)(0.322467048f);                                                                                                                   \
    p = p * z + (one ? (F)(-0.577215664f) : (F)(0.422784336f));                                                                                      \
    F product = x < (F)(2.5f) ? (F)(1.0f) : x < (F)(3.5f) ? below : below * (x - (F)(2.0f));                                                         \
    product = x < (F)(1.3333333f) ? (x < (F)(0.5f) ? x * x + x : x) : product;                                                                       \
    const F l = log_##F(x < (F)(4.5f) ? product : x), r = (F)(1.0f) / x, s = r * r;                                                                  \
    F far = (F)(-5.95238095e-4f) * s + (F)(7.93650794e-4f);                                                                                          \
    far = far * s + (F)(-2.77777778e-3f);                                                                                                            \
    far = far * s + (F)(8.33333333e-2f);                                                                                                             \
    far = (x - (F)(0.5f)) * (l - (F)(1.0f)) + (far * r + (F)(0.418938533f));                                                                         \
    const F near = p * z + (one ? -clt_log_rest_##F(z) : x < (F)(1.3333333f) ? -l : l);                                                              \
    return x < (F)(4.5f) ? near : x < (F)(INFINITY) ? far : x;                                                                                       \
  }                                                                                                                                                  \
  static inline F lgamma_##F(F x) {                                                                                                                  \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                                                 \
    const F a = CLT_ABS(F, I, x), y = clt_lgamma_positive_##F(a);                                                                                    \
    F result = y;                                                                                                                                    \
    if (CLT_ANY_##I(x < (F)(0.0f)) != 0) {                                                                                                           \
      const I tiny = a < (F)(1e-8f);                                                                                                                 \
      const F sine = sin_##F((a - rint(a)) * (F)(3.14159274f)), m = tiny ? a : CLT_ABS(F, I, a * sine) * (F)(0.318309886f);                          \
      const F turned = -log_##F(m) - (tiny ? (F)(0.0f) : y);                                                                                         \
      result = x < (F)(0.0f) ? (a < (F)(8388608.0f) ? turned : (F)(INFINITY)) : y;                                                                   \
    }                                                                                                                                                \
    return result;                                                                                                                                   \
  }
CLT_ALL_LANES(CLT_LGAMMA)
