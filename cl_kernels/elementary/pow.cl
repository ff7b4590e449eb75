/* pow(x, y) = exp2(y log2 |x|), the logarithm being a sum of two floats. The builtin for doubles is a library call, ten
   times slower. |x| = 2^e m with m in [0.71, 1.41); log2(m) = 2 / ln 2 (s + s^3 / 3 + ...) with s = (m - 1) / (m + 1).
   Factors cut to 12 bits (clt_short) have exact products. Wrong by less than 2 ulp, reached where |y| is in the
   hundreds and x near 1 / sqrt 2 or sqrt 2; by less than 1 where |y| is small. */
#include "all_lanes.cl"
#define CLT_POW(F, I)                                                                                                         \
  static inline F clt_short_##F(F x) { return as_##F(as_##I(x) & (I)(0xfffff000)); }                                          \
  static inline F pow_##F(F x, F y) {                                                                                         \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                          \
    const F a = CLT_ABS(F, I, x);                                                                                             \
    const I bits = as_##I(a < (F)(1.17549435e-38f) ? a * (F)(8388608.0f) : a), i = (bits - 0x3f3504f3) & (I)(0xff800000);     \
    const F e = as_##F((i >> 23) + 0x4b400000) - (a < (F)(1.17549435e-38f) ? (F)(12582935.0f) : (F)(12582912.0f));            \
    const F m = as_##F(bits - i), f = m - (F)(1.0f), d = m + (F)(1.0f), inverse = (F)(1.0f) / d;                              \
    /* The quotient s as a sum of two floats. */                                                                              \
    const F s = clt_short_##F(f * inverse), d_short = clt_short_##F(d), d_rest = m - (d_short - (F)(1.0f));                   \
    const F s_rest = ((f - s * d_short) - s * d_rest) * inverse, s2 = s * s;                                                  \
    F p = (F)(0.336624652f) * s2 + (F)(0.411921471f);                                                                         \
    p = p * s2 + (F)(0.577078879f);                                                                                           \
    p = p * s2 + (F)(0.961796701f);                                                                                           \
    const F slope = ((s2 + (F)(1.0f)) * s2 + (F)(1.0f)) * s2 + (s * s_rest + (F)(1.0f));                                      \
    const F linear = s * (F)(6.24456778e-4f) + s_rest * (slope * (F)(2.88539008f));                                           \
    const F top = s * (F)(2.88476562f), rest = p * s2 * s + linear;                                                           \
    const F high = e + top, low = (top - (high - e)) + rest;                                                                  \
    /* The logarithm times y; y is clamped so that the product does not overflow. */                                          \
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
    /* Whether y has a fractional part (broken), and whether it is odd (lowest bit of last). */                               \
    const F size = CLT_ABS(F, I, y), up = size + (F)(8388608.0f);                                                             \
    const I broken = size < (F)(8388608.0f) & up - (F)(8388608.0f) != size;                                                   \
    const I last = size < (F)(8388608.0f) ? as_##I(up) : size < (F)(16777216.0f) ? as_##I(size) : (I)(0);                     \
    w = as_##F(as_##I(w) | (broken ? (I)(0) : (last << 31) & as_##I(x)));                                                     \
    w = broken & x < (F)(0.0f) & a < (F)(INFINITY) ? (F)(NAN) : w;                                                            \
    w = x != x | y != y ? x + y : w;                                                                                          \
    return y == (F)(0.0f) | x == (F)(1.0f) ? (F)(1.0f) : w;                                                                   \
  }
CLT_ALL_LANES(CLT_POW)
/* The same for double lanes, with factors of 26 bits; the logarithm's cubic term also is a sum of two doubles, and so
   is the exponent, y log2 |x| less n, until the end. Wrong by less than 0.95 ulp. */
