/* Counter-based random bits: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11) for any
   even number of lanes, or one. The block of counter offset + k under the key `seed` gives 64 bits to each of elements
   2k and 2k + 1 of a draw, or 32 bits to each of elements 4k to 4k + 3. So the bits depend neither on the device nor on
   the number of lanes or work-items. A vector's lanes are consecutive elements with one seed and offset. Words are kept
   in the low halves of 64-bit lanes, where one multiplication gives both halves of the product. */
#define CLT_PASTE_(a, b) a##b
#define CLT_PASTE(a, b) CLT_PASTE_(a, b)
#if CLT_LANES == 1
#define CLT_PHILOX_TYPE(T) T
#define CLT_PHILOX_CALL(f) f
#define CLT_PHILOX_NAME(f, T) f##_##T
#define CLT_PHILOX_PAIRS ulong
#else
#define CLT_PHILOX_TYPE(T) CLT_PASTE(T, CLT_LANES)
#define CLT_PHILOX_CALL(f) CLT_PASTE(f, CLT_LANES)
#define CLT_PHILOX_NAME(f, T) CLT_PASTE(f##_##T, CLT_LANES)
#if CLT_LANES == 16
#define CLT_PHILOX_PAIRS ulong8
#define CLT_PHILOX_STEPS (ulong8)(0, 1, 2, 3, 4, 5, 6, 7)
#elif CLT_LANES == 8
#define CLT_PHILOX_PAIRS ulong4
#define CLT_PHILOX_STEPS (ulong4)(0, 1, 2, 3)
#elif CLT_LANES == 4
#define CLT_PHILOX_PAIRS ulong2
#define CLT_PHILOX_STEPS (ulong2)(0, 1)
#else
#define CLT_PHILOX_STEPS 0
#define CLT_PHILOX_PAIRS ulong
#endif
#endif
/* Always inlined: a call passes vectors through memory, and the compiler may use narrower vectors in a separate
   function. */
#define CLT_PHILOX static inline __attribute__((always_inline))
typedef CLT_PHILOX_TYPE(long) clt_philox_l;
typedef CLT_PHILOX_TYPE(ulong) clt_philox_u;
typedef CLT_PHILOX_PAIRS clt_philox_pairs;

/* The blocks of counters `at` and `stream`: returns words 0 and 1 as one number, words 2 and 3 in `second`. GPU lanes
   have 32-bit registers: there the halves of each product are computed separately, because compilers keep everything
   that derives from a 64-bit product in 64 bits. On CPUs mul_hi() would be a function call. */
#if CLT_LANES == 1 && !defined(__x86_64__) && !defined(__aarch64__)
CLT_PHILOX ulong clt_philox(ulong at, ulong seed, ulong stream, ulong *second) {
  uint a = (uint)at, b = (uint)(at >> 32), c = (uint)stream, d = (uint)(stream >> 32), k = (uint)seed, l = (uint)(seed >> 32);
  _Pragma("unroll") for (int round = 0; round < 10; round++) {
    const uint e = mul_hi(a, 0xD2511F53u) ^ d ^ l;
    d = a * 0xD2511F53u;
    a = mul_hi(c, 0xCD9E8D57u) ^ b ^ k;
    b = c * 0xCD9E8D57u;
    c = e;
    k += 0x9E3779B9u;
    l += 0xBB67AE85u;
  }
  *second = (ulong)d << 32 | c;
  return (ulong)b << 32 | a;
}
#else
CLT_PHILOX clt_philox_pairs clt_philox(clt_philox_pairs at, ulong seed, ulong stream, clt_philox_pairs *second) {
  const clt_philox_pairs low = (clt_philox_pairs)(0xffffffffUL);
  clt_philox_pairs a = at, b = at >> 32, c = (clt_philox_pairs)(stream & 0xffffffffUL), d = (clt_philox_pairs)(stream >> 32);
  uint k = (uint)seed, l = (uint)(seed >> 32);
  _Pragma("unroll") for (int round = 0; round < 10; round++) {
    const clt_philox_pairs p = (a & low) * (clt_philox_pairs)(0xD2511F53UL), q = (c & low) * (clt_philox_pairs)(0xCD9E8D57UL);
    a = (q >> 32) ^ b ^ (clt_philox_pairs)((ulong)k);
    c = (p >> 32) ^ d ^ (clt_philox_pairs)((ulong)l);
    b = q;
    d = p;
    k += 0x9E3779B9u;
    l += 0xBB67AE85u;
  }
  *second = (c & low) | (d << 32);
  return (a & low) | (b << 32);
}
#endif

