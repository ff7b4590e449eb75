<%doc>
Gradients of attention, CPU schedule as in forward.mako: probabilities are recomputed tile by tile from the saved
log-sum-exp of each row of scores. A task is one batch element with a part of the query rows and a part of the keys:
with `want_q` it owns the gradient of its queries (all keys), with `want_k` those of its keys and values (all queries).
Sums run in a fixed order.
</%doc>\
<%namespace name="tiles" file="tiles.mako"/>\
<%
NR = 2 * V
exp = f"clt_exp_neg_{acc}{V}" if acc == "float" else "exp"
%>\
${tiles.helpers()}
${tiles.tile_products()}
## Store `rows` x `cols` numbers of src times `by` to dst (`fresh`), or add them to dst.
APART void unpack(__global const T *src, const long ls, const int rows, const int cols, const T by, const int fresh,
    __global T *dst, const long ld)
{
    for (int r = 0; r < rows; r++, src += ls, dst += ld) {
        int c = 0;
        for (; c + ${V} <= cols; c += ${V}) {
            const F x = AT(src + c) * by;
            AT(dst + c) = fresh ? x : AT(dst + c) + x;
        }
        PLAIN
        for (; c < cols; c++) dst[c] = fresh ? src[c] * by : dst[c] + src[c] * by;
    }
}

#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(${', '.join(parameters)}, __global T *dq, __global T *dk, __global T *dv, __global T *scratch, const long slot,
% for name in ('dq', 'dk', 'dv'):
    const long ${name}_0, const long ${name}_1, const long ${name}_2, const long ${name}_r,
% endfor
    const int n1, const int n2, const int tasks, const int q_parts, const int q_rows, const int k_parts, const int k_rows,
    const int want_q, const int want_k, const int L, const int S, const int E, const int EV, const int bq, const int bk, const int causal, const T scale)
{
    CLT_FLUSH;
    const int e = UP(E, ${NR}), ev = UP(EV, ${NR});
    const long le = e + 16, lv = ev + 16, ls = bk + 16;
    __global T *queries = scratch + get_global_id(0) * slot, *slopes = queries + bq * le, *moved = slopes + bq * lv;
    __global T *keys = moved + bq * le, *keys_turned = keys + bk * le, *values = keys_turned + e * ls;
    __global T *values_turned = values + bk * lv, *scores = values_turned + ev * ls, *along = scores + bq * ls;
    __global T *by_keys = along + bq * ls, *by_values = by_keys + bk * le;
    for (int task = get_global_id(0); task < tasks; task += get_global_size(0)) {
        const long z = task / (q_parts * k_parts), z2 = z % n2, z1 = z / n2 % n1, z0 = z / n2 / n1;
${tiles.sequence()}\
        const int qs = task % q_parts * q_rows, qe = min(qs + q_rows, L);
        const int ks = task / q_parts % k_parts * k_rows, ke = min(ks + k_rows, S);
        __global const ${ta} *qz = ${tiles.batch('q')}, *kz = ${tiles.batch('k')}, *vz = ${tiles.batch('v')};
        __global const ${ta} *gz = ${tiles.batch('g')};
        __global const T *lse_z = ${tiles.batch('lse')}, *delta_z = ${tiles.batch('delta')};
        __global T *dqz = dq + ${tiles.element('dq')}, *dkz = dk + ${tiles.element('dk')};
        __global T *dvz = dv + ${tiles.element('dv')};
% if mask:
        __global const ${mask_type} *mask_z = ${tiles.batch('mask')};
% endif
        for (int k0 = ks; k0 < ke && !(!want_k && ${tiles.beyond('k0', 'qe')}); k0 += bk) {
            const int n = min(S - k0, bk);
            pack(kz + k0 * k_r, k_r, k_c, n, E, 1, keys, le, bk, e);
            turn(keys, le, keys_turned, ls, bk, e);
            pack(vz + k0 * v_r, v_r, v_c, n, EV, 1, values, lv, bk, ev);
            turn(values, lv, values_turned, ls, bk, ev);
            for (int r = 0; r < bk; r++) {
                for (int c = 0; c < e; c += ${V}) AT(by_keys + r * le + c) = (F)(0);
                for (int c = 0; c < ev; c += ${V}) AT(by_values + r * lv + c) = (F)(0);
            }
            for (int r0 = qs; r0 < qe; r0 += bq) {
                const int exact = ${'r0 - k0 + after' if ragged else 'causal ? r0 - k0 : FREE'}, diag = ${f'UP(exact, {MR})' if ragged else 'exact'}, rows = min(qe - r0, bq), high = UP(rows, ${MR});
                if (diag + bq <= 0${' || r0 - before >= k0 + n' if ragged else ''}) continue;
                pack(qz + r0 * q_r, q_r, q_c, rows, E, scale, queries, le, high, e);
                pack(gz + r0 * g_r, g_r, g_c, rows, EV, 1, slopes, lv, high, ev);
                product_set(queries, le, 1, keys_turned, ls, high, UP(n, ${NR}), E, scores, ls, diag, FREE, FREE);
                product_set(slopes, lv, 1, values_turned, ls, high, UP(n, ${NR}), EV, along, ls, diag, FREE, FREE);
                for (int r = 0; r < high; r++) {
                    __global T *s = scores + r * ls, *d = along + r * ls;
                    const int seen = r < rows ? min(n, exact + r + 1) : 0, edge = UP(max(min(n, diag + r / ${MR} * ${MR} + ${MR}), 0), ${V});
${tiles.masked('r0 + r')}${tiles.below('r0 + r')}\
                    const T sum = r < rows ? lse_z[(r0 + r) * lse_r] : (T)INFINITY, mean = r < rows ? delta_z[(r0 + r) * delta_r] : 0;
                    for (int j = 0; j < edge; j += ${V}) {
                        const F p = ${exp}(AT(s + j) - sum);
                        AT(s + j) = p;
                        AT(d + j) = p * (AT(d + j) - mean);
                    }
                }
                if (want_k) {
                    product_add(scores, 1, ls, slopes, lv, UP(n, ${MR}), ev, rows, by_values, lv, FREE, FREE, diag);
                    product_add(along, 1, ls, queries, le, UP(n, ${MR}), e, rows, by_keys, le, FREE, FREE, diag);
                }
                if (want_q) {
                    product_set(along, ls, 1, keys, le, high, e, n, moved, le, FREE, diag, FREE);
                    unpack(moved, le, rows, E, scale, ${'0' if ragged else 'k0 == 0'}, dqz + r0 * dq_r, dq_r);
                }
            }
            if (want_k) {
                unpack(by_keys, le, n, E, 1, 1, dkz + k0 * dk_r, dk_r);
                unpack(by_values, lv, n, EV, 1, 1, dvz + k0 * dv_r, dv_r);
            }
        }
    }
    CLT_FLUSH_END;
}