#define CLT_POW_DOUBLE(F, I)                                                                                                                          \
  static inline F clt_short_##F(F x) { return as_##F(as_##I(x) & (I)(0xfffffffff8000000L)); }                                                         \
  static inline F pow_##F(F x, F y) {                                                                                                                 \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                                                  \
    const F a = as_##F(as_##I(x) & (I)(0x7fffffffffffffffL));                                                                                         \
    const I bits = as_##I(a < (F)(2.2250738585072014e-308) ? a * (F)(18014398509481984.0) : a);                                                       \
    const I i = (bits - (I)(0x3fe6a09e667f3bcdL)) & (I)(0xfff0000000000000L);                                                                         \
    const F e = as_##F((i >> 52) + (I)(0x4338000000000000L)) - (a < (F)(2.2250738585072014e-308) ? (F)(6755399441055798.0) : (F)(6755399441055744.0));\
    const F m = as_##F(bits - i), f = m - (F)(1.0), d = m + (F)(1.0), inverse = (F)(1.0) / d;                                                         \
    /* The quotient s, its square and its cube, each as a sum of two doubles. */                                                                      \
    const F s = clt_short_##F(f * inverse), d_short = clt_short_##F(d), d_rest = m - (d_short - (F)(1.0));                                            \
    const F s_rest = ((f - s * d_short) - s * d_rest) * inverse;                                                                                      \
    const F s2 = s * s, s2_rest = ((F)(2.0) * s + s_rest) * s_rest, z = s2 + s2_rest;                                                                 \
    const F s2_short = clt_short_##F(s2), c = s * s2_short, c_short = clt_short_##F(c);                                                               \
    const F c_rest = (c - c_short) + (s * (s2 - s2_short) + (s * s2_rest + s_rest * z));                                                              \
    F p = (F)(0.16912787582324892) * z + (F)(0.1688854671740239);                                                                                     \
    p = p * z + (F)(0.19238055945712837);                                                                                                             \
    p = p * z + (F)(0.22195278870596163);                                                                                                             \
    p = p * z + (F)(0.26230819146702117);                                                                                                             \
    p = p * z + (F)(0.3205988979671597);                                                                                                              \
    p = p * z + (F)(0.4121985831111439);                                                                                                              \
    p = (p * z + (F)(0.5770780163555853)) * z;                                                                                                        \
    const F q = clt_short_##F(p + (F)(0.9617966939259756)), q_rest = ((F)(0.9617966939259756) - q) + (p + (F)(5.0577616648125907e-17));               \
    const F top = s * (F)(2.885390043258667), next = c_short * q;                                                                                     \
    const F linear = s * (F)(3.851925982253235e-08) + s_rest * (F)(2.8853900817779268);                                                               \
    const F rest = linear + (c_short * q_rest + c_rest * (q + q_rest));                                                                               \
    const F first = e + top, sum = first + next;                                                                                                      \
    const F low = ((top - (first - e)) + (next - (sum - first))) + rest;                                                                              \
    /* The logarithm times y; y is clamped so that the product does not overflow. */                                                                  \
    const F v = y > (F)(1e22) ? (F)(1e22) : y < (F)(-1e22) ? (F)(-1e22) : y;                                                                          \
    const F h = clt_short_##F(sum + low), h_rest = (sum - h) + low;                                                                                   \
    const F v_short = clt_short_##F(v), product = v_short * h, more = v_short * h_rest + (v - v_short) * (h + h_rest);                                \
    const F t = product + more, w0 = (t < (F)(-1100.0) ? (F)(-1100.0) : t > (F)(1030.0) ? (F)(1030.0) : t) + (F)(6755399441055744.0);                 \
    F r = product - (w0 - (F)(6755399441055744.0));                                                                                                   \
    r = r > (F)(1.0) ? (F)(1.0) : r < (F)(-1.0) ? (F)(-1.0) : r;                                                                                      \
    const F r_rest = more > (F)(1.0) ? (F)(1.0) : more < (F)(-1.0) ? (F)(-1.0) : more;                                                                \
    const I n = as_##I(w0) - (I)(0x4338000000000000L), half_n = n >> 1;                                                                               \
    const F r_short = clt_short_##F(r), near = r_short * (F)(0.6931471675634384);                                                                     \
    const F g_rest = ((r - r_short) + r_rest) * (F)(0.6931471805599453) + r_short * (F)(1.2996506893889889e-08), g = near + g_rest;                   \
    F w = (F)(2.5000042084997466e-08) * g + (F)(2.763031099217704e-07);                                                                               \
    w = w * g + (F)(2.7557586993641926e-06);                                                                                                          \
    w = w * g + (F)(2.4801492939484172e-05);                                                                                                          \
    w = w * g + (F)(1.984126950517655e-04);                                                                                                           \
    w = w * g + (F)(1.3888888943764971e-03);                                                                                                          \
    w = w * g + (F)(8.333333333495492e-03);                                                                                                           \
    w = w * g + (F)(4.166666666652974e-02);                                                                                                           \
    w = w * g + (F)(1.666666666666641e-01);                                                                                                           \
    w = w * g + (F)(0.5000000000000011);                                                                                                              \
    w = (F)(1.0) + (near + ((w * g) * g + g_rest));                                                                                                   \
    w = w * as_##F((half_n + 1023) << 52) * as_##F((n - half_n + 1023) << 52);                                                                        \
    /* 0, infinity, negative numbers, NaN. */                                                                                                         \
    const F pole = as_##I(y) < 0 ? (F)(INFINITY) : (F)(0.0), far = as_##I(y) < 0 ? (F)(0.0) : (F)(INFINITY);                                          \
    w = a == (F)(0.0) ? pole : a == (F)(INFINITY) ? far : w;                                                                                          \
    const F size = as_##F(as_##I(y) & (I)(0x7fffffffffffffffL)), up = size + (F)(4503599627370496.0);                                                 \
    const I broken = size < (F)(4503599627370496.0) & up - (F)(4503599627370496.0) != size;                                                           \
    const I last = size < (F)(4503599627370496.0) ? as_##I(up) : size < (F)(9007199254740992.0) ? as_##I(size) : (I)(0);                              \
    w = as_##F(as_##I(w) | (broken ? (I)(0) : (last << 63) & as_##I(x)));                                                                             \
    w = broken & x < (F)(0.0) & a < (F)(INFINITY) ? (F)(NAN) : w;                                                                                     \
    w = x != x | y != y ? x + y : w;                                                                                                                  \
    return y == (F)(0.0) | x == (F)(1.0) ? (F)(1.0) : w;                                                                                              \
  }
CLT_DOUBLE_LANES(CLT_POW_DOUBLE)
