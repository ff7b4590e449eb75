/* trigamma and the Hurwitz zeta function for any number of lanes: recurrence up to where the asymptotic series (DLMF
   5.15) or the Euler-Maclaurin formula (DLMF 25.11.5) holds, reflection below zero. Values at poles and outside the
   domain as in torch. */
#include "elementary/pow.cl"
#include "elementary/sine.cl"
#define CLT_LIT_F(c) c##f
#define CLT_LIT_D(c) c
#define CLT_GAMMA_SIN_float(V, x) sin_##V(x)
#define CLT_GAMMA_SIN_double(V, x) sin(x)
/* Add the next term of the Euler-Maclaurin sum: updates its factor c, and adds c times the coefficient C. */
#define CLT_ZETA_TERM(C) c *= (rising + 1) * (rising + 2) * r, rising += 2, far += c * (C);
#define CLT_GAMMA(V, T, I, K)                                                                                                  \
  static inline V trigamma_##V(V x) {                                                                                          \
    V y = x, sum = (V)(0);                                                                                                     \
    const I turned = x < (V)(K(0.5));                                                                                          \
    if (CLT_ANY_##I(turned) != 0) {                                                                                            \
      const V pi = (V)(K(3.14159265358979324)), p = pi / CLT_GAMMA_SIN_##T(V, pi * (x - rint(x)));                             \
      sum = turned ? -p * p : sum;                                                                                             \
      y = turned ? 1 - x : x;                                                                                                  \
    }                                                                                                                          \
    for (int k = 0; k < 10; k++) {                                                                                             \
      const I low = y < (V)(10);                                                                                               \
      sum += low ? 1 / (y * y) : (V)(0);                                                                                       \
      y += low ? (V)(1) : (V)(0);                                                                                              \
    }                                                                                                                          \
    const V s = 1 / (y * y);                                                                                                   \
    sum += 1 / y + K(0.5) * s + s / y * (K(0.166666666666666667) - s * (K(3.33333333333333333e-2) -                            \
           s * (K(2.38095238095238095e-2) - s * (K(3.33333333333333333e-2) - s * (K(7.57575757575757576e-2) -                  \
           s * (K(0.253113553113553114) - s * K(1.16666666666666667)))))));                                                    \
    return turned ? -sum : sum;                                                                                                \
  }                                                                                                                            \
  static inline V zeta_##V(V s, V q) {                                                                                         \
    const I pole = q <= (V)(0) & q == floor(q), none = q <= (V)(0) & s != floor(s);                                            \
    const I large = q > (V)(K(1e8)), summed = !(pole | none | large) & s > (V)(1);                                             \
    V a = q, term = pow_##V(q, -s), sum = term;                                                                                \
    I settled = (V)(0) != (V)(0);                                                                                              \
    for (int k = 0; k < 9 || CLT_ANY_##I(summed & !settled & a <= (V)(9)) != 0; k++) {                                        \
      const I goes = (k < 9 ? (I)(-1) : (I)(a <= (V)(9))) & !settled;                                                          \
      a += goes ? (V)(1) : (V)(0);                                                                                             \
      const V next = pow_##V(a, -s);                                                                                           \
      term = goes ? next : term;                                                                                               \
      sum += goes ? next : (V)(0);                                                                                             \
      settled |= fabs(term) < fabs(sum) * K(1e-17);                                                                            \
    }                                                                                                                          \
    V far = term * a / (s - 1) - K(0.5) * term;                                                                                \
    const V r = 1 / (a * a);                                                                                                   \
    V c = s * term / a, rising = s;                                                                                            \
    far += c * K(8.33333333333333333e-2);                                                                                      \
    CLT_ZETA_TERM(K(-1.38888888888888889e-3))                                                                                  \
    CLT_ZETA_TERM(K(3.30687830687830688e-5))                                                                                   \
    CLT_ZETA_TERM(K(-8.26719576719576720e-7))                                                                                  \
    CLT_ZETA_TERM(K(2.08767569878680990e-8))                                                                                   \
    CLT_ZETA_TERM(K(-5.28419013868749318e-10))                                                                                 \
    CLT_ZETA_TERM(K(1.33825365306846788e-11))                                                                                  \
    V value = settled ? sum : sum + far;                                                                                       \
    value = large ? pow_##V(q, 1 - s) * (1 / (s - 1) + K(0.5) / q) : value;                                                    \
    value = none ? (V)(NAN) : value;                                                                                           \
    value = pole ? (V)(INFINITY) : value;                                                                                      \
    return s > (V)(1) ? value : s == (V)(1) ? (V)(INFINITY) : (V)(NAN);                                                        \
  }
CLT_OWN_LANES(CLT_GAMMA, float, int, CLT_LIT_F)
#ifdef CLT_DOUBLE
CLT_OWN_LANES(CLT_GAMMA, double, long, CLT_LIT_D)
#endif
