/* Orthogonal polynomials of degree n (truncated to an integer; the value is 0 where n is negative) by their three-term
   recurrences. Within (-1, 1) Chebyshev polynomials from degree 7 on are computed from trigonometric functions, so that
   high degrees cost no more. Hermite polynomials beyond a certain degree (`limit`) would leave the type's range: NaN. */
#define CLT_POLY_LIT_F(c) c##f
#define CLT_POLY_LIT_D(c) c
/* `first` is the polynomial of degree 1; `next` that of degree k + 1, from b (degree k) and a (degree k - 1). */
#define CLT_POLY(T, name, first, next, limit)                            \
  static inline T name##_##T(const T x, const T n) {                     \
    if (!(n > -1)) return 0;                                             \
    const long degree = n < (T)9e18f ? (long)n : LONG_MAX;               \
    if (degree == 0) return 1;                                           \
    if (degree > (limit)) return NAN;                                    \
    T a = 1, b = first;                                                  \
    for (long k = 1; k < degree && b == b; ++k) {                        \
      const T c = next;                                                  \
      a = b;                                                             \
      b = c;                                                             \
    }                                                                    \
    return b;                                                            \
  }
#define CLT_CHEBYSHEV(T, letter, first, angle)                           \
  CLT_POLY(T, cheb_low_##letter, first, 2 * x * b - a, LONG_MAX)         \
  static inline T chebyshev_##letter##_##T(const T x, const T n) {       \
    if (!(fabs(x) < 1 && n >= 7)) return cheb_low_##letter##_##T(x, n);  \
    const T m = trunc(n), t = acos(x);                                   \
    return angle;                                                        \
  }                                                                      \
  static inline T shifted_##letter##_##T(const T x, const T n) { return chebyshev_##letter##_##T(2 * x - 1, n); }
#define CLT_POLYNOMIALS(T, K, top)                                                                      \
  CLT_CHEBYSHEV(T, t, x, cos(m * t))                                                                    \
  CLT_CHEBYSHEV(T, u, 2 * x, sin((m + 1) * t) / sin(t))                                                 \
  CLT_CHEBYSHEV(T, v, 2 * x - 1, cos((m + K(0.5)) * t) / cos(t * K(0.5)))                               \
  CLT_CHEBYSHEV(T, w, 2 * x + 1, sin((m + K(0.5)) * t) / sin(t * K(0.5)))                               \
  CLT_POLY(T, hermite_h, 2 * x, 2 * x * b - 2 * (T)k * a, top)                                          \
  CLT_POLY(T, hermite_he, x, x * b - (T)k * a, top)                                                     \
  CLT_POLY(T, laguerre_l, 1 - x, ((T)(2 * k + 1) - x) * b / (T)(k + 1) - (T)k / (T)(k + 1) * a, LONG_MAX)  \
  CLT_POLY(T, legendre_p, x, ((T)(2 * k + 1) * x * b - (T)k * a) / (T)(k + 1), LONG_MAX)
CLT_POLYNOMIALS(float, CLT_POLY_LIT_F, 128)
#ifdef CLT_DOUBLE
CLT_POLYNOMIALS(double, CLT_POLY_LIT_D, 512)
#endif
