<%doc>
Attention for devices where a work-item is a thread's loop over wide vectors (work-groups of one). A task is a part of
the query rows of one batch element: these and their accumulators stay in scratch memory (cache), while the task walks
over tiles of keys and values (online softmax). Each work-item strides through the tasks, in its own slice of scratch.
Sizes are arguments. With `amx` (cl_kernels/amx.cl or its twin) the two products use tiles of bfloat16 numbers: queries
and probabilities are stored as rows of pairs, keys and values as panels (gemm/amx_pack.mako), and register tiles have
32 rows. The values' width is padded to whole panels.
</%doc>\
<%namespace name="tiles" file="tiles.mako"/>\
<%namespace name="packing" file="/gemm/amx_pack.mako"/>\
<%
NR = 2 * V
exp = f"clt_exp_neg_{acc}{V}" if acc == "float" else "exp"
log = f"log_{acc}{V}" if acc == "float" else "log"
%>\
${tiles.helpers()}
% if amx:
#define CLT_SPACE __global
${amx}
${packing.helpers()}\
${packing.pack_columns('__global')}\
${packing.pack_strip('__global')}\
% else:
${tiles.tile_products()}
% endif
## The number of scores of row r that a tile has computed, rounded up to whole vectors.
#define EDGE(r) UP(max(min(n, diag + (r) / ${MR} * ${MR} + ${MR}), 0), ${V})
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(${', '.join(parameters)}, __global ${to} *out, __global T *lse, __global T *scratch, const long slot,
    const long out_0, const long out_1, const long out_2, const long out_r,
    const int n1, const int n2, const int tasks, const int parts, const int part_rows,
    const int L, const int S, const int E, const int EV, const int bq, const int bk, const int causal, const T scale)
{
    CLT_FLUSH;
    const int e = UP(E, ${NR}), ev = UP(EV, ${NR});
% if amx:
    clt_tiles_begin();
    const long le = e / 2 + 16, lp = bk / 2 + 16; // pairs
    const bool later = ${'false' if mask else 'scale > 0'}; // scale the scores where they are used, not before
    const T late = later ? scale : 1;
% else:
    const long le = e + 16;
% endif
    const long lv = ev + 16, ls = bk + 16;
    __global T *queries = scratch + get_global_id(0) * slot, *found = queries + part_rows * le;
    __global T *sums = found + part_rows * lv, *tops = sums + part_rows * ${V};
    __global T *by = tops + UP(part_rows, ${V}), *bases = by + UP(bq, ${V});
% if amx:
    __global T *scores = bases + UP(bq, ${V});
    __global int *packed = (__global int *)queries, *keys = (__global int *)(scores + bq * ls), *values = keys + bk * (e / 2), *weights = values + ev * (bk / 2);
% else:
    __global T *keys = bases + UP(bq, ${V}), *turned = keys + bk * le, *values = turned + e * ls, *scores = values + bk * lv;
% endif
    for (int task = get_global_id(0); task < tasks; task += get_global_size(0)) {
        const long z = task / parts, z2 = z % n2, z1 = z / n2 % n1, z0 = z / n2 / n1;
${tiles.sequence()}\
        const int q0 = task % parts * part_rows, rows = min(part_rows, L - q0), all = UP(rows, ${MR});
% if ragged:
        if (rows <= 0) continue;
% endif
        __global const ${ta} *qz = ${tiles.batch('q')}, *kz = ${tiles.batch('k')}, *vz = ${tiles.batch('v')};
% if mask:
        __global const ${mask_type} *mask_z = ${tiles.batch('mask')};
% endif
% if amx:
        for (int r = 0; r < all; r += 32)
            pack_strip(qz + (q0 + r) * q_r, q_r, q_c, E, min(rows - r, 32), le, packed + r * le);
% else:
        pack(qz + q0 * q_r, q_r, q_c, rows, E, scale, queries, le, all, e);
% endif
        for (int r = 0; r < all; r++) {
            tops[r] = -INFINITY;
            AT(sums + r * ${V}) = (F)(0);
            for (int c = 0; c < ev; c += ${V}) AT(found + r * lv + c) = (F)(0);
        }
        for (int k0 = ${tiles.first_key('q0', 'bk')}; k0 < S && !(${tiles.beyond('k0', 'q0 + rows')}); k0 += bk) {
            const int n = min(S - k0, bk);
% if amx:
            const int steps = UP(n, 32) / 32;
            pack_columns(kz + k0 * k_r, k_c, k_r, E, n, keys);
            pack_columns(vz + k0 * v_r, v_r, v_c, n, EV, values);
% else:
            pack(kz + k0 * k_r, k_r, k_c, n, E, 1, keys, le, bk, e);
            turn(keys, le, turned, ls, bk, e);
            pack(vz + k0 * v_r, v_r, v_c, n, EV, 1, values, lv, bk, ev);
% endif
            for (int r0 = 0; r0 < rows; r0 += bq) {
                const int exact = ${'q0 + r0 - k0 + after' if ragged else 'causal ? q0 + r0 - k0 : FREE'}, diag = ${f'UP(exact, {MR})' if ragged else 'exact'}, high = min(all - r0, bq);
                if (diag + bq <= 0${' || q0 + r0 - before >= k0 + n' if ragged else ''}) continue;
% if amx:
                for (int r = 0; r < high; r += 32)
                    for (int j = 0; j < n && j < diag + r + 32; j += 32) {
                        ## The last panel holds the last 32 keys, and so may overlap the one before.
                        __global T *s = scores + r * ls + min(j, max(n - 32, 0));
                        clt_sums_begin(CLT_PLACE(s), ls * 4);
                        for (int t = 0; t < e / 32; t++)
                            clt_sums_add(CLT_PLACE(s), ls * 4, CLT_PLACE(packed + (r0 + r) * le + t * 16), le * 4, CLT_PLACE(keys + j * (e / 2) + t * 512));
                        clt_sums_end(CLT_PLACE(s), ls * 4);
                    }
% else:
                product_set(queries + r0 * le, le, 1, turned, ls, high, UP(n, ${NR}), E, scores, ls, diag, FREE, FREE);
% endif
                for (int r1 = 0; r1 < high; r1 += ${V}) {
                    const int r2 = min(r1 + ${V}, high);
                    for (int r = r1; r < r2; r++) {
                        __global T *s = scores + r * ls;
                        const int seen = r0 + r < rows ? min(n, exact + r + 1) : 0, edge = EDGE(r);
% if amx:
                        if (!later)
                            for (int j = 0; j < edge; j += ${V}) AT(s + j) *= scale;
% endif
${tiles.masked('q0 + r0 + r')}${tiles.below('q0 + r0 + r')}\
                        F most = (F)(-INFINITY);
                        for (int j = 0; j < edge; j += ${V}) { const F x = AT(s + j)${' * late' if amx else ''}; most = x > most ? x : most; }
                        ${tiles.folded('most', lambda a, b: f"{a} > {b} ? {a} : {b}")}\
                        const T before = tops[r0 + r], top = most1 > before ? most1 : before, base = top == -INFINITY ? 0 : top;
                        tops[r0 + r] = top;
                        bases[r] = base;
                        by[r] = before - base;
                    }
                    AT(by + r1) = ${exp}(AT(by + r1));
                    for (int r = r1; r < r2; r++) {
                        __global T *s = scores + r * ls;
                        const int edge = EDGE(r);
                        const T base = bases[r];
                        F sum = AT(sums + (r0 + r) * ${V}) * by[r];
                        int j = 0;
                        for (; j < edge; j += ${V}) {
                            const F p = ${exp}(AT(s + j)${' * late' if amx else ''} - base);
% if amx:
                            *(__global half_u *)((__global ushort *)(weights + r * lp) + j) = clt_rounded(p);
% else:
                            AT(s + j) = p;
% endif
                            sum += p;
                        }
% if amx:
                        for (; j < UP(edge, 32); j += ${V}) *(__global half_u *)((__global ushort *)(weights + r * lp) + j) = 0;
% endif
                        AT(sums + (r0 + r) * ${V}) = sum;
                    }
                }
% if amx:
                for (int r = 0; r < high; r += 32) {
                    for (int i = r; i < r + 32; i++)
                        for (int c = 0; c < ev; c += ${V}) AT(found + (r0 + i) * lv + c) *= by[i];
                    for (int c = 0; c < ev; c += 32) {
                        __global T *f = found + (r0 + r) * lv + c;
                        clt_sums_take(CLT_PLACE(f), lv * 4);
                        for (int t = 0; t < steps && t * 32 < diag + r + 32; t++)
                            clt_sums_add(CLT_PLACE(f), lv * 4, CLT_PLACE(weights + r * lp + t * 16), lp * 4, CLT_PLACE(values + c * steps * 16 + t * 512));
                        clt_sums_end(CLT_PLACE(f), lv * 4);
                    }
                }
% else:
                product_scale(scores, ls, 1, values, lv, high, ev, n, found + r0 * lv, lv, FREE, diag, FREE, by);
% endif
            }
        }
        for (int r1 = 0; r1 < rows; r1 += ${V}) {
            const int r2 = min(r1 + ${V}, rows);
            for (int r = r1; r < r2; r++) {
                const F sum = AT(sums + r * ${V});
                ${tiles.folded('sum', lambda a, b: f"{a} + {b}")}\
                by[r - r1] = sum1;
            }
            AT(bases) = ${log}(AT(by));
            for (int r = r1; r < r2; r++) {
                const T total = by[r - r1], share = total == 0 ? 0 : 1 / total;
                lse[${tiles.sums_from()} + q0 + r] = total == 0 ? INFINITY : tops[r] + bases[r - r1];
                __global ${to} *o = out + ${tiles.element('out')} + (q0 + r) * out_r;
                __global const T *f = found + r * lv;
                int c = 0;
                for (; c + ${V} <= EV; c += ${V}) { ${storev("(AT(f + c) * share)", "o + c")}; }
                PLAIN
                for (; c < EV; c++) { ${store("(f[c] * share)", "o", "c")}; }
            }
        }
    }
% if amx:
    clt_tiles_end();
% endif
    CLT_FLUSH_END;
}
