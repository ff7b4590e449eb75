/* Greatest common divisors of integers, by Euclid's algorithm on magnitudes, which unsigned types hold in full; least common
   multiples, which types narrower than int keep modulo their range. */
#define CLT_GCD(T, U)                                                                                                          \
  static inline T gcd_##T(T x, T y) {                                                                                          \
    U a = x < 0 ? (U)(0 - (U)x) : (U)x, b = y < 0 ? (U)(0 - (U)y) : (U)y;                                                      \
    while (b != 0) {                                                                                                           \
      const U rest = a % b;                                                                                                    \
      a = b;                                                                                                                   \
      b = rest;                                                                                                                \
    }                                                                                                                          \
    return (T)a;                                                                                                               \
  }                                                                                                                            \
  static inline T lcm_##T(T x, T y) {                                                                                          \
    const T shared = gcd_##T(x, y);                                                                                            \
    return shared == 0 ? 0 : (T)abs(x / shared * y);                                                                           \
  }
CLT_GCD(uchar, uchar)
CLT_GCD(char, uchar)
CLT_GCD(ushort, ushort)
CLT_GCD(short, ushort)
CLT_GCD(uint, uint)
CLT_GCD(int, uint)
CLT_GCD(ulong, ulong)
CLT_GCD(long, ulong)
