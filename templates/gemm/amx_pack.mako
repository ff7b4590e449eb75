<%doc>
Packing of bfloat16 numbers for products of tiles (amx.mako, amx_rows.mako, attention/forward.mako): operands become
pairs adjacent in K. Packing into local memory is inlined into the kernel: in a separate function LLVM would replace the
pointer parameter by the local array itself, and PoCL, which allocates local arrays later, substitutes their addresses
in kernels only.
</%doc>
<%namespace name="square" file="/square.mako"/>\
<%def name="helpers()">\
#define PLAIN _Pragma("clang loop vectorize(disable)") _Pragma("clang loop unroll(disable)")
typedef int16 pairs_u __attribute__((aligned(2)));
typedef ushort16 half_u __attribute__((aligned(2)));
## stack: for each of 16 adjacent numbers at p, the pair of itself and the number `step` after it. pair: the same for
## one number; without `both` the second is zero.
CLT_WIDE static inline int16 stack(__global const ushort *p, long step)
{
    return as_int16(convert_uint16(*(__global const half_u *)p) | convert_uint16(*(__global const half_u *)(p + step)) << 16);
}
static inline int pair(__global const ushort *p, long step, bool both)
{
    return p[0] | (both ? p[step] << 16 : 0);
}
</%def>\
<%def name="packs(space)" filter="trim">
${'CLT_WIDE static __attribute__((always_inline))' if space == '__local' else 'CLT_WIDE static __attribute__((noinline))'}
</%def>\
<%def name="turn(space, place, to)">
{   // transpose 16 rows of 16 pairs
% for i in range(16):
    const int16 r${i} = ${place(i)};
% endfor
${square.turned("int16", 16, 'r', 't')}\
% for i in range(16):
    *(${space} pairs_u *)(${to(i)}) = t${i};
% endfor
}
</%def>\
<%def name="pack_strip(space)">\
## Copy up to 32 rows of A to 32 rows of pairs adjacent in K, `pitch` pairs apart. Numbers past kc and rows past `rows`
## are zero.
${packs(space)} void pack_strip(__global const ushort *p, long sm, long sk, long kc, long rows, long pitch, ${space} int *q)
{
    const long all = (kc + 31) / 32 * 16, whole = kc / 2;
    long k = 0;
    if (rows == 32 && sm == 1) {
        for (; k + 16 <= whole; k += 16)
            for (int v = 0; v < 2; v++) {
                __global const ushort *from = p + 2 * k * sk + 16 * v;
                ${space} int *to = q + 16 * v * pitch + k;
                ${turn(space, lambda i: f"stack(from + {2 * i} * sk, sk)", lambda i: f"to + {i} * pitch")}
            }
    } else if (sk == 1) {
        for (; k + 16 <= whole; k += 16)
            for (long r = 0; r < 32; r++)
                *(${space} pairs_u *)(q + r * pitch + k) = r < rows ? *(__global const pairs_u *)(p + r * sm + 2 * k) : (int16)(0);
    }
    for (long r = 0; r < 32; r++)
        PLAIN
        for (long at = k; at < all; at++)
            q[r * pitch + at] = r < rows && 2 * at < kc ? pair(p + r * sm + 2 * at * sk, sk, at < whole) : 0;
}
</%def>\
<%def name="pack_columns(space)">\
## Copy B's kc x cols block to panels of 32 columns. A panel has, for every 32 k, two tiles (16 columns each) of 16 rows
## of 16 pairs. Numbers past kc are zero; columns past cols are zero or repeat the last column. From 32 columns on the
## last panel holds the last 32.
${packs(space)} void pack_columns(__global const ushort *p, long sk, long sn, long kc, long cols, ${space} int *q)
{
    const long all = (kc + 31) / 32 * 16, whole = kc / 2, last = MAX(cols - 32, 0L), panels = (cols + 31) / 32 * 32;
    long k = 0;
    if (cols >= 32 && sn == 1) {
        for (; k < whole; k++)
            for (long j = 0; j < cols; j += 32) {
                __global const ushort *from = p + 2 * k * sk + MIN(j, last);
                ${space} int *to = q + j * all + k / 16 * 512 + k % 16 * 16;
                *(${space} pairs_u *)to = stack(from, sk);
                *(${space} pairs_u *)(to + 256) = stack(from + 16, sk);
            }
    } else if (sk == 1) {
        for (long j = 0; j < panels; j += 16)
            for (k = 0; k + 16 <= whole; k += 16) {
                const long first = MIN(j / 32 * 32, last) + j % 32;
                __global const ushort *from = p + 2 * k;
                ${space} int *to = q + j / 32 * 32 * all + k * 32 + j % 32 * 16;
                ${turn(space, lambda i: f"*(__global const pairs_u *)(from + MIN(first + {i}, cols - 1) * sn)", lambda i: f"to + {16 * i}")}
            }
    }
    PLAIN
    for (; k < all; k++)
        for (long j = 0; j < panels; j += 16) {
            const long first = MIN(j / 32 * 32, last) + j % 32;
            ${space} int *to = q + j / 32 * 32 * all + k / 16 * 512 + k % 16 * 16 + j % 32 * 16;
            *(${space} pairs_u *)to = 0;
            PLAIN
            for (long n = 0; 2 * k < kc && n < MIN(cols - first, 16L); n++)
                to[n] = pair(p + 2 * k * sk + (first + n) * sn, sk, k < whole);
        }
}
</%def>\
