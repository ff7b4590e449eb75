<%doc>
Attention for devices where a work-item is a thread's loop over wide vectors (work-groups of one). A task is a part of the query
rows of one batch element: they stay in scratch memory (cache) with what they have gathered, while tiles of keys and values go
by (online softmax). A work-item does every so many-th task in its own slice of scratch. Sizes are arguments.
</%doc>\
<%namespace name="tiles" file="tiles.mako"/>\
<%
NR = 2 * V
exp = f"clt_exp_neg_{acc}{V}" if acc == "float" else "exp"
log = f"log_{acc}{V}" if acc == "float" else "log"
%>\
${tiles.helpers()}
${tiles.tile_products()}
// Where the numbers of row r of the scores end that a tile has computed, in whole vectors.
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
    const long le = e + 16, lv = ev + 16, ls = bk + 16;
    __global T *queries = scratch + get_global_id(0) * slot, *found = queries + part_rows * le;
    __global T *sums = found + part_rows * lv, *tops = sums + part_rows * ${V};
    __global T *by = tops + UP(part_rows, ${V}), *bases = by + UP(bq, ${V});
    __global T *keys = bases + UP(bq, ${V}), *turned = keys + bk * le, *values = turned + e * ls, *scores = values + bk * lv;
    for (int task = get_global_id(0); task < tasks; task += get_global_size(0)) {
        const long z = task / parts, z2 = z % n2, z1 = z / n2 % n1, z0 = z / n2 / n1;
        const int q0 = task % parts * part_rows, rows = min(part_rows, L - q0), all = UP(rows, ${MR});
        __global const ${ta} *qz = ${tiles.batch('q')}, *kz = ${tiles.batch('k')}, *vz = ${tiles.batch('v')};
% if mask:
        __global const ${mask_type} *mask_z = ${tiles.batch('mask')};
% endif
        pack(qz + q0 * q_r, q_r, q_c, rows, E, scale, queries, le, all, e);
        for (int r = 0; r < all; r++) {
            tops[r] = -INFINITY;
            AT(sums + r * ${V}) = (F)(0);
            for (int c = 0; c < ev; c += ${V}) AT(found + r * lv + c) = (F)(0);
        }
        for (int k0 = 0; k0 < S && !(causal && k0 >= q0 + rows); k0 += bk) {
            const int n = min(S - k0, bk);
            pack(kz + k0 * k_r, k_r, k_c, n, E, 1, keys, le, bk, e);
            turn(keys, le, turned, ls, bk, e);
            pack(vz + k0 * v_r, v_r, v_c, n, EV, 1, values, lv, bk, ev);
            for (int r0 = 0; r0 < rows; r0 += bq) {
                const int diag = causal ? q0 + r0 - k0 : FREE, high = min(all - r0, bq);
                if (diag + bq <= 0) continue;
                product_set(queries + r0 * le, le, 1, turned, ls, high, UP(n, ${NR}), E, scores, ls, diag, FREE, FREE);
                for (int r1 = 0; r1 < high; r1 += ${V}) {
                    const int r2 = min(r1 + ${V}, high);
                    for (int r = r1; r < r2; r++) {
                        __global T *s = scores + r * ls;
                        const int seen = r0 + r < rows ? min(n, diag + r + 1) : 0, edge = EDGE(r);
${tiles.masked('q0 + r0 + r')}\
                        F most = (F)(-INFINITY);
                        for (int j = 0; j < edge; j += ${V}) { const F x = AT(s + j); most = x > most ? x : most; }
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
                        for (int j = 0; j < edge; j += ${V}) {
                            const F p = ${exp}(AT(s + j) - base);
                            AT(s + j) = p;
                            sum += p;
                        }
                        AT(sums + (r0 + r) * ${V}) = sum;
                    }
                }
                product_scale(scores, ls, 1, values, lv, high, ev, n, found + r0 * lv, lv, FREE, diag, FREE, by);
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
                lse[z * L + q0 + r] = total == 0 ? INFINITY : tops[r] + bases[r - r1];
                __global ${to} *o = out + z0 * out_0 + z1 * out_1 + z2 * out_2 + (q0 + r) * out_r;
                __global const T *f = found + r * lv;
                int c = 0;
                for (; c + ${V} <= EV; c += ${V}) { ${storev("(AT(f + c) * share)", "o + c")}; }
                PLAIN
                for (; c < EV; c++) { ${store("(f[c] * share)", "o", "c")}; }
            }
        }
    }
    CLT_FLUSH_END;
}
