/* Poisson numbers by rejection. Each attempt uses one block of the element's own Philox counter, so the result depends
   on index, seed and offset alone. `bits` is the bit pattern of the rate, a float (or double). Rates below 10: products
   of uniform numbers; from 10 on PTRS (Hoermann, "The transformed rejection method for generating Poisson random
   variables", 1993). The loop over attempts ends when every lane has accepted a number. */
#include "elementary/log.cl"
#include "random/draw.cl"
#include "special/lgamma.cl"
#define CLT_POISSON_MIX(block) CLT_DRAW_MIX(0x706f6973u, block)
#define CLT_POISSON_ANY(mask, I) (CLT_PHILOX_NAME(CLT_ANY, I)(mask) != 0)
#define CLT_POISSON(NAME, T, I, K)                                                                                             \
  static inline clt_philox_l CLT_PHILOX_NAME(NAME, long)(clt_philox_l index, clt_philox_l seed, clt_philox_l offset,           \
                                                         clt_philox_l bits) {                                                  \
    typedef CLT_PHILOX_TYPE(T) V;                                                                                              \
    const V rate = CLT_PHILOX_CALL(as_##T)(CLT_DRAW_BITS_##T(bits));                                                           \
    V found = (V)(0);                                                                                                          \
    clt_philox_u w, v;                                                                                                         \
    CLT_PHILOX_TYPE(I) left = rate > (V)(0) & rate < (V)(10);                                                                  \
    if (CLT_POISSON_ANY(left, I)) {                                                                                            \
      const V limit = exp(-rate);                                                                                              \
      V product = (V)(1);                                                                                                      \
      for (int k = 0; k < 256 && CLT_POISSON_ANY(left, I); k += 2) {                                                           \
        w = CLT_POISSON_MIX(k);                                                                                              \
        product *= CLT_DRAW_UNIT_##T(w);                                                                                      \
        left &= product > limit;                                                                                               \
        found += left ? (V)(1) : (V)(0);                                                                                       \
        product *= CLT_DRAW_UNIT_##T(v);                                                                                      \
        left &= product > limit;                                                                                               \
        found += left ? (V)(1) : (V)(0);                                                                                       \
      }                                                                                                                        \
    }                                                                                                                          \
    left = rate >= (V)(10);                                                                                                    \
    if (CLT_POISSON_ANY(left, I)) {                                                                                            \
      const V root = sqrt(rate), log_rate = CLT_DRAW_OWN_##T(log)(rate), b = K(0.931) + K(2.53) * root;                        \
      const V a = K(-0.059) + K(0.02483) * b, log_alpha = CLT_DRAW_OWN_##T(log)(K(1.1239) + K(1.1328) / (b - K(3.4)));         \
      const V vr = K(0.9277) - K(3.6224) / (b - K(2.0));                                                                       \
      found = left ? rate : found;                                                                                             \
      for (int attempt = 0; attempt < 1024 && CLT_POISSON_ANY(left, I); attempt++) {                                           \
        w = CLT_POISSON_MIX(attempt);                                                                                        \
        const V x = CLT_DRAW_UNIT_##T(w) - K(0.5), y = CLT_DRAW_UNIT_##T(v), us = K(0.5) - fabs(x);                          \
        const V k = floor((2 * a / us + b) * x + rate + K(0.43));                                                              \
        CLT_PHILOX_TYPE(I) taken = left & us >= (V)(K(0.07)) & y <= vr;                                                        \
        const CLT_PHILOX_TYPE(I) open = left & !taken & k >= (V)(0) & !(us < (V)(K(0.013)) & y > us);                          \
        if (CLT_POISSON_ANY(open, I)) {                                                                                        \
          const V size = CLT_DRAW_OWN_##T(log)(y) + log_alpha - CLT_DRAW_OWN_##T(log)(a / (us * us) + b);                      \
          taken |= open & size <= k * log_rate - rate - CLT_DRAW_OWN_##T(lgamma)(k + K(1.0));                                  \
        }                                                                                                                      \
        found = taken ? k : found;                                                                                             \
        left &= !taken;                                                                                                        \
      }                                                                                                                        \
    }                                                                                                                          \
    return CLT_PHILOX_CALL(convert_long)(found);                                                                               \
  }
CLT_POISSON(poisson, float, int, CLT_DRAW_F)
#ifdef CLT_DOUBLE
CLT_POISSON(poisson_double, double, long, CLT_DRAW_D)
#endif
