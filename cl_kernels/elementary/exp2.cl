/* 2^x of float lanes, x = n + r: a polynomial for 2^r, |r| <= 1/2, minimax in relative error; 2^n as two factors, so
   that denormal results are rounded once. Wrong by less than 0.8 ulp. */
#include "all_lanes.cl"
#define CLT_EXP2(F, I)                                                          \
  static inline F exp2_##F(F x) {                                               \
    _Pragma("OPENCL FP_CONTRACT ON")                                            \
    x = x < (F)(-151.0f) ? (F)(-151.0f) : x > (F)(129.0f) ? (F)(129.0f) : x;    \
    const F z = x + (F)(12582912.0f), r = x - (z - (F)(12582912.0f));           \
    const I n = as_##I(z) - (I)(0x4b400000), half_n = n >> 1;                   \
    F y = (F)(1.53264627e-4f) * r + (F)(1.33908063e-3f);                        \
    y = y * r + (F)(9.61850584e-3f);                                            \
    y = y * r + (F)(5.55035993e-2f);                                            \
    y = y * r + (F)(0.240226477f);                                              \
    y = y * r + (F)(0.693147182f);                                              \
    y = y * r + (F)(1.0f);                                                      \
    return y * as_##F((half_n + 127) << 23) * as_##F((n - half_n + 127) << 23); \
  }
CLT_ALL_LANES(CLT_EXP2)
