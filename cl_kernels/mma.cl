#include "mma_copies.cl"
/* Matrix units of NVIDIA's devices of compute capability 8.0 and later, in PTX: squares of 8 x 8 numbers of 16 bits go from local memory to
   registers, and 16 x 16 numbers times 16 x 8 are added to float32 sums. What needs all lanes of a warp, clt_rows, clt_columns, clt_multiply
   and clt_beside, mma_twin.cl does not define; nor clt_power. */
/* Four squares of 8 x 8 numbers, the lane's two of each; lane l says where row l % 8 of square l / 8 lies. */
#define clt_rows(r0, r1, r2, r3, at)                                                     \
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"    \
                   : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory")
/* The same of transposed squares. */
#define clt_columns(r0, r1, r2, r3, at)                                                      \
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"  \
                   : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory")
#define CLT_MULTIPLY(type, c, a, b0, b1)                                                            \
  __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                           \
                   ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"           \
                   : "+f"(c##0), "+f"(c##1), "+f"(c##2), "+f"(c##3)                                 \
                   : "r"(a##0), "r"(a##1), "r"(a##2), "r"(a##3), "r"(b0), "r"(b1))
#define clt_multiply_bf16(c, a, b0, b1) CLT_MULTIPLY("bf16", c, a, b0, b1)
#define clt_multiply_f16(c, a, b0, b1) CLT_MULTIPLY("f16", c, a, b0, b1)
/* Two numbers rounded, the first in the low bits. */
static inline uint clt_pair_bf16(float x, float y) {
  uint both;
  __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
  return both;
}
static inline uint clt_pair_f16(float x, float y) {
  uint both;
  __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
  return both;
}
/* Another lane's number: that whose place in the warp differs by the bits of `step`. */
static inline float clt_beside(float v, uint step) {
  float other;
  __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(other) : "f"(v), "r"(step));
  return other;
}
/* 2 to the power of x. */
static inline float clt_power(float x) {
  float y;
  __asm__("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
