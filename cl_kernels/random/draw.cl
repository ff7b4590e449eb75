/* What drawing by rejection shares: blocks of Philox4x32-10 (see philox.cl) at an element's own counter, of one element or of a
   vector's lanes, and numbers within (0, 1). `stream` keeps the draws of different distributions apart. */
#include "random/philox.cl"
static inline ulong clt_draw_mix(ulong index, ulong seed, ulong offset, uint stream, uint block, ulong *second) {
  const ulong at = index + offset;
  uint a = (uint)at, b = (uint)(at >> 32), c = block, d = stream, k = (uint)seed, l = (uint)(seed >> 32);
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
/* The same of lanes side by side, and what their functions are called. */
#if CLT_LANES == 1
#define clt_draw_mixes clt_draw_mix
#define CLT_DRAW_OWN_float(f) f
#else
#define CLT_DRAW_OWN_float(f) CLT_PASTE(f##_float, CLT_LANES)
static inline clt_philox_u clt_draw_mixes(clt_philox_u index, clt_philox_u seed, clt_philox_u offset, uint stream, uint block, clt_philox_u *second) {
  const clt_philox_u low = (clt_philox_u)(0xffffffffUL), at = index + offset;
  clt_philox_u a = at & low, b = at >> 32, c = (clt_philox_u)((ulong)block), d = (clt_philox_u)((ulong)stream);
  uint k = (uint)seed.s0, l = (uint)(seed.s0 >> 32);
  for (int round = 0; round < 10; round++) {
    const clt_philox_u p = (a & low) * (clt_philox_u)(0xD2511F53UL), q = (c & low) * (clt_philox_u)(0xCD9E8D57UL);
    a = (q >> 32) ^ b ^ (clt_philox_u)((ulong)k);
    c = (p >> 32) ^ d ^ (clt_philox_u)((ulong)l);
    b = q & low;
    d = p & low;
    k += 0x9E3779B9u;
    l += 0xBB67AE85u;
  }
  *second = (c & low) | (d << 32);
  return (a & low) | (b << 32);
}
#endif
#define CLT_DRAW_OWN_double(f) f
#define CLT_DRAW_BITS_float CLT_PHILOX_CALL(convert_int)
#define CLT_DRAW_BITS_double
#define CLT_DRAW_UNITS_float(w) ((CLT_PHILOX_CALL(convert_float)(CLT_PHILOX_CALL(convert_int)((w) >> 41)) + 0.5f) * 1.1920928955078125e-07f)
#define CLT_DRAW_UNITS_double(w) ((CLT_PHILOX_CALL(convert_double)((w) >> 12) + 0.5) * 2.220446049250313e-16)
#define CLT_DRAW_MIXES(stream, block)                                                                                     \
  clt_draw_mixes(CLT_PHILOX_CALL(as_ulong)(index), CLT_PHILOX_CALL(as_ulong)(seed), CLT_PHILOX_CALL(as_ulong)(offset), stream, \
                 block, &v)
#define CLT_DRAW_F(c) c##f
#define CLT_DRAW_D(c) c
#define CLT_DRAW_UNIT_F(w) (((float)(uint)((w) >> 41) + 0.5f) * 1.1920928955078125e-07f)
#define CLT_DRAW_UNIT_D(w) (((double)((w) >> 12) + 0.5) * 2.220446049250313e-16)
