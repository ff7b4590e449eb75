/* mma.cl in plain OpenCL C, save what needs all lanes of a warp: for tests. */
typedef __local ushort *clt_place;
#define CLT_PLACE(memory) ((__local ushort *)(memory))
#define CLT_UNIT(place, n) ((place) + 8 * (n))
static inline void clt_copy(__local ushort *to, __global const ushort *from, int n) {
  for (int e = 0; e < 8; e++) to[e] = e < n ? from[e] : (ushort)0;
}
#define CLT_COPY(to, from, n) clt_copy(to, from, n)
#define CLT_COPIES_END()
#define CLT_COPIES_WAIT(n)
static inline uint clt_pair_bf16(float x, float y) { return clt_to_bf16_float(x) | (uint)clt_to_bf16_float(y) << 16; }
static inline uint clt_pair_f16(float x, float y) {
  uint both;
  vstore_half2_rte((float2)(x, y), 0, (half *)&both);
  return both;
}
