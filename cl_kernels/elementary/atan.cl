/* atan and atan2 of float lanes: a polynomial on [0, 1], minimax in relative error, in the quotient of the smaller by
   the larger. Wrong by less than 1.33 and 1.55 ulp. On the axes and at 1 correctly rounded; for 1 the first coefficient
   is moved a little. */
#include "all_lanes.cl"
#define CLT_ATAN(F, I)                                                                               \
  static inline F clt_atan_near_##F(F x) {                                                           \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                 \
    const F s = x * x;                                                                               \
    F p = (F)(-1.78281952e-3f) * s + (F)(1.08686909e-2f);                                            \
    p = p * s + (F)(-3.10969874e-2f);                                                                \
    p = p * s + (F)(5.78813888e-2f);                                                                 \
    p = p * s + (F)(-8.39930624e-2f);                                                                \
    p = p * s + (F)(0.109508805f);                                                                   \
    p = p * s + (F)(-0.142640159f);                                                                  \
    p = p * s + (F)(0.199985296f);                                                                   \
    p = p * s + (F)(-0.333332986f);                                                                  \
    return p * (s * x) + x;                                                                          \
  }                                                                                                  \
  static inline F atan_##F(F x) {                                                                    \
    const F t = CLT_ABS(F, I, x), p = clt_atan_near_##F(t > (F)(1.0f) ? (F)(-1.0f) / t : t);         \
    const F y = t > (F)(1.0f) ? (F)(1.57079637f) + (p + (F)(-4.37113883e-8f)) : p;                   \
    return as_##F(as_##I(y) | CLT_SIGN(I, x));                                                       \
  }                                                                                                  \
  static inline F atan2_##F(F y, F x) {                                                              \
    const F v = CLT_ABS(F, I, y), u = CLT_ABS(F, I, x), most = v > u ? v : u, least = v > u ? u : v; \
    const F q = most == (F)(0.0f) ? (F)(0.0f) : least == (F)(INFINITY) ? (F)(1.0f) : least / most;   \
    const I turned = v > u, back = as_##I(x) < 0;                                                    \
    const F half_turn = turned ? (F)(1.57079637f) : back ? (F)(3.14159274f) : (F)(0.0f);             \
    const F rest = turned ? (F)(-4.37113883e-8f) : back ? (F)(-8.74227766e-8f) : (F)(0.0f);          \
    const F near = clt_atan_near_##F(q), p = half_turn + ((turned ^ back ? -near : near) + rest);    \
    return x != x || y != y ? x + y : as_##F(as_##I(p) | CLT_SIGN(I, y));                            \
  }
CLT_ALL_LANES(CLT_ATAN)
