/* The regularised incomplete gamma functions igamma (lower, P) and igammac (upper, Q), for any number of lanes: series
   (DLMF 8.11.4), continued fraction, and for large a near x Temme's expansion, whose number of terms suffices from a =
   UNIFORM on if |x - a| < NEAR a. A loop goes on until all lanes are done; a lane that is done, or uses another method,
   no longer changes. */
#include "special/chebyshev.cl"
#include "special/lgamma.cl"
#include "elementary/erf.cl"
#include "elementary/expm1.cl"
#define CLT_lgamma_float(V) lgamma_##V
#define CLT_lgamma_double(V) lgamma
#define CLT_erfc_float(V) erfc_##V
#define CLT_erfc_double(V) erfc
#define CLT_expm1_float(V) expm1_##V
#define CLT_expm1_double(V) expm1
/* Stopping thresholds. LEAST: a term of the series; ONE: the difference of two convergents of the fraction; SMALL: a
   term of Q for small x. */
#define CLT_IGAMMA_LEAST_float 4e-9f
#define CLT_IGAMMA_LEAST_double 1e-17
#define CLT_IGAMMA_ONE_float 1.2e-7f
#define CLT_IGAMMA_ONE_double 2.3e-16
#define CLT_IGAMMA_SMALL_float 1e-9f
#define CLT_IGAMMA_SMALL_double 1e-18
#define CLT_IGAMMA_UNIFORM_float 20
#define CLT_IGAMMA_UNIFORM_double 400
#define CLT_IGAMMA_NEAR_float 0.3f
#define CLT_IGAMMA_NEAR_double 0.1
/* Coefficients of 1 / Gamma(1 + t) in powers of t, and of (atanh(s) / s - 1) / s^2 in powers of s^2. */
__constant float clt_igamma_inverse_float[] = {1.0f, 0.5772156649f, -0.6558780715f, -0.04200263503f, 0.1665386114f, -0.04219773456f, -9.621971528e-3f,
  7.218943247e-3f, -1.165167592e-3f, -2.152416741e-4f, 1.280502824e-4f, -2.013485478e-5f};
