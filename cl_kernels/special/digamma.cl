/* digamma for any number of lanes: the asymptotic series (DLMF 5.11.2); arguments below 6, or 10 for double, are first
   raised by the recurrence, its sum of reciprocals computed as one fraction; reflection below zero, where a lane needs
   it. Values at poles as in torch. */
#include "elementary/log.cl"
#include "elementary/sine.cl"
#define CLT_DIGAMMA_float(V, x, NAME) NAME##_##V(x)
#define CLT_DIGAMMA_double(V, x, NAME) NAME(x)
#define CLT_DIGAMMA_TAIL_float(s) ((8.33333333333333333e-2f - s * (8.33333333333333333e-3f - s * (3.96825396825396825e-3f - \
  s * 4.16666666666666667e-3f))))
#define CLT_DIGAMMA_TAIL_double(s) ((8.33333333333333333e-2 - s * (8.33333333333333333e-3 - s * (3.96825396825396825e-3 - \
  s * (4.16666666666666667e-3 - s * (7.57575757575757576e-3 - s * (2.10927960927960928e-2 - s * 8.33333333333333333e-2)))))))
#define CLT_DIGAMMA(V, T, I, STEPS)                                                                                       \
  static inline V digamma_##V(V x) {                                                                                      \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                      \
    V y = x, above = (V)(1), below = x, turn = (V)(0);                                                                    \
    if (CLT_ANY_##I(x < (V)(0)) != 0) {                                                                                   \
      const V pi = (V)((T)3.14159265358979324), part = x - rint(x);                                                       \
      turn = x < (V)(0) ? (part == (V)(0) ? (V)(NAN) : pi / CLT_DIGAMMA_##T(V, pi * part, tan)) : turn;                   \
      y = x < (V)(0) ? 1 - x : x;                                                                                         \
      below = y;                                                                                                          \
    }                                                                                                                     \
    for (int k = 1; k < STEPS; k++) {                                                                                     \
      const V next = y + (V)(k);                                                                                          \
      above = above * next + below;                                                                                       \
      below = below * next;                                                                                               \
    }                                                                                                                     \
    const V low = y < (V)(STEPS) ? above / below : (V)(0), z = y < (V)(STEPS) ? y + (V)(STEPS) : y, r = 1 / z, s = r * r; \
    const V far = ((CLT_DIGAMMA_##T(V, z, log) - r / 2) - s * CLT_DIGAMMA_TAIL_##T(s)) - (low + turn);                    \
    const V zero = as_##V(as_##I(x) ^ as_##I((V)(-INFINITY)));                                                            \
    return x == (V)(0) ? zero : far;                                                                                      \
  }
CLT_OWN_LANES(CLT_DIGAMMA, float, int, 6)
#ifdef CLT_DOUBLE
CLT_OWN_LANES(CLT_DIGAMMA, double, long, 10)
#endif
