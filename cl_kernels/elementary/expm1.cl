/* exp(x) - 1 of float lanes. x = n ln 2 + r; exp(r) - 1 = r + r^2 p(r), p of degree 5 being the best in relative error; all at
   half the size, so that nothing overflows early. Wrong by less than 1.43 ulp. */
#include "all_lanes.cl"
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
