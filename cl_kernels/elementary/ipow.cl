/* Powers of integers by squaring; products wrap. For a negative exponent the result is 1 / x ** -y, truncated. */
#define CLT_IPOW(T, U)                                                  \
  static inline T ipow_##T(T x, T y) {                                  \
    if (y < 0) return x == 1 ? 1 : x != (T)(-1) ? 0 : (y & 1) ? -1 : 1; \
    U power = 1, square = (U)x;                                         \
    for (U left = (U)y; left != 0; left >>= 1) {                        \
      if (left & 1) power *= square;                                    \
      square *= square;                                                 \
    }                                                                   \
    return (T)power;                                                    \
  }
CLT_IPOW(uchar, uint)
CLT_IPOW(char, uint)
CLT_IPOW(ushort, uint)
CLT_IPOW(short, uint)
CLT_IPOW(uint, uint)
CLT_IPOW(int, uint)
CLT_IPOW(ulong, ulong)
CLT_IPOW(long, ulong)
