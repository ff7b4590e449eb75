/* Poisson numbers by rejection; an attempt is a block of the element's own Philox counter, so the result depends on index,
   seed and offset alone. `rate` is the bit pattern of a float (or double). Products of uniforms below a rate of 10; above it
   PTRS (Hoermann, "The transformed rejection method for generating Poisson random variables", 1993). */
#include "random/draw.cl"
#define CLT_POISSON_MIX(block) clt_draw_mix(index, seed, offset, 0x706f6973u, block, &v)
#define CLT_POISSON(NAME, T, RATE, UNIT, K)                                                                                    \
  static inline long NAME(long index, long seed, long offset, long bits) {                                                     \
    const T rate = RATE;                                                                                                       \
    ulong w, v;                                                                                                                \
    if (!(rate > 0)) return 0;                                                                                                 \
    if (rate < 10) {                                                                                                           \
      const T limit = exp(-rate);                                                                                              \
      T product = 1;                                                                                                           \
      for (int k = 0; k < 256; k += 2) {                                                                                       \
        w = CLT_POISSON_MIX(k);                                                                                                \
        product *= UNIT(w);                                                                                                    \
        if (product <= limit) return k;                                                                                        \
        product *= UNIT(v);                                                                                                    \
        if (product <= limit) return k + 1;                                                                                    \
      }                                                                                                                        \
      return 256;                                                                                                              \
    }                                                                                                                          \
    const T root = sqrt(rate), log_rate = log(rate), b = K(0.931) + K(2.53) * root, a = K(-0.059) + K(0.02483) * b;            \
    const T log_alpha = log(K(1.1239) + K(1.1328) / (b - K(3.4))), vr = K(0.9277) - K(3.6224) / (b - K(2.0));                  \
    for (int attempt = 0; attempt < 1024; attempt++) {                                                                         \
      w = CLT_POISSON_MIX(attempt);                                                                                            \
      const T x = UNIT(w) - K(0.5), y = UNIT(v), us = K(0.5) - fabs(x), k = floor((2 * a / us + b) * x + rate + K(0.43));      \
      if (us >= K(0.07) && y <= vr) return (long)k;                                                                            \
      if (k < 0 || (us < K(0.013) && y > us)) continue;                                                                        \
      if (log(y) + log_alpha - log(a / (us * us) + b) <= k * log_rate - rate - lgamma(k + K(1.0))) return (long)k;             \
    }                                                                                                                          \
    return (long)rate;                                                                                                         \
  }
CLT_POISSON(poisson_long, float, as_float((int)bits), CLT_DRAW_UNIT_F, CLT_DRAW_F)
#ifdef CLT_DOUBLE
CLT_POISSON(poisson_double_long, double, as_double(bits), CLT_DRAW_UNIT_D, CLT_DRAW_D)
#endif
