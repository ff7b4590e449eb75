/* exp(x) - 1 of float lanes. x = n ln 2 + r; exp(r) - 1 = r + r^2 p(r), p of degree 5 being minimax in relative error;
   computed at half the size and doubled at the end, so that 2^n does not overflow early. Wrong by less than 1.43 ulp.
   For double lanes the rounding errors of r and of 2^n - 1 + 2^n r are added in: wrong by less than 0.6 ulp. */
#include "all_lanes.cl"
#include "elementary/exp.cl"
#define CLT_EXPM1(F, I)                                                            \
  static inline F expm1_##F(F x) {                                                 \
    _Pragma("OPENCL FP_CONTRACT ON")                                               \
    const F t = x < (F)(-18.0f) ? (F)(-18.0f) : x > (F)(89.0f) ? (F)(89.0f) : x;   \
    const F z = t * (F)(1.44269504f) + (F)(12582912.0f), n = z - (F)(12582912.0f); \
    const F r = (t - n * (F)(0.693359375f)) - n * (F)(-2.12194440e-4f);            \
    const F half_scale = as_##F((as_##I(z) << 23) + (I)(0x3f000000));              \
    F p = (F)(1.99451082e-4f) * r + (F)(1.39326649e-3f);                           \
    p = p * r + (F)(8.33320711e-3f);                                               \
    p = p * r + (F)(4.16664891e-2f);                                               \
    p = p * r + (F)(0.166666672f);                                                 \
    p = p * r + (F)(0.5f);                                                         \
    p = p * (r * r) + r;                                                           \
    const F y = half_scale * p + (half_scale - (F)(0.5f));                         \
    return CLT_ABS(F, I, x) < (F)(1e-7f) ? x : y + y;                              \
  }
CLT_ALL_LANES(CLT_EXPM1)
#define CLT_EXPM1_DOUBLE(F, I)                                                                      \
  /* Returns r; more is exp(r) - 1 - r plus r's rounding error; the low bits of z hold n. */        \
  static inline F clt_exp_parts_##F(F x, F *more, F *z) {                                           \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                \
    *z = x * (F)(1.4426950408889634) + (F)(6755399441055744.0);                                     \
    const F n = *z - (F)(6755399441055744.0), t = x - n * (F)(6.93147180369123816e-01);             \
    const F h = n * (F)(1.90821492927058770e-10), r = t - h;                                        \
    *more = clt_exp_bend_##F(r) * r + ((t - r) - h);                                                \
    return r;                                                                                       \
  }                                                                                                 \
  static inline F expm1_##F(F x) {                                                                  \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                \
    F more, z;                                                                                      \
    const F c = x < (F)(-40.0) ? (F)(-40.0) : x > (F)(710.0) ? (F)(710.0) : x;                      \
    const F r = clt_exp_parts_##F(c, &more, &z);                                                    \
    const F scale = as_##F((as_##I(z) << 52) + (I)(0x3fe0000000000000L)); /* half of 2^n */         \
    const F s = scale - (F)(0.5), p = scale * r, t = s + p, y = t + (((s - t) + p) + scale * more); \
    return as_##F(as_##I(x) & (I)(0x7fffffffffffffffL)) < (F)(1e-17) ? x : y + y;                   \
  }
CLT_DOUBLE_LANES(CLT_EXPM1_DOUBLE)
