/* Polar coordinates and exponentials of complex numbers, of one (float2) or of a vector's lanes, and what else there is of these: a vector has the
   real parts first and then the imaginary parts (clt_float2_16, of 32 floats). Vectors and single numbers give the same bits, so the
   quotient is Smith's with choices where complex.cl has branches. Not structures: Oclgrind does not know what inlining leaves of them. */
#include "elementary/exp.cl"
#include "elementary/hypot.cl"
#include "elementary/atan.cl"
#include "elementary/sine.cl"
#define CLT_LIT_F(c) c##f
#define CLT_LIT_D(c) c
#define CLT_LIFT_float 18014398509481984.0f
#define CLT_LIFT_double 1.6225927682921336e+32
/* e^x (cos y, sin y). Beyond BIG, where exp is about to overflow, in two halves, so that only the product overflows. */
#define CLT_CEXP(F, I, S, K, BIG, SIGN)                                                                                \
  static inline F clt_cexp_##F(F x, F y, F *imaginary) {                                                               \
    const I big = x > (F)(BIG) && x < (F)(4 * BIG), whole = (y - y) == (F)(K(0.0));                                    \
    const F e = exp_##F(big ? x * (F)(K(0.5)) : x), one = (F)(K(1.0)), more = big ? e : one;                           \
    const F s = sin##S(y), c = cos##S(y);                                                                              \
    const I none = e == (F)(K(0.0)) && (whole || x == (F)(-INFINITY));                                                 \
    const F re = none ? as_##F(as_##I(whole ? c : one) & (I)(SIGN)) : e * c * more;                                    \
    const F im = none ? as_##F(as_##I(whole ? s : one) & (I)(SIGN)) : e * s * more;                                    \
    *imaginary = y == (F)(K(0.0)) ? y : im;                                                                            \
    return y == (F)(K(0.0)) ? e * more : x == (F)(INFINITY) && !whole ? x : re;                                        \
  }
/* PoCL's builtin of eight doubles rounds otherwise than that of one, which takes no less time. */
#ifdef POCL_DEVICE_ADDRESS_BITS
#define CLT_ATAN2_DOUBLE(y, x) atan2((double8)(y), (double8)(x)).s0
#else
#define CLT_ATAN2_DOUBLE(y, x) atan2(y, x)
#endif
#define CLT_POLAR(T, T2, S, O, ATAN2)                                                                                  \
  static inline T2 cabs_##T2(T2 z) { return (T2)(hypot##S(z.x, z.y), O); }                                             \
  static inline T2 cexp_##T2(T2 z) {                                                                                   \
    T im;                                                                                                              \
    const T re = clt_cexp_##T(z.x, z.y, &im);                                                                          \
    return (T2)(re, im);                                                                                               \
  }                                                                                                                    \
  static inline T2 carg_##T2(T2 z) { return (T2)(ATAN2(z.y, z.x), O); }                                                \
  static inline T2 cpolar_##T2(T2 r, T2 a) { return (T2)(r.x * cos##S(a.x), r.x * sin##S(a.x)); }                      \
  static inline T2 csgn_##T2(T2 z) {                                                                                   \
    const T h = hypot##S(z.x, z.y);                                                                                    \
    return h == O ? (T2)(O, O) : z / h;                                                                                \
  }
