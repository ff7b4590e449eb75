/* Words of Philox4x32-10 (see philox.cl) drawn ahead of their use, for CLT_DRAWN elements from the first element of
   `block` on. The rounds of one block are a chain of dependent instructions, so as many blocks are computed side by
   side as registers hold: with AVX-512, eight vectors of eight. clt_drawn_all stores 64-bit words; clt_drawn_apart
   their lower halves, and the upper ones CLT_DRAWN numbers further on; clt_drawn_short words of 32 bits, which take
   half as many blocks: kernels that read only those draw twice as many at once. With AVX-512 no loop goes round twice,
   which would take a quarter longer. Not inlined, because a kernel calls the functions in several places. */
#include "random/philox.cl"
#ifndef CLT_DRAWN
#define CLT_DRAWN 128
#endif
#if defined(__AVX512F__)
#define CLT_DRAWN_ABREAST 8
#define CLT_DRAWN_HALF (CLT_DRAWN / 32)
#define CLT_DRAWN_APART static __attribute__((noinline, min_vector_width(512)))
#else
#define CLT_DRAWN_ABREAST 1
#define CLT_DRAWN_HALF 1
#define CLT_DRAWN_APART static __attribute__((noinline))
#endif
typedef CLT_PHILOX_TYPE(long) clt_drawn_words __attribute__((aligned(8)));
typedef CLT_PHILOX_TYPE(uint) clt_drawn_halves __attribute__((aligned(4)));
CLT_PHILOX void clt_drawn_rounds(int abreast, ulong block, ulong seed, ulong stream, ulong8 *a, ulong8 *b, ulong8 *c, ulong8 *d) {
  const ulong8 low = (ulong8)(0xffffffffUL);
  uint k = (uint)seed, l = (uint)(seed >> 32);
  _Pragma("unroll") for (int v = 0; v < abreast; v++) {
    a[v] = (ulong8)(block + 8 * v) + (ulong8)(0, 1, 2, 3, 4, 5, 6, 7);
    b[v] = a[v] >> 32;
    c[v] = (ulong8)(stream);
    d[v] = (ulong8)(0);
  }
  _Pragma("unroll") for (int round = 0; round < 10; round++) {
    _Pragma("unroll") for (int v = 0; v < abreast; v++) {
      const ulong8 p = (a[v] & low) * (ulong8)(0xD2511F53UL), q = (c[v] & low) * (ulong8)(0xCD9E8D57UL);
      a[v] = (q >> 32) ^ b[v] ^ (ulong8)((ulong)k);
      c[v] = (p >> 32) ^ d[v] ^ (ulong8)((ulong)l);
      b[v] = q;
      d[v] = p;
    }
    k += 0x9E3779B9u;
    l += 0xBB67AE85u;
  }
}
#define CLT_DRAWN_BOTH(x, y) (((x) & (ulong8)(0xffffffffUL)) | ((y) << 32))
#define CLT_DRAWN_INTO(NAME, T, ABREAST, SHARE, STORE)                                                   \
  CLT_DRAWN_APART void NAME(ulong block, ulong seed, ulong stream, T *to) {                              \
    for (T *end = to + CLT_DRAWN; to < end; to += 8 * SHARE * ABREAST, block += 8 * ABREAST) {           \
      ulong8 a[ABREAST], b[ABREAST], c[ABREAST], d[ABREAST];                                             \
      clt_drawn_rounds(ABREAST, block, seed, stream, a, b, c, d);                                        \
      _Pragma("unroll") for (int v = 0; v < ABREAST; v++) { STORE }                                      \
    }                                                                                                    \
  }
CLT_DRAWN_INTO(clt_drawn_all, ulong, CLT_DRAWN_ABREAST, 2, {
  ulong16 words;
  words.even = CLT_DRAWN_BOTH(a[v], b[v]);
  words.odd = CLT_DRAWN_BOTH(c[v], d[v]);
  *(ulong16 *)(to + 16 * v) = words;
})
CLT_DRAWN_INTO(clt_drawn_apart, uint, CLT_DRAWN_ABREAST, 2, {
  *(uint16 *)(to + 16 * v) = as_uint16(CLT_DRAWN_BOTH(a[v], c[v]));
  *(uint16 *)(to + CLT_DRAWN + 16 * v) = as_uint16(CLT_DRAWN_BOTH(b[v], d[v]));
})
CLT_DRAWN_INTO(clt_drawn_short, uint, CLT_DRAWN_HALF, 4, {
  ulong16 words;
  words.even = CLT_DRAWN_BOTH(a[v], b[v]);
  words.odd = CLT_DRAWN_BOTH(c[v], d[v]);
  *(uint16 *)(to + 32 * v) = as_uint16(words.lo);
  *(uint16 *)(to + 32 * v + 16) = as_uint16(words.hi);
})
