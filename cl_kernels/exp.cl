/* exp(x) for x up to 40 (and NaN), float lanes: what softmax and its kin need, whose arguments are not positive. The builtin
   is a call into the library on some drivers. x = n ln 2 + r, |r| < 0.35; a polynomial of degree 6 for exp(r), the best in
   relative error; then 2^(n + 64) and 2^-64, so that denormal results are rounded once. Contraction is on in here, as it
   doubles the speed; the result is the same in every kernel. clt_exp_raised leaves out the last factor. */
#define CLT_EXP_NEG(F, I)                                                                        \
  static inline F clt_exp_raised_##F(F x) {                                                      \
    _Pragma("OPENCL FP_CONTRACT ON")                                                             \
    x = x < (F)(-104.0f) ? (F)(-104.0f) : x;                                                     \
    const F z = x * (F)(1.44269504f) + (F)(12582912.0f);                                         \
    const F n = z - (F)(12582912.0f);                                                            \
    const F r = (x - n * (F)(0.693359375f)) - n * (F)(-2.12194440e-4f);                          \
    F y = (F)(1.381419133e-3f) * r + (F)(8.368914016e-3f);                                       \
    y = y * r + (F)(4.166840762e-2f);                                                            \
    y = y * r + (F)(1.666651964e-1f);                                                            \
    y = y * r + (F)(4.999999404e-1f);                                                            \
    y = y * r + (F)(1.0f);                                                                       \
    y = y * r + (F)(1.0f);                                                                       \
    return y * as_##F((as_##I(z) << 23) + (I)(0x5f800000));                                      \
  }                                                                                              \
  static inline F clt_exp_neg_##F(F x) { return clt_exp_raised_##F(x) * (F)(5.42101086e-20f); }
CLT_EXP_NEG(float, int)
#if CLT_LANES > 1
CLT_EXP_NEG(float2, int2)
CLT_EXP_NEG(float4, int4)
CLT_EXP_NEG(float8, int8)
CLT_EXP_NEG(float16, int16)
#endif
