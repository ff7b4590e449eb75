/* The lesser and the greater of two numbers, which are named twice. The language's own are calls for 64-bit integers on PoCL,
   and a call lets go of all vectors in registers. */
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX(a, b) ((a) < (b) ? (b) : (a))
/* Of a function that may stay apart from its kernel: its vectors of 64 bytes stay whole. For processors that had rather not be
   wide compilers halve them where nothing says otherwise, and then run out of registers; in kernels PoCL says otherwise. */
#ifdef __AVX512F__
#define CLT_WIDE __attribute__((min_vector_width(512)))
#else
#define CLT_WIDE
#endif
