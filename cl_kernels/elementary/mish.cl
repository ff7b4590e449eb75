/* mish(x) = x tanh(log(1 + E)) with E = exp(x) of float lanes: x (E^2 + 2 E) / (E^2 + 2 E + 2), computed from
   exp(-|x|), which cannot overflow. Wrong by less than 3.5 ulp where the result is not denormal. */
#include "all_lanes.cl"
#include "elementary/exp.cl"
#define CLT_MISH(F, I)                                                   \
  static inline F mish_##F(F x) {                                        \
    _Pragma("OPENCL FP_CONTRACT ON")                                     \
    const F e = clt_exp_neg_##F(-CLT_ABS(F, I, x));                      \
    const F top = x < (F)(0.0f) ? e * e + (e + e) : (F)(1.0f) + (e + e); \
    return x * top / (top + (x < (F)(0.0f) ? (F)(2.0f) : (e + e) * e));  \
  }
CLT_ALL_LANES(CLT_MISH)
