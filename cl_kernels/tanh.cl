/* tanh that is 1 from where it rounds to 1: some drivers' float function stops one step before, which a large factor of
   1 - tanh(x) or of 1 - tanh(x)^2 turns into a wrong result. NaN goes to the builtin. */
#define CLT_TANH(T)                                                                     \
  static inline T tanh_##T(T x) {                                                       \
    return x > (T)(9.02f) ? (T)(1.0f) : x < (T)(-9.02f) ? (T)(-1.0f) : tanh(x);         \
  }
CLT_TANH(float)
#if CLT_LANES > 1
CLT_TANH(float2)
CLT_TANH(float4)
CLT_TANH(float8)
CLT_TANH(float16)
#endif
#define tanh_double tanh
#define tanh_double2 tanh
#define tanh_double4 tanh
#define tanh_double8 tanh
#define tanh_double16 tanh
