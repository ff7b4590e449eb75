/* 16-bit floats, which are a storage format only. Rounding of float registers to values of float16 or bfloat16 (to
   nearest, ties to even), for any number of lanes. Below 2^-14 float16 has a fixed spacing of 2^-24, to which adding
   and subtracting 0.75 rounds. Vectors in memory are aligned to their element only. They are converted by bit
   operations, or float16 by the x86 instructions for that where the compiler has them: fabs(), copysign(), vload16()
   and vstore_half16() are library calls on some drivers. */
/* NaN's bits are hidden from the compiler, which would otherwise load a constant under the mask (see truth.cl). */
#if defined(__clang__) && defined(__AVX512BW__) && !defined(CLT_NO_ASSEMBLY)
static inline uint clt_bf16_nan(void) {
  uint bits = 0x7fc00000;
  __asm__("" : "+r"(bits));
  return bits;
}
#else
#define clt_bf16_nan() 0x7fc00000
#endif
#define CLT_HALF_LANES(F, U)                                                        \
  /* The rounded bfloat16's bits in the upper half; NaN stays NaN. */               \
  static inline U clt_bf16_bits_##F(F v) {                                          \
    const U u = as_##U(v);                                                          \
    return v != v ? (U)(clt_bf16_nan()) : u + (U)(0x7fff) + ((u >> 16) & (U)(1));   \
  }                                                                                 \
  static inline F clt_round_bf16_##F(F v) {                                         \
    return v != v ? v : as_##F(clt_bf16_bits_##F(v) & (U)(0xffff0000));             \
  }
#define CLT_F16_LANES(F, U)                                                         \
  static inline F clt_round_f16_##F(F v) {                                          \
    const U sign = as_##U(v) & (U)(0x80000000), u = as_##U(v) ^ sign;               \
    const F a = as_##F(u), small = (a + (F)(0.75f)) - (F)(0.75f);                   \
    F r = as_##F((u + (U)(0xfff) + ((u >> 13) & (U)(1))) & (U)(0xffffe000));        \
    r = a >= (F)(65520.0f) ? (F)(INFINITY) : a < (F)(6.103515625e-05f) ? small : r; \
    return v != v ? v : as_##F(as_##U(r) | sign);                                   \
  }
CLT_HALF_LANES(float, uint)
CLT_F16_LANES(float, uint)
static inline ushort clt_to_bf16_float(float v) { return (ushort)(clt_bf16_bits_float(v) >> 16); }
#if defined(__F16C__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_vcvtph2ps256) && __has_builtin(__builtin_ia32_vcvtps2ph256)
#define CLT_F16C
#endif
#endif
#ifdef CLT_F16C
/* Hides from the compiler that floats were converted from float16: it would compare the float16s instead, a lane at a
   time. */
#ifdef CLT_NO_ASSEMBLY
#define CLT_ANY_FLOAT(v)
#else
#define CLT_ANY_FLOAT(v) __asm__("" : "+x"(v))
#endif
typedef float clt_v8f __attribute__((vector_size(32)));
typedef short clt_v8s __attribute__((vector_size(16)));
static inline ushort8 clt_to_f16_float8(float8 v) {
  return __builtin_astype(__builtin_ia32_vcvtps2ph256(__builtin_astype(v, clt_v8f), 0), ushort8);
}
static inline float8 clt_of_f16_float8(ushort8 v) {
  clt_v8f f = __builtin_ia32_vcvtph2ps256(__builtin_astype(v, clt_v8s));
  CLT_ANY_FLOAT(f);
  return __builtin_astype(f, float8);
}
#if defined(__AVX512F__) && __has_builtin(__builtin_ia32_vcvtph2ps512_mask) && __has_builtin(__builtin_ia32_vcvtps2ph512_mask)
typedef float clt_v16f __attribute__((vector_size(64)));
typedef short clt_v16s __attribute__((vector_size(32)));
static inline ushort16 clt_to_f16_float16(float16 v) {
  const clt_v16s none = {};
  return __builtin_astype(__builtin_ia32_vcvtps2ph512_mask(__builtin_astype(v, clt_v16f), 0, none, (ushort)0xffff), ushort16);
}
static inline float16 clt_of_f16_float16(ushort16 v) {
  const clt_v16f none = {};
  clt_v16f f = __builtin_ia32_vcvtph2ps512_mask(__builtin_astype(v, clt_v16s), none, (ushort)0xffff, 4);
  CLT_ANY_FLOAT(f);
  return __builtin_astype(f, float16);
}
#else
static inline ushort16 clt_to_f16_float16(float16 v) {
  return (ushort16)(clt_to_f16_float8(v.lo), clt_to_f16_float8(v.hi));
}
static inline float16 clt_of_f16_float16(ushort16 v) {
  return (float16)(clt_of_f16_float8(v.lo), clt_of_f16_float8(v.hi));
}
#endif
#define CLT_F16_VECTORS(N)                                                           \
  static inline float##N clt_round_f16_float##N(float##N v) {                        \
    return clt_of_f16_float##N(clt_to_f16_float##N(v));                              \
  }                                                                                  \
  static inline float##N clt_load_f16_float##N(__global const half *p) {             \
    return clt_of_f16_float##N(*(__global const clt_ushort##N *)p);                  \
  }
#else
#define CLT_F16_VECTORS(N)                                                           \
  CLT_F16_LANES(float##N, uint##N)                                                   \
  static inline ushort##N clt_to_f16_float##N(float##N v) {                          \
    const uint##N u = as_uint##N(v) & (uint##N)(0x7fffffff);                         \
    const float##N a = as_float##N(u);                                               \
    uint##N r = ((u + (uint##N)(0xfff) + ((u >> 13) & (uint##N)(1))) >> 13) - (uint##N)(0x1c000); \
    r = a < (float##N)(6.103515625e-05f) ? as_uint##N(a + (float##N)(0.5f)) - (uint##N)(0x3f000000) : r; \
    r = a >= (float##N)(65520.0f) ? (uint##N)(0x7c00) : v != v ? (uint##N)(0x7e00) : r; \
    return convert_ushort##N(r | ((as_uint##N(v) >> 16) & (uint##N)(0x8000)));       \
  }                                                                                  \
  static inline float##N clt_of_f16_float##N(ushort##N v) {                          \
    return vload_half##N(0, (const half *)&v);                                       \
  }                                                                                  \
  static inline float##N clt_load_f16_float##N(__global const half *p) {             \
    return vload_half##N(0, p);                                                      \
  }
#endif
#define CLT_HALF_VECTORS(N)                                                        \
  CLT_HALF_LANES(float##N, uint##N)                                                \
  typedef ushort##N clt_ushort##N __attribute__((aligned(2)));                     \
  CLT_F16_VECTORS(N)                                                               \
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
    *(__global clt_ushort##N *)p = clt_to_f16_float##N(v);                         \
  }
#if CLT_LANES == 16
CLT_HALF_VECTORS(16)
#elif CLT_LANES == 8
CLT_HALF_VECTORS(8)
#endif
