/* erf(x) for float lanes. Up to 7/8, x + x p(x^2); beyond, 1 - exp(-t q(t)) with t = |x|, because -log(erfc(t)) / t is
   almost a straight line there. Both polynomials are the best in the relative error of the result, which is below 1.3 ulp. */
#define CLT_ERF(F)                                                                               \
  static inline F erf_##F(F x) {                                                                 \
    _Pragma("OPENCL FP_CONTRACT ON")                                                             \
    const F s = x * x, t = fabs(x);                                                              \
    F p = (F)(-6.203252274e-4f) * s + (F)(5.032180771e-3f);                                      \
    p = p * s + (F)(-2.679146266e-2f);                                                           \
    p = p * s + (F)(1.128245532e-1f);                                                            \
    p = p * s + (F)(-3.761255046e-1f);                                                           \
    p = p * s + (F)(1.283791575e-1f);                                                            \
    F q = (F)(-2.152250174e-4f) * t + (F)(3.225123982e-3f);                                      \
    q = q * t + (F)(-2.29223841e-2f);                                                            \
    q = q * t + (F)(1.053120952e-1f);                                                            \
    q = q * t + (F)(6.356804277e-1f);                                                            \
    q = q * t + (F)(1.128525485f);                                                               \
    q = t > (F)(4.0f) ? (F)(-17.0f) : -t * q;                                                    \
    const F far = (F)(1.0f) - clt_exp_neg_##F(q);                                                \
    return t > (F)(0.875f) ? (x < (F)(0.0f) ? -far : far) : x * p + x;                           \
  }
CLT_ERF(float)
#if CLT_LANES > 1
CLT_ERF(float2)
CLT_ERF(float4)
CLT_ERF(float8)
CLT_ERF(float16)
#endif
#define erf_double erf
#define erf_double2 erf
#define erf_double4 erf
#define erf_double8 erf
#define erf_double16 erf
