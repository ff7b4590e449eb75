/* Minimum and maximum; the arguments are evaluated twice. On PoCL the builtins are library calls for 64-bit integers,
   and a call spills all vector registers. */
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX(a, b) ((a) < (b) ? (b) : (a))
/* For functions that may not be inlined: keeps their vectors of 64 bytes whole. For processors that prefer narrow
   vectors compilers halve them by default, and then run out of registers. Kernels need no such attribute: PoCL sets it
   for them. */
#ifdef __AVX512F__
#define CLT_WIDE __attribute__((min_vector_width(512)))
#else
#define CLT_WIDE
#endif
