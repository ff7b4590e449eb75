/* log(1 + exp(x)) of float lanes that are not positive. Then t = exp(x) <= 1, and the result is t + t^2 q(t) on the
   whole range, q of degree 8 being minimax in relative error: no range reduction, so no comparisons. Wrong by less than
   1.8 ulp. */
#include "all_lanes.cl"
#include "elementary/exp.cl"
#define CLT_LOG1P_EXP(F, I)                                                             \
  static inline F log1p_exp_##F(F x) {                                                  \
    _Pragma("OPENCL FP_CONTRACT ON")                                                    \
    const F t = clt_exp_neg_##F(x);                                                     \
    F q = (F)(-0.00331847393f) * t + (F)(0.0202045888f);                                \
    q = q * t + (F)(-0.0576644465f);                                                    \
    q = q * t + (F)(0.106805556f);                                                      \
    q = q * t + (F)(-0.153553963f);                                                     \
    q = q * t + (F)(0.196953997f);                                                      \
    q = q * t + (F)(-0.249585867f);                                                     \
    q = q * t + (F)(0.33330512f);                                                       \
    q = q * t + (F)(-0.499999315f);                                                     \
    return (t * t) * q + t;                                                             \
  }
CLT_ALL_LANES(CLT_LOG1P_EXP)
