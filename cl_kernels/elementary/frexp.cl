/* Mantissa in [0.5, 1) and exponent of floats (both 0 for 0; the number itself and 0 where it is not finite), by their
   bits, for any number of lanes. The bits of a denormal number, converted from integer, give a normal number larger by
   2^SMALLEST. */
#include "all_lanes.cl"
#define CLT_FREXP_BITS_float 23
#define CLT_FREXP_ALL_float 0x7f800000
#define CLT_FREXP_HALF_float 126
#define CLT_FREXP_SMALLEST_float 149
#define CLT_FREXP_BITS_double 52
#define CLT_FREXP_ALL_double 0x7ff0000000000000L
#define CLT_FREXP_HALF_double 1022L
#define CLT_FREXP_SMALLEST_double 1074L
#define CLT_FREXP(V, T, I, K)                                                                                                \
  static inline I clt_size_##V(V x) { return as_##I(x) & (I)(CLT_FREXP_ALL_##T | (((K)1 << CLT_FREXP_BITS_##T) - 1)); }      \
  static inline I clt_small_##V(I size) { return size < (I)((K)1 << CLT_FREXP_BITS_##T); }                                   \
  /* The bits of a normal number with the same mantissa. */                                                                  \
  static inline I clt_normal_##V(I size) {                                                                                   \
    const I small = clt_small_##V(size);                                                                                     \
    return CLT_ANY_##I(small) ? (small ? as_##I(convert_##V(size)) : size) : size;                                           \
  }                                                                                                                          \
  static inline I clt_counts_##V(I size) { return size != (I)(0) & size < (I)(CLT_FREXP_ALL_##T); }                          \
  static inline V mantissa_##V(V x) {                                                                                        \
    const I size = clt_size_##V(x), bits = clt_normal_##V(size) & (I)(((K)1 << CLT_FREXP_BITS_##T) - 1);                     \
    const I sign = as_##I(x) & ~(I)(CLT_FREXP_ALL_##T | (((K)1 << CLT_FREXP_BITS_##T) - 1));                                 \
    return clt_counts_##V(size) ? as_##V(bits | sign | (I)(CLT_FREXP_HALF_##T << CLT_FREXP_BITS_##T)) : x;                   \
  }                                                                                                                          \
  static inline V exponent_##V(V x) {                                                                                        \
    const I size = clt_size_##V(x), least = clt_small_##V(size) ? (I)(CLT_FREXP_SMALLEST_##T) : (I)(0);                      \
    const I found = (clt_normal_##V(size) >> CLT_FREXP_BITS_##T) - (I)(CLT_FREXP_HALF_##T) - least;                          \
    return clt_counts_##V(size) ? convert_##V(found) : (V)(0);                                                               \
  }
CLT_OWN_LANES(CLT_FREXP, float, int, int)
#ifdef CLT_DOUBLE
CLT_OWN_LANES(CLT_FREXP, double, long, long)
#endif