__constant float clt_igamma_odd_float[] = {0.3333333333f, 0.2f, 0.1428571429f, 0.1111111111f, 0.09090909091f, 0.07692307692f};
#define CLT_IGAMMA_SUM(V, T, name, t) clt_igamma_sum_##V(t, clt_igamma_##name##_##T, (int)(sizeof(clt_igamma_##name##_##T) / sizeof(T)))
#define CLT_IGAMMA(V, T, I, K)                                                                                                     \
  static inline V clt_igamma_sum_##V(V t, __constant T *c, int n) {                                                                \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                               \
    V sum = (V)(c[n - 1]);                                                                                                         \
    for (int k = n - 2; k >= 0; k--) sum = sum * t + c[k];                                                                         \
    return sum;                                                                                                                    \
  }                                                                                                                                \
  /* m - log(1 + m) without cancellation; ratio is 1 + m. Near m = 0 by log(1 + m) = 2 atanh(s), s = m / (2 + m). */               \
  static inline V clt_log1p_rest_##V(V m, V ratio) {                                                                               \
    const V s = m / (2 + m), q = s * s, near = s * m - 2 * s * (q * CLT_IGAMMA_SUM(V, T, odd, q));                                 \
    return CLT_SIZE(V, T, I, m) > (V)(K(0.3)) ? m - CLT_MATH(V, T, log, ratio) : near;                                             \
  }                                                                                                                                \
  /* x^a exp(-x) / Gamma(a + 1): up to a = 10 with the gamma function, beyond with Stirling's series. */                           \
  static inline V clt_igamma_factor_##V(V a, V x) {                                                                                \
    const I far = a >= (V)(10);                                                                                                    \
    const V low = far ? (V)(1) : a, whole = rint(low), t = low - whole;                                                            \
    V steps = (V)(1);                                                                                                              \
    for (int k = 1; k <= 10; k++) steps = whole >= (V)(k) ? steps * (t + k) : steps;                                               \
    V y = exp_##V(low * CLT_MATH(V, T, log, x) - x) * (CLT_IGAMMA_SUM(V, T, inverse, t) / steps);                                  \
    if (CLT_ANY_##I(far) != 0) {                                                                                                   \
      const V r = 1 / (a * a);                                                                                                     \
      const V stirling = (K(8.33333333333333333e-2) - r * (K(2.77777777777777778e-3) - r * (K(7.93650793650793651e-4) -            \
                         r * (K(5.95238095238095238e-4) - r * (K(8.41750841750841751e-4) - r * K(1.91752691752691753e-3)))))) / a; \
      const V rest = exp_##V(-a * clt_log1p_rest_##V((x - a) / a, x / a) - stirling);                                              \
      y = far ? rest / sqrt(K(6.28318530717958648) * a) : y;                                                                       \
    }                                                                                                                              \
    return y;                                                                                                                      \
  }                                                                                                                                \
  /* The series of P. Four terms at a time are computed with one division. */                                                      \
  static inline V clt_igamma_series_##V(V a, V x, I chosen) {                                                                      \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                               \
    const V cube = x * x * x;                                                                                                      \
    V term = chosen ? (V)(1) : (V)(0), sum = (V)(1), n = a;                                                                        \
    for (int k = 0; k < 1000 && CLT_ANY_##I(term > sum * CLT_IGAMMA_LEAST_##T) != 0; k++) {                                        \
      const V one = n + 4, two = (n + 3) * one, three = (n + 2) * two, first = term * x / ((n + 1) * three);                       \
      sum += first * (((one + x) * x + two) * x + three);                                                                          \
      term = first * cube;                                                                                                         \
      n = one;                                                                                                                     \
    }                                                                                                                              \
    return sum;                                                                                                                    \
  }                                                                                                                                \
  /* The continued fraction of Q (DLMF 8.9.2) as p / q, renormalised to q = 1 after every four steps. */                           \
  static inline V clt_igamma_fraction_##V(V a, V x, I chosen) {                                                                    \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                               \
    V b = x + 1 - a, q_last = 1 / b, p = q_last, p_last = (V)(0), h = p;                                                           \
    I left = chosen;                                                                                                               \
    for (int k = 1; k < 4000 && CLT_ANY_##I(left) != 0; k += 4) {                                                                  \
      V q = (V)(1);                                                                                                                \
      for (int i = k; i < k + 4; i++) {                                                                                            \
        const V an = (a - i) * i;                                                                                                  \
        b += 2;                                                                                                                    \
        const V p_next = b * p + an * p_last, q_next = b * q + an * q_last;                                                        \
        p_last = p, q_last = q;                                                                                                    \
        p = p_next, q = q_next;                                                                                                    \
      }                                                                                                                            \
      const V scale = 1 / q, before = h;                                                                                           \
      p *= scale, p_last *= scale, q_last *= scale;                                                                                \
      h = left ? p : h;                                                                                                            \
      left = left & (CLT_SIZE(V, T, I, h - before) > CLT_IGAMMA_ONE_##T * h);                                                      \
    }                                                                                                                              \
    return a * h;                                                                                                                  \
  }                                                                                                                                \
  /* Q for small x, where 1 - P would cancel. */                                                                                   \
  static inline V clt_igamma_small_##V(V a, V x, I chosen) {                                                                       \
    V power = chosen ? (V)(1) : (V)(0), sum = (V)(0);                                                                              \
    for (int k = 1; k < 60 && CLT_ANY_##I(CLT_SIZE(V, T, I, power) > (V)(CLT_IGAMMA_SMALL_##T)) != 0; k++) {                       \
      power *= -x / k;                                                                                                             \
      sum += power / (a + k);                                                                                                      \
    }                                                                                                                              \
    const V l = a * CLT_MATH(V, T, log, x) - CLT_MATH(V, T, lgamma, 1 + a);                                                        \
    return -CLT_MATH(V, T, expm1, l) - a * exp_##V(l) * sum;                                                                       \
  }                                                                                                                                \
  /* Temme's uniform expansion (DLMF 8.12): Q if upper, else P. */                                                                 \
  static inline V clt_igamma_uniform_##V(V a, V x, const bool upper) {                                                             \
    const V m = (x - a) / a, phi = clt_log1p_rest_##V(m, x / a), size = sqrt(2 * phi), h = m < (V)(0) ? -size : size, r = 1 / a;   \
    V c0 = K(6.70785354340149858e-9); c0 = c0 * h + K(-1.76659527368260793e-7);                                                    \
    c0 = c0 * h + K(8.29671134095308601e-7); c0 = c0 * h + K(-1.85406221071515996e-6);                                             \
    c0 = c0 * h + K(-2.18544851067999216e-6); c0 = c0 * h + K(3.91926317852243778e-5);                                             \
    c0 = c0 * h + K(-1.78755144032921811e-4); c0 = c0 * h + K(3.527336860670194e-4);                                               \
    c0 = c0 * h + K(0.00115740740740740741); c0 = c0 * h + K(-0.0148148148148148148);                                              \
    c0 = c0 * h + K(0.0833333333333333333); c0 = c0 * h + K(-0.333333333333333333);                                                \
    V c1 = K(4.64712780280743434e-9); c1 = c1 * h + K(-1.6120900894563446e-6);                                                     \
    c1 = c1 * h + K(7.64916091608111008e-6); c1 = c1 * h + K(-1.80985503344899778e-5);                                             \
    c1 = c1 * h + K(-4.01877572016460905e-7); c1 = c1 * h + K(2.05761316872427984e-4);                                             \
    c1 = c1 * h + K(-9.90226337448559671e-4); c1 = c1 * h + K(0.0026455026455026455);                                              \
    c1 = c1 * h + K(-0.00347222222222222222); c1 = c1 * h + K(-0.00185185185185185185);                                            \
    V c2 = K(3.42357873409613807e-8); c2 = c2 * h + K(-1.27606351886187277e-5);                                                    \
    c2 = c2 * h + K(5.29234488291201254e-5); c2 = c2 * h + K(-1.07366532263651605e-4);                                             \
    c2 = c2 * h + K(2.00938786008230453e-6); c2 = c2 * h + K(7.71604938271604938e-4);                                              \
    c2 = c2 * h + K(-0.00268132716049382716); c2 = c2 * h + K(0.0041335978835978836);                                              \
    V c3 = K(-2.39650511386729665e-7); c3 = c3 * h + K(-7.56180167188397641e-5);                                                   \
    c3 = c3 * h + K(2.67720632062838853e-4); c3 = c3 * h + K(-4.69189494395255712e-4);                                             \
    c3 = c3 * h + K(2.29472093621399177e-4); c3 = c3 * h + K(6.49434156378600823e-4);                                              \
    V c4 = K(-1.46384525788434182e-6); c4 = c4 * h + K(-2.9907248030319018e-4);                                                    \
    c4 = c4 * h + K(7.84039221720066627e-4); c4 = c4 * h + K(-8.61888290916711699e-4);                                             \
    const V rest = exp_##V(-a * phi) * sqrt(r * K(0.159154943091895336)) * (c0 + r * (c1 + r * (c2 + r * (c3 + r * c4))));         \
    const I turned = upper ? m < (V)(0) : m >= (V)(0);                                                                             \
    const V y = sqrt(a * phi), part = K(0.5) * CLT_MATH(V, T, erfc, turned ? -y : y);                                              \
    return upper ? part + rest : part - rest;                                                                                      \
  }                                                                                                                                \
  static inline V clt_igamma_any_##V(V a, V x, const bool upper) {                                                                 \
    const V one = (V)(1), zero = (V)(0), inf = (V)(INFINITY);                                                                      \
    const I good = a > zero & x > zero & a < inf & x < inf;                                                                        \
    const I uniform = good & a > (V)(CLT_IGAMMA_UNIFORM_##T) & CLT_SIZE(V, T, I, x - a) < CLT_IGAMMA_NEAR_##T * a;                 \
    const I small = good & !uniform & (upper ? x < (V)(K(1.1)) & a < (V)(K(1.1)) : x != x);                                        \
    const I beyond = good & !uniform & !small & x > one & x > a, series = good & !uniform & !small & !beyond;                      \
    V p = zero, q = zero;                                                                                                          \
    if (CLT_ANY_##I(series) != 0) p = clt_igamma_series_##V(series ? a : one, series ? x : zero, series);                          \
    if (CLT_ANY_##I(beyond) != 0) q = clt_igamma_fraction_##V(beyond ? a : one, beyond ? x : one + one, beyond);                   \
    V r = zero;                                                                                                                    \
    if (CLT_ANY_##I(series | beyond) != 0) {                                                                                       \
      const I either = series | beyond;                                                                                            \
      const V factor = clt_igamma_factor_##V(either ? a : one, either ? x : one);                                                  \
      const V part = factor == zero ? zero : factor * (beyond ? q : p); /* for huge arguments p and q are meaningless */           \
      r = (upper ? series : beyond) ? 1 - part : part;                                                                             \
    }                                                                                                                              \
    if (CLT_ANY_##I(uniform) != 0) r = uniform ? clt_igamma_uniform_##V(uniform ? a : one, uniform ? x : one, upper) : r;          \
    if (upper && CLT_ANY_##I(small) != 0) r = small ? clt_igamma_small_##V(small ? a : one, small ? x : one, small) : r;           \
    const V least = upper ? one : zero, most = upper ? zero : one;                                                                 \
    r = x == inf ? most : r;                                                                                                       \
    r = a == inf ? (x == inf ? (V)(NAN) : least) : r;                                                                              \
    r = x == zero ? least : r;                                                                                                     \
    r = a == zero ? (x > zero ? most : (V)(NAN)) : r;                                                                              \
    return a >= zero & x >= zero ? r : (V)(NAN);                                                                                   \
  }                                                                                                                                \
  static inline V igamma_##V(V a, V x) { return clt_igamma_any_##V(a, x, false); }                                                 \
  static inline V igammac_##V(V a, V x) { return clt_igamma_any_##V(a, x, true); }
CLT_OWN_LANES(CLT_IGAMMA, float, int, CLT_LIT_F)
#ifdef CLT_DOUBLE
__constant double clt_igamma_inverse_double[] = {1.0, 0.577215664901532861, -0.655878071520253881, -0.0420026350340952355, 0.16653861138229149,
  -0.0421977345555443367, -9.62197152787697356e-3, 7.21894324666309954e-3, -1.16516759185906511e-3,
  -2.15241674114950973e-4, 1.28050282388116186e-4, -2.01348547807882387e-5, -1.25049348214267066e-6,
  1.13302723198169588e-6, -2.0563384169776071e-7, 6.11609510448141582e-9, 5.00200764446922293e-9,
  -1.18127457048702014e-9, 1.04342671169110051e-10, 7.78226343990507125e-12};
__constant double clt_igamma_odd_double[] = {0.333333333333333333, 0.2, 0.142857142857142857, 0.111111111111111111, 0.0909090909090909091, 0.0769230769230769231,
  0.0666666666666666667, 0.0588235294117647059, 0.0526315789473684211, 0.047619047619047619, 0.0434782608695652174,
  0.04};
CLT_OWN_LANES(CLT_IGAMMA, double, long, CLT_LIT_D)
#endif
