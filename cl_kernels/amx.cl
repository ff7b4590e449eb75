/* Products of tiles of bfloat16 numbers by Intel's Advanced Matrix Extensions, which give a thread eight tiles of 16 rows of 64 bytes.
   An instruction adds to 16 x 16 float32 sums what 16 x 32 numbers and 32 x 16 give, of which the latter lie as 16 rows of 16 pairs
   adjacent in K; numbers below the least normal one count as zero. Here four tiles are 32 x 32 sums. Tiles are named, not held in
   variables: nothing may be called while they hold sums. Process and processor have to allow them (runtime/amx.py). */
#ifdef CLT_NO_ASSEMBLY
#error "products of tiles are assembly"
#endif
#define CLT_PLACE(p) ((size_t)(p))
/* Every tile has 16 rows of 64 bytes from here on. The record of that: a palette, from byte 16 on bytes of a row, from byte 48 on rows. */
static inline void clt_tiles_begin(void)
{
    uchar16 record[4] __attribute__((aligned(64)));
    record[0] = (uchar16)(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    record[1] = (uchar16)(64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0);
    record[2] = (uchar16)(0);
    record[3] = (uchar16)(16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0);
    __asm__ volatile("ldtilecfg (%0)" : : "r"(record) : "memory");
}
/* The system need not keep tiles of this thread any longer. */
static inline void clt_tiles_end(void)
{
    __asm__ volatile("tilerelease" : : : "memory");
}
static inline void clt_sums_begin(size_t sums, long pitch)
{
    __asm__ volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" : : : "memory");
}
/* Begin with what lies at `sums`, 32 rows of 32 numbers, `pitch` bytes apart, where they will be stored, too. */
static inline void clt_sums_take(size_t sums, long pitch)
{
    __asm__ volatile(
        "tileloadd (%0,%4,1), %%tmm0\n\t"
        "tileloadd (%1,%4,1), %%tmm1\n\t"
        "tileloadd (%2,%4,1), %%tmm2\n\t"
        "tileloadd (%3,%4,1), %%tmm3"
        :
        : "r"(sums), "r"(sums + 64), "r"(sums + 16 * pitch), "r"(sums + 16 * pitch + 64), "r"(pitch)
        : "memory");
}
/* 32 steps of K are added: of 32 rows at `a`, `step` bytes apart, and of two tiles at `b`, one behind the other. */
static inline void clt_sums_add(size_t sums, long pitch, size_t a, long step, size_t b)
{
    __asm__ volatile(
        "tileloadd (%2,%5,1), %%tmm6\n\t"
        "tileloadd (%0,%4,1), %%tmm4\n\t"
        "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\t"
        "tileloadd (%3,%5,1), %%tmm7\n\t"
        "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n\t"
        "tileloadd (%1,%4,1), %%tmm5\n\t"
        "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\t"
        "tdpbf16ps %%tmm7, %%tmm5, %%tmm3"
        :
        : "r"(a), "r"(a + 16 * step), "r"(b), "r"(b + 1024), "r"(step), "r"(64L)
        : "memory");
}
static inline void clt_sums_end(size_t sums, long pitch)
{
    __asm__ volatile(
        "tilestored %%tmm0, (%0,%4,1)\n\t"
        "tilestored %%tmm1, (%1,%4,1)\n\t"
        "tilestored %%tmm2, (%2,%4,1)\n\t"
        "tilestored %%tmm3, (%3,%4,1)"
        :
        : "r"(sums), "r"(sums + 64), "r"(sums + 16 * pitch), "r"(sums + 16 * pitch + 64), "r"(pitch)
        : "memory");
}
/* Float32 numbers as bfloat16; below the least normal one they are zero. Such a processor has this, too. */
static inline ushort16 clt_rounded(float16 v)
{
    ushort16 rounded;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(v));
    return rounded;
}
