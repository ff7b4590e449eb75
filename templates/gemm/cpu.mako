<%doc>
Matrix product for devices where a work-item is a thread's loop over wide vectors (work-groups of one).

Work-item (x, y, z) owns columns [x*BN, x*BN+BN) and rows [y*BM, y*BM+BM) of the matrices z*per .. z*per+per-1. It walks
K in blocks of KC and runs a register tile of MR x NR. With pack_a its BM x KC block of A is first copied into local
memory (cache) as panels of MR rows; then every NR columns of B (copied too with pack_b) are multiplied by all panels:
the columns stay in L1, the rows stream from L2. Without pack_a the loops are exchanged: B's block is copied (with
pack_b), and every MR rows are multiplied by all columns. Sizes are arguments. Tails of rows and columns compute on
zeros where packed, else on rows and columns of the tile before, and are not stored. A tile's destination, and operands
some steps of K ahead, are prefetched: two hardware threads on a core share L1 and do not hide all waits, and rows of a
B that is not packed are pages apart. With `finish` C holds sums between blocks of K only; the last block's sums go
through the epilogue. With `pairs` (cl_kernels/dot.cl) pairs of bfloat16 numbers adjacent in K are packed, which one
instruction multiplies and sums; an A that is not packed must be contiguous along K, and K even.
Vectors: V lanes; NR = NV * V. Variables: fn ta to acc load loadv store storev pack_a pack_b pairs MR NV V room k_room
group out_bytes ahead headers finish unaligned.
</%doc>
<%namespace name="square" file="/square.mako"/>\
<%
NR = NV * V
av = f"{acc}{V}"
target = "CLT_PAIRS " if pairs else "CLT_WIDE "
# Packed elements: their type pt, how many k each covers (ks), and the text that loads V elements adjacent in K.
pt, ks = ("int", 2) if pairs else (acc, 1)
pv = f"{pt}{V}"
side_by_side = (lambda p: f"*(__global const int{V}_u *)({p})") if pairs else loadv
# V packed elements of adjacent rows or columns, whose numbers along K are `step` apart.
stacked = (lambda p, step: f"stack({p}, {step})") if pairs else lambda p, step: loadv(p)
groups = -(-MR // V)
FAR = 12  # steps of K between a prefetch and its use
packed_bytes = 8 if pt in ('double', 'ulong') else 4
%>\
<%def name="transpose(rows, place, q, pitch)">
{   // transpose ${rows} rows of V elements into V rows (columns past ${rows} are undefined)
% for i in range(V):
    const ${pv} r${i} = ${side_by_side(place(i)) if i < rows else f"({pv})(0)"};
% endfor
${square.turned(pv, V, 'r', 't')}\
% for i in range(V):
    *(__local ${pv}_u *)(${q} + ${i * pitch}) = t${i};
% endfor
}
</%def>\
<%def name="added(place, v)" filter="trim">
(sen ? ${loadv(f"{place} + {v * V}", "to")} : (${av})(${load(f"*({place})", "to")}))
</%def>\
<%def name="keep()">
% for r in range(MR):
% for v in range(NV):
                    *(__local ${av}_u *)(tile + ${(r * NV + v) * V}) = t${r}_${v};
% endfor
% endfor
</%def>\
% if finish:
${finish.text}
typedef ${acc}${finish.lanes} run_u __attribute__((aligned(4)));
% endif
#pragma OPENCL FP_CONTRACT ON
${ahead}\
% for h in headers:
${h}
% endfor
## PLAIN marks remainder and copy loops: vectorizing or unrolling them costs compile time and gains nothing.
#define PLAIN _Pragma("clang loop vectorize(disable)") _Pragma("clang loop unroll(disable)")
## Under-aligned vector types compile to one load or store; vload and vstore of many lanes take some compilers very
## long.
% for t, size in unaligned:
typedef ${t}${V} ${t}${V}_u __attribute__((aligned(${size})));
% endfor
% if pairs:
${pairs}
typedef int${V} int${V}_u __attribute__((aligned(2)));
typedef int pair_u __attribute__((aligned(2)));
CLT_PAIRS static int${V} stack(__global const ${ta} *p, long step)
{
    const ushort${V} first = *(__global const ushort${V}_u *)p, second = *(__global const ushort${V}_u *)(p + step);
    return as_int${V}(convert_uint${V}(first) | convert_uint${V}(second) << 16);
}
CLT_PAIRS static int pair(__global const ${ta} *p, long step, bool both)
{
    return p[0] | (both ? p[step] << 16 : 0);
}
% endif
% if pack_a:
## Copy A's bm x kc block at p to panels of kc rows of MR elements; rows past bm are zero. `room` rows of A are readable
## from p on. Vector stores may run past a row of MR elements: into the next row, which is written later, or into the V
## spare elements after a panel.
${target}static void pack_rows(__global const ${ta} *p, long sm, long sk, long kc, long bm, long room, __local ${pt} *q)
{
    const long all = (kc + ${ks - 1}) / ${ks}, whole = kc / ${ks}, panel = all * ${MR} + ${V};
    long i = 0;
    if (sm == 1)
        for (; i + ${4 * MR} <= bm && i + ${3 * MR + groups * V} <= room; i += ${4 * MR}, q += 4 * panel)
        {
            for (long k = 0; k < whole; k++) {
% for n in range(4):
% for g in range(groups):
                *(__local ${pv}_u *)(q + ${n} * panel + k * ${MR} + ${g * V}) = ${stacked(f"p + {ks} * k * sk + i + {n * MR + g * V}", "sk")};
% endfor
% endfor
            }
% if pairs:
            for (long r = 0; whole < all && r < ${4 * MR}; r++)
                q[r / ${MR} * panel + whole * ${MR} + r % ${MR}] = pair(p + 2 * whole * sk + i + r, 0, false);
% endif
        }
    for (; i < bm; i += ${MR}, q += panel) {
        __global const ${ta} *pi = p + i * sm;
        const long rows = MIN(bm - i, (long)${MR});
        long k = 0;
        if (rows == ${MR} && sk == 1) {
            for (; k + ${V} <= whole; k += ${V}) {
% for g in reversed(range(groups)):
                ${transpose(min(V, MR - g * V), lambda r, g=g: f"pi + {g * V + r} * sm + {ks} * k", f"q + k * {MR} + {g * V}", MR)}
% endfor
            }
        }
        PLAIN
        for (; k < all; k++)
            PLAIN
            for (long r = 0; r < ${MR}; r++)
                q[k * ${MR} + r] = r < rows ? ${"pair(pi + r * sm + 2 * k * sk, sk, k < whole)" if pairs else load("pi[r * sm + k * sk]")} : 0;
    }
}
% endif
% if pack_b:
## Copy B's kc x cols panel at p to kc rows of NR elements; columns past cols are zero or repeat the last column.
${target}static void pack_columns(__global const ${ta} *p, long sk, long sn, long kc, long cols, __local ${pt} *q)
{
    const long all = (kc + ${ks - 1}) / ${ks}, whole = kc / ${ks};
    long k = 0;
    if (cols == ${NR} && sn == 1) {
        for (; k < whole; k++) {
% for v in range(NV):
            *(__local ${pv}_u *)(q + k * ${NR} + ${v * V}) = ${stacked(f"p + {ks} * k * sk + {v * V}", "sk")};
% endfor
        }
    } else if (sk == 1) {
        for (; k + ${V} <= whole; k += ${V}) {
            for (long n = 0; n < ${NR}; n += ${V})
                ${transpose(V, lambda r: f"p + MIN(n + {r}, cols - 1) * sn + {ks} * k", f"q + k * {NR} + n", NR)}
        }
    }
    PLAIN
    for (; k < all; k++) {
% for v in range(NV):
        *(__local ${pv}_u *)(q + k * ${NR} + ${v * V}) = (${pv})(0);
% endfor
        PLAIN
        for (long n = 0; n < cols; n++)
            q[k * ${NR} + n] = ${"pair(p + 2 * k * sk + n * sn, sk, k < whole)" if pairs else load("p[k * sk + n * sn]")};
    }
}
## Copy B's kc x cols block at p, at most ${group} panels of it, to panels one after the other. Contiguous rows of a whole
## block are read at once, as each may be a page away from the next.
${target}static void pack_panels(__global const ${ta} *p, long sk, long sn, long kc, long cols, __local ${pt} *q)
{
    const long packed = (kc + ${ks - 1}) / ${ks};
% if not pairs and group > 1:
    if (sn == 1 && cols == ${group * NR}) {
        for (long k = 0; k < kc; k++, p += sk, q += ${NR}) {
% for g in range(group):
% for v in range(NV):
            *(__local ${pv}_u *)(q + ${g * NR} * kc + ${v * V}) = ${loadv(f"p + {g * NR + v * V}")};
% endfor
% endfor
        }
        return;
    }
% endif
    for (long j = 0; j < cols; j += ${NR})
        pack_columns(p + j * sn, sk, sn, kc, MIN(cols - j, (long)${NR}), q + j * packed);
}
% endif

#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) ${'CLT_PAIRS' if pairs else ''}
void ${fn}(__global const ${ta} *A, long aoff, long sam, long sak,
    __global const ${ta} *B, long boff, long sbk, long sbn,
    __global ${to} *C, long coff, long scm, long scn,
    __global const ${to} *D, long doff, long sdm, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long N, long K, long BM, long BN, long KC,
    long batches, long per, long inner, long kstep, long a0, long a1, long b0, long b1, long c0, long c1, long d0, long d1${''.join(f', {p}' for p in finish.parameters) if finish else ''})
{
% if pack_b:
    __local ${pt} bp[${k_room * NR * group if pack_a else room}] __attribute__((aligned(64)));
% endif
% if pack_a:
    __local ${pt} ap[${room}] __attribute__((aligned(64)));
% endif
    __local ${acc} tile[${MR * NR + NR}] __attribute__((aligned(64)));
    const long jb = get_global_id(0) * BN, ib = get_global_id(1) * BM;
    const long je = MIN(jb + BN, N), ie = MIN(ib + BM, M);
    const long zb = get_global_id(2) * per, ze = MIN(zb + per, batches);
    for (long z = zb; z < ze; z++) {
        const long zo = z / inner, zi = z % inner;
        __global const ${ta} *Az = A + aoff + zo * a0 + zi * a1, *Bz = B + boff + zo * b0 + zi * b1;
        __global ${to} *Cz = C + coff + zo * c0 + zi * c1;
        __global const ${to} *Dz = D + doff + zo * d0 + zi * d1;
        const long Kz = kstep ? MIN(kstep, K - zi * kstep) : K;
        for (long kb = 0; kb == 0 || kb < Kz; kb += KC) {
            const long kc = MIN(KC, Kz - kb), packed = (kc + ${ks - 1}) / ${ks};
            ## E is what a tile's sums are added to, if anything: the bias in the first block of K, the sums so far (in
            ## C) in later ones.
            const bool add = kb || has_bias;
            __global const ${to} *Ez = kb ? Cz : Dz;
            const long sem = kb ? scm : sdm, sen = kb ? scn : sdn;
            const ${acc} gamma = kb ? 1 : beta;
% if pack_a:
            pack_rows(Az + ib * sam + kb * sak, sam, sak, kc, ie - ib, M - ib, ap);
% endif
% if pack_a or pack_b:
            for (long j = jb; j < je; j += ${NR}) {
                const long cols = MIN(je - j, (long)${NR});
% endif
% if pack_b:
                const long first = (j - jb) ${f"% {group * NR}" if pack_a else ""};
                __local ${pt} *bj = bp + first * packed;
                if (${"first" if pack_a else f"first % {group * NR}"} == 0)
                    pack_panels(Bz + kb * sbk + j * sbn, sbk, sbn, kc, MIN(je - j, (long)${group * NR}), bj);
% endif
% if pack_a:
                for (long i = ib; i < ie; i += ${MR}) {
% else:
% if pack_b:
            }
% endif
            for (long i = ib; i < ie; i += ${MR}) {
                for (long j = jb; j < je; j += ${NR}) {
                    const long cols = MIN(je - j, (long)${NR});
% endif
                    const long rows = MIN(ie - i, (long)${MR});
% if pack_a:
                    const long i0 = i;
                    __local const ${pt} *a = ap + (i - ib) * packed + (i - ib) / ${MR} * ${V};
% else:
                    const long i0 = MIN(i, M - ${MR});
                    __global const ${ta} *a = Az + i0 * sam + kb * sak;
% endif
% if pack_b:
                    const long j0 = j;
                    __local const ${pt} *b = ${"bj" if pack_a else "bp + (j - jb) * packed"};
% else:
                    const long j0 = MIN(j, N - ${NR});
                    __global const ${ta} *b = Bz + kb * sbk + j0;
% endif
% for r in range(MR):
                    ${av} ${', '.join(f"t{r}_{v} = 0" for v in range(NV))};
% endfor
% for r in range(MR):
% for at in range(0, NR * out_bytes, 64):
                    CLT_PREFETCH_TO_WRITE(Cz + (i0 + ${r}) * scm + j0 * scn + ${at // out_bytes});
% endfor
% endfor
                    _Pragma("clang loop unroll_count(2)")
                    for (long k = 0; k < packed; k++) {
% for at in range(0, NR * packed_bytes, 64):
                        CLT_PREFETCH(b + ${FAR} * ${NR if pack_b else 'sbk'} + ${at // packed_bytes});
% endfor
% if pack_a:
                        CLT_PREFETCH(a + ${2 * FAR * MR});
% endif
% for v in range(NV):
% if pack_b:
                        const ${pv} b${v}_ = *(__local const ${pv}_u *)(b + ${v * V});
% else:
                        const ${av} b${v}_ = ${loadv(f"b + {v * V}")};
% endif
% endfor
% for r in range(MR):
                        {
% if pack_a:
                            const ${pv} x = a[${r}];
% else:
                            const ${pv} x = ${f"*(__global const pair_u *)(a + {r} * sam)" if pairs else load(f"a[{r} * sam]")};
% endif
% for v in range(NV):
                            t${r}_${v} = ${f"clt_dot(t{r}_{v}, x, b{v}_)" if pairs else f"x * b{v}_ + t{r}_{v}"};
% endfor
                        }
% endfor
                        a += ${MR if pack_a else 2 if pairs else "sak"};
                        b += ${NR if pack_b else "sbk"};
                    }
                    __global ${to} *c = Cz + i0 * scm + j0 * scn;
                    __global const ${to} *e = Ez + i0 * sem + j0 * sen;
% if finish:
                    if (kb + kc >= Kz) {
                        ${keep()}
                        PLAIN
                        for (long r = i - i0; r < i - i0 + rows; r++) {
                            __local ${acc} *t = tile + r * ${NR};
                            if (j == j0 && cols == ${NR} && (!add || (ulong)sen <= 1)) {
% for v in range(NV):
                                ${av} y${v} = *(__local const ${av}_u *)(t + ${v * V}) * alpha;
                                if (add) y${v} += gamma * ${added("e + r * sem", v)};
                                *(__local ${av}_u *)(t + ${v * V}) = y${v};
% endfor
                            } else {
                                PLAIN
                                for (long n = j - j0; n < j - j0 + cols; n++) {
                                    ${acc} y = t[n] * alpha;
                                    if (add) y += gamma * ${load("e[r * sem + n * sen]", "to")};
                                    t[n] = y;
                                }
                            }
                            PLAIN
                            for (long n = 0; n < cols; n += ${finish.lanes})
                                finish(i0 + r, j + n, (int)MIN(cols - n, (long)${finish.lanes}),
                                    *(__local const run_u *)(t + (j - j0) + n), ${', '.join(finish.names)});
                        }
                        continue;
                    }
% endif
                    ## A tile that was moved back from an edge may be stored whole where its extra rows and columns are
                    ## this work-item's own: they get the same values again.
                    const bool down = rows == ${MR}${'' if pack_a else ' || (!add && i0 >= ib)'}, across = cols == ${NR}${'' if pack_b else ' || (!add && j0 >= jb)'};
                    if (down && across && scn == 1 && (!add || (ulong)sen <= 1)) {
                        if (add) {
% for r in range(MR):
% for v in range(NV):
                            t${r}_${v} = t${r}_${v} * alpha;
                            t${r}_${v} += gamma * ${added(f"e + {r} * sem", v)};
                            ${storev(f"t{r}_{v}", f"c + {r} * scm + {v * V}")};
% endfor
% endfor
                        } else {
% for r in range(MR):
% for v in range(NV):
                            t${r}_${v} = t${r}_${v} * alpha;
                            ${storev(f"t{r}_{v}", f"c + {r} * scm + {v * V}")};
% endfor
% endfor
                        }
                        continue;
                    }
                    ${keep()}
                    ## A tile at an edge is moved back to (i0, j0): its rows before i - i0 and columns before j - j0 are
                    ## other tiles' results, not stored.
                    PLAIN
                    for (long r = i - i0; r < i - i0 + rows; r++) {
                        __local const ${acc} *t = tile + r * ${NR};
                        if (j == j0 && cols == ${NR} && scn == 1 && (!add || (ulong)sen <= 1)) {
% for v in range(NV):
                            ${av} y${v} = *(__local const ${av}_u *)(t + ${v * V}) * alpha;
                            if (add) y${v} += gamma * ${added("e + r * sem", v)};
                            ${storev(f"y{v}", f"c + r * scm + {v * V}")};
% endfor
                        } else {
                            PLAIN
                            for (long n = j - j0; n < j - j0 + cols; n++) {
                                ${acc} y = t[n] * alpha;
                                if (add) y += gamma * ${load("e[r * sem + n * sen]", "to")};
                                ${store("y", "c", "r * scm + n * scn")};
                            }
                        }
                    }
                }
            }
        }
    }
}
