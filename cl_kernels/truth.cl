/* The lanes of a mask as bytes 1 and 0. The 1 is hidden from the compiler, which would otherwise load a constant under
   the mask: such a masked load takes some processors (AMD's Zen 5) 300 cycles where no lane is set. CLT_BYTES hides,
   for the same reason, that bytes joined by `and` were masks: the compiler would load and compare the second operand
   under the first mask. May be included more than once. */
#ifndef CLT_TRUTH
#if defined(__clang__) && defined(__AVX512BW__) && !defined(CLT_NO_ASSEMBLY)
static inline uchar clt_one(void) {
  uint one = 1;
  __asm__("" : "+r"(one));
  return (uchar)one;
}
#define CLT_TRUTH(mask, T) ((mask) & (T)(clt_one()))
static inline uchar16 clt_bytes(uchar16 truth) {
  __asm__("" : "+v"(truth));
  return truth;
}
#define CLT_BYTES(truth) clt_bytes(truth)
#else
#define CLT_TRUTH(mask, T) ((mask) & (T)(1))
#define CLT_BYTES(truth) (truth)
#endif
#endif
