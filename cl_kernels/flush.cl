/* Between CLT_FLUSH and CLT_FLUSH_END numbers too small to be normal are zeros, operands and results, where the compiler has a word for it: in the thread
   that runs the kernel, once in each of its functions. For products of many rotations, and the like, that fade away: to Intel's processors each denormal number is
   150 cycles. */
#ifdef __has_builtin
#if __has_builtin(__builtin_ia32_ldmxcsr) && __has_builtin(__builtin_ia32_stmxcsr)
#define CLT_FLUSH                                                                                                      \
    const uint clt_mode = __builtin_ia32_stmxcsr();                                                                    \
    __builtin_ia32_ldmxcsr(clt_mode | 0x8040)
#define CLT_FLUSH_END __builtin_ia32_ldmxcsr(clt_mode)
#endif
#endif
#ifndef CLT_FLUSH
#define CLT_FLUSH
#define CLT_FLUSH_END
#endif
