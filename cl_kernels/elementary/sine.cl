/* sin, cos and tan of float lanes: x = n pi/2 + r + low with |r| <= pi/4, and polynomials in r^2, minimax in relative
   error: wrong by less than 1.15, 1.15 and 1.71 ulp. Up to 2^15 quarter turns n pi/2 is subtracted in four parts, of
   which the products of the first two with n are exact; beyond, x is reduced in integers, one lane at a time (Payne and
   Hanek, SIGNUM 18(1), 1983). sin and cos of double lanes up to a million: the same, with the rounding error of r
   carried along everywhere: wrong by less than 0.8 ulp; larger lanes are left to the builtins. */
#include "all_lanes.cl"
#define CLT_TRIG_FAR 0x47490fdb /* 32768 pi/2 */
#define CLT_TRIG_IS_FAR(I, x) ((CLT_TRIG_FAR - (as_##I(x) & 0x7fffffff)) & ((as_##I(x) & 0x7fffffff) - 0x7f800000))
/* 64 bits from bit 32 i on of: 32 zeros followed by the fractional bits of 2 / pi. */
static inline ulong clt_two_over_pi(int i) {
  const ulong low = (i & 1) != 0 ? 0xa2f9836e4e441529UL : 0x00000000a2f9836eUL;
  const ulong mid = (i & 1) != 0 ? 0xfc2757d1f534ddc0UL : 0x4e441529fc2757d1UL;
  const ulong high = (i & 1) != 0 ? 0xdb6295993c439041UL : 0xf534ddc0db629599UL;
  return i < 2 ? low : i < 4 ? mid : high;
}
/* Payne-Hanek reduction of |x| = m 2^e: bits of 2 / pi whose products with x are multiples of four quarter turns are
   skipped; the rest is exact to 2^-62 of a quarter turn. Returns r and sets low and n. */
static float clt_trig_far(float x, float *low, int *n) {
  const uint bits = as_uint(x), m = (bits << 8) | 0x80000000u;
  const int from = (int)((bits >> 23) & 255) - 128, shift = from & 31;
  const ulong first = clt_two_over_pi(from >> 5), second = clt_two_over_pi((from >> 5) + 2);
  const ulong most = (first << shift) | ((second >> 1) >> (63 - shift));
  const uint least = (uint)((second << shift) >> 32);
  const ulong turns = m * most + (((ulong)m * least) >> 32) + (1UL << 61);
  const long part = (long)(turns & 0x3fffffffffffffffUL) - (1L << 61);
  const long angle = (long)mul_hi((ulong)abs(part) << 2, 0xc90fdaa22168c235UL); /* times pi/2: |r| 2^63 */
  const bool negative = (part < 0) != (x < 0);
  const float r = (float)angle, rest = (float)(angle - (long)r);
  *n = x < 0 ? -(int)(turns >> 62) : (int)(turns >> 62);
  *low = (negative ? -rest : rest) * 1.08420217e-19f;
  return (negative ? -r : r) * 1.08420217e-19f; /* 2^-63 */
}
#define CLT_TRIG_POLYNOMIALS(F, I)                           \
  /* sin(r + low + n pi/2). */                               \
  static inline F clt_sine_##F(F r, F low, I n) {            \
    _Pragma("OPENCL FP_CONTRACT ON")                         \
    const F s = r * r;                                       \
    F odd = (F)(-1.95180997e-4f) * s + (F)(8.33218824e-3f);  \
    odd = odd * s + (F)(-0.166666552f);                      \
    odd = r + (odd * (s * r) + low);                         \
    F even = (F)(2.44325529e-5f) * s + (F)(-1.38873106e-3f); \
    even = even * s + (F)(4.16666456e-2f);                   \
    even = even * s + (F)(-0.5f);                            \
    even = even * s + (F)(1.0f);                             \
    const F y = (n & 1) != 0 ? even : odd;                   \
    return as_##F(as_##I(y) ^ ((n & 2) << 30));              \
  }                                                          \
  static inline F clt_tangent_##F(F r, F low, I n) {         \
    _Pragma("OPENCL FP_CONTRACT ON")                         \
    const F s = r * r;                                       \
    F p = (F)(4.37599653e-3f) * s + (F)(9.19106096e-5f);     \
    p = p * s + (F)(1.08320853e-2f);                         \
    p = p * s + (F)(2.12846044e-2f);                         \
    p = p * s + (F)(5.40591702e-2f);                         \
    p = p * s + (F)(0.133326739f);                           \
    p = p * s + (F)(0.333333492f);                           \
    p = r + (p * (s * r) + (low + low * s));                 \
    return (n & 1) != 0 ? (F)(-1.0f) / p : p;                \
  }
CLT_ALL_LANES(CLT_TRIG_POLYNOMIALS)
#define CLT_TRIG_LANES(F, I, NAME, POLYNOMIAL, QUARTERS)                \
  static inline F NAME##_##F(F x) {                                     \
    F low;                                                              \
    I n;                                                                \
    const F r = clt_trig_reduce_##F(x, &low, &n);                       \
    F y = POLYNOMIAL##_##F(r, low, n + QUARTERS);                       \
    if (!QUARTERS) y = x == (F)(0.0f) ? x : y; /* -0 */                 \
    if (CLT_ANY_##I(CLT_TRIG_IS_FAR(I, x)) >= 0) return y;              \
    union { F all; float one[sizeof(F) / 4]; } from, to;                \
    from.all = x, to.all = y;                                           \
    for (int i = 0; i < (int)(sizeof(F) / 4); i++) {                    \
      if (CLT_TRIG_IS_FAR(int, from.one[i]) >= 0) continue;             \
      float rest;                                                       \
      int quarters;                                                     \
      const float angle = clt_trig_far(from.one[i], &rest, &quarters);  \
      to.one[i] = POLYNOMIAL##_float(angle, rest, quarters + QUARTERS); \
    }                                                                   \
    return to.all;                                                      \
  }
