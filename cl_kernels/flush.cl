/* Between CLT_FLUSH and CLT_FLUSH_END the thread that runs the kernel flushes denormal results to zero, if the compiler
   has builtins for MXCSR. For intermediate values that vanish beside the sums they enter (weights of attention,
   products of many rotations): each denormal result costs Intel's processors 150 cycles. Denormal operands are read as
   they are. */
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