#if CLT_LANES == 1
static inline long clt_philox_at(long index, long seed, long offset, ulong stream) {
  ulong second;
  const ulong first = clt_philox((ulong)(offset + (index >> 1)), (ulong)seed, stream, &second);
  return (long)(index & 1 ? second : first);
}
static inline long clt_philox_word(long index, long seed, long offset) {
  ulong second;
  const ulong first = clt_philox((ulong)(offset + (index >> 2)), (ulong)seed, 0, &second), both = index & 2 ? second : first;
  return (long)(index & 1 ? both >> 32 : both & 0xffffffffUL);
}
#else
CLT_PHILOX clt_philox_u clt_philox_from(ulong block, ulong seed, ulong stream) {
  clt_philox_pairs second;
  clt_philox_u bits;
  bits.even = clt_philox((clt_philox_pairs)(block) + CLT_PHILOX_STEPS, seed, stream, &second);
  bits.odd = second;
  return bits;
}
CLT_PHILOX clt_philox_l clt_philox_at(clt_philox_l index, clt_philox_l seed, clt_philox_l offset, ulong stream) {
  const ulong block = (ulong)(offset.s0 + (index.s0 >> 1));
  clt_philox_u bits = clt_philox_from(block, (ulong)seed.s0, stream);
  if (index.s0 & 1) {
    ulong both[2 * CLT_LANES];
    CLT_PHILOX_CALL(vstore)(bits, 0, both);
    CLT_PHILOX_CALL(vstore)(clt_philox_from(block + CLT_LANES / 2, (ulong)seed.s0, stream), 1, both);
    bits = CLT_PHILOX_CALL(vload)(0, both + 1);
  }
  return CLT_PHILOX_CALL(as_long)(bits);
}
typedef CLT_PHILOX_TYPE(uint) clt_philox_words __attribute__((may_alias, aligned(4)));
CLT_PHILOX clt_philox_l clt_philox_word(clt_philox_l index, clt_philox_l seed, clt_philox_l offset) {
  const ulong block = (ulong)(offset.s0 + (index.s0 >> 2));
  ulong both[2 * CLT_LANES];
  CLT_PHILOX_CALL(vstore)(clt_philox_from(block, (ulong)seed.s0, 0), 0, both);
#if CLT_LANES == 2
  CLT_PHILOX_CALL(vstore)(clt_philox_from(block + 1, (ulong)seed.s0, 0), 1, both);
#endif
  return CLT_PHILOX_CALL(convert_long)(*(const clt_philox_words *)((const uint *)both + (index.s0 & 3)));
}
#endif

/* 64 random bits for each element, and 64 more from another stream. */
CLT_PHILOX clt_philox_l CLT_PHILOX_NAME(philox_bits, long)(clt_philox_l index, clt_philox_l seed, clt_philox_l offset) {
  return clt_philox_at(index, seed, offset, 0);
}
CLT_PHILOX clt_philox_l CLT_PHILOX_NAME(philox_more, long)(clt_philox_l index, clt_philox_l seed, clt_philox_l offset) {
  return clt_philox_at(index, seed, offset, 1);
}
/* 32 random bits for each element; they cost half as much as 64 where they are drawn ahead (words.cl). */
CLT_PHILOX clt_philox_l CLT_PHILOX_NAME(philox_word, long)(clt_philox_l index, clt_philox_l seed, clt_philox_l offset) {
  return clt_philox_word(index, seed, offset);
}

/* Maps 64 random bits to an integer in [0, n), n in (0, 2^64). */
static inline clt_philox_u CLT_PHILOX_NAME(philox_below, ulong)(clt_philox_u bits, clt_philox_u n) { return mul_hi(bits, n); }

/* log(u) of floats in (2^-100, 1], within 2 ulp: u = 2^e (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1], and a Chebyshev
   fit in f. The builtin log, which covers the whole domain, would be most of the cost of a normally distributed number. */
typedef CLT_PHILOX_TYPE(float) clt_unit_f;
static inline clt_unit_f CLT_PHILOX_NAME(unit_log, float)(clt_unit_f u) {
  const CLT_PHILOX_TYPE(int) i = CLT_PHILOX_CALL(as_int)(u), e = (i - 0x3f3504f3) >> 23;
  const clt_unit_f f = CLT_PHILOX_CALL(as_float)(i - (e << 23)) - 1.0f, k = CLT_PHILOX_CALL(convert_float)(e);
  clt_unit_f p = -0.08101558333f * f + 0.1271230768f;
  p = p * f - 0.1297223899f;
  p = p * f + 0.1420217382f;
  p = p * f - 0.166422476f;
  p = p * f + 0.2000146858f;
  p = p * f - 0.2500029655f;
  p = p * f + 0.333333286f;
  return k * 0.693145752f + (k * 1.42860677e-06f + (f - f * f * (0.5f - f * p)));
}
