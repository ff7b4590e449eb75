/* CLT_CHEB: a sum of Chebyshev polynomials of t with the coefficients in table clt_<name>_<type>, by Clenshaw's
   recurrence, for the kernel's lanes. Also names by which one text serves float and double lanes: CLT_MATH(V, T, log,
   x), CLT_SIZE(V, T, I, x) for |x|, and literals. */
#include "all_lanes.cl"
#include "elementary/exp.cl"
#include "elementary/log.cl"
#include "elementary/sine.cl"
#define CLT_LIT_F(c) c##f
#define CLT_LIT_D(c) c
#define CLT_MATH(V, T, f, x) CLT_##f##_##T(V)(x)
#define CLT_log_float(V) log_##V
#define CLT_sin_float(V) sin_##V
#define CLT_cos_float(V) cos_##V
#define CLT_log_double(V) log_##V
#define CLT_sin_double(V) sin_##V
#define CLT_cos_double(V) cos_##V
#define CLT_SIZE(V, T, I, x) CLT_SIZE_##T(V, I, x)
#define CLT_SIZE_float(V, I, x) CLT_ABS(V, I, x)
#define CLT_SIZE_double(V, I, x) fabs(x)
#define CLT_CHEB(V, T, name, t) clt_cheb_##V(t, clt_##name##_##T, (int)(sizeof(clt_##name##_##T) / sizeof(T)))
#define CLT_CHEB_OF(V, T, I, K)                                                                      \
  static inline V clt_cheb_##V(V t, __constant T *c, int n) {                                        \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                 \
    V a = (V)(0), b = (V)(0);                                                                        \
    for (int k = n - 1; k > 0; k--) {                                                                \
      const V next = 2 * t * a - b + c[k];                                                           \
      b = a;                                                                                         \
      a = next;                                                                                      \
    }                                                                                                \
    return t * a - b + c[0];                                                                         \
  }
CLT_OWN_LANES(CLT_CHEB_OF, float, int, CLT_LIT_F)
#ifdef CLT_DOUBLE
CLT_OWN_LANES(CLT_CHEB_OF, double, long, CLT_LIT_D)
#endif
