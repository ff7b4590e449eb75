/* Shared by rejection samplers: blocks of Philox4x32-10 (see philox.cl) at each element's own counter, for one element
   or for a vector's lanes, and uniform numbers in (0, 1). `stream` keeps the draws of different distributions apart. */
#include "random/philox.cl"
CLT_PHILOX clt_philox_u clt_draw_mix(clt_philox_u index, clt_philox_u seed, clt_philox_u offset, uint stream, uint block, clt_philox_u *second) {
  const ulong apart = (ulong)stream << 32 | block;
#if CLT_LANES == 1
  return clt_philox(index + offset, seed, apart, second);
#else
  const clt_philox_u at = index + offset;
  clt_philox_pairs low, high;
  clt_philox_u bits;
  bits.lo = clt_philox(at.lo, seed.s0, apart, &low);
  bits.hi = clt_philox(at.hi, seed.s0, apart, &high);
  second->lo = low;
  second->hi = high;
  return bits;
#endif
}
/* The name of function f for the kernel's vectors, e.g. log_float16. */
#if CLT_LANES == 1
#define CLT_DRAW_OWN_float(f) f
#else
#define CLT_DRAW_OWN_float(f) CLT_PASTE(f##_float, CLT_LANES)
#endif
#define CLT_DRAW_OWN_double(f) f
#define CLT_DRAW_BITS_float CLT_PHILOX_CALL(convert_int)
#define CLT_DRAW_BITS_double
#define CLT_DRAW_UNIT_float(w) ((CLT_PHILOX_CALL(convert_float)(CLT_PHILOX_CALL(convert_int)((w) >> 41)) + 0.5f) * 1.1920928955078125e-07f)
#define CLT_DRAW_UNIT_double(w) ((CLT_PHILOX_CALL(convert_double)((w) >> 12) + 0.5) * 2.220446049250313e-16)
#define CLT_DRAW_MIX(stream, block)                                                                                     \
  clt_draw_mix(CLT_PHILOX_CALL(as_ulong)(index), CLT_PHILOX_CALL(as_ulong)(seed), CLT_PHILOX_CALL(as_ulong)(offset), stream, \
                 block, &v)
#define CLT_DRAW_F(c) c##f
#define CLT_DRAW_D(c) c
