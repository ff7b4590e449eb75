// Sums of the products of pairs of bfloat16 numbers, by the instruction that some x86 processors have for them. Numbers below the
// least normal one count as zero. What calls it has to be CLT_PAIRS, too. As many lanes as the compiler has registers for: told of
// a processor that had rather not be wide, it would halve a function's vectors of 64 bytes, which assembly cannot take.
#ifdef CLT_NO_ASSEMBLY
#error "products of pairs are assembly"
#endif
#ifdef __AVX512F__
#define CLT_PAIRS __attribute__((target("avx512bf16,avx512vl"), min_vector_width(512)))
typedef float16 clt_sums;
typedef int16 clt_pairs;
#else
#define CLT_PAIRS __attribute__((target("avx512bf16,avx512vl")))
typedef float8 clt_sums;
typedef int8 clt_pairs;
#endif
CLT_PAIRS static inline clt_sums clt_dot(clt_sums sum, clt_pairs a, clt_pairs b)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}
