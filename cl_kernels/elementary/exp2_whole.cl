/* 2^x, exact where x is whole: there the result is built from exponent bits, as two factors, so that denormal results
   are exact, too. */
#include "all_lanes.cl"
#include "elementary/exp2.cl"
#define CLT_EXP2_float(V) exp2_##V
#define CLT_EXP2_double(V) exp2
/* Adding `magic`, 1.5 times the power of two whose ulp is 1, rounds a number to an integer, which is then in the low
   bits of the sum. */
#define CLT_EXP2_WHOLE(V, T, I, least, most, magic, bias, bits)                         \
  static inline V exp2_whole_##V(V x) {                                                 \
    const V near = x < (V)(least) ? (V)(least) : x > (V)(most) ? (V)(most) : x;         \
    const V shifted = near + (V)(magic), whole = shifted - (V)(magic);                  \
    const I n = as_##I(shifted) - as_##I((V)(magic)), half_n = n >> 1;                  \
    const V a = as_##V((half_n + (I)(bias)) << (I)(bits));                              \
    const V r = a * as_##V((n - half_n + (I)(bias)) << (I)(bits));                      \
    if (CLT_ANY_##I(whole != near) != 0) return whole == near ? r : CLT_EXP2_##T(V)(x); \
    return r;                                                                           \
  }
#define CLT_EXP2_OF_FLOAT(V, T, I, K) CLT_EXP2_WHOLE(V, T, I, -252.0f, 254.0f, 12582912.0f, 127, 23)
#define CLT_EXP2_OF_DOUBLE(V, T, I, K) CLT_EXP2_WHOLE(V, T, I, -2044.0, 2046.0, 6755399441055744.0, 1023, 52)
CLT_OWN_LANES(CLT_EXP2_OF_FLOAT, float, int, 0)
#ifdef CLT_DOUBLE
CLT_OWN_LANES(CLT_EXP2_OF_DOUBLE, double, long, 0)
#endif
