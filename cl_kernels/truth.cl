/* The bytes 1 and 0 of a mask's lanes. The 1 is hidden from the compiler: one that knows it loads a constant under the mask, and
   such a load takes some processors (AMD's Zen 5) 300 cycles where no lane is set. For the same reason it is not told that bytes that
   are joined by `and` were masks: it would compare, and load what it compares, under the first one. May be pasted more than once. */
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
