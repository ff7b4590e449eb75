/* Arithmetic of complex numbers: of one (float2, double2: x real, y imaginary) or of a vector's lanes, a vector having
   the real parts first, then the imaginary parts (clt_float2_16, of 32 floats), so that for single numbers, too, the
   parts are .lo and .hi. One macro text defines both, which give the same bits; it selects instead of branching.
   Division is Smith's (1962). CLT_COMPLEX(T, F, I, R, K) has T, the complex type; F, the type of its parts; I, the
   integer type of F's bits and masks; R, the scalar type; K(c), which writes a literal of R. The types are not structs,
   because Oclgrind cannot interpret what inlining leaves of structs. Further functions are in complex_polar.cl and
   complex_functions.cl, which kernels that call none of them need not read. */
#define CLT_LIT_F(c) c##f
#define CLT_LIT_D(c) c
#define CLT_BITS_float 0x7fffffff
#define CLT_BITS_double 0x7fffffffffffffffL
#define CLT_MINUS_float 0x80000000
#define CLT_MINUS_double 0x8000000000000000L
#define CLT_LIFT_float 18014398509481984.0f
#define CLT_LIFT_double 1.6225927682921336e+32
#define CLT_COMPLEX(T, F, I, R, K)                                                                                            \
  static inline F clt_size_##T(F x) { return as_##F(as_##I(x) & (I)(CLT_BITS_##R)); }                                         \
  static inline F clt_signed_##T(F x, F sign) {                                                                               \
    return as_##F((as_##I(x) & (I)(CLT_BITS_##R)) | (as_##I(sign) & (I)(CLT_MINUS_##R)));                                     \
  }                                                                                                                           \
  static inline T spread_##T(R##2 z) { return make_##T((F)(z.x), (F)(z.y)); }                                                 \
  static inline T pick_##T(I mask, T a, T b) { return make_##T(mask ? a.lo : b.lo, mask ? a.hi : b.hi); }                     \
  static inline T cmul_##T(T a, T b) { return make_##T(a.lo * b.lo - a.hi * b.hi, a.lo * b.hi + a.hi * b.lo); }               \
  static inline T cdiv_##T(T a, T b) {                                                                                        \
    const F u = clt_size_##T(b.lo), v = clt_size_##T(b.hi), m = fmax(u, v);                                                   \
    const F by = m > (F)(K(1e37)) && m < (F)(INFINITY) ? (F)(K(0.125)) : m < (F)(K(1e-30)) ? (F)(CLT_LIFT_##R) : (F)(K(1.0)); \
    const I wide = u >= v;                                                                                                    \
    const F p = (wide ? b.lo : b.hi) * by, q = (wide ? b.hi : b.lo) * by;                                                     \
    const F s = (wide ? a.lo : a.hi) * by, t = (wide ? a.hi : a.lo) * by;                                                     \
    const F one = (b.lo < (F)(K(0.0))) != (b.hi < (F)(K(0.0))) ? (F)(K(-1.0)) : (F)(K(1.0));                                  \
    const F r = u == (F)(INFINITY) && v == (F)(INFINITY) ? one : q / p, d = p + q * r, part = s * r;                          \
    const F x = (s + t * r) / d, y = (wide ? t - part : part - t) / d, none = u + v;                                          \
    return make_##T(m == (F)(K(0.0)) ? a.lo / none : x, m == (F)(K(0.0)) ? a.hi / none : y);                                  \
  }                                                                                                                           \
  static inline T crecip_##T(T z) { return cdiv_##T(make_##T((F)(K(1.0)), (F)(K(0.0))), z); }
static inline float2 make_float2(float x, float y) { return (float2)(x, y); }
CLT_COMPLEX(float2, float, int, float, CLT_LIT_F)
#ifdef CLT_DOUBLE
static inline double2 make_double2(double x, double y) { return (double2)(x, y); }
CLT_COMPLEX(double2, double, long, double, CLT_LIT_D)
#endif
/* CLT_COMPLEX_VECTORS(M) and CLT_COMPLEX_DOUBLES(M) define functions for the kernel's vectors of complex numbers. */
#if CLT_LANES == 16
#define CLT_COMPLEX_VECTORS(M) M(clt_float2_16, float16, int16, float, CLT_LIT_F)
#elif CLT_LANES == 8
#define CLT_COMPLEX_VECTORS(M) M(clt_float2_8, float8, int8, float, CLT_LIT_F)
#define CLT_COMPLEX_DOUBLES(M) M(clt_double2_8, double8, long8, double, CLT_LIT_D)
#elif CLT_LANES == 4
#define CLT_COMPLEX_VECTORS(M) M(clt_float2_4, float4, int4, float, CLT_LIT_F)
#define CLT_COMPLEX_DOUBLES(M) M(clt_double2_4, double4, long4, double, CLT_LIT_D)
#else
#define CLT_COMPLEX_VECTORS(M)
#endif
#ifndef CLT_COMPLEX_DOUBLES
#define CLT_COMPLEX_DOUBLES(M)
#endif
#define CLT_COMPLEX_MADE(T, F, I, R, K)                        \
  typedef R T __attribute__((ext_vector_type(2 * CLT_LANES))); \
  static inline T make_##T(F x, F y) {                         \
    T z;                                                       \
    z.lo = x, z.hi = y;                                        \
    return z;                                                  \
  }                                                            \
  CLT_COMPLEX(T, F, I, R, K)
CLT_COMPLEX_VECTORS(CLT_COMPLEX_MADE)
#ifdef CLT_DOUBLE
CLT_COMPLEX_DOUBLES(CLT_COMPLEX_MADE)
#endif
