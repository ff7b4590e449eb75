/* sinh and cosh of float lanes, from exp(|x|) / 2; sinh up to 1 by a polynomial, minimax in relative error.
   Wrong by less than 1.61 and 1.27 ulp. For double lanes by clt_exp_parts of expm1.cl, wrong by less than 1.1 ulp. */
#include "all_lanes.cl"
#include "elementary/expm1.cl"
#define CLT_SINH(F, I)                                                                                               \
  static inline F clt_exp_half_##F(F t) {                                                                            \
    F z;                                                                                                             \
    const F y = clt_exp_part_##F(t > (F)(90.0f) ? (F)(90.0f) : t, &z) * as_##F((as_##I(z) << 23) + (I)(0x3e800000)); \
    return y + y;                                                                                                    \
  }                                                                                                                  \
  static inline F clt_sinh_near_##F(F x) {                                                                           \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                 \
    const F s = x * x;                                                                                               \
    F p = (F)(2.78221319e-6f) * s + (F)(1.98428956e-4f);                                                             \
    p = p * s + (F)(8.33331048e-3f);                                                                                 \
    p = p * s + (F)(0.166666672f);                                                                                   \
    return p * (s * x) + x;                                                                                          \
  }                                                                                                                  \
  static inline F sinh_##F(F x) {                                                                                    \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                                 \
    const F t = CLT_ABS(F, I, x), e = clt_exp_half_##F(t), far = e - (F)(0.25f) / e;                                 \
    return t < (F)(1.0f) ? clt_sinh_near_##F(x) : x < (F)(0.0f) ? -far : far;                                        \
  }                                                                                                                  \
  static inline F cosh_##F(F x) {                                                                                    \
    const F e = clt_exp_half_##F(CLT_ABS(F, I, x));                                                                  \
    return e + (F)(0.25f) / e;                                                                                       \
  }
CLT_ALL_LANES(CLT_SINH)
#define CLT_SINH_DOUBLE(F, I)                                                                              \
  /* exp(t) / 4; low is its rounding error. */                                                             \
  static inline F clt_exp_quarter_##F(F t, F *low) {                                                       \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                       \
    F more, z;                                                                                             \
    const F r = clt_exp_parts_##F(t > (F)(710.7) ? (F)(710.7) : t, &more, &z), h = (F)(1.0) + r;           \
    const F scale = as_##F((as_##I(z) << 52) + (I)(0x3fd0000000000000L));                                  \
    *low = ((((F)(1.0) - h) + r) + more) * scale;                                                          \
    return h * scale;                                                                                      \
  }                                                                                                        \
  static inline F sinh_##F(F x) {                                                                          \
    _Pragma("OPENCL FP_CONTRACT ON")                                                                       \
    F low;                                                                                                 \
    const F t = as_##F(as_##I(x) & (I)(0x7fffffffffffffffL)), e = clt_exp_quarter_##F(t, &low), s = x * x; \
    const F far = (e - (F)(0.0625) / (e + low)) + low, y = far + far;                                      \
    F p = (F)(7.746188556142327e-13) * s + (F)(1.605767934982023e-10);                                     \
    p = p * s + (F)(2.5052117698709824e-08);                                                               \
    p = p * s + (F)(2.755731919136874e-06);                                                                \
    p = p * s + (F)(1.9841269841324225e-04);                                                               \
    p = p * s + (F)(8.333333333333299e-03);                                                                \
    p = p * s + (F)(0.16666666666666666);                                                                  \
    return t < (F)(1.0) ? p * (s * x) + x : x < (F)(0.0) ? -y : y;                                         \
  }                                                                                                        \
  static inline F cosh_##F(F x) {                                                                          \
    F low;                                                                                                 \
    const F e = clt_exp_quarter_##F(as_##F(as_##I(x) & (I)(0x7fffffffffffffffL)), &low);                   \
    const F y = (e + (F)(0.0625) / (e + low)) + low;                                                       \
    return y + y;                                                                                          \
  }
CLT_DOUBLE_LANES(CLT_SINH_DOUBLE)
