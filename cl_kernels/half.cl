/* 16-bit floats: storage only. Rounding of a float register to what float16 or bfloat16 can hold (round to nearest
   even), for any number of lanes. Below 2^-14 a float16 has a fixed step of 2^-24, which adding and taking off 0.75 gives.
   Vectors are converted by their bits, and are in memory at any element's address: fabs(), copysign(), vload16() and
   vstore_half16() are calls on some drivers. */
#define CLT_HALF_LANES(F, U)                                                        \
  /* The bits of a bfloat16 in the upper half; NaN stays one. */                    \
  static inline U clt_bf16_bits_##F(F v) {                                          \
    const U u = as_##U(v);                                                          \
    return v != v ? (U)(0x7fc00000) : u + (U)(0x7fff) + ((u >> 16) & (U)(1));       \
  }                                                                                 \
  static inline F clt_round_bf16_##F(F v) {                                         \
    return v != v ? v : as_##F(clt_bf16_bits_##F(v) & (U)(0xffff0000));             \
  }                                                                                 \
  static inline F clt_round_f16_##F(F v) {                                          \
    const U sign = as_##U(v) & (U)(0x80000000), u = as_##U(v) ^ sign;               \
    const F a = as_##F(u), small = (a + (F)(0.75f)) - (F)(0.75f);                   \
    F r = as_##F((u + (U)(0xfff) + ((u >> 13) & (U)(1))) & (U)(0xffffe000));        \
    r = a >= (F)(65520.0f) ? (F)(INFINITY) : a < (F)(6.103515625e-05f) ? small : r; \
    return v != v ? v : as_##F(as_##U(r) | sign);                                   \
  }                                                                                 \
  static inline U clt_f16_bits_##F(F v) {                                           \
    const U u = as_##U(v) & (U)(0x7fffffff);                                        \
    const F a = as_##F(u);                                                          \
    U r = ((u + (U)(0xfff) + ((u >> 13) & (U)(1))) >> 13) - (U)(0x1c000);           \
    r = a < (F)(6.103515625e-05f) ? as_##U(a + (F)(0.5f)) - (U)(0x3f000000) : r;    \
    r = a >= (F)(65520.0f) ? (U)(0x7c00) : v != v ? (U)(0x7e00) : r;                \
    return r | ((as_##U(v) >> 16) & (U)(0x8000));                                   \
  }
CLT_HALF_LANES(float, uint)
static inline ushort clt_to_bf16_float(float v) { return (ushort)(clt_bf16_bits_float(v) >> 16); }
#define CLT_HALF_VECTORS(N)                                                        \
  CLT_HALF_LANES(float##N, uint##N)                                                \
  typedef ushort##N clt_ushort##N __attribute__((aligned(2)));                     \
  static inline ushort##N clt_to_bf16_float##N(float##N v) {                       \
    return convert_ushort##N(clt_bf16_bits_float##N(v) >> 16);                     \
  }                                                                                \
  static inline float##N clt_load_bf16_float##N(__global const ushort *p) {        \
    return as_float##N(convert_uint##N(*(__global const clt_ushort##N *)p) << 16); \
  }                                                                                \
  static inline void clt_store_bf16_float##N(float##N v, __global ushort *p) {     \
    *(__global clt_ushort##N *)p = clt_to_bf16_float##N(v);                        \
  }                                                                                \
  static inline void clt_store_f16_float##N(float##N v, __global half *p) {        \
    *(__global clt_ushort##N *)p = convert_ushort##N(clt_f16_bits_float##N(v));    \
  }
#if CLT_LANES == 16
CLT_HALF_VECTORS(16)
#elif CLT_LANES == 8
CLT_HALF_VECTORS(8)
#endif
