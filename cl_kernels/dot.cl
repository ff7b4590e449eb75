// Sums of the products of pairs of bfloat16 numbers, by the instruction that some x86 processors have for them. Numbers below the
// least normal one count as zero. What calls it has to be CLT_PAIRS, too.
#define CLT_PAIRS __attribute__((target("avx512bf16,avx512vl")))
CLT_PAIRS static inline float8 clt_dot(float8 sum, int8 a, int8 b)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}
