/* Gamma and binomial numbers by rejection, and the derivatives of gamma and beta numbers with respect to their shape
   parameters. Each attempt uses blocks of the element's own Philox counter, so the result depends on index, seed and
   offset alone. Parameters and gamma numbers are passed as bit patterns of a float (or double) in a long, because a
   node's operands all have one type. */
#include "elementary/log.cl"
#include "elementary/pow.cl"
#include "elementary/sine.cl"
#include "random/draw.cl"

#if CLT_LANES == 1
#define CLT_GAMMA_POW_double pow
#else
#define CLT_GAMMA_POW_double CLT_PHILOX_NAME(pow, double)
#endif
#define CLT_GAMMA_POW_float CLT_DRAW_OWN_float(pow)
#define CLT_GAMMA_MIX(block) CLT_DRAW_MIX(0x67616d6du, block)
/* Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. The loop ends when every lane has
   accepted a number. */
#define CLT_GAMMA_DRAW(NAME, T, I, LEAST, K)                                                                                   \
  static inline clt_philox_l CLT_PHILOX_NAME(NAME, long)(clt_philox_l index, clt_philox_l seed, clt_philox_l offset,           \
                                                         clt_philox_l bits) {                                                  \
    typedef CLT_PHILOX_TYPE(T) V;                                                                                              \
    const V given = CLT_PHILOX_CALL(as_##T)(CLT_DRAW_BITS_##T(bits));                                                         \
    const CLT_PHILOX_TYPE(I) small = given < (V)(1);                                                                           \
    V boost = (V)(1), cube = (V)(1);                                                                                           \
    clt_philox_u w, v;                                                                                                         \
    if (CLT_PHILOX_NAME(CLT_ANY, I)(small) != 0) {                                                                             \
      w = CLT_GAMMA_MIX(0);                                                                                                  \
      boost = small ? CLT_GAMMA_POW_##T(CLT_DRAW_UNIT_##T(w), 1 / given) : boost;                                             \
    }                                                                                                                          \
    const V d = (small ? given + 1 : given) - K(0.333333333333333333), c = 1 / sqrt(9 * d);                                    \
    CLT_PHILOX_TYPE(I) left = given > (V)(0);                                                                                  \
    for (uint attempt = 1; attempt < 256 && CLT_PHILOX_NAME(CLT_ANY, I)(left) != 0; attempt++) {                               \
      w = CLT_GAMMA_MIX(2 * attempt);                                                                                        \
      const V radius = sqrt(-2 * CLT_DRAW_OWN_##T(log)(CLT_DRAW_UNIT_##T(w)));                                               \
      const V x = radius * CLT_DRAW_OWN_##T(cos)(K(6.28318530717958648) * CLT_DRAW_UNIT_##T(v)), y = 1 + c * x;              \
      const V third = y * y * y;                                                                                               \
      w = CLT_GAMMA_MIX(2 * attempt + 1);                                                                                    \
      const V u = CLT_DRAW_UNIT_##T(w);                                                                                       \
      const CLT_PHILOX_TYPE(I) fit = left & y > (V)(0), inner = fit & u < 1 - K(0.0331) * x * x * x * x;                       \
      CLT_PHILOX_TYPE(I) taken = inner;                                                                                        \
      if (CLT_PHILOX_NAME(CLT_ANY, I)(fit & !inner) != 0) {                                                                    \
        const V bound = K(0.5) * x * x + d * (1 - third + CLT_DRAW_OWN_##T(log)(third));                                      \
        taken |= fit & CLT_DRAW_OWN_##T(log)(u) < bound;                                                                      \
      }                                                                                                                        \
      cube = fit ? third : cube;                                                                                               \
      left &= !taken;                                                                                                          \
    }                                                                                                                          \
    V value = fmax(boost * d * cube, (V)((T)LEAST));                                                                           \
    value = given > (V)(0) ? value : given == (V)(0) ? (V)(0) : (V)(NAN);                                                      \
    return CLT_PHILOX_CALL(convert_long)(CLT_PHILOX_CALL(as_##I)(value));                                                      \
  }
CLT_GAMMA_DRAW(gamma_draw, float, int, FLT_MIN, CLT_DRAW_F)

/* Binomial numbers; clt_stirling is the correction to Stirling's formula, log(k!) less its closed form. */
#define CLT_BINOMIAL(NAME, T, FROM, K)                                                                                   \
  static inline T clt_stirling_##T(T k) {                                                                                      \
    const T r = 1 / ((k + 1) * (k + 1));                                                                                       \
    return (K(0.0833333333333333333) - (K(0.00277777777777777778) - K(0.000793650793650793651) * r) * r) / (k + 1);            \
  }                                                                                                                            \
  static inline long NAME(long index, long seed, long offset, long count_bits, long p_bits) {                                  \
    const T count = FROM(count_bits), given = FROM(p_bits);                                                                    \
    ulong w, v;                                                                                                                \
    if (!(count > 0) || !(given > 0)) return 0;                                                                                \
    if (given >= 1) return (long)count;                                                                                        \
    const T p = given > K(0.5) ? 1 - given : given, q = 1 - p;                                                                 \
    T found = 0;                                                                                                               \
    if (count * p < 10) { /* count the successes by the gaps between them */                                                   \
      const T scale = 1 / log1p(-p);                                                                                           \
      T at = 0;                                                                                                                \
      for (uint block = 0; block < 256; block++) {                                                                             \
        w = CLT_GAMMA_MIX(block);                                                                                              \
        at += ceil(log(CLT_DRAW_UNIT_##T(w)) * scale);                                                                                      \
        if (at > count) break;                                                                                                 \
        found += 1;                                                                                                            \
        at += ceil(log(CLT_DRAW_UNIT_##T(v)) * scale);                                                                                      \
        if (at > count) break;                                                                                                 \
        found += 1;                                                                                                            \
      }                                                                                                                        \
    } else { /* BTRS: Hoermann, "The generation of binomial random variates", 1993 */                                          \
      const T root = sqrt(count * p * q), b = K(1.15) + K(2.53) * root, a = K(-0.0873) + K(0.0248) * b + K(0.01) * p;          \
      const T c = count * p + K(0.5), vr = K(0.92) - K(4.2) / b, alpha = (K(2.83) + K(5.1) / b) * root, r = p / q;             \
      const T m = floor((count + 1) * p);                                                                                      \
      found = m;                                                                                                               \
      for (uint attempt = 0; attempt < 1024; attempt++) {                                                                      \
        w = CLT_GAMMA_MIX(attempt);                                                                                            \
        const T u = CLT_DRAW_UNIT_##T(w) - K(0.5), y = CLT_DRAW_UNIT_##T(v), us = K(0.5) - fabs(u), k = floor((2 * a / us + b) * u + c);                 \
        if (k < 0 || k > count) continue;                                                                                      \
        found = k;                                                                                                             \
        if (us >= K(0.07) && y <= vr) break;                                                                                   \
        const T bound = (m + K(0.5)) * log((m + 1) / (r * (count - m + 1))) +                                                  \
                        (count + 1) * log((count - m + 1) / (count - k + 1)) +                                                 \
                        (k + K(0.5)) * log(r * (count - k + 1) / (k + 1)) + clt_stirling_##T(m) +                              \
                        clt_stirling_##T(count - m) - clt_stirling_##T(k) - clt_stirling_##T(count - k);                       \
        if (log(y * alpha / (a / (us * us) + b)) <= bound) break;                                                              \
        found = m;                                                                                                             \
      }                                                                                                                        \
    }                                                                                                                          \
    return (long)(given > K(0.5) ? count - found : found);                                                                     \
  }
#define CLT_FROM_F(b) as_float((int)(b))
#if CLT_LANES == 1
CLT_BINOMIAL(binomial_draw_long, float, CLT_FROM_F, CLT_DRAW_F)
#endif

/* dx/da of a gamma number x of shape a, at a fixed quantile: -(dP/da) / p. Below the mean P is a series of positive
   terms, above it Q is a continued fraction; the derivative by a is computed term by term along with either. For large
   a: the Cornish-Fisher expansion x = a + z sqrt(a) + (z^2 - 1)/3 + (z^3 - 7z)/(36 sqrt(a)) - ... */
#define CLT_GAMMA_SLOPE(T, STOP, K)                                                                                            \
  static inline T clt_slope_tail_##T(T a) { /* digamma(a) - log(a) for large a */                                               \
    const T r = 1 / (a * a);                                                                                                   \
    return -K(0.5) / a -                                                                                                       \
           r * (K(0.0833333333333333333) - r * (K(0.00833333333333333333) - r * (K(0.00396825396825396825) -                   \
           r * (K(0.00416666666666666667) - r * K(0.00757575757575757576)))));                                                 \
  }                                                                                                                            \
  static inline T clt_slope_digamma_##T(T a) {                                                                                 \
    T sum = 0;                                                                                                                 \
    for (; a < 10; a += 1) sum -= 1 / a;                                                                                       \
    return sum + log(a) + clt_slope_tail_##T(a);                                                                               \
  }                                                                                                                            \
  static inline T gamma_slope_##T(T x, T a) {                                                                                  \
    if (!(x > 0) || !(a > 0) || isinf(x)) return x == 0 ? 0 : (T)NAN;                                                          \
    if (a > 1000) {                                                                                                            \
      const T s = 1 / sqrt(a);                                                                                                 \
      T z = (x - a) * s;                                                                                                       \
      for (int k = 0; k < 4; k++) {                                                                                            \
        const T off = a + z / s + (z * z - 1) / 3 + (z * z - 7) * z * s / 36 - x;                                              \
        z -= off * s / (1 + K(0.666666666666666667) * z * s);                                                                  \
      }                                                                                                                        \
      return 1 + K(0.5) * z * s - (z * z - 7) * z * s * s * s / 72;                                                            \
    }                                                                                                                          \
    const T rest = log(x) - clt_slope_digamma_##T(a);                                                                          \
    if (x < a + 1) {                                                                                                           \
      T term = 1, n = a, harmonic = 1 / a, sum = rest - harmonic;                                                              \
      for (int k = 0; k < 2000; k++) {                                                                                         \
        n += 1;                                                                                                                \
        term *= x / n;                                                                                                         \
        harmonic += 1 / n;                                                                                                     \
        const T step = term * (rest - harmonic);                                                                               \
        sum += step;                                                                                                           \
        if (term * harmonic < STOP) break;                                                                                     \
      }                                                                                                                        \
      return -x / a * sum;                                                                                                     \
    }                                                                                                                          \
    /* Lentz's method for h = 1/(b0 + a1/(b1 + ...)); dc, dd and dh are the derivatives of c, d and h by a. */                 \
    T b = x + 1 - a, c = K(1e30), dc = 0, d = 1 / b, dd = d * d, h = d, dh = dd;                                               \
    for (int k = 1; k < 2000; k++) {                                                                                           \
      const T an = -k * (k - a);                                                                                               \
      b += 2;                                                                                                                  \
      const T down = an * d + b, ddown = k * d + an * dd - 1;                                                                  \
      d = 1 / down;                                                                                                            \
      dd = -ddown * d * d;                                                                                                     \
      dc = (k - an * dc / c) / c - 1;                                                                                          \
      c = b + an / c;                                                                                                          \
      const T step = c * d, dstep = dc * d + c * dd;                                                                           \
      dh = dh * step + h * dstep;                                                                                              \
      h *= step;                                                                                                               \
      if (fabs(step - 1) < STOP && fabs(h * dstep) < STOP * fabs(dh)) break;                                                   \
    }                                                                                                                          \
    return x * (h * rest + dh);                                                                                                \
  }
/* For a number x of a beta distribution of shapes a and b = total - a: dx/da at a fixed quantile, divided by 1 - x.
   Below the mean P(x; a, b) is computed as a continued fraction, above it Q, by Lentz's method, and the derivative
   along with it. For large shapes the normal approximation is as exact. */
#define CLT_BETA_SLOPE(T, STOP, K)                                                                                             \
  static inline T beta_slope_##T(T x, T a, T total) {                                                                          \
    const T b = total - a, rest = 1 - x;                                                                                       \
    if (!(x > 0) || !(rest > 0) || !(a > 0) || !(b > 0)) return x == 0 ? 0 : (T)NAN;                                           \
    if (a > 1000 && b > 1000) {                                                                                                \
      const T mean = a / total;                                                                                                \
      return (b / (total * total) + (x - mean) * K(0.5) * (1 / a - 2 / total - 1 / (total + 1))) / rest;                       \
    }                                                                                                                          \
    const int upper = x > (a + 1) / (total + 2);                                                                               \
    const T p = upper ? b : a, q = upper ? a : b, z = upper ? rest : x;                                                        \
    T c = K(1e30), dc = 0, d = 1, dd = 0, h = 1, dh = 0;                                                                       \
    for (int k = 1; k < 2000; k++) {                                                                                           \
      const int m = k / 2;                                                                                                     \
      const T low = p + k - 1, high = p + k;                                                                                   \
      T term, slope; /* of the continued fraction, and its derivative by a */                                                           \
      if (k & 1) {                                                                                                             \
        term = -(p + m) * (total + m) * z / (low * high);                                                                      \
        slope = upper ? term / (total + m) : term * (1 / (p + m) + 1 / (total + m) - 1 / low - 1 / high);                      \
      } else {                                                                                                                 \
        const T factor = m * z / (low * high);                                                                                 \
        term = factor * (q - m);                                                                                               \
        slope = upper ? factor : -term * (1 / low + 1 / high);                                                                 \
      }                                                                                                                        \
      const T down = 1 + term * d, ddown = slope * d + term * dd;                                                              \
      d = 1 / down;                                                                                                            \
      dd = -ddown * d * d;                                                                                                     \
      dc = (slope - term * dc / c) / c;                                                                                        \
      c = 1 + term / c;                                                                                                        \
      const T step = c * d, dstep = dc * d + c * dd;                                                                           \
      dh = dh * step + h * dstep;                                                                                              \
      h *= step;                                                                                                               \
      if (fabs(step - 1) < STOP && fabs(h * dstep) <= STOP * fabs(dh)) break;                                                  \
    }                                                                                                                          \
    /* log(x) + digamma(total) - digamma(a), for the lower fraction a + 1 */                                                   \
    const T least = upper ? a : a + 1;                                                                                         \
    const T turn = a < 10 ? log(x) + clt_slope_digamma_##T(total) - clt_slope_digamma_##T(least)                               \
                          : log1p((x * b - a * rest) / a) + clt_slope_tail_##T(total) - clt_slope_tail_##T(a) - (upper ? 0 : 1 / a);\
    return (upper ? x / b : -x / a) * (h * turn + dh);                                                                         \
  }
CLT_GAMMA_SLOPE(float, 1e-8f, CLT_DRAW_F)
CLT_BETA_SLOPE(float, 1e-7f, CLT_DRAW_F)
#ifdef CLT_DOUBLE
#define CLT_FROM_D(b) as_double(b)
CLT_GAMMA_DRAW(gamma_draw_double, double, long, DBL_MIN, CLT_DRAW_D)
#if CLT_LANES == 1
CLT_BINOMIAL(binomial_draw_double_long, double, CLT_FROM_D, CLT_DRAW_D)
#endif
CLT_GAMMA_SLOPE(double, 1e-17, CLT_DRAW_D)
CLT_BETA_SLOPE(double, 1e-15, CLT_DRAW_D)
#endif
