/* log(1 + exp(x)) of float lanes that are not positive: what is added to 1 is then no more than 1, so the logarithm needs no splitting
   of a sum, but half of it where it is over 4/3. Wrong by less than 2 ulp. */
#include "elementary/exp.cl"
#include "elementary/log.cl"
#define CLT_LOG1P_EXP(F, I)                                                                             \
  static inline F log1p_exp_##F(F x) {                                                                  \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                    \
    const F t = clt_exp_neg_##F(x), f = t > (F)(0.333333343f) ? t * (F)(0.5f) + (F)(-0.5f) : t;         \
    const F low = t > (F)(0.333333343f) ? (F)(1.42860677e-6f) : (F)(0.0f);                              \
    const F high = t > (F)(0.333333343f) ? (F)(0.693145752f) : (F)(0.0f);                               \
    return high + (f + (low + clt_log_rest_##F(f)));                                                    \
  }
CLT_ALL_LANES(CLT_LOG1P_EXP)