/* sin(x), and cos(x) in c. */
#define CLT_SINE_AND_COSINE(F, I)                                              \
  static inline F clt_sincos_##F(F x, F *c) {                                  \
    F low;                                                                     \
    I n;                                                                       \
    const F r = clt_trig_reduce_##F(x, &low, &n), y = clt_sine_##F(r, low, n); \
    F s = x == (F)(0.0f) ? x : y;                                              \
    *c = clt_sine_##F(r, low, n + 1);                                          \
    if (CLT_ANY_##I(CLT_TRIG_IS_FAR(I, x)) >= 0) return s;                     \
    union { F all; float one[sizeof(F) / 4]; } from, sine, cosine;             \
    from.all = x, sine.all = s, cosine.all = *c;                               \
    for (int i = 0; i < (int)(sizeof(F) / 4); i++) {                           \
      if (CLT_TRIG_IS_FAR(int, from.one[i]) >= 0) continue;                    \
      float rest;                                                              \
      int quarters;                                                            \
      const float angle = clt_trig_far(from.one[i], &rest, &quarters);         \
      sine.one[i] = clt_sine_float(angle, rest, quarters);                     \
      cosine.one[i] = clt_sine_float(angle, rest, quarters + 1);               \
    }                                                                          \
    *c = cosine.all;                                                           \
    return sine.all;                                                           \
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
  CLT_TRIG_LANES(F, I, sin, clt_sine, 0)                                                       \
  CLT_TRIG_LANES(F, I, cos, clt_sine, 1)                                                       \
  CLT_TRIG_LANES(F, I, tan, clt_tangent, 0)
CLT_ALL_LANES(CLT_TRIG)
CLT_ALL_LANES(CLT_SINE_AND_COSINE)
/* Lanes beyond a million, infinite or NaN, by the builtin. */
#define CLT_SINE_FAR(F, I, NAME, found)                                                    \
  union { F all; double one[sizeof(F) / 8]; } from, to;                                    \
  from.all = x, to.all = found;                                                            \
  if (CLT_ANY_##I((as_##I(x) & (I)(0x7fffffffffffffffL)) > (I)(0x412e848000000000L)) != 0) \
    for (int i = 0; i < (int)(sizeof(F) / 8); i++)                                         \
      if (!(fabs(from.one[i]) <= 1e6)) to.one[i] = NAME(from.one[i]);                      \
  return to.all;
#define CLT_SINE_DOUBLE(F, I)                                                                               \
  static inline F clt_sine_##F(F x, I quarters) {                                                           \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                        \
    const F z = x * (F)(0.6366197723675814) + (F)(6755399441055744.0), turns = z - (F)(6755399441055744.0); \
    const F t = (x - turns * (F)(1.5707963267341256)) - turns * (F)(6.077094383272197e-11);                 \
    const F h = turns * (F)(6.12323399538461e-17), r = t - h;                                               \
    const F low = ((t - r) - h) - turns * (F)(3.5215598651832e-27);                                         \
    const F s = r * r, down = s * (F)(0.5), w = (F)(1.0) - down;                                            \
    F odd = (F)(1.5918115263265974e-10) * s + (F)(-2.505113165023518e-08);                                  \
    F even = (F)(-1.1382623647474604e-11) * s + (F)(2.087614614655861e-09);                                 \
    odd = odd * s + (F)(2.7557316101617874e-06), even = even * s + (F)(-2.7557317271145144e-07);            \
    odd = odd * s + (F)(-1.9841269836756774e-04), even = even * s + (F)(2.480158729876456e-05);             \
    odd = odd * s + (F)(8.333333333330948e-03), even = even * s + (F)(-1.3888888888887398e-03);             \
    odd = odd * s + (F)(-0.16666666666666666), even = even * s + (F)(0.041666666666666664);                 \
    odd = r + (odd * (s * r) + low * w);                                                                    \
    even = w + ((((F)(1.0) - w) - down) + (even * (s * s) - r * low));                                      \
    const I n = as_##I(z) + quarters;                                                                       \
    const F y = (n & 1) != 0 ? even : odd;                                                                  \
    return as_##F(as_##I(y) ^ ((n & 2) << 62));                                                             \
  }                                                                                                         \
  static inline F sin_##F(F x) {                                                                            \
    const F y = clt_sine_##F(x, (I)(0));                                                                    \
    CLT_SINE_FAR(F, I, sin, x == (F)(0.0) ? x : y)                                                          \
  }                                                                                                         \
  static inline F cos_##F(F x) {                                                                            \
    const F y = clt_sine_##F(x, (I)(1));                                                                    \
    CLT_SINE_FAR(F, I, cos, y)                                                                              \
  }
CLT_DOUBLE_LANES(CLT_SINE_DOUBLE)
