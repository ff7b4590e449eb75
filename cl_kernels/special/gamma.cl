/* trigamma, polygamma from 1 on and the Hurwitz zeta function: recurrence up to where the asymptotic series (DLMF 5.15) or
   Euler-Maclaurin's formula (DLMF 25.11.5) holds, reflection below zero. Poles and arguments out of the domain as torch has them. */
#define CLT_LIT_F(c) c##f
#define CLT_LIT_D(c) c
#define CLT_GAMMA(T, K)                                                                                                        \
  static inline T trigamma_##T(T x) {                                                                                          \
    T sign = 1, sum = 0;                                                                                                       \
    if (x < K(0.5)) {                                                                                                          \
      sign = -1;                                                                                                               \
      const T p = K(3.14159265358979324) / sin(K(3.14159265358979324) * (x - rint(x)));                                        \
      sum = -p * p;                                                                                                            \
      x = 1 - x;                                                                                                               \
    }                                                                                                                          \
    for (; x < 10; x += 1) sum += 1 / (x * x);                                                                                 \
    const T s = 1 / (x * x);                                                                                                   \
    sum += 1 / x + K(0.5) * s + s / x * (K(0.166666666666666667) - s * (K(3.33333333333333333e-2) -                            \
           s * (K(2.38095238095238095e-2) - s * (K(3.33333333333333333e-2) - s * (K(7.57575757575757576e-2) -                  \
           s * (K(0.253113553113553114) - s * K(1.16666666666666667)))))));                                                    \
    return sign * sum;                                                                                                         \
  }                                                                                                                            \
  static inline T zeta_##T(T s, T q) {                                                                                         \
    if (s == 1) return INFINITY;                                                                                               \
    if (!(s > 1)) return NAN;                                                                                                  \
    if (q <= 0) {                                                                                                              \
      if (q == floor(q)) return INFINITY;                                                                                      \
      if (s != floor(s)) return NAN;                                                                                           \
    }                                                                                                                          \
    if (q > K(1e8)) return pow(q, 1 - s) * (1 / (s - 1) + K(0.5) / q);                                                         \
    T a = q, term = pow(q, -s), sum = term;                                                                                    \
    for (int k = 0; k < 9 || a <= 9; k++) {                                                                                    \
      a += 1;                                                                                                                  \
      term = pow(a, -s);                                                                                                       \
      sum += term;                                                                                                             \
      if (fabs(term) < fabs(sum) * K(1e-17)) return sum;                                                                       \
    }                                                                                                                          \
    sum += term * a / (s - 1) - K(0.5) * term;                                                                                 \
    const T r = 1 / (a * a);                                                                                                   \
    T c = s * term / a, rising = s;                                                                                            \
    sum += c * K(8.33333333333333333e-2);                                                                                      \
    c *= (rising + 1) * (rising + 2) * r, rising += 2;                                                                         \
    sum -= c * K(1.38888888888888889e-3);                                                                                      \
    c *= (rising + 1) * (rising + 2) * r, rising += 2;                                                                         \
    sum += c * K(3.30687830687830688e-5);                                                                                      \
    c *= (rising + 1) * (rising + 2) * r, rising += 2;                                                                         \
    sum -= c * K(8.26719576719576720e-7);                                                                                      \
    c *= (rising + 1) * (rising + 2) * r, rising += 2;                                                                         \
    sum += c * K(2.08767569878680990e-8);                                                                                      \
    c *= (rising + 1) * (rising + 2) * r, rising += 2;                                                                         \
    sum -= c * K(5.28419013868749318e-10);                                                                                     \
    c *= (rising + 1) * (rising + 2) * r, rising += 2;                                                                         \
    return sum + c * K(1.33825365306846788e-11);                                                                               \
  }                                                                                                                            \
  static inline T polygamma_##T(T n, T x) {                                                                                    \
    if (n == 1) return trigamma_##T(x);                                                                                        \
    const T sign = fmod(n, K(2.0)) == 0 ? K(-1.0) : K(1.0);                                                                    \
    return sign * tgamma(n + 1) * zeta_##T(n + 1, x);                                                                          \
  }
CLT_GAMMA(float, CLT_LIT_F)
#ifdef CLT_DOUBLE
CLT_GAMMA(double, CLT_LIT_D)
#endif
