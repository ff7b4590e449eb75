// Dot products of pairs of bfloat16 numbers, added to float32 sums, by AVX512-BF16's vdpbf16ps. Denormal numbers count as zero.
// Functions that call clt_dot must be CLT_PAIRS, too. Vectors are as wide as registers; min_vector_width keeps them whole: for
// processors that prefer narrow vectors the compiler would halve a function's vectors of 64 bytes, and the assembly needs whole ones.
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
