<%doc>
Matrix product for devices where a work-item is a thread's loop over wide vectors (work-groups of one).

Work-item (x, y, z) owns columns [x*BN, x*BN+BN) and rows [y*BM, y*BM+BM) of the matrices z*per .. z*per+per-1. It walks K in
blocks of KC; with pack_b it first copies its KC x BN block of B into local memory (cache) as panels of NR columns; then for
every MR rows of A (copied too with pack_a) it runs the register tile of MR x NR over all panels. Numbers of a shape are
arguments; tails of rows and columns
compute on zeros where packed, else on rows and columns of the tile before, and are not stored.
Vectors: V lanes; NR = NV * V. Variables: fn ta to acc load loadv store storev pack_a pack_b MR NV V b_room k_room headers.
</%doc>
<%
NR = NV * V
av = f"{acc}{V}"
import math
stages = int(math.log2(V))
%>\
% for h in headers:
${h}
% endfor
// Loops that only tidy up: not worth the compiler's time.
#define PLAIN _Pragma("clang loop vectorize(disable)") _Pragma("clang loop unroll(disable)")
// vload and vstore of many lanes make some compilers explode; an under-aligned vector type is one instruction.
% for t, size in unaligned:
typedef ${t}${V} ${t}${V}_u __attribute__((aligned(${size})));
% endfor
% if pack_b:
// The V x V block at p (rows of `step` elements, columns adjacent) goes transposed to q (rows of NR elements).
static void transpose_block(__global const ${ta} *p, long step, __local ${acc} *q)
{
% for i in range(V):
    ${av} r0_${i} = ${loadv(f"p + {i} * step")};
% endfor
% for s in range(stages):
% for i in range(V // 2):
    ${av} r${s + 1}_${2 * i}, r${s + 1}_${2 * i + 1};
    r${s + 1}_${2 * i}.even = r${s}_${i}.lo; r${s + 1}_${2 * i}.odd = r${s}_${i + V // 2}.lo;
    r${s + 1}_${2 * i + 1}.even = r${s}_${i}.hi; r${s + 1}_${2 * i + 1}.odd = r${s}_${i + V // 2}.hi;
% endfor
% endfor
% for i in range(V):
    *(__local ${av}_u *)(q + ${i * NR}) = r${stages}_${i};
% endfor
}

// B's kc x bn block at p becomes panels of kc rows of NR numbers; columns past bn are zero.
static void pack_columns(__global const ${ta} *p, long sk, long sn, long kc, long bn, __local ${acc} *q)
{
    for (long j = 0; j < bn; j += ${NR}, q += kc * ${NR}) {
        __global const ${ta} *pj = p + j * sn;
        long cols = min(bn - j, (long)${NR}), k = 0;
        if (cols == ${NR} && sn == 1) {
            for (k = 0; k < kc; k++) {
% for v in range(NV):
                *(__local ${av}_u *)(q + k * ${NR} + ${v * V}) = ${loadv(f"pj + k * sk + {v * V}")};
% endfor
            }
            continue;
        }
        if (sk == 1) {
            long full = cols / ${V} * ${V};
            for (; k + ${V} <= kc; k += ${V}) {
                long n = 0;
                for (; n < full; n += ${V})
                    transpose_block(pj + n * sn + k, sn, q + k * ${NR} + n);
                PLAIN
                for (; n < ${NR}; n++)
                    PLAIN
                    for (long t = k; t < k + ${V}; t++)
                        q[t * ${NR} + n] = n < cols ? ${load("pj[n * sn + t]")} : 0;
            }
        }
        PLAIN
        for (; k < kc; k++)
            PLAIN
            for (long n = 0; n < ${NR}; n++)
                q[k * ${NR} + n] = n < cols ? ${load("pj[k * sk + n * sn]")} : 0;
    }
}
% endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${ta} *A, long aoff, long sam, long sak,
    __global const ${ta} *B, long boff, long sbk, long sbn,
    __global ${to} *C, long coff, long scm, long scn,
    __global const ${to} *D, long doff, long sdm, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long N, long K, long BM, long BN, long KC,
    long batches, long per, long inner, long kstep, long a0, long a1, long b0, long b1, long c0, long c1, long d0, long d1)
{
% if pack_b:
    __local ${acc} bp[${b_room}] __attribute__((aligned(64)));
% endif
% if pack_a:
    __local ${acc} ap[${k_room * MR}] __attribute__((aligned(64)));
% endif
    __local ${acc} tile[${MR * NR}] __attribute__((aligned(64)));
    const long jb = get_global_id(0) * BN, ib = get_global_id(1) * BM;
    const long je = min(jb + BN, N), ie = min(ib + BM, M);
    const long zb = get_global_id(2) * per, ze = min(zb + per, batches);
    for (long z = zb; z < ze; z++) {
        const long zo = z / inner, zi = z % inner;
        __global const ${ta} *Az = A + aoff + zo * a0 + zi * a1, *Bz = B + boff + zo * b0 + zi * b1;
        __global ${to} *Cz = C + coff + zo * c0 + zi * c1;
        __global const ${to} *Dz = D + doff + zo * d0 + zi * d1;
        const long Kz = kstep ? min(kstep, K - zi * kstep) : K;
        for (long kb = 0; kb == 0 || kb < Kz; kb += KC) {
            const long kc = min(KC, Kz - kb);
% if pack_b:
            pack_columns(Bz + kb * sbk + jb * sbn, sbk, sbn, kc, je - jb, bp);
% endif
            for (long i0 = ib; i0 < ie; i0 += ${MR}) {
                const long rows = min(ie - i0, (long)${MR});
% if pack_a:
                {
                    __global const ${ta} *p = Az + i0 * sam + kb * sak;
                    if (sam == 1 && rows == ${MR}) {
                        for (long k = 0; k < kc; k++) {
% for r in range(MR):
                            ap[k * ${MR} + ${r}] = ${load(f"p[k * sak + {r}]")};
% endfor
                        }
                    } else {
                        PLAIN
                        for (long r = 0; r < ${MR}; r++)
                            PLAIN
                            for (long k = 0; k < kc; k++)
                                ap[k * ${MR} + r] = r < rows ? ${load("p[r * sam + k * sak]")} : 0;
                    }
                }
% else:
                const long above = max(i0 + ${MR} - M, 0L);  // rows that the tile above has done
                __global const ${ta} *ai = Az + (i0 - above) * sam + kb * sak;
% endif
                for (long j = jb; j < je; j += ${NR}) {
                    long j0 = j;
% if pack_b:
                    __local const ${acc} *b = bp + (j - jb) * kc;
% else:
                    j0 = min(j, N - ${NR});
                    __global const ${ta} *b = Bz + kb * sbk + j0;
% endif
% for r in range(MR):
                    ${av} ${', '.join(f"t{r}_{v} = 0" for v in range(NV))};
% endfor
% if pack_a:
                    __local const ${acc} *a = ap;
% else:
                    __global const ${ta} *a = ai;
% endif
                    for (long k = 0; k < kc; k++) {
% for v in range(NV):
% if pack_b:
                        const ${av} b${v}_ = *(__local const ${av}_u *)(b + ${v * V});
% else:
                        const ${av} b${v}_ = ${loadv(f"b + {v * V}")};
% endif
% endfor
% for r in range(MR):
                        {
% if pack_a:
                            const ${av} x = a[${r}];
% else:
                            const ${av} x = ${load(f"a[{r} * sam]")};
% endif
% for v in range(NV):
                            t${r}_${v} = x * b${v}_ + t${r}_${v};
% endfor
                        }
% endfor
                        a += ${MR if pack_a else "sak"};
                        b += ${NR if pack_b else "sbk"};
                    }
% for r in range(MR):
% for v in range(NV):
                    *(__local ${av}_u *)(tile + ${(r * NV + v) * V}) = t${r}_${v};
% endfor
% endfor
                    // Columns j - j0 .. cols-1 of the tile are this panel's own.
                    const long first = j - j0, cols = min(je - j0, (long)${NR});
                    PLAIN
                    for (long r = 0; r < rows; r++) {
                        __local const ${acc} *t = tile + ${'r' if pack_a else '(r + above)'} * ${NR};
                        __global ${to} *c = Cz + (i0 + r) * scm + j0 * scn;
                        __global const ${to} *d = Dz + (i0 + r) * sdm + j0 * sdn;
                        if (first == 0 && cols == ${NR} && scn == 1 && (kb || !has_bias || sdn == 1)) {
% for v in range(NV):
                            ${av} y${v} = *(__local const ${av}_u *)(t + ${v * V}) * alpha;
                            if (kb) y${v} += ${loadv(f"c + {v * V}", "to")};
                            else if (has_bias) y${v} += beta * ${loadv(f"d + {v * V}", "to")};
                            ${storev(f"y{v}", f"c + {v * V}")};
% endfor
                        } else {
                            PLAIN
                            for (long n = first; n < cols; n++) {
                                ${acc} y = t[n] * alpha;
                                if (kb) y += ${load("c[n * scn]", "to")};
                                else if (has_bias) y += beta * ${load("d[n * sdn]", "to")};
                                ${store("y", "c", "n * scn")};
                            }
                        }
                    }
                }
            }
        }
    }
}
