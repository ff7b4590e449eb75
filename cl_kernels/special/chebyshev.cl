/* Sums of Chebyshev polynomials of t, whose coefficients are the table clt_<name>_<type>, by Clenshaw's recurrence. */
#define CLT_CHEB(T, name, t) clt_cheb_##T(t, clt_##name##_##T, (int)(sizeof(clt_##name##_##T) / sizeof(T)))
#define CLT_CHEB_OF(T, V)                                                                            \
  static inline V clt_cheb_##V(V t, __constant T *c, int n) {                                        \
    V a = (V)(0), b = (V)(0);                                                                        \
    for (int k = n - 1; k > 0; k--) {                                                                \
      const V next = 2 * t * a - b + c[k];                                                           \
      b = a;                                                                                         \
      a = next;                                                                                      \
    }                                                                                                \
    return t * a - b + c[0];                                                                         \
  }
CLT_CHEB_OF(float, float)
#ifdef CLT_DOUBLE
CLT_CHEB_OF(double, double)
#endif
