#include "mma_copies.cl"
/* Matrix units of NVIDIA GPUs of compute capability 8.0 and later, in PTX: loads 8 x 8 matrices of 16-bit numbers from
   local memory to registers, and adds products of 16 x 16 and 16 x 8 numbers to float32 sums. mma_twin.cl does not
   define clt_power, nor what needs all lanes of a warp: clt_rows, clt_columns, clt_multiply and clt_beside. */
/* Load four 8 x 8 matrices, two numbers of each per lane; lane l gives the address of row l % 8 of matrix l / 8. */
#define clt_rows(r0, r1, r2, r3, at)                                                     \
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"    \
                   : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory")
/* The same, transposing the matrices. */
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
/* Two numbers rounded to 16 bits, the first in the low half. */
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
/* The value of the lane whose index is this lane's xor `step` (a butterfly exchange). */
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
