/* sin, cos and tan of float lanes. Up to 2^15 quarter turns x = n pi/2 + r + low with |r| <= pi/4, pi/2 being taken off in four
   parts, of which the first two times n are exact; polynomials in r^2 that are the best in relative error: wrong by less
   than 1.15, 1.15 and 1.71 ulp. Beyond that, one lane at a time by the builtin, as some drivers' vector functions let a huge lane
   spoil the others. */
#include "all_lanes.cl"
#define CLT_TRIG_FAR 0x47490fdb /* 32768 pi/2 */
#define CLT_TRIG_IS_FAR(I, x) ((CLT_TRIG_FAR - (as_##I(x) & 0x7fffffff)) & ((as_##I(x) & 0x7fffffff) - 0x7f800000))
#define CLT_TRIG_LANES(F, I, NAME)                                                \
  static inline F NAME##_##F(F x) {                                               \
    F y = clt_##NAME##_##F(x);                                                    \
    if (CLT_ANY_##I(CLT_TRIG_IS_FAR(I, x)) < 0) {                                 \
      union { F all; float one[sizeof(F) / 4]; } from, to;                        \
      from.all = x, to.all = y;                                                   \
      for (int i = 0; i < (int)(sizeof(F) / 4); i++)                              \
        if (CLT_TRIG_IS_FAR(int, from.one[i]) < 0) to.one[i] = NAME(from.one[i]); \
      y = to.all;                                                                 \
    }                                                                             \
    return y;                                                                     \
  }
#define CLT_TRIG(F, I)                                                                         \
  static inline F clt_trig_reduce_##F(F x, F *low, I *n) {                                     \
    _Pragma("OPENCL FP_CONTRACT ON")                                                           \
    const F z = x * (F)(0.636619747f) + (F)(12582912.0f), turns = z - (F)(12582912.0f);        \
    const F t = (x - turns * (F)(1.5703125f)) - turns * (F)(4.83512878e-4f);                   \
    const F h = turns * (F)(3.13916473e-7f), r = t - h;                                        \
    *low = ((t - r) - h) - ((turns * (F)(3.13916473e-7f) - h) + turns * (F)(5.39030295e-15f)); \
    *n = as_##I(z);                                                                            \
    return r;                                                                                  \
  }                                                                                            \
  /* sin(x + n pi/2). */                                                                       \
  static inline F clt_sine_##F(F x, int quarters) {                                            \
    _Pragma("OPENCL FP_CONTRACT ON")                                                           \
    F low;                                                                                     \
    I n;                                                                                       \
    const F r = clt_trig_reduce_##F(x, &low, &n), s = r * r;                                   \
    n += quarters;                                                                             \
    F odd = (F)(-1.95180997e-4f) * s + (F)(8.33218824e-3f);                                    \
    odd = odd * s + (F)(-0.166666552f);                                                        \
    odd = r + (odd * (s * r) + low);                                                           \
    F even = (F)(2.44325529e-5f) * s + (F)(-1.38873106e-3f);                                   \
    even = even * s + (F)(4.16666456e-2f);                                                     \
    even = even * s + (F)(-0.5f);                                                              \
    even = even * s + (F)(1.0f);                                                               \
    const F y = (n & 1) != 0 ? even : odd;                                                     \
    return as_##F(as_##I(y) ^ ((n & 2) << 30));                                                \
  }                                                                                            \
  static inline F clt_sin_##F(F x) { return x == (F)(0.0f) ? x : clt_sine_##F(x, 0); }         \
  static inline F clt_cos_##F(F x) { return clt_sine_##F(x, 1); }                              \
  static inline F clt_tan_##F(F x) {                                                           \
    _Pragma("OPENCL FP_CONTRACT ON")                                                           \
    F low;                                                                                     \
    I n;                                                                                       \
    const F r = clt_trig_reduce_##F(x, &low, &n), s = r * r;                                   \
    F p = (F)(4.37599653e-3f) * s + (F)(9.19106096e-5f);                                       \
    p = p * s + (F)(1.08320853e-2f);                                                           \
    p = p * s + (F)(2.12846044e-2f);                                                           \
    p = p * s + (F)(5.40591702e-2f);                                                           \
    p = p * s + (F)(0.133326739f);                                                             \
    p = p * s + (F)(0.333333492f);                                                             \
    p = r + (p * (s * r) + (low + low * s));                                                   \
    return x == (F)(0.0f) ? x : (n & 1) != 0 ? (F)(-1.0f) / p : p;                             \
  }                                                                                            \
  CLT_TRIG_LANES(F, I, sin) CLT_TRIG_LANES(F, I, cos) CLT_TRIG_LANES(F, I, tan)
CLT_ALL_LANES(CLT_TRIG)
