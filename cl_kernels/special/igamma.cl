/* The regularised incomplete gamma functions igamma (lower, P) and igammac (upper, Q): series (DLMF 8.11.4), continued fraction,
   and for large a near x Temme's expansion. */
#define CLT_LIT_F(c) c##f
#define CLT_LIT_D(c) c
#define CLT_IGAMMA_STOP_float 6e-8f
#define CLT_IGAMMA_STOP_double 1e-16
#define CLT_IGAMMA(T, K)                                                                                                       \
  /* m - log(1 + m) without cancellation; ratio is 1 + m. */                                                                   \
  static inline T clt_log1p_rest_##T(T m, T ratio) {                                                                           \
    if (fabs(m) > K(0.3)) return m - log(ratio);                                                                               \
    /* log(1 + m) = 2 atanh(s), s = m / (2 + m) */                                                                             \
    const T s = m / (2 + m), q = s * s;                                                                                        \
    T sum = K(0.0), power = 1;                                                                                                 \
    for (int k = 3; k < 45 && power > K(1e-18); k += 2) {                                                                      \
      power *= q;                                                                                                              \
      sum += power / k;                                                                                                        \
    }                                                                                                                          \
    return s * m - 2 * s * sum;                                                                                                \
  }                                                                                                                            \
  /* x^a exp(-x) / Gamma(a + 1). */                                                                                            \
  static inline T clt_igamma_factor_##T(T a, T x) {                                                                            \
    if (a < 10) return exp(a * log(x) - x - lgamma(a + 1));                                                                    \
    const T r = 1 / (a * a);                                                                                                   \
    const T stirling = (K(8.33333333333333333e-2) - r * (K(2.77777777777777778e-3) - r * (K(7.93650793650793651e-4) -          \
                       r * (K(5.95238095238095238e-4) - r * (K(8.41750841750841751e-4) -                                       \
                       r * K(1.91752691752691753e-3)))))) / a;                                                                 \
    return exp(-a * clt_log1p_rest_##T((x - a) / a, x / a) - stirling) / sqrt(K(6.28318530717958648) * a);                     \
  }                                                                                                                            \
  static inline T clt_igamma_series_##T(T a, T x) {                                                                            \
    T term = 1, sum = 1, n = a;                                                                                                \
    for (int k = 0; k < 4000 && term > sum * K(1e-17); k++) {                                                                  \
      n += 1;                                                                                                                  \
      term *= x / n;                                                                                                           \
      sum += term;                                                                                                             \
    }                                                                                                                          \
    return clt_igamma_factor_##T(a, x) * sum;                                                                                  \
  }                                                                                                                            \
  /* The continued fraction of the upper function (DLMF 8.9.2), by Lentz's method. */                                          \
  static inline T clt_igamma_fraction_##T(T a, T x) {                                                                          \
    T b = x + 1 - a, c = K(1e30), d = 1 / b, h = d;                                                                            \
    for (int k = 1; k < 4000; k++) {                                                                                           \
      const T an = -k * (k - a);                                                                                               \
      b += 2;                                                                                                                  \
      d = 1 / (an * d + b);                                                                                                    \
      c = b + an / c;                                                                                                          \
      const T step = c * d;                                                                                                    \
      h *= step;                                                                                                               \
      if (fabs(step - 1) < CLT_IGAMMA_STOP_##T) break;                                                                         \
    }                                                                                                                          \
    return clt_igamma_factor_##T(a, x) * a * h;                                                                                \
  }                                                                                                                            \
  /* The upper function for small x, where 1 - P would cancel. */                                                              \
  static inline T clt_igamma_small_##T(T a, T x) {                                                                             \
    T power = 1, sum = 0;                                                                                                      \
    for (int k = 1; k < 60; k++) {                                                                                             \
      power *= -x / k;                                                                                                         \
      sum += power / (a + k);                                                                                                  \
      if (fabs(power) < K(1e-18)) break;                                                                                       \
    }                                                                                                                          \
    const T l = a * log(x);                                                                                                    \
    return -expm1(l - lgamma(1 + a)) - a * exp(l - lgamma(1 + a)) * sum;                                                       \
  }                                                                                                                            \
  /* Temme's uniform expansion (DLMF 8.12) for large a and x near a; upper says which of the two functions. */                 \
  static inline T clt_igamma_uniform_##T(T a, T x, bool upper) {                                                               \
    const T m = (x - a) / a, phi = clt_log1p_rest_##T(m, x / a), h = copysign(sqrt(2 * phi), m), r = 1 / a;                    \
    T c0 = K(6.70785354340149858e-9); c0 = c0 * h + K(-1.76659527368260793e-7);                                                \
    c0 = c0 * h + K(8.29671134095308601e-7); c0 = c0 * h + K(-1.85406221071515996e-6);                                         \
    c0 = c0 * h + K(-2.18544851067999216e-6); c0 = c0 * h + K(3.91926317852243778e-5);                                         \
    c0 = c0 * h + K(-1.78755144032921811e-4); c0 = c0 * h + K(3.527336860670194e-4);                                           \
    c0 = c0 * h + K(0.00115740740740740741); c0 = c0 * h + K(-0.0148148148148148148);                                          \
    c0 = c0 * h + K(0.0833333333333333333); c0 = c0 * h + K(-0.333333333333333333);                                            \
    T c1 = K(4.64712780280743434e-9); c1 = c1 * h + K(-1.6120900894563446e-6);                                                 \
    c1 = c1 * h + K(7.64916091608111008e-6); c1 = c1 * h + K(-1.80985503344899778e-5);                                         \
    c1 = c1 * h + K(-4.01877572016460905e-7); c1 = c1 * h + K(2.05761316872427984e-4);                                         \
    c1 = c1 * h + K(-9.90226337448559671e-4); c1 = c1 * h + K(0.0026455026455026455);                                          \
    c1 = c1 * h + K(-0.00347222222222222222); c1 = c1 * h + K(-0.00185185185185185185);                                        \
    T c2 = K(3.42357873409613807e-8); c2 = c2 * h + K(-1.27606351886187277e-5);                                                \
    c2 = c2 * h + K(5.29234488291201254e-5); c2 = c2 * h + K(-1.07366532263651605e-4);                                         \
    c2 = c2 * h + K(2.00938786008230453e-6); c2 = c2 * h + K(7.71604938271604938e-4);                                          \
    c2 = c2 * h + K(-0.00268132716049382716); c2 = c2 * h + K(0.0041335978835978836);                                          \
    T c3 = K(-2.39650511386729665e-7); c3 = c3 * h + K(-7.56180167188397641e-5);                                               \
    c3 = c3 * h + K(2.67720632062838853e-4); c3 = c3 * h + K(-4.69189494395255712e-4);                                         \
    c3 = c3 * h + K(2.29472093621399177e-4); c3 = c3 * h + K(6.49434156378600823e-4);                                          \
    T c4 = K(-1.46384525788434182e-6); c4 = c4 * h + K(-2.9907248030319018e-4);                                                \
    c4 = c4 * h + K(7.84039221720066627e-4); c4 = c4 * h + K(-8.61888290916711699e-4);                                         \
    const T rest = exp(-a * phi) * sqrt(r * K(0.159154943091895336)) * (c0 + r * (c1 + r * (c2 + r * (c3 + r * c4))));         \
    const T y = copysign(sqrt(a * phi), m);                                                                                    \
    return upper ? K(0.5) * erfc(y) + rest : K(0.5) * erfc(-y) - rest;                                                         \
  }                                                                                                                            \
  static inline T clt_igamma_any_##T(T a, T x, bool upper) {                                                                   \
    if (!(a >= 0) || !(x >= 0)) return NAN;                                                                                    \
    if (a == 0) return x > 0 ? (T)(upper ? 0 : 1) : (T)NAN;                                                                    \
    if (x == 0) return upper ? 1 : 0;                                                                                          \
    if (isinf(a)) return isinf(x) ? (T)NAN : (T)(upper ? 1 : 0);                                                               \
    if (isinf(x)) return upper ? 0 : 1;                                                                                        \
    if (a > 1000 && fabs(x - a) < K(0.1) * a) return clt_igamma_uniform_##T(a, x, upper);                                      \
    if (upper && x < K(1.1) && a < K(1.1)) return clt_igamma_small_##T(a, x);                                                  \
    if (x > 1 && x > a) {                                                                                                      \
      const T q = clt_igamma_fraction_##T(a, x);                                                                               \
      return upper ? q : 1 - q;                                                                                                \
    }                                                                                                                          \
    const T p = clt_igamma_series_##T(a, x);                                                                                   \
    return upper ? 1 - p : p;                                                                                                  \
  }                                                                                                                            \
  static inline T igamma_##T(T a, T x) { return clt_igamma_any_##T(a, x, false); }                                             \
  static inline T igammac_##T(T a, T x) { return clt_igamma_any_##T(a, x, true); }
CLT_IGAMMA(float, CLT_LIT_F)
#ifdef CLT_DOUBLE
CLT_IGAMMA(double, CLT_LIT_D)
#endif
