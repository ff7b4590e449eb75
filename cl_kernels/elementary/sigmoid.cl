/* 1 / (1 + exp(-x)) of float lanes as c / (c + c exp(-x)) with c = 2^-24, so that the power of two is one factor, which
   does not overflow, and small results become denormal before they are 0. Wrong by less than 2.1 ulp. */
#include "all_lanes.cl"
#include "elementary/exp.cl"
#define CLT_SIGMOID(F, I)                                                                                 \
  static inline F sigmoid_##F(F x) {                                                                      \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                      \
    F z;                                                                                                  \
    x = x > (F)(60.0f) ? (F)(60.0f) : x;                                                                  \
    const F y = clt_exp_part_##F(x < (F)(-104.0f) ? (F)(104.0f) : -x, &z);                                \
    return (F)(5.96046448e-8f) / (y * as_##F((as_##I(z) << 23) + (I)(0x33800000)) + (F)(5.96046448e-8f)); \
  }
CLT_ALL_LANES(CLT_SIGMOID)
