#include "mma_copies_twin.cl"
/* mma.cl in plain OpenCL C, for tests; without the functions that need all lanes of a warp. */
static inline uint clt_pair_bf16(float x, float y) { return clt_to_bf16_float(x) | (uint)clt_to_bf16_float(y) << 16; }
/* The bits of a number rounded to float16. Not by a builtin that stores through a pointer: compilers give its
   target memory of its own. */
static inline uint clt_bits_f16(float v) {
  const float r = clt_round_f16_float(v);
  const uint u = as_uint(r), a = u & 0x7fffffff, sign = u >> 16 & 0x8000;
  if (a > 0x7f800000) return 0x7e00;
  if (a == 0x7f800000) return sign | 0x7c00;
  return sign | (a < 0x38800000 ? (uint)(as_float(a) * 16777216.0f) : (a - 0x38000000) >> 13);
}
static inline uint clt_pair_f16(float x, float y) { return clt_bits_f16(x) | clt_bits_f16(y) << 16; }
