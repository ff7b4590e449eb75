/* Further functions of complex numbers: logarithms, roots, powers, circular and hyperbolic functions and their
   inverses, of one number or of a vector's lanes. Branch cuts are C99's; inverse functions follow Kahan, "Branch cuts
   for complex elementary functions" (1987). Code for rare arguments is skipped where no lane has one. The macros'
   parameters are those of CLT_COMPLEX. */
#include "complex_polar.cl"
#include "elementary/log1p.cl"
#include "elementary/asinh.cl"
#include "elementary/expm1.cl"
#include "elementary/sinh.cl"
/* FAR: from here on a square may overflow (from its reciprocal down, underflow). DOWN, UP: powers of two that scale
   such numbers back into range. TWICE: twice their binary logarithm. ROOT_DOWN, ROOT_UP: their square roots. */
#define CLT_FAR_float 1e18f
#define CLT_DOWN_float 1.262177448e-29f
#define CLT_UP_float 7.922816251e28f
#define CLT_TWICE_float 192.0f
#define CLT_ROOT_DOWN_float 3.552713679e-15f
#define CLT_ROOT_UP_float 281474976710656.0f
#define CLT_FAR_double 1e150
#define CLT_DOWN_double 1.9010815379079637e-211
#define CLT_UP_double 5.260135901548374e+210
#define CLT_TWICE_double 1400.0
#define CLT_ROOT_DOWN_double 4.360139377180416e-106
#define CLT_ROOT_UP_double 2.2935046111752554e+105
/* Mask of the upper half of a number's significant bits. */
#define CLT_HALF_float 0xfffff000
#define CLT_HALF_double 0xfffffffff8000000L
/* BESIDE: distances from a pole below this are scaled by BESIDE_UP, as their square would underflow. BESIDE_LOG: half
   the binary logarithm of BESIDE_UP. */
#define CLT_BESIDE_float 1e-15f
#define CLT_BESIDE_UP_float 16777216.0f
#define CLT_BESIDE_LOG_float 12.0f
#define CLT_BESIDE_double 1e-30
#define CLT_BESIDE_UP_double 1152921504606846976.0
#define CLT_BESIDE_LOG_double 30.0
/* log(u) / 2 + more log(2) / 2 of a normal u. Where `near`, u is 1 + d rounded, and its rounding error is added: log(1
   + d) / 2. */
