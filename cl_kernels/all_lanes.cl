/* CLT_ALL_LANES(M) defines functions for single floats and for the kernel's vectors, e.g. M(float, int) and M(float16,
   int16). */
#if CLT_LANES == 2
#define CLT_ALL_LANES(M) M(float, int) M(float2, int2)
#elif CLT_LANES == 4
#define CLT_ALL_LANES(M) M(float, int) M(float4, int4)
#elif CLT_LANES == 8
#define CLT_ALL_LANES(M) M(float, int) M(float8, int8)
#elif CLT_LANES == 16
#define CLT_ALL_LANES(M) M(float, int) M(float16, int16)
#else
#define CLT_ALL_LANES(M) M(float, int)
#endif
/* CLT_OWN_LANES(M, float, int, K) defines functions for the kernel's vectors only, e.g. M(float16, float, int16, K). */
#if CLT_LANES == 2
#define CLT_OWN_LANES(M, T, I, K) M(T##2, T, I##2, K)
#elif CLT_LANES == 4
#define CLT_OWN_LANES(M, T, I, K) M(T##4, T, I##4, K)
#elif CLT_LANES == 8
#define CLT_OWN_LANES(M, T, I, K) M(T##8, T, I##8, K)
#elif CLT_LANES == 16
#define CLT_OWN_LANES(M, T, I, K) M(T##16, T, I##16, K)
#else
#define CLT_OWN_LANES(M, T, I, K) M(T, T, I, K)
#endif
/* CLT_DOUBLE_LANES(M) defines functions for single doubles and for the vectors of kernels with doubles: M(double4,
   long4), M(double8, long8). */
#ifndef CLT_DOUBLE
#define CLT_DOUBLE_LANES(M)
#elif CLT_LANES > 1
#define CLT_DOUBLE_LANES(M) M(double, long) M(double4, long4) M(double8, long8)
#else
#define CLT_DOUBLE_LANES(M) M(double, long)
#endif
/* |x| and the sign bit of x by bit operations: fabs() and copysign() are library calls on some drivers. */
#define CLT_ABS(F, I, x) as_##F(as_##I(x) & (I)(0x7fffffff))
#define CLT_SIGN(I, x) (as_##I(x) & (I)(0x80000000))
/* All lanes of a vector or-ed together: any() is a library call on some drivers. PoCL's clang has a builtin, which
   tests one register by a mask. */
#if defined(POCL_DEVICE_ADDRESS_BITS) && defined(__has_builtin)
#if __has_builtin(__builtin_reduce_or)
#define CLT_REDUCE_OR
#endif
#endif
#define CLT_ANY_int(v) (v)
#define CLT_ANY_int2(v) ((v).lo | (v).hi)
#define CLT_ANY_long(v) ((int)(v))
#define CLT_ANY_long2(v) ((v).lo | (v).hi)
#ifdef CLT_REDUCE_OR
#define CLT_ANY_int4(v) __builtin_reduce_or(v)
#define CLT_ANY_int8(v) __builtin_reduce_or(v)
#define CLT_ANY_int16(v) __builtin_reduce_or(v)
#define CLT_ANY_long4(v) __builtin_reduce_or(v)
#define CLT_ANY_long8(v) __builtin_reduce_or(v)
#define CLT_ANY_long16(v) __builtin_reduce_or(v)
#else
#define CLT_ANY_int4(v) CLT_ANY_int2((v).lo | (v).hi)
#define CLT_ANY_int8(v) CLT_ANY_int4((v).lo | (v).hi)
#define CLT_ANY_int16(v) CLT_ANY_int8((v).lo | (v).hi)
#define CLT_ANY_long4(v) CLT_ANY_long2((v).lo | (v).hi)
#define CLT_ANY_long8(v) CLT_ANY_long4((v).lo | (v).hi)
#define CLT_ANY_long16(v) CLT_ANY_long8((v).lo | (v).hi)
#endif
/* CLT_SOUND_<type>(f, x, y): a builtin of two operands; eight lanes are computed as two calls of four with PoCL on
   AVX-512, where its fmod() of eight doubles or floats does not terminate. */
#if defined(__AVX512F__) && defined(POCL_DEVICE_ADDRESS_BITS)
#define CLT_BY_FOURS(f, F, x, y) (F)(f((x).lo, (y).lo), f((x).hi, (y).hi))
#else
#define CLT_BY_FOURS(f, F, x, y) f(x, y)
#endif
#define CLT_SOUND_float(f, x, y) f(x, y)
#define CLT_SOUND_float2(f, x, y) f(x, y)
#define CLT_SOUND_float4(f, x, y) f(x, y)
#define CLT_SOUND_float8(f, x, y) CLT_BY_FOURS(f, float8, x, y)
#define CLT_SOUND_float16(f, x, y) f(x, y)
#define CLT_SOUND_double(f, x, y) f(x, y)
#define CLT_SOUND_double4(f, x, y) f(x, y)
#define CLT_SOUND_double8(f, x, y) CLT_BY_FOURS(f, double8, x, y)
