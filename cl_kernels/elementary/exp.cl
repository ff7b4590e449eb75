/* exp(x) for float lanes; the builtin is a library call on some drivers, and its rounding is the driver's. x = n ln 2 +
   r, |r| < 0.35; a polynomial of degree 6 for exp(r), minimax in relative error; then 2^n as two factors, so that
   denormal results are rounded once. FP contraction is on in here, as it doubles the speed; the result is the same in
   every kernel. Wrong by less than 0.86 ulp. clt_exp_neg is for x up to 40 (and NaN), enough for softmax and the like,
   whose arguments are not positive: its factors are 2^(n + 64), whose biased exponent, n + 191, is in the low bits of
   z, and 2^-64; clt_exp_raised leaves out the latter, i.e. returns exp(x) 2^64. clt_exp_added adds exp(x) to a sum
   whose largest term is exp(0): as an error counts less the smaller its term is, n ln 2 is one product there, which
   adds a relative error of |x| 3e-9. For double lanes the same with degree 11; there n is made positive before it is
   halved, as AVX2 has no arithmetic right shift of 64 bits. */
#ifndef CLT_EXP
#define CLT_EXP(F, I)                                                                               \
  static inline F clt_exp_near_##F(F r) {                                                           \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                \
    F y = (F)(1.381419133e-3f) * r + (F)(8.368914016e-3f);                                          \
    y = y * r + (F)(4.166840762e-2f);                                                               \
    y = y * r + (F)(1.666651964e-1f);                                                               \
    y = y * r + (F)(4.999999404e-1f);                                                               \
    y = y * r + (F)(1.0f);                                                                          \
    return y * r + (F)(1.0f);                                                                       \
  }                                                                                                 \
  /* Returns r; the low bits of z hold n + more. */                                                  \
  static inline F clt_exp_split_##F(F x, const int more, F *z) {                                    \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                \
    *z = x * (F)(1.44269504f) + (F)(12582912.0f + more);                                            \
    const F n = *z - (F)(12582912.0f + more);                                                       \
    return (x - n * (F)(0.693359375f)) - n * (F)(-2.12194440e-4f);                                  \
  }                                                                                                 \
  static inline F clt_exp_part_##F(F x, F *z) {                                                     \
    return clt_exp_near_##F(clt_exp_split_##F(x, 0, z));                                            \
  }                                                                                                 \
  static inline F clt_exp_raised_##F(F x) {                                                         \
    F z;                                                                                            \
    x = x < (F)(-104.0f) ? (F)(-104.0f) : x;                                                        \
    const F y = clt_exp_near_##F(clt_exp_split_##F(x, 191, &z));                                    \
    return y * as_##F(as_##I(z) << 23);                                                             \
  }                                                                                                 \
  static inline F clt_exp_neg_##F(F x) { return clt_exp_raised_##F(x) * (F)(5.42101086e-20f); }     \
  static inline F exp_neg_##F(F x) { return clt_exp_neg_##F(x); }                                   \
  static inline F clt_exp_added_##F(F sum, F x) {                                                   \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                \
    x = x < (F)(-104.0f) ? (F)(-104.0f) : x;                                                        \
    const F z = x * (F)(1.44269504f) + (F)(12583103.0f), n = z - (F)(12583103.0f);                  \
    return clt_exp_near_##F(x - n * (F)(0.693147182f)) * as_##F(as_##I(z) << 23) + sum;             \
  }                                                                                                 \
  static inline F exp_##F(F x) {                                                                    \
    F z;                                                                                            \
    x = x < (F)(-104.0f) ? (F)(-104.0f) : x;                                                        \
    const F y = clt_exp_part_##F(x > (F)(89.0f) ? (F)(89.0f) : x, &z);                              \
    const I n = as_##I(z) - (I)(0x4b400000), half_n = n >> 1;                                       \
    return y * as_##F((half_n + 127) << 23) * as_##F((n - half_n + 127) << 23);                     \
  }
