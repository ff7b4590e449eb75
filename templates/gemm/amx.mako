<%doc>
Matrix product of bfloat16 numbers by tiles of Intel's AMX (cl_kernels/amx.cl), for devices where a work-item is a
thread.

Work-item (x, y, z) owns columns [x*BN, x*BN+BN) and rows [y*BM, y*BM+BM) of the matrices z*per .. z*per+per-1. It walks
K in blocks of KC and columns in groups of GN: B's block is copied as tiles (`bp`, panels of 32 columns), then every 32
rows of A are multiplied by all its panels. Rows of A that are contiguous along K are read in place, except for the last
steps of an odd K; others are copied first (`strip`). The last 32 rows or columns overlap the tile before and what was
computed already is not stored; a matrix with less than 32 is padded with zeros.
Variables: fn to load loadv store storev room (numbers in bp) span (the longest KC) headers unaligned tiles (how tiles
are multiplied) direct (rows of A can be read in place).
</%doc>
<%namespace name="pack" file="amx_pack.mako"/>\
#pragma OPENCL FP_CONTRACT ON
% for h in headers:
${h}
% endfor
% for t, size in unaligned:
typedef ${t}16 ${t}16_u __attribute__((aligned(${size})));
% endfor
#define CLT_SPACE __local
${tiles}
#define PITCH ${span // 2 + 16} // row stride of a strip, in pairs
${pack.helpers()}\
${pack.pack_columns('__local')}\
${pack.pack_strip('__local')}\
## sum * alpha, with `add` plus gamma times 16 numbers at e, which lie side by side, or are one number where its column
## stride is 0.
CLT_WIDE static inline float16 ended(float16 sum, float alpha, bool add, float gamma, __global const ${to} *e, long sen)
{
    sum *= alpha;
    if (add) sum += gamma * (sen ? ${loadv("e", "to")} : (float16)(${load("*e", "to")}));
    return sum;
}

#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ushort *A, long aoff, long sam, long sak,
    __global const ushort *B, long boff, long sbk, long sbn,
    __global ${to} *C, long coff, long scm, long scn,
    __global const ${to} *D, long doff, long sdm, long sdn, int has_bias, float alpha, float beta,
    long M, long N, long K, long BM, long BN, long GN, long KC,
    long batches, long per, long inner, long kstep, long a0, long a1, long b0, long b1, long c0, long c1, long d0, long d1)
{
    __local int bp[${room // 2}] __attribute__((aligned(64)));
    __local int strip[32 * PITCH] __attribute__((aligned(64)));
    __local float sums[32 * 32] __attribute__((aligned(64)));
    const long jb = get_global_id(0) * BN, ib = get_global_id(1) * BM;
    const long je = MIN(jb + BN, N), ie = MIN(ib + BM, M);
    const long zb = get_global_id(2) * per, ze = MIN(zb + per, batches);
    clt_tiles_begin();
    for (long z = zb; z < ze; z++) {
        const long zo = z / inner, zi = z % inner;
        __global const ushort *Az = A + aoff + zo * a0 + zi * a1, *Bz = B + boff + zo * b0 + zi * b1;
        __global ${to} *Cz = C + coff + zo * c0 + zi * c1;
        __global const ${to} *Dz = D + doff + zo * d0 + zi * d1;
        const long Kz = kstep ? MIN(kstep, K - zi * kstep) : K;
        for (long kb = 0; kb == 0 || kb < Kz; kb += KC) {
            const long kc = MIN(KC, Kz - kb), steps = (kc + 31) / 32;
            ## E is what a tile's sums are added to, if anything: the bias in the first block of K, the sums so far (in
            ## C) in later ones.
            const bool add = kb || has_bias;
            __global const ${to} *Ez = kb ? Cz : Dz;
            const long sem = kb ? scm : sdm, sen = kb ? scn : sdn;
            const float gamma = kb ? 1 : beta;
            for (long g = jb; g < je; g += GN) {
                ## A group's panels of 32 columns begin at g0; the last one is moved back to end with the group's
                ## columns, so it may overlap the one before.
                const long g0 = MIN(g, MAX(N - 32, 0L)), end = MIN(g + GN, je), held = MAX(end, MIN(g0 + 32, N)) - g0, last = MAX(held - 32, 0L);
                pack_columns(Bz + kb * sbk + g0 * sbn, sbk, sbn, kc, held, bp);
                for (long i = ib; i < ie; i += 32) {
                    const long i0 = MIN(i, MAX(M - 32, 0L)), rows = MIN(ie - i, 32L);
                    __global const ushort *a = Az + i0 * sam + kb * sak;
                    const long whole = ${'sak == 1 && M >= 32 ? kc / 32 : 0' if direct else '0'}; // steps of 32 k that read A in place, without packing
                    if (whole < steps)
                        pack_strip(a + whole * 32 * sak, sam, sak, kc - whole * 32, MIN(M - i0, 32L), PITCH, strip);
                    for (long j = g; j < end; j += 32) {
                        const long j0 = g0 + MIN(j - g, last), cols = MIN(end - j, 32L);
                        __local const int *b = bp + (j - g) * steps * 16;
                        clt_sums_begin(CLT_PLACE(sums), 128);
% if direct:
                        for (long s = 0; s < whole; s++, b += 512)
                            clt_sums_add(CLT_PLACE(sums), 128, CLT_PLACE(a + s * 32), sam * 2, CLT_PLACE(b));
% endif
                        __local const int *left = strip;
                        for (long s = whole; s < steps; s++, b += 512, left += 16)
                            clt_sums_add(CLT_PLACE(sums), 128, CLT_PLACE(left), PITCH * 4L, CLT_PLACE(b));
                        clt_sums_end(CLT_PLACE(sums), 128);
                        ## A tile at an edge is moved back to (i0, j0): its rows before i - i0 and columns before j - j0
                        ## are other tiles' results, not stored.
                        __global ${to} *c = Cz + i0 * scm + j0 * scn;
                        __global const ${to} *e = Ez + i0 * sem + j0 * sen;
                        if (j == j0 && cols == 32 && scn == 1 && (!add || (ulong)sen <= 1)) {
                            for (long r = i - i0; r < i - i0 + rows; r++) {
                                __local const float *t = sums + r * 32;
                                const float16 y0 = ended(*(__local const float16 *)t, alpha, add, gamma, e + r * sem, sen);
                                const float16 y1 = ended(*(__local const float16 *)(t + 16), alpha, add, gamma, e + r * sem + 16 * sen, sen);
                                ${storev("y0", "c + r * scm")};
                                ${storev("y1", "c + r * scm + 16")};
                            }
                            continue;
                        }
                        PLAIN
                        for (long r = i - i0; r < i - i0 + rows; r++) {
                            PLAIN
                            for (long n = j - j0; n < j - j0 + cols; n++) {
                                float y = sums[r * 32 + n] * alpha;
                                if (add) y += gamma * ${load("e[r * sem + n * sen]", "to")};
                                ${store("y", "c", "r * scm + n * scn")};
                            }
                        }
                    }
                }
            }
        }
    }
    clt_tiles_end();
}