CLT_CEXP(float, int, _float, CLT_LIT_F, 88.0f, 0x80000000)
CLT_POLAR(float, float2, _float, 0.0f, atan2_float)
#ifdef CLT_DOUBLE
CLT_CEXP(double, long, , CLT_LIT_D, 709.0, 0x8000000000000000L)
CLT_POLAR(double, double2, , 0.0, CLT_ATAN2_DOUBLE)
#endif
#if CLT_LANES > 1
/* T: a vector of complex numbers, R by R; F: of their parts, with masks and bits I; S: what functions of F end in; K: as in complex.cl. */
#define CLT_COMPLEX_LANES(T, F, I, R, S, K, LIFT, BITS)                                                                \
  typedef R T __attribute__((ext_vector_type(2 * CLT_LANES)));                                                         \
  static inline T make_##T(F x, F y) {                                                                                 \
    T z;                                                                                                               \
    z.lo = x, z.hi = y;                                                                                                \
    return z;                                                                                                          \
  }                                                                                                                    \
  static inline T spread_##T(R##2 z) { return make_##T((F)(z.x), (F)(z.y)); }                                          \
  static inline T pick_##T(I mask, T a, T b) { return make_##T(mask ? a.lo : b.lo, mask ? a.hi : b.hi); }              \
  static inline T cmul_##T(T a, T b) { return make_##T(a.lo * b.lo - a.hi * b.hi, a.lo * b.hi + a.hi * b.lo); }        \
  static inline T cdiv_##T(T a, T b) {                                                                                 \
    const F u = as_##F(as_##I(b.lo) & (I)(BITS)), v = as_##F(as_##I(b.hi) & (I)(BITS)), m = fmax(u, v);                \
    const F by = m > (F)(K(1e37)) && m < (F)(INFINITY) ? (F)(K(0.125)) : m < (F)(K(1e-30)) ? (F)(LIFT) : (F)(K(1.0));  \
    const I wide = u >= v;                                                                                             \
    const F p = (wide ? b.lo : b.hi) * by, q = (wide ? b.hi : b.lo) * by;                                              \
    const F s = (wide ? a.lo : a.hi) * by, t = (wide ? a.hi : a.lo) * by;                                              \
    const F one = (b.lo < (F)(K(0.0))) != (b.hi < (F)(K(0.0))) ? (F)(K(-1.0)) : (F)(K(1.0));                           \
    const F r = u == (F)(INFINITY) && v == (F)(INFINITY) ? one : q / p, d = p + q * r, part = s * r;                   \
    const F x = (s + t * r) / d, y = (wide ? t - part : part - t) / d, none = u + v;                                   \
    return make_##T(m == (F)(K(0.0)) ? a.lo / none : x, m == (F)(K(0.0)) ? a.hi / none : y);                           \
  }                                                                                                                    \
  static inline T crecip_##T(T z) { return cdiv_##T(make_##T((F)(K(1.0)), (F)(K(0.0))), z); }                          \
  static inline T cabs_##T(T z) { return make_##T(hypot##S(z.lo, z.hi), (F)(K(0.0))); }                                \
  static inline T cexp_##T(T z) {                                                                                      \
    F im;                                                                                                              \
    const F re = clt_cexp_##F(z.lo, z.hi, &im);                                                                        \
    return make_##T(re, im);                                                                                           \
  }                                                                                                                    \
  static inline T carg_##T(T z) { return make_##T(atan2##S(z.hi, z.lo), (F)(K(0.0))); }                                \
  static inline T cpolar_##T(T r, T a) { return make_##T(r.lo * cos##S(a.lo), r.lo * sin##S(a.lo)); }                  \
  static inline T csgn_##T(T z) {                                                                                      \
    const F h = hypot##S(z.lo, z.hi), zero = (F)(K(0.0));                                                              \
    return make_##T(h == zero ? zero : z.lo / h, h == zero ? zero : z.hi / h);                                         \
  }
#define CLT_COMPLEX_OF(N)                                                                                              \
  CLT_CEXP(float##N, int##N, _float##N, CLT_LIT_F, 88.0f, 0x80000000)                                                  \
  CLT_COMPLEX_LANES(clt_float2_##N, float##N, int##N, float, _float##N, CLT_LIT_F, CLT_LIFT_float, 0x7fffffff)
#define CLT_COMPLEX_OF_DOUBLE(N)                                                                                       \
  CLT_CEXP(double##N, long##N, , CLT_LIT_D, 709.0, 0x8000000000000000L)                                                \
  CLT_COMPLEX_LANES(clt_double2_##N, double##N, long##N, double, , CLT_LIT_D, CLT_LIFT_double, 0x7fffffffffffffffL)
#if CLT_LANES == 16
CLT_COMPLEX_OF(16)
#elif CLT_LANES == 8
CLT_COMPLEX_OF(8)
#ifdef CLT_DOUBLE
CLT_COMPLEX_OF_DOUBLE(8)
#endif
#elif CLT_LANES == 4
CLT_COMPLEX_OF(4)
#ifdef CLT_DOUBLE
CLT_COMPLEX_OF_DOUBLE(4)
#endif
#endif
#endif
