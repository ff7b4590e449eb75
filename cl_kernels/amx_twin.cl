/* What amx.cl does, in plain OpenCL C: for tests where there is no such processor. Both operands lie in local memory. */
#define CLT_PLACE(p) (p)
static inline void clt_tiles_begin(void) {}
static inline void clt_tiles_end(void) {}
static inline void clt_sums_begin(__local float *sums)
{
    for (int i = 0; i < 32 * 32; i++)
        sums[i] = 0;
}
static inline float clt_first(int pair) { return as_float(pair << 16); }
static inline float clt_second(int pair) { return as_float(pair & (int)0xffff0000); }
static inline void clt_sums_add(__local float *sums, __local const int *a, long step, __local const int *b)
{
    for (int r = 0; r < 32; r++)
        for (int n = 0; n < 32; n++)
            for (int k = 0; k < 16; k++) {
                const int x = a[r * (step / 4) + k], y = b[n / 16 * 256 + k * 16 + n % 16];
                sums[r * 32 + n] += clt_first(x) * clt_first(y);
                sums[r * 32 + n] += clt_second(x) * clt_second(y);
            }
}
static inline void clt_sums_end(__local float *sums) {}
