/* Between CLT_FLUSH and CLT_FLUSH_END results too small to be normal numbers are zeros, where the compiler has a word for it: in the thread that
   runs the kernel. For what is on the way to sums beside which such numbers are nothing, as weights of attention and products of many rotations
   are: to Intel's processors each costs 150 cycles. Operands that are denormal stay. */
#ifdef __has_builtin
#if __has_builtin(__builtin_ia32_ldmxcsr) && __has_builtin(__builtin_ia32_stmxcsr)
#define CLT_FLUSH                                                                                                      \
    const uint clt_mode = __builtin_ia32_stmxcsr();                                                                    \
    __builtin_ia32_ldmxcsr(clt_mode | 0x8000)
#define CLT_FLUSH_END __builtin_ia32_ldmxcsr(clt_mode)
#endif
#endif
#ifndef CLT_FLUSH
#define CLT_FLUSH
#define CLT_FLUSH_END
#endif
