/* Counter-based random bits: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11) for any even
   number of lanes, or one. Elements 2k and 2k + 1 of a draw share the block of counter offset + k under the key `seed`, 64 bits
   each, so the bits depend on nothing else: not on the device, not on how many lanes or work-items there are. Lanes hold
   consecutive elements and one seed and offset. Words live in the low halves of 64-bit lanes, where one multiplication gives
   both halves of the product. */
#define CLT_PASTE_(a, b) a##b
#define CLT_PASTE(a, b) CLT_PASTE_(a, b)
#if CLT_LANES == 1
#define CLT_PHILOX_L long
#define CLT_PHILOX_U ulong
#define CLT_PHILOX_PAIRS ulong
#else
#define CLT_PHILOX_L CLT_PASTE(long, CLT_LANES)
#define CLT_PHILOX_U CLT_PASTE(ulong, CLT_LANES)
#if CLT_LANES == 16
#define CLT_PHILOX_PAIRS ulong8
#elif CLT_LANES == 8
#define CLT_PHILOX_PAIRS ulong4
#elif CLT_LANES == 4
#define CLT_PHILOX_PAIRS ulong2
#else
#define CLT_PHILOX_PAIRS ulong
#endif
#endif

/* The blocks of counters `at`: words 0 and 1 as one number, words 2 and 3 as the other. */
static inline CLT_PHILOX_PAIRS clt_philox(CLT_PHILOX_PAIRS at, ulong seed, ulong stream, CLT_PHILOX_PAIRS *second) {
  const CLT_PHILOX_PAIRS low = (CLT_PHILOX_PAIRS)(0xffffffffUL);
  CLT_PHILOX_PAIRS a = at, b = at >> 32, c = (CLT_PHILOX_PAIRS)(stream), d = (CLT_PHILOX_PAIRS)(0);
  uint k = (uint)seed, l = (uint)(seed >> 32);
  _Pragma("unroll") for (int round = 0; round < 10; round++) {
    const CLT_PHILOX_PAIRS p = (a & low) * (CLT_PHILOX_PAIRS)(0xD2511F53UL), q = (c & low) * (CLT_PHILOX_PAIRS)(0xCD9E8D57UL);
    a = (q >> 32) ^ b ^ (CLT_PHILOX_PAIRS)((ulong)k);
    c = (p >> 32) ^ d ^ (CLT_PHILOX_PAIRS)((ulong)l);
    b = q;
    d = p;
    k += 0x9E3779B9u;
    l += 0xBB67AE85u;
  }
  *second = (c & low) | (d << 32);
  return (a & low) | (b << 32);
}

#if CLT_LANES == 1
static inline long clt_philox_at(long index, long seed, long offset, ulong stream) {
  ulong second;
  const ulong first = clt_philox((ulong)(offset + (index >> 1)), (ulong)seed, stream, &second);
  return (long)(index & 1 ? second : first);
}
#else
static inline CLT_PHILOX_U clt_philox_from(ulong block, ulong seed, ulong stream) {
  CLT_PHILOX_PAIRS at, second;
  for (int k = 0; k < CLT_LANES / 2; k++) ((ulong *)&at)[k] = block + k;
  CLT_PHILOX_U bits;
  bits.even = clt_philox(at, seed, stream, &second);
  bits.odd = second;
  return bits;
}
static inline CLT_PHILOX_L clt_philox_at(CLT_PHILOX_L index, CLT_PHILOX_L seed, CLT_PHILOX_L offset, ulong stream) {
  const ulong block = (ulong)(offset.s0 + (index.s0 >> 1));
  CLT_PHILOX_U bits = clt_philox_from(block, (ulong)seed.s0, stream);
  if (index.s0 & 1) {
    ulong both[2 * CLT_LANES];
    CLT_PASTE(vstore, CLT_LANES)(bits, 0, both);
    CLT_PASTE(vstore, CLT_LANES)(clt_philox_from(block + CLT_LANES / 2, (ulong)seed.s0, stream), 1, both);
    bits = CLT_PASTE(vload, CLT_LANES)(0, both + 1);
  }
  return CLT_PASTE(as_long, CLT_LANES)(bits);
}
#endif
#if CLT_LANES == 1
#define CLT_PHILOX_NAME(f, T) f##_##T
#else
#define CLT_PHILOX_NAME(f, T) CLT_PASTE(f##_##T, CLT_LANES)
#endif

/* 64 random bits of each element, and 64 more. */
static inline CLT_PHILOX_L CLT_PHILOX_NAME(philox_bits, long)(CLT_PHILOX_L index, CLT_PHILOX_L seed, CLT_PHILOX_L offset) {
  return clt_philox_at(index, seed, offset, 0);
}
static inline CLT_PHILOX_L CLT_PHILOX_NAME(philox_more, long)(CLT_PHILOX_L index, CLT_PHILOX_L seed, CLT_PHILOX_L offset) {
  return clt_philox_at(index, seed, offset, 1);
}

/* 64 random bits to an integer below n, n in (0, 2^64). */
static inline CLT_PHILOX_U CLT_PHILOX_NAME(philox_below, ulong)(CLT_PHILOX_U bits, CLT_PHILOX_U n) { return mul_hi(bits, n); }
