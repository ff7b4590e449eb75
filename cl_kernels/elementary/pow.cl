/* pow(x, y). Of double lanes the builtin; of float lanes exp2(y log2 |x|), the logarithm being a sum of two floats.
   |x| = 2^e m with m in [0.71, 1.41);
   log2(m) = 2 / ln 2 (s + s^3 / 3 + ...) with s = (m - 1) / (m + 1). Numbers of 12 bits have exact products.
   Wrong by less than 2 ulp, where |y| is hundreds and x near 1 / sqrt 2 or sqrt 2; by 1 where |y| is small. */
#include "all_lanes.cl"
#define CLT_POW(F, I)                                                                                                         \
  static inline F clt_short_##F(F x) { return as_##F(as_##I(x) & (I)(0xfffff000)); }                                          \
  static inline F pow_##F(F x, F y) {                                                                                         \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                          \
    const F a = CLT_ABS(F, I, x);                                                                                             \
    const I bits = as_##I(a < (F)(1.17549435e-38f) ? a * (F)(8388608.0f) : a), i = (bits - 0x3f3504f3) & (I)(0xff800000);     \
    const F e = as_##F((i >> 23) + 0x4b400000) - (a < (F)(1.17549435e-38f) ? (F)(12582935.0f) : (F)(12582912.0f));            \
    const F m = as_##F(bits - i), f = m - (F)(1.0f), d = m + (F)(1.0f), inverse = (F)(1.0f) / d;                              \
    /* The quotient in two parts. */                                                                                          \
    const F s = clt_short_##F(f * inverse), d_short = clt_short_##F(d), d_rest = m - (d_short - (F)(1.0f));                   \
    const F s_rest = ((f - s * d_short) - s * d_rest) * inverse, s2 = s * s;                                                  \
    F p = (F)(0.336624652f) * s2 + (F)(0.411921471f);                                                                         \
    p = p * s2 + (F)(0.577078879f);                                                                                           \
    p = p * s2 + (F)(0.961796701f);                                                                                           \
    const F slope = ((s2 + (F)(1.0f)) * s2 + (F)(1.0f)) * s2 + (s * s_rest + (F)(1.0f));                                      \
    const F linear = s * (F)(6.24456778e-4f) + s_rest * (slope * (F)(2.88539008f));                                           \
    const F top = s * (F)(2.88476562f), rest = p * s2 * s + linear;                                                           \
    const F high = e + top, low = (top - (high - e)) + rest;                                                                  \
    /* Times y, kept from overflowing. */                                                                                     \
    const F v = y > (F)(1e12f) ? (F)(1e12f) : y < (F)(-1e12f) ? (F)(-1e12f) : y;                                              \
    const F sum = high + low, h = clt_short_##F(sum), h_rest = (high - h) + low;                                              \
    const F v_short = clt_short_##F(v), product = v_short * h, more = v_short * h_rest + (v - v_short) * (h + h_rest);        \
    const F t = product + more, z = (t < (F)(-151.0f) ? (F)(-151.0f) : t > (F)(129.0f) ? (F)(129.0f) : t) + (F)(12582912.0f); \
    const F whole = z - (F)(12582912.0f);                                                                                     \
    F r = (product - whole) + more;                                                                                           \
    r = r > (F)(1.0f) ? (F)(1.0f) : r < (F)(-1.0f) ? (F)(-1.0f) : r;                                                          \
    const I n = as_##I(z) - (I)(0x4b400000), half_n = n >> 1;                                                                 \
    F w = (F)(1.53264627e-4f) * r + (F)(1.33908063e-3f);                                                                      \
    w = w * r + (F)(9.61850584e-3f);                                                                                          \
    w = w * r + (F)(5.55035993e-2f);                                                                                          \
    w = w * r + (F)(0.240226477f);                                                                                            \
    w = w * r + (F)(0.693147182f);                                                                                            \
    w = w * r + (F)(1.0f);                                                                                                    \
    w = w * as_##F((half_n + 127) << 23) * as_##F((n - half_n + 127) << 23);                                                  \
    /* 0, infinity, negative numbers, NaN. */                                                                                 \
    const F pole = as_##I(y) < 0 ? (F)(INFINITY) : (F)(0.0f), far = as_##I(y) < 0 ? (F)(0.0f) : (F)(INFINITY);                \
    w = a == (F)(0.0f) ? pole : a == (F)(INFINITY) ? far : w;                                                                 \
    /* The last bit of y, and whether it has a part after the point. */                                                       \
    const F size = CLT_ABS(F, I, y), up = size + (F)(8388608.0f);                                                             \
    const I broken = size < (F)(8388608.0f) & up - (F)(8388608.0f) != size;                                                   \
    const I last = size < (F)(8388608.0f) ? as_##I(up) : size < (F)(16777216.0f) ? as_##I(size) : (I)(0);                     \
    w = as_##F(as_##I(w) | (broken ? (I)(0) : (last << 31) & as_##I(x)));                                                     \
    w = broken & x < (F)(0.0f) & a < (F)(INFINITY) ? (F)(NAN) : w;                                                            \
    w = x != x | y != y ? x + y : w;                                                                                          \
    return y == (F)(0.0f) | x == (F)(1.0f) ? (F)(1.0f) : w;                                                                   \
  }
CLT_ALL_LANES(CLT_POW)
#define CLT_POW_DOUBLE(F) static inline F pow_##F(F x, F y) { return CLT_SOUND_##F(pow, x, y); }
CLT_DOUBLE_LANES(CLT_POW_DOUBLE)
