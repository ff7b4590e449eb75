/* sin, cos and tan of vectors whose lanes do not disturb each other. Where one lane is 2^23 or more, libclc's float functions
   reduce every lane as if it were as large, which leaves small ones with an error of 0.01: such lanes are computed one by one. */
#define CLT_TRIG(F, N)                                                                                                         \
  static inline float##N F##_float##N(float##N x) {                                                                            \
    float##N r = F(x);                                                                                                         \
    if (!all(fabs(x) < (float##N)(0x1p23f))) {                                                                                 \
      float lane[N];                                                                                                           \
      vstore##N(x, 0, lane);                                                                                                   \
      for (int i = 0; i < N; i++) lane[i] = F(lane[i]);                                                                        \
      r = vload##N(0, lane);                                                                                                   \
    }                                                                                                                          \
    return r;                                                                                                                  \
  }
#if CLT_LANES == 2
CLT_TRIG(sin, 2) CLT_TRIG(cos, 2) CLT_TRIG(tan, 2)
#elif CLT_LANES == 4
CLT_TRIG(sin, 4) CLT_TRIG(cos, 4) CLT_TRIG(tan, 4)
#elif CLT_LANES == 8
CLT_TRIG(sin, 8) CLT_TRIG(cos, 8) CLT_TRIG(tan, 8)
#elif CLT_LANES == 16
CLT_TRIG(sin, 16) CLT_TRIG(cos, 16) CLT_TRIG(tan, 16)
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
