/* Products of tiles of bfloat16 numbers by Intel's Advanced Matrix Extensions, which give a thread eight tile registers
   of 16 rows of 64 bytes. One instruction adds the product of 16 x 32 and 32 x 16 numbers to 16 x 16 float32
   accumulators; the 32 x 16 operand is stored as 16 rows of 16 pairs adjacent in K. Denormal numbers count as zero.
   Here four tiles hold 32 x 32 accumulators. Tile registers are named in the assembly and unknown to the compiler, so
   no function may be called while they hold sums. They need the operating system's permission and a processor that has
   them (runtime/amx.py). */
#ifdef CLT_NO_ASSEMBLY
#error "products of tiles are assembly"
#endif
#define CLT_PLACE(p) ((size_t)(p))
/* Configure every tile as 16 rows of 64 bytes. Layout of the configuration: byte 0 palette, from byte 16 on each tile's
   bytes per row (16-bit), from byte 48 on each tile's number of rows. */
static inline void clt_tiles_begin(void)
{
    uchar16 record[4] __attribute__((aligned(64)));
    record[0] = (uchar16)(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    record[1] = (uchar16)(64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0);
    record[2] = (uchar16)(0);
    record[3] = (uchar16)(16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0);
    __asm__ volatile("ldtilecfg (%0)" : : "r"(record) : "memory");
}
/* Release the tiles: the system need no longer save this thread's. */
static inline void clt_tiles_end(void)
{
    __asm__ volatile("tilerelease" : : : "memory");
}
static inline void clt_sums_begin(size_t sums, long pitch)
{
    __asm__ volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" : : : "memory");
}
/* Load the accumulators from `sums`, 32 rows of 32 numbers, `pitch` bytes apart; clt_sums_end stores them there again. */
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
/* Add 32 steps of K: the product of 32 rows at `a`, `step` bytes apart, and two consecutive tiles at `b`. */
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
/* Float32 numbers rounded to bfloat16, denormal ones to zero. Every processor with AMX has this instruction. */
static inline ushort16 clt_rounded(float16 v)
{
    ushort16 rounded;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(v));
    return rounded;
}
