/* sin, cos and tan of vectors whose lanes do not disturb each other. Where one lane is 2^23 or more, libclc's float functions
   reduce every lane as if it were as large, which leaves small ones with an error of 0.01: such lanes are computed one by one. */
#define CLT_OR_int2(v) ((v).lo | (v).hi)
#define CLT_OR_int4(v) CLT_OR_int2((v).lo | (v).hi)
#define CLT_OR_int8(v) CLT_OR_int4((v).lo | (v).hi)
#define CLT_OR_int16(v) CLT_OR_int8((v).lo | (v).hi)
/* The difference of the bits is negative where |x| is 2^23 or more, infinite or not a number; all() would be a slow call. */
#define CLT_TRIG(F, N)                                                                                                         \
  static inline float##N F##_float##N(float##N x) {                                                                            \
    float##N r = F(x);                                                                                                         \
    const int##N far = 0x4affffff - (as_int##N(x) & 0x7fffffff);                                                               \
    if (CLT_OR_int##N(far) < 0) {                                                                                              \
      float lane[N];                                                                                                           \
      vstore##N(x, 0, lane);                                                                                                   \
      for (int i = 0; i < N; i++) lane[i] = F(lane[i]);                                                                        \
      r = vload##N(0, lane);                                                                                                   \
    }                                                                                                                          \
    return r;                                                                                                                  \
  }
#define CLT_TRIG_ALL(N) CLT_TRIG(sin, N) CLT_TRIG(cos, N) CLT_TRIG(tan, N)
#if CLT_LANES == 2
CLT_TRIG_ALL(2)
#elif CLT_LANES == 4
CLT_TRIG_ALL(4)
#elif CLT_LANES == 8
CLT_TRIG_ALL(8)
#elif CLT_LANES == 16
CLT_TRIG_ALL(16)
#endif
#define sin_float sin
#define cos_float cos
#define tan_float tan
#define sin_double sin
#define cos_double cos
#define tan_double tan
#define sin_double2 sin
#define cos_double2 cos
#define tan_double2 tan
#define sin_double4 sin
#define cos_double4 cos
#define tan_double4 tan
#define sin_double8 sin
#define cos_double8 cos
#define tan_double8 tan
#define sin_double16 sin
#define cos_double16 cos
#define tan_double16 tan
