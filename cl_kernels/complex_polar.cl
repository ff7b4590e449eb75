/* Polar coordinates and exponentials of complex numbers. A function whose result is real returns it with a zero imaginary
   part. The macros' parameters are those of CLT_COMPLEX. */
#include "complex.cl"
#include "elementary/exp.cl"
#include "elementary/hypot.cl"
#include "elementary/atan.cl"
#include "elementary/sine.cl"
/* Arguments above this are near exp's overflow. */
#define CLT_BIG_float 88.0f
#define CLT_BIG_double 709.0
/* Builtins for doubles. PoCL's builtin for vectors may round differently from that for scalars, so there scalars use
   the vector one, too. */
#define CLT_DOUBLE_BUILTINS(F, W, PART)                                     \
  static inline F hypot_##F(F x, F y) { return hypot((W)(x), (W)(y))PART; } \
  static inline F atan2_##F(F y, F x) { return atan2((W)(y), (W)(x))PART; } \
  static inline F clt_sincos_##F(F x, F *c) {                               \
    *c = cos((W)(x))PART;                                                   \
    return sin((W)(x))PART;                                                 \
  }
#ifdef POCL_DEVICE_ADDRESS_BITS
#define CLT_DOUBLE_BUILTIN(M) M(double, double4, .s0)
#else
#define CLT_DOUBLE_BUILTIN(M) M(double, double, )
#endif
#define CLT_COMPLEX_POLAR(T, F, I, R, K)                                                                                      \
  static inline T cabs_##T(T z) { return make_##T(hypot_##F(z.lo, z.hi), (F)(K(0.0))); }                                      \
  static inline T carg_##T(T z) { return make_##T(atan2_##F(z.hi, z.lo), (F)(K(0.0))); }                                      \
  /* e^x (cos y, sin y). Near exp's overflow e^x is two factors e^(x/2), so that only a final product overflows. */           \
  static inline T cexp_##T(T z) {                                                                                             \
    const F x = z.lo, y = z.hi, one = (F)(K(1.0));                                                                            \
    const I big = x > (F)(CLT_BIG_##R) && x < (F)(4 * CLT_BIG_##R), whole = (y - y) == (F)(K(0.0)), real = y == (F)(K(0.0));  \
    const F e = exp_##F(big ? x * K(0.5) : x), more = big ? e : one;                                                          \
    F c;                                                                                                                      \
    const F s = clt_sincos_##F(y, &c);                                                                                        \
    const I none = e == (F)(K(0.0)) && (whole || x == (F)(-INFINITY));                                                        \
    const F re = none ? clt_signed_##T((F)(K(0.0)), whole ? c : one) : e * c * more;                                          \
    const F im = none ? clt_signed_##T((F)(K(0.0)), whole ? s : one) : e * s * more;                                          \
    return make_##T(real ? e * more : x == (F)(INFINITY) && !whole ? x : re, real ? y : im);                                  \
  }                                                                                                                           \
  static inline T cpolar_##T(T r, T a) {                                                                                      \
    F c;                                                                                                                      \
    const F s = clt_sincos_##F(a.lo, &c);                                                                                     \
    return make_##T(r.lo * c, r.lo * s);                                                                                      \
  }                                                                                                                           \
  static inline T csgn_##T(T z) {                                                                                             \
    const F h = hypot_##F(z.lo, z.hi), zero = (F)(K(0.0));                                                                    \
    return make_##T(h == zero ? zero : z.lo / h, h == zero ? zero : z.hi / h);                                                \
  }
CLT_COMPLEX_POLAR(float2, float, int, float, CLT_LIT_F)
CLT_COMPLEX_VECTORS(CLT_COMPLEX_POLAR)
#ifdef CLT_DOUBLE
CLT_DOUBLE_BUILTIN(CLT_DOUBLE_BUILTINS)
#if CLT_LANES == 8
CLT_DOUBLE_BUILTINS(double8, double8, )
#elif CLT_LANES == 4
CLT_DOUBLE_BUILTINS(double4, double4, )
#endif
CLT_COMPLEX_POLAR(double2, double, long, double, CLT_LIT_D)
CLT_COMPLEX_DOUBLES(CLT_COMPLEX_POLAR)
#endif
