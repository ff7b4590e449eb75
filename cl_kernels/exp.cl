/* exp(x) for x <= 0 (and NaN), float lanes: what softmax and its kin need. The builtin is a call into the library on some
   drivers. x = n ln 2 + r, a polynomial for exp(r), then two factors of 2 so that denormal results come out right. */
#define CLT_EXP_NEG(F, I)                                                                        \
  static inline F clt_exp_neg_##F(F x) {                                                         \
    x = x < (F)(-104.0f) ? (F)(-104.0f) : x;                                                     \
    const F z = x * (F)(1.44269504f) + (F)(12582912.0f);                                         \
    const F n = z - (F)(12582912.0f);                                                            \
    const F r = (x - n * (F)(0.693359375f)) - n * (F)(-2.12194440e-4f);                          \
    F y = (F)(1.9875691500e-4f) * r + (F)(1.3981999507e-3f);                                     \
    y = y * r + (F)(8.3334519073e-3f);                                                           \
    y = y * r + (F)(4.1665795894e-2f);                                                           \
    y = y * r + (F)(1.6666665459e-1f);                                                           \
    y = y * r + (F)(5.0000001201e-1f);                                                           \
    y = (y * r) * r + r + (F)(1.0f);                                                             \
    const I k = as_##I(z) - (I)(0x4b400000), half_k = k >> 1;                                    \
    return (y * as_##F((half_k + 127) << 23)) * as_##F((k - half_k + 127) << 23);                \
  }
CLT_EXP_NEG(float, int)
#if CLT_LANES > 1
CLT_EXP_NEG(float2, int2)
CLT_EXP_NEG(float4, int4)
CLT_EXP_NEG(float8, int8)
CLT_EXP_NEG(float16, int16)
#endif
