/* 16-bit floats: storage only. Rounding of a float register to what float16 or bfloat16 can hold (round to nearest
   even), for any number of lanes. Below 2^-14 a float16 has a fixed step of 2^-24, which adding and taking off 0.75 gives. */
#define CLT_HALF_LANES(F, I, U)                                                                                  \
  static inline F clt_round_bf16_##F(F v) {                                                                      \
    U u = as_##U(v);                                                                                             \
    U r = (u + (U)(0x7fff) + ((u >> 16) & (U)(1))) & (U)(0xffff0000);                                            \
    return CLT_SELECT_##F(as_##F(r), v, v != v);                                                                 \
  }                                                                                                              \
  static inline F clt_round_f16_##F(F v) {                                                                       \
    F a = fabs(v);                                                                                               \
    U u = as_##U(a);                                                                                             \
    F normal = as_##F((u + (U)(0xfff) + ((u >> 13) & (U)(1))) & (U)(0xffffe000));                                \
    normal = CLT_SELECT_##F(normal, (F)(INFINITY), normal > (F)(65504.0f));                                      \
    F small = as_##F(as_##U(a + (F)(0.75f))) - (F)(0.75f);                                                       \
    F r = CLT_SELECT_##F(normal, small, a < (F)(6.103515625e-05f));                                              \
    return CLT_SELECT_##F(copysign(r, v), v, v != v);                                                            \
  }
#define CLT_SELECT_float(a, b, c) ((c) ? (b) : (a))
CLT_HALF_LANES(float, int, uint)
static inline ushort clt_to_bf16_float(float v) {
  return v != v ? (ushort)0x7fc0 : (ushort)((as_uint(clt_round_bf16_float(v))) >> 16);
}
#if CLT_LANES == 16
#define CLT_SELECT_float16(a, b, c) ((c) ? (b) : (a))
CLT_HALF_LANES(float16, int16, uint16)
static inline ushort16 clt_to_bf16_float16(float16 v) {
  return convert_ushort16(as_uint16(select(clt_round_bf16_float16(v), (float16)(NAN), v != v)) >> 16);
}
#elif CLT_LANES == 8
#define CLT_SELECT_float8(a, b, c) ((c) ? (b) : (a))
CLT_HALF_LANES(float8, int8, uint8)
static inline ushort8 clt_to_bf16_float8(float8 v) {
  return convert_ushort8(as_uint8(select(clt_round_bf16_float8(v), (float8)(NAN), v != v)) >> 16);
}
#endif
