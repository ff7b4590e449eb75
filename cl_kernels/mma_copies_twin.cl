/* mma_copies.cl in plain OpenCL C, for tests. */
typedef __local ushort *clt_place;
#define CLT_PLACE(memory) ((__local ushort *)(memory))
#define CLT_UNIT(place, n) ((place) + 8 * (n))
static inline void clt_copy(__local ushort *to, __global const ushort *from, int n) {
  for (int e = 0; e < 8; e++) to[e] = 2 * e < n ? from[e] : (ushort)0;
}
#define CLT_COPY(to, from, n) clt_copy(to, (__global const ushort *)(from), n)
#define CLT_PUT(to, a, b, c, d) *(__local uint4 *)(to) = (uint4)(a, b, c, d)
#define CLT_COPIES_END()
#define CLT_COPIES_WAIT(n)
