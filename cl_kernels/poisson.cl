/* Poisson numbers by rejection; an attempt is a block of the element's own Philox counter, so the result depends on index,
   seed and offset alone. `rate` is the bit pattern of a float (or double). Products of uniforms below a rate of 10; above it
   PTRS (Hoermann, "The transformed rejection method for generating Poisson random variables", 1993). */
static inline ulong clt_poisson_mix(ulong index, ulong seed, ulong offset, uint block, ulong *second) {
  const ulong at = index + offset;
  uint a = (uint)at, b = (uint)(at >> 32), c = block, d = 0x706f6973u, k = (uint)seed, l = (uint)(seed >> 32);
  for (int round = 0; round < 10; round++) {
    const ulong p = (ulong)a * 0xD2511F53u, q = (ulong)c * 0xCD9E8D57u;
    a = (uint)(q >> 32) ^ b ^ k;
    c = (uint)(p >> 32) ^ d ^ l;
    b = (uint)q;
    d = (uint)p;
    k += 0x9E3779B9u;
    l += 0xBB67AE85u;
  }
  *second = ((ulong)d << 32) | c;
  return ((ulong)b << 32) | a;
}
#define CLT_POISSON(NAME, T, RATE, UNIT, K)                                                                                    \
  static inline long NAME(long index, long seed, long offset, long bits) {                                                     \
    const T rate = RATE;                                                                                                       \
    ulong w, v;                                                                                                                \
    if (!(rate > 0)) return 0;                                                                                                 \
    if (rate < 10) {                                                                                                           \
      const T limit = exp(-rate);                                                                                              \
      T product = 1;                                                                                                           \
      for (int k = 0; k < 256; k += 2) {                                                                                       \
        w = clt_poisson_mix(index, seed, offset, k, &v);                                                                       \
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
      w = clt_poisson_mix(index, seed, offset, attempt, &v);                                                                   \
      const T x = UNIT(w) - K(0.5), y = UNIT(v), us = K(0.5) - fabs(x), k = floor((2 * a / us + b) * x + rate + K(0.43));      \
      if (us >= K(0.07) && y <= vr) return (long)k;                                                                            \
      if (k < 0 || (us < K(0.013) && y > us)) continue;                                                                        \
      if (log(y) + log_alpha - log(a / (us * us) + b) <= k * log_rate - rate - lgamma(k + K(1.0))) return (long)k;             \
    }                                                                                                                          \
    return (long)rate;                                                                                                         \
  }
#define CLT_POISSON_F(c) c##f
#define CLT_POISSON_UNIT_F(w) (((float)(uint)((w) >> 41) + 0.5f) * 1.1920928955078125e-07f)
CLT_POISSON(poisson_long, float, as_float((int)bits), CLT_POISSON_UNIT_F, CLT_POISSON_F)
#ifdef CLT_DOUBLE
#define CLT_POISSON_D(c) c
#define CLT_POISSON_UNIT_D(w) (((double)((w) >> 12) + 0.5) * 2.220446049250313e-16)
CLT_POISSON(poisson_double_long, double, as_double(bits), CLT_POISSON_UNIT_D, CLT_POISSON_D)
#endif
