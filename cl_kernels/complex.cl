/* Complex arithmetic and functions: a value is a float2 or double2 (x real, y imaginary). A function whose result is real
   returns it with a zero imaginary part. Branch cuts are C99's (numpy's, torch's); inverse functions follow Kahan, "Branch
   cuts for complex elementary functions" (1987); division is Smith's (1962). CLT_COMPLEX(T, T2, K, BIG) makes one precision:
   K(c) writes a literal of it, BIG is where exp is about to overflow. What there is of vectors, too, is in complex_lanes.cl. */
#include "complex_lanes.cl"
#define CLT_COMPLEX(T, T2, K, BIG)                                                                                             \
  static inline T2 cmul_##T2(T2 a, T2 b) { return (T2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }                        \
  static inline T2 cdiv_##T2(T2 a, T2 b) {                                                                                     \
    T m = fmax(fabs(b.x), fabs(b.y));                                                                                          \
    if (m == 0) return a / (fabs(b.x) + fabs(b.y));                                                                            \
    if (m > K(1e37) && isfinite(m)) a *= K(0.125), b *= K(0.125);                                                              \
    if (m < K(1e-30)) a *= CLT_LIFT_##T, b *= CLT_LIFT_##T;                                                                    \
    if (fabs(b.x) >= fabs(b.y)) {                                                                                              \
      T r = isinf(b.x) && isinf(b.y) ? copysign(K(1.0), b.x) * copysign(K(1.0), b.y) : b.y / b.x, d = b.x + b.y * r;           \
      return (T2)((a.x + a.y * r) / d, (a.y - a.x * r) / d);                                                                   \
    }                                                                                                                          \
    T r = b.x / b.y, d = b.x * r + b.y;                                                                                        \
    return (T2)((a.x * r + a.y) / d, (a.y * r - a.x) / d);                                                                     \
  }                                                                                                                            \
  static inline T2 crecip_##T2(T2 z) { return cdiv_##T2((T2)(1, 0), z); }                                                      \
  /* h e^x (cos y, sin y); beyond BIG in two halves, so that only the product overflows. */                                    \
  static inline T2 clt_cis_scaled_##T2(T x, T y, T h) {                                                                        \
    T s = sin(y), c = cos(y);                                                                                                  \
    if (x > BIG && x < 4 * BIG) {                                                                                              \
      T e = exp(x * K(0.5));                                                                                                   \
      return (T2)(c * h * e * e, s * h * e * e);                                                                               \
    }                                                                                                                          \
    T e = exp(x);                                                                                                              \
    if (e == 0 && (isinf(x) || isfinite(y))) return (T2)(copysign(K(0.0), isfinite(y) ? c : 1), copysign(K(0.0), isfinite(y) ? s : 1)); \
    return (T2)(e * h * c, e * h * s);                                                                                         \
  }                                                                                                                            \
  static inline T2 cexpm1_##T2(T2 z) {                                                                                         \
    if (z.y == 0) return (T2)(expm1(z.x), z.y);                                                                                \
    if (z.x > K(1.0)) return cexp_##T2(z) - (T2)(1, 0);                                                                        \
    T h = sin(z.y * K(0.5)), m = expm1(z.x);                                                                                   \
    return (T2)(m * cos(z.y) - 2 * h * h, (z.x < K(-1.0) ? exp(z.x) : m + K(1.0)) * sin(z.y));                                 \
  }                                                                                                                            \
  /* p * q as an unevaluated sum (Dekker). */                                                                                  \
  static inline T2 clt_two_product_##T2(T p, T q) {                                                                            \
    T a = p * CLT_SPLIT_##T, b = q * CLT_SPLIT_##T, ph = a - (a - p), qh = b - (b - q), pl = p - ph, ql = q - qh, v = p * q;   \
    return (T2)(v, ((ph * qh - v) + ph * ql + pl * qh) + pl * ql);                                                             \
  }                                                                                                                            \
  static inline T2 clt_two_sum_##T2(T a, T b) {                                                                                \
    T s = a + b, t = s - a;                                                                                                    \
    return (T2)(s, (a - (s - t)) + (b - t));                                                                                   \
  }                                                                                                                            \
  /* log(m * m + n * n) / 2 where that is near 1: d = |z|^2 - 1 without cancellation. */                                       \
  static inline T clt_log_near_one_##T2(T m, T n) {                                                                            \
    T2 p = clt_two_product_##T2(m - K(1.0), m + K(1.0)), e = clt_two_sum_##T2(m, K(1.0)), q = clt_two_product_##T2(n, n);      \
    T2 s = clt_two_sum_##T2(p.x, q.x);                                                                                         \
    return K(0.5) * log1p(s.x + (s.y + p.y + q.y + e.y * (m - K(1.0))));                                                       \
  }                                                                                                                            \
  static inline T2 clog_##T2(T2 z) {                                                                                           \
    T a = fabs(z.x), b = fabs(z.y), m = fmax(a, b), n = fmin(a, b), arg = atan2(z.y, z.x), h = hypot(m, n);                    \
    if (m >= K(0.5) && h <= K(2.0) && !isnan(z.x + z.y)) return (T2)(clt_log_near_one_##T2(m, n), arg);                        \
    if (m > K(1e37) && isfinite(m)) h = hypot(m * K(0.25), n * K(0.25)), m = K(1.3862943611198906);                            \
    else m = K(0.0);                                                                                                           \
    return (T2)(isnan(z.x + z.y) && !isinf(h) ? (T)NAN : log(h) + m, arg);                                                     \
  }                                                                                                                            \
  static inline T2 clog10_##T2(T2 z) { return clog_##T2(z) * K(0.4342944819032518); }                                          \
  static inline T2 clog2_##T2(T2 z) { return clog_##T2(z) * K(1.4426950408889634); }                                           \
  static inline T2 clog1p_##T2(T2 z) {                                                                                         \
    T u = z.x + K(1.0);                                                                                                        \
    if (!(fabs(z.x) + fabs(z.y) <= K(0.5))) return clog_##T2((T2)(u, z.y));                                                    \
    T2 p = clt_two_product_##T2(z.x, z.x + K(2.0)), e = clt_two_sum_##T2(z.x, K(2.0)), q = clt_two_product_##T2(z.y, z.y);     \
    T2 s = clt_two_sum_##T2(p.x, q.x);                                                                                         \
    return (T2)(K(0.5) * log1p(s.x + (s.y + p.y + q.y + e.y * z.x)), atan2(z.y, u));                                           \
  }                                                                                                                            \
  static inline T2 csqrt_##T2(T2 z) {                                                                                          \
    if (isinf(z.y)) return (T2)(INFINITY, z.y);                                                                                \
    if (z.x == 0 && z.y == 0) return (T2)(0, z.y);                                                                             \
    if (isinf(z.x)) {                                                                                                          \
      T other = isnan(z.y) ? z.y : copysign(z.x > 0 ? K(0.0) : (T)INFINITY, z.y);                                              \
      return z.x > 0 ? (T2)(z.x, other) : (T2)(isnan(z.y) ? z.y : K(0.0), isnan(z.y) ? (T)INFINITY : other);                   \
    }                                                                                                                          \
    T m = fmax(fabs(z.x), fabs(z.y)), up = K(1.0), down = K(1.0);                                                              \
    if (m > K(1e37)) up = K(0.0625), down = K(4.0);                                                                            \
    if (m < K(1e-30)) up = CLT_LIFT_##T, down = CLT_LIFT_ROOT_##T;                                                             \
    T a = z.x * up, b = z.y * up, t = sqrt((fabs(a) + hypot(a, b)) * K(0.5));                                                  \
    return a >= 0 ? (T2)(t, b / (2 * t)) * down : (T2)(fabs(b) / (2 * t), copysign(t, b)) * down;                              \
  }                                                                                                                            \
  static inline T2 crsqrt_##T2(T2 z) { return crecip_##T2(csqrt_##T2(z)); }                                                    \
  static inline T2 cpow_##T2(T2 a, T2 b) {                                                                                     \
    if (b.x == 0 && b.y == 0) return (T2)(1, 0);                                                                               \
    if (a.x == 0 && a.y == 0) return b.x > 0 ? (T2)(0, 0) : (T2)(b.y == 0 ? (T)INFINITY : (T)NAN, NAN);                        \
    if (b.y == 0 && b.x == 1) return a;                                                                                        \
    if (b.y == 0 && b.x == 2) return cmul_##T2(a, a);                                                                          \
    return cexp_##T2(cmul_##T2(b, clog_##T2(a)));                                                                              \
  }                                                                                                                            \
  /* Beyond |x| = BIG / 4 sinh and cosh are both half an exponential. */                                                       \
  static inline T2 csinh_##T2(T2 z) {                                                                                          \
    T a = fabs(z.x);                                                                                                           \
    if (z.y == 0) return (T2)(sinh(z.x), z.y);                                                                                 \
    if (z.x == 0) return (T2)(z.x, sin(z.y));                                                                                  \
    if (isinf(a) && !isfinite(z.y)) return (T2)(z.x, NAN);                                                                     \
    if (a > BIG * K(0.25)) {                                                                                                   \
      T2 e = clt_cis_scaled_##T2(a, z.y, K(0.5));                                                                              \
      return (T2)(copysign(K(1.0), z.x) * e.x, e.y);                                                                           \
    }                                                                                                                          \
    return (T2)(sinh(z.x) * cos(z.y), cosh(z.x) * sin(z.y));                                                                   \
  }                                                                                                                            \
  static inline T2 ccosh_##T2(T2 z) {                                                                                          \
    T a = fabs(z.x);                                                                                                           \
    if (z.y == 0) return (T2)(cosh(z.x), z.x * z.y == 0 ? z.x * z.y : copysign(z.y, z.x));                                     \
    if (z.x == 0) return (T2)(cos(z.y), isfinite(z.y) ? z.x * sin(z.y) : z.x);                                                 \
    if (isinf(a) && !isfinite(z.y)) return (T2)(a, NAN);                                                                       \
    if (a > BIG * K(0.25)) {                                                                                                   \
      T2 e = clt_cis_scaled_##T2(a, z.y, K(0.5));                                                                              \
      return (T2)(e.x, copysign(K(1.0), z.x) * e.y);                                                                           \
    }                                                                                                                          \
    return (T2)(cosh(z.x) * cos(z.y), sinh(z.x) * sin(z.y));                                                                   \
  }                                                                                                                            \
  static inline T2 ctanh_##T2(T2 z) {                                                                                          \
    if (!isfinite(z.y) && !isinf(z.x)) return (T2)(z.x == 0 ? z.x : (T)NAN, NAN);                                              \
    T a = fabs(z.x);                                                                                                           \
    if (a > BIG * K(0.25)) {                                                                                                   \
      T imag = isfinite(z.y) ? 4 * sin(z.y) * cos(z.y) * exp(-2 * a) : K(0.0);                                                 \
      return (T2)(copysign(K(1.0), z.x), imag);                                                                                \
    }                                                                                                                          \
    if (z.y == 0) return (T2)(a > 20 ? copysign(K(1.0), z.x) : tanh(z.x), z.y);                                                \
    T t = tan(z.y), beta = K(1.0) + t * t, s = sinh(z.x), rho = sqrt(K(1.0) + s * s), d = K(1.0) + beta * s * s;               \
    return isinf(t) ? (T2)(rho / s, K(1.0) / t) : (T2)(beta * rho * s / d, t / d);                                             \
  }                                                                                                                            \
  static inline T2 csin_##T2(T2 z) {                                                                                           \
    T2 r = csinh_##T2((T2)(-z.y, z.x));                                                                                        \
    return (T2)(r.y, -r.x);                                                                                                    \
  }                                                                                                                            \
  static inline T2 ccos_##T2(T2 z) { return ccosh_##T2((T2)(-z.y, z.x)); }                                                     \
  static inline T2 ctan_##T2(T2 z) {                                                                                           \
    T2 r = ctanh_##T2((T2)(-z.y, z.x));                                                                                        \
    return (T2)(r.y, -r.x);                                                                                                    \
  }                                                                                                                            \
  /* (log 2|z|, angle of z) for the inverse functions far out. */                                                              \
  static inline bool clt_far_##T2(T2 z) { return fmax(fabs(z.x), fabs(z.y)) > K(1e17); }                                       \
  static inline T2 clt_log_twice_##T2(T2 z) { return clog_##T2(z) + (T2)(K(0.6931471805599453), 0); }                          \
  static inline T2 casin_##T2(T2 z) {                                                                                          \
    if (z.x == 0 && isnan(z.y)) return z;                                                                                      \
    if (clt_far_##T2(z)) return (T2)(atan2(z.x, fabs(z.y)), copysign(clt_log_twice_##T2(z).x, z.y));                           \
    if (z.y == 0 && fabs(z.x) <= 1) return (T2)(asin(z.x), z.y);                                                               \
    T2 p = csqrt_##T2((T2)(K(1.0) - z.x, -z.y)), q = csqrt_##T2((T2)(K(1.0) + z.x, z.y));                                      \
    return (T2)(atan2(z.x, p.x * q.x - p.y * q.y), asinh(p.x * q.y - p.y * q.x));                                              \
  }                                                                                                                            \
  static inline T2 cacos_##T2(T2 z) {                                                                                          \
    if (z.x == 0 && isnan(z.y)) return (T2)(K(1.5707963267948966), z.y);                                                       \
    if (clt_far_##T2(z)) return (T2)(atan2(fabs(z.y), z.x), copysign(clt_log_twice_##T2(z).x, -z.y));                          \
    T2 p = csqrt_##T2((T2)(K(1.0) - z.x, -z.y)), q = csqrt_##T2((T2)(K(1.0) + z.x, z.y));                                      \
    return (T2)(2 * atan2(p.x, q.x), asinh(q.x * p.y - q.y * p.x));                                                            \
  }                                                                                                                            \
  static inline T2 cacosh_##T2(T2 z) {                                                                                         \
    if (z.x == 0 && isnan(z.y)) return (T2)(z.y, K(1.5707963267948966));                                                       \
    if (clt_far_##T2(z)) return clt_log_twice_##T2(z);                                                                         \
    T2 p = csqrt_##T2((T2)(z.x - K(1.0), z.y)), q = csqrt_##T2((T2)(z.x + K(1.0), z.y));                                       \
    return (T2)(asinh(p.x * q.x + p.y * q.y), 2 * atan2(p.y, q.x));                                                            \
  }                                                                                                                            \
  static inline T2 casinh_##T2(T2 z) {                                                                                         \
    T2 r = casin_##T2((T2)(-z.y, z.x));                                                                                        \
    return (T2)(r.y, -r.x);                                                                                                    \
  }                                                                                                                            \
  static inline T2 catanh_##T2(T2 z) {                                                                                         \
    if (z.x == 0 && isnan(z.y)) return z;                                                                                      \
    T a = fabs(z.x), b = fabs(z.y);                                                                                            \
    if (a > K(1e15) || b > K(1e15)) {                                                                                          \
      T re = isinf(a) || isinf(b) ? K(0.0) : crecip_##T2((T2)(a, b)).x;                                                        \
      return isnan(a + b) && !isinf(b) ? (T2)(isinf(a) ? K(0.0) : (T)NAN, NAN)                                                 \
                                       : (T2)(copysign(re, z.x), copysign(K(1.5707963267948966), z.y));                        \
    }                                                                                                                          \
    if (a == 1 && b == 0) return (T2)(copysign((T)INFINITY, z.x), z.y);                                                        \
    T d = K(1.0) - a, re = K(0.25) * log1p(4 * a / (d * d + b * b));                                                           \
    if (a == 1 && b < K(1e-15)) re = K(0.5) * (K(0.6931471805599453) - log(b));                                                \
    return (T2)(copysign(re, z.x), K(0.5) * atan2(2 * z.y, d * (K(1.0) + a) - b * b));                                         \
  }                                                                                                                            \
  static inline T2 catan_##T2(T2 z) {                                                                                          \
    T2 r = catanh_##T2((T2)(-z.y, z.x));                                                                                       \
    return (T2)(r.y, -r.x);                                                                                                    \
  }
#define CLT_SPLIT_float 4097.0f
#define CLT_LIFT_ROOT_float 7.450580596923828e-09f
CLT_COMPLEX(float, float2, CLT_LIT_F, 88.0f)
#ifdef CLT_DOUBLE
#define CLT_SPLIT_double 134217729.0
#define CLT_LIFT_ROOT_double 7.850462293418876e-17
CLT_COMPLEX(double, double2, CLT_LIT_D, 709.0)
#endif