CLT_EXP(float, int)
#if CLT_LANES > 1
CLT_EXP(float2, int2)
CLT_EXP(float4, int4)
CLT_EXP(float8, int8)
CLT_EXP(float16, int16)
#endif
#ifdef CLT_DOUBLE
#define CLT_EXP_DOUBLE(F, I)                                                                        \
  /* (exp(r) - 1 - r) / r. */                                                                       \
  static inline F clt_exp_bend_##F(F r) {                                                           \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                \
    F y = (F)(2.5000042084997466e-08) * r + (F)(2.763031099217704e-07);                             \
    y = y * r + (F)(2.7557586993641926e-06);                                                        \
    y = y * r + (F)(2.4801492939484172e-05);                                                        \
    y = y * r + (F)(1.984126950517655e-04);                                                         \
    y = y * r + (F)(1.3888888943764971e-03);                                                        \
    y = y * r + (F)(8.333333333495492e-03);                                                         \
    y = y * r + (F)(4.166666666652974e-02);                                                         \
    y = y * r + (F)(1.666666666666641e-01);                                                         \
    y = y * r + (F)(0.5000000000000011);                                                            \
    return y * r;                                                                                   \
  }                                                                                                 \
  /* exp(r) - 1. */                                                                                 \
  static inline F clt_exp_rest_##F(F r) {                                                           \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                \
    return clt_exp_bend_##F(r) * r + r;                                                             \
  }                                                                                                 \
  static inline F clt_exp_split_##F(F x, F *z) {                                                    \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                \
    *z = x * (F)(1.4426950408889634) + (F)(6755399441055744.0);                                     \
    const F n = *z - (F)(6755399441055744.0);                                                       \
    return (x - n * (F)(6.93147180369123816e-01)) - n * (F)(1.90821492927058770e-10);               \
  }                                                                                                 \
  static inline F clt_exp_part_##F(F x, F *z) {                                                     \
    return (F)(1.0) + clt_exp_rest_##F(clt_exp_split_##F(x, z));                                    \
  }                                                                                                 \
  static inline F clt_exp_raised_##F(F x) {                                                         \
    F z;                                                                                            \
    const F y = clt_exp_part_##F(x < (F)(-746.0) ? (F)(-746.0) : x, &z);                            \
    return y * as_##F((as_##I(z) << 52) + (I)(0x43f0000000000000UL));                               \
  }                                                                                                 \
  static inline F clt_exp_neg_##F(F x) { return clt_exp_raised_##F(x) * (F)(5.421010862427522e-20); }\
  static inline F exp_neg_##F(F x) { return clt_exp_neg_##F(x); }                                   \
  static inline F clt_exp_added_##F(F sum, F x) {                                                   \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                \
    F z;                                                                                            \
    const F y = clt_exp_part_##F(x < (F)(-746.0) ? (F)(-746.0) : x, &z);                            \
    return y * as_##F((as_##I(z) << 52) + (I)(0x43f0000000000000UL)) + sum;                         \
  }                                                                                                 \
  static inline F exp_##F(F x) {                                                                    \
    F z;                                                                                            \
    x = x < (F)(-746.0) ? (F)(-746.0) : x;                                                          \
    const F y = clt_exp_part_##F(x > (F)(710.0) ? (F)(710.0) : x, &z);                              \
    const I n = as_##I(z) - (I)(0x4337fffffffff800UL), half_n = n >> 1;                             \
    return y * as_##F((half_n - 1) << 52) * as_##F((n - half_n - 1) << 52);                         \
  }
CLT_EXP_DOUBLE(double, ulong)
#if CLT_LANES > 1
CLT_EXP_DOUBLE(double2, ulong2)
CLT_EXP_DOUBLE(double4, ulong4)
CLT_EXP_DOUBLE(double8, ulong8)
CLT_EXP_DOUBLE(double16, ulong16)
#endif
#endif
#endif
