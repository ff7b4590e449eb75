/* amx.cl in plain OpenCL C, for tests on processors without AMX. All pointers are to the address space CLT_SPACE. */
#define CLT_PLACE(p) (p)
static inline void clt_tiles_begin(void) {}
static inline void clt_tiles_end(void) {}
static inline void clt_sums_begin(CLT_SPACE float *sums, long pitch)
{
    for (int i = 0; i < 32 * 32; i++)
        sums[i / 32 * (pitch / 4) + i % 32] = 0;
}
static inline void clt_sums_take(CLT_SPACE float *sums, long pitch) {}
static inline float clt_first(int pair) { return as_float(pair << 16); }
static inline float clt_second(int pair) { return as_float(pair & (int)0xffff0000); }
static inline void clt_sums_add(CLT_SPACE float *sums, long pitch, CLT_SPACE const int *a, long step, CLT_SPACE const int *b)
{
    for (int r = 0; r < 32; r++)
        for (int n = 0; n < 32; n++)
            for (int k = 0; k < 16; k++) {
                const int x = a[r * (step / 4) + k], y = b[n / 16 * 256 + k * 16 + n % 16];
                sums[r * (pitch / 4) + n] += clt_first(x) * clt_first(y);
                sums[r * (pitch / 4) + n] += clt_second(x) * clt_second(y);
            }
}
static inline void clt_sums_end(CLT_SPACE float *sums, long pitch) {}
static inline ushort16 clt_rounded(float16 v) { return clt_to_bf16_float16(v); }