#define CLT_HALF_LOG(F, I)                                                                                              \
  static inline F clt_half_log_##F(I near, F d, F u, F more) {                                                          \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                    \
    const F lost = near ? d - (u - (F)(1.0f)) : (F)(0.0f);                                                              \
    const I i = (as_##I(u) - 0x3f2aaaab) & (I)(0xff800000);                                                             \
    const F e = (as_##F((i >> 23) + 0x4b400000) - (F)(12582912.0f)) + more, f = as_##F(as_##I(u) - i) - (F)(1.0f);      \
    const F rest = lost * as_##F(0x3f800000 - i);                                                                       \
    return (F)(0.5f) * (e * (F)(0.693145752f) + (f + (rest + (e * (F)(1.42860677e-6f) + clt_log_rest_##F(f + rest))))); \
  }
CLT_ALL_LANES(CLT_HALF_LOG)
#ifdef CLT_DOUBLE
#define CLT_MORE_DOUBLE_BUILTINS(F, W, PART)                   \
  static inline F asinh_##F(F x) { return asinh((W)(x))PART; }
#define CLT_HALF_LOG_DOUBLE(F, I)                                                                                                     \
  static inline F clt_half_log_##F(I near, F d, F u, F more) {                                                                        \
    F y = log_##F(u);                                                                                                                 \
    if (CLT_ANY_##I(near) != 0) y = near ? log1p_##F(d) : y;                                                                          \
    return 0.5 * y + more * 0.34657359027997264;                                                                                      \
  }                                                                                                                                   \
  static inline F clt_sinh_near_##F(F x) {                                                                                            \
    const F s = x * x;                                                                                                                \
    return x + x * (s * (0.16666666666666666 + s * (0.008333333333333333 + s * (1.984126984126984e-4 + s * (2.7557319223985893e-6 +   \
           s * (2.505210838544172e-8 + s * (1.6059043836821613e-10 + s * (7.647163731819816e-13 + s * 2.8114572543455206e-15)))))))); \
  }
CLT_DOUBLE_BUILTIN(CLT_MORE_DOUBLE_BUILTINS)
CLT_HALF_LOG_DOUBLE(double, long)
#if CLT_LANES == 8
CLT_MORE_DOUBLE_BUILTINS(double8, double8, )
CLT_HALF_LOG_DOUBLE(double8, long8)
#elif CLT_LANES == 4
CLT_MORE_DOUBLE_BUILTINS(double4, double4, )
CLT_HALF_LOG_DOUBLE(double4, long4)
#endif
#endif
#define CLT_COMPLEX_FUNCTIONS(T, F, I, R, K)                                                                                                                        \
  static inline F clt_two_sum_##T(F a, F b, F *lost) {                                                                                                              \
    const F s = a + b, t = s - a;                                                                                                                                   \
    *lost += (a - (s - t)) + (b - t);                                                                                                                               \
    return s;                                                                                                                                                       \
  }                                                                                                                                                                 \
  /* t + a^2 + b^2, where |a| >= |b| if t is -1; the rounding errors of squares and sums are computed and added (Dekker). */                                        \
  static inline F clt_square_sum_##T(F t, F a, F b) {                                                                                                               \
    const F ah = as_##F(as_##I(a) & (I)(CLT_HALF_##R)), bh = as_##F(as_##I(b) & (I)(CLT_HALF_##R)), al = a - ah, bl = b - bh;                                       \
    const F v = a * a, v_rest = ((ah * ah - v) + (ah + ah) * al) + al * al;                                                                                         \
    const F w = b * b, w_rest = ((bh * bh - w) + (bh + bh) * bl) + bl * bl;                                                                                         \
    F lost = (F)(K(0.0)), s = clt_two_sum_##T(t, v, &lost);                                                                                                         \
    s = clt_two_sum_##T(s, w, &lost);                                                                                                                               \
    s = clt_two_sum_##T(s, v_rest, &lost);                                                                                                                          \
    return clt_two_sum_##T(s, w_rest, &lost) + lost;                                                                                                                \
  }                                                                                                                                                                 \
  /* log |w + iy|; where `small`, w is 1 + x, rounded. Where the result is near 0, it is computed from |w + iy|^2 - 1. */                                           \
  static inline F clt_log_size_##T(F w, F y, I small, F x) {                                                                                                        \
    const F u = clt_size_##T(w), v = clt_size_##T(y), most = u > v ? u : v;                                                                                         \
    const I far = most > (F)(CLT_FAR_##R), tiny = most < (F)(1 / CLT_FAR_##R);                                                                                      \
    const F by = far ? (F)(CLT_DOWN_##R) : tiny ? (F)(CLT_UP_##R) : (F)(K(1.0));                                                                                    \
    const F more = far ? (F)(CLT_TWICE_##R) : tiny ? (F)(-CLT_TWICE_##R) : (F)(K(0.0));                                                                             \
    const F p = most * by, q = (u > v ? v : u) * by, s = p * p + q * q;                                                                                             \
    const I near = s >= (F)(K(0.25)) && s <= (F)(K(4.0));                                                                                                           \
    const F d = clt_square_sum_##T(small ? x + x : (F)(K(-1.0)), small ? x : p, small ? v : q);                                                                     \
    const F size = clt_half_log_##F(near, d, near ? 1 + d : s, more);                                                                                               \
    const F end = s == (F)(K(0.0)) ? (F)(-INFINITY) : (F)(NAN);                                                                                                     \
    return u == (F)(INFINITY) || v == (F)(INFINITY) ? (F)(INFINITY) : s > (F)(K(0.0)) ? size : end;                                                                 \
  }                                                                                                                                                                 \
  static inline T clog_##T(T z) { return make_##T(clt_log_size_##T(z.lo, z.hi, (I)(0), z.lo), atan2_##F(z.hi, z.lo)); }                                             \
  static inline T clog10_##T(T z) { return clog_##T(z) * K(0.4342944819032518); }                                                                                   \
  static inline T clog2_##T(T z) { return clog_##T(z) * K(1.4426950408889634); }                                                                                    \
  static inline T clog1p_##T(T z) {                                                                                                                                 \
    const I small = clt_size_##T(z.lo) + clt_size_##T(z.hi) <= (F)(K(0.5));                                                                                         \
    const F w = z.lo + K(1.0);                                                                                                                                      \
    return make_##T(clt_log_size_##T(w, z.hi, small, z.lo), atan2_##F(z.hi, w));                                                                                    \
  }                                                                                                                                                                 \
  static inline T csqrt_##T(T z) {                                                                                                                                  \
    const F u = clt_size_##T(z.lo), v = clt_size_##T(z.hi), most = u > v ? u : v;                                                                                   \
    const I far = most > (F)(CLT_FAR_##R), tiny = most < (F)(1 / CLT_FAR_##R), right = z.lo >= (F)(K(0.0));                                                         \
    const F by = far ? (F)(CLT_DOWN_##R) : tiny ? (F)(CLT_UP_##R) : (F)(K(1.0));                                                                                    \
    const F back = far ? (F)(CLT_ROOT_UP_##R) : tiny ? (F)(CLT_ROOT_DOWN_##R) : (F)(K(1.0));                                                                        \
    const F p = u * by, q = v * by, root = sqrt((p + sqrt(p * p + q * q)) * K(0.5)) * back;                                                                         \
    const F t = u == (F)(INFINITY) ? u : root, part = v / (t == (F)(K(0.0)) ? (F)(K(2.0)) : t + t);                                                                 \
    const F re = right ? t : part, im = clt_signed_##T(right ? part : t, z.hi);                                                                                     \
    return make_##T(v == (F)(INFINITY) ? v : re, v == (F)(INFINITY) ? z.hi : im);                                                                                   \
  }                                                                                                                                                                 \
  static inline T crsqrt_##T(T z) { return crecip_##T(csqrt_##T(z)); }                                                                                              \
  static inline T cpow_##T(T a, T b) {                                                                                                                              \
    const F zero = (F)(K(0.0)), one = (F)(K(1.0));                                                                                                                  \
    const I real = b.hi == zero;                                                                                                                                    \
    const T square = cmul_##T(a, a), pole = make_##T(real ? (F)(INFINITY) : (F)(NAN), (F)(NAN));                                                                    \
    T r = cexp_##T(cmul_##T(b, clog_##T(a)));                                                                                                                       \
    r = pick_##T(real && b.lo == (F)(K(2.0)), square, r);                                                                                                           \
    r = pick_##T(real && b.lo == one, a, r);                                                                                                                        \
    r = pick_##T(a.lo == zero && a.hi == zero, pick_##T(b.lo > zero, make_##T(zero, zero), pole), r);                                                               \
    return pick_##T(real && b.lo == zero, make_##T(one, zero), r);                                                                                                  \
  }                                                                                                                                                                 \
  static inline T cexpm1_##T(T z) {                                                                                                                                 \
    const T e = cexp_##T(z);                                                                                                                                        \
    F c, c_half;                                                                                                                                                    \
    const F s = clt_sincos_##F(z.hi, &c), s_half = clt_sincos_##F(z.hi * K(0.5), &c_half), m = expm1_##F(z.lo);                                                     \
    const I far = z.lo > (F)(K(1.0)), real = z.hi == (F)(K(0.0));                                                                                                   \
    const F re = far ? e.lo - 1 : m * c - 2 * s_half * s_half;                                                                                                      \
    const F im = far ? e.hi : (z.lo < (F)(K(-1.0)) ? exp_##F(z.lo) : m + 1) * s;                                                                                    \
    return make_##T(real ? m : re, real ? z.hi : im);                                                                                                               \
  }                                                                                                                                                                 \
  /* Returns sinh(x) and sets ch to cosh(x), both to be multiplied by `more`; q is e^-|x| / 2, negligible where more is not 1. */                                    \
  static inline F clt_hyperbolic_##T(F x, F *ch, F *q, F *more) {                                                                                                   \
    const F t = clt_size_##T(x), one = (F)(K(1.0));                                                                                                                 \
    const I far = t > (F)(CLT_BIG_##R) && t < (F)(4 * CLT_BIG_##R);                                                                                                 \
    const F e = exp_##F(far ? t * K(0.5) : t), h = e * K(0.5);                                                                                                      \
    *more = far ? e : one;                                                                                                                                          \
    *q = K(0.5) / e;                                                                                                                                                \
    *ch = h + *q;                                                                                                                                                   \
    return t < one ? clt_sinh_near_##F(x) : clt_signed_##T(h - *q, x);                                                                                              \
  }                                                                                                                                                                 \
  static inline T csinh_##T(T z) {                                                                                                                                  \
    F c, ch, q, more;                                                                                                                                               \
    const F x = z.lo, y = z.hi, zero = (F)(K(0.0));                                                                                                                 \
    const F s = clt_sincos_##F(y, &c), sh = clt_hyperbolic_##T(x, &ch, &q, &more);                                                                                  \
    const I kept = x == zero || ((y - y) != zero && clt_size_##T(x) == (F)(INFINITY));                                                                              \
    return make_##T(kept ? x : sh * c * more, y == zero ? y : ch * s * more);                                                                                       \
  }                                                                                                                                                                 \
  static inline T ccosh_##T(T z) {                                                                                                                                  \
    F c, ch, q, more;                                                                                                                                               \
    const F x = z.lo, y = z.hi, zero = (F)(K(0.0)), t = clt_size_##T(x);                                                                                            \
    const F s = clt_sincos_##F(y, &c), sh = clt_hyperbolic_##T(x, &ch, &q, &more);                                                                                  \
    const I whole = (y - y) == zero;                                                                                                                                \
    const F im = x == zero && !whole ? x : sh * s * more;                                                                                                           \
    return make_##T(!whole && t == (F)(INFINITY) ? t : ch * c * more, y == zero ? as_##F((as_##I(x) ^ as_##I(y)) & (I)(CLT_MINUS_##R)) : im);                       \
  }                                                                                                                                                                 \
  static inline T ctanh_##T(T z) {                                                                                                                                  \
    F c, ch, q, more;                                                                                                                                               \
    const F x = z.lo, y = z.hi, zero = (F)(K(0.0)), t = clt_size_##T(x);                                                                                            \
    const F s = clt_sincos_##F(y, &c), sh = clt_hyperbolic_##T(x, &ch, &q, &more), d = sh * sh + c * c;                                                             \
    const I whole = (y - y) == zero, outer = t > (F)(CLT_BIG_##R * K(0.25)), ends = t == (F)(INFINITY);                                                             \
    const F fades = t > (F)(CLT_BIG_##R) ? zero : q, out = s * c * fades * fades * K(16.0);                                                                         \
    const F re = outer ? clt_signed_##T((F)(K(1.0)), x) : sh * ch / d, im = outer ? out : s * c / d;                                                                \
    const F lost = x == zero ? x : (F)(NAN);                                                                                                                        \
    return make_##T(whole || ends ? re : lost, y == zero ? y : ends && !whole ? zero : im);                                                                         \
  }                                                                                                                                                                 \
  static inline T clt_turned_##T(T z) { return make_##T(-z.hi, z.lo); }                                                                                             \
  static inline T clt_turned_back_##T(T z) { return make_##T(z.hi, -z.lo); }                                                                                        \
  static inline T csin_##T(T z) { return clt_turned_back_##T(csinh_##T(clt_turned_##T(z))); }                                                                       \
  static inline T ccos_##T(T z) { return ccosh_##T(clt_turned_##T(z)); }                                                                                            \
  static inline T ctan_##T(T z) { return clt_turned_back_##T(ctanh_##T(clt_turned_##T(z))); }                                                                       \
  /* clt_far: whether inverse functions are computed as logarithms, being log 2|z| to full precision. */                                                                \
  static inline I clt_far_##T(T z) { return clt_size_##T(z.lo) > (F)(K(1e17)) || clt_size_##T(z.hi) > (F)(K(1e17)); }                                               \
  static inline F clt_log_twice_##T(T z) { return clt_log_size_##T(z.lo, z.hi, (I)(0), z.lo) + K(0.6931471805599453); }                                             \
  static inline T casin_##T(T z) {                                                                                                                                  \
    const I far = clt_far_##T(z);                                                                                                                                   \
    const T p = csqrt_##T(make_##T(1 - z.lo, -z.hi)), q = csqrt_##T(make_##T(1 + z.lo, z.hi));                                                                      \
    F im = asinh_##F(p.lo * q.hi - p.hi * q.lo);                                                                                                                    \
    if (CLT_ANY_##I(far) != 0) im = far ? clt_signed_##T(clt_log_twice_##T(z), z.hi) : im;                                                                          \
    const F re = atan2_##F(z.lo, far ? clt_size_##T(z.hi) : p.lo * q.lo - p.hi * q.hi);                                                                             \
    return make_##T(z.lo == (F)(K(0.0)) ? z.lo : re, im);                                                                                                           \
  }                                                                                                                                                                 \
  static inline T cacos_##T(T z) {                                                                                                                                  \
    const I far = clt_far_##T(z);                                                                                                                                   \
    const T p = csqrt_##T(make_##T(1 - z.lo, -z.hi)), q = csqrt_##T(make_##T(1 + z.lo, z.hi));                                                                      \
    F im = asinh_##F(q.lo * p.hi - q.hi * p.lo);                                                                                                                    \
    if (CLT_ANY_##I(far) != 0) im = far ? clt_signed_##T(clt_log_twice_##T(z), -z.hi) : im;                                                                         \
    const F angle = atan2_##F(far ? clt_size_##T(z.hi) : p.lo, far ? z.lo : q.lo);                                                                                  \
    const F half_turn = (F)(K(1.5707963267948966));                                                                                                                 \
    return make_##T(z.lo == (F)(K(0.0)) && z.hi != z.hi ? half_turn : far ? angle : angle + angle, im);                                                             \
  }                                                                                                                                                                 \
  static inline T cacosh_##T(T z) {                                                                                                                                 \
    const I far = clt_far_##T(z);                                                                                                                                   \
    const T p = csqrt_##T(make_##T(z.lo - 1, z.hi)), q = csqrt_##T(make_##T(z.lo + 1, z.hi));                                                                       \
    F re = asinh_##F(p.lo * q.lo + p.hi * q.hi);                                                                                                                    \
    if (CLT_ANY_##I(far) != 0) re = far ? clt_log_twice_##T(z) : re;                                                                                                \
    const F angle = atan2_##F(far ? z.hi : p.hi, far ? z.lo : q.lo);                                                                                                \
    const F half_turn = (F)(K(1.5707963267948966));                                                                                                                 \
    return make_##T(re, z.lo == (F)(K(0.0)) && z.hi != z.hi ? half_turn : far ? angle : angle + angle);                                                             \
  }                                                                                                                                                                 \
  static inline T casinh_##T(T z) { return clt_turned_back_##T(casin_##T(clt_turned_##T(z))); }                                                                     \
  static inline T catanh_##T(T z) {                                                                                                                                 \
    const F zero = (F)(K(0.0)), x = z.lo, y = z.hi, a = clt_size_##T(x), b = clt_size_##T(y), d = 1 - a;                                                            \
    const I far = a > (F)(K(1e15)) || b > (F)(K(1e15)), ends = a == (F)(INFINITY) || b == (F)(INFINITY);                                                            \
    const I beside = d == zero && b < (F)(CLT_BESIDE_##R), unknown = a != a || (b != b && a != zero);                                                               \
    const F by = a > (F)(CLT_FAR_##R) || b > (F)(CLT_FAR_##R) ? (F)(CLT_DOWN_##R) : (F)(K(1.0)), p = d * by, q = b * by;                                            \
    const F quotient = (a * by) / (p * p + q * q) * (4 * by), at_pole = 2 / (b * CLT_BESIDE_UP_##R);                                                                \
    const F l = log1p_##F(beside ? at_pole : quotient) * K(0.25);                                                                                                   \
    const F size = beside ? (l + l) + CLT_BESIDE_LOG_##R * K(0.6931471805599453) : l;                                                                               \
    const F angle = K(0.5) * atan2_##F(y + y, d * (1 + a) - b * b), half_turn = clt_signed_##T((F)(K(1.5707963267948966)), y);                                      \
    const F re = a == zero || b == (F)(INFINITY) || (a == (F)(INFINITY) && b == b) ? clt_signed_##T(zero, x) : a == (F)(INFINITY) ? zero : clt_signed_##T(size, x); \
    return make_##T(re, b == (F)(INFINITY) ? half_turn : unknown ? (F)(NAN) : far ? half_turn : angle);                                                             \
  }                                                                                                                                                                 \
  static inline T catan_##T(T z) { return clt_turned_back_##T(catanh_##T(clt_turned_##T(z))); }
CLT_COMPLEX_FUNCTIONS(float2, float, int, float, CLT_LIT_F)
CLT_COMPLEX_VECTORS(CLT_COMPLEX_FUNCTIONS)
#ifdef CLT_DOUBLE
CLT_COMPLEX_FUNCTIONS(double2, double, long, double, CLT_LIT_D)
CLT_COMPLEX_DOUBLES(CLT_COMPLEX_FUNCTIONS)
#endif
