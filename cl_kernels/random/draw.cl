/* What drawing by rejection shares: blocks of Philox4x32-10 (see philox.cl) at an element's own counter, one by one, and
   numbers within (0, 1). `stream` keeps the draws of different distributions apart. */
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
#define CLT_DRAW_F(c) c##f
#define CLT_DRAW_D(c) c
#define CLT_DRAW_UNIT_F(w) (((float)(uint)((w) >> 41) + 0.5f) * 1.1920928955078125e-07f)
#define CLT_DRAW_UNIT_D(w) (((double)((w) >> 12) + 0.5) * 2.220446049250313e-16)
