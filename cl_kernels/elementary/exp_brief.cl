/* exp(x) 2^64 of float lanes for x up to 0 (or NaN), for results that are rounded to 16 bits: the relative error is
   below 3e-6, and 0 at x = 0. x log2 e = n + r, |r| <= 1/2; a polynomial of degree 4 for 2^r, minimax in relative error
   among those that are 1 at 0; the biased exponent of 2^(n + 64), n + 191, is in the low bits of the rounded sum. */
#include "all_lanes.cl"
#define CLT_EXP_BRIEF(F, I)                                                       \
  static inline F clt_exp_brief_##F(F x) {                                        \
    _Pragma("OPENCL FP_CONTRACT ON")                                              \
    x = x < (F)(-104.0f) ? (F)(-104.0f) : x;                                      \
    const F z = x * (F)(1.44269504f) + (F)(12583103.0f), n = z - (F)(12583103.0f); \
    const F r = x * (F)(1.44269504f) - n;                                         \
    F y = (F)(9.58285294e-3f) * r + (F)(5.59064299e-2f);                          \
    y = y * r + (F)(0.240240991f);                                                \
    y = y * r + (F)(0.693124175f);                                                \
    y = y * r + (F)(1.0f);                                                        \
    return y * as_##F(as_##I(z) << 23);                                           \
  }
CLT_ALL_LANES(CLT_EXP_BRIEF)
