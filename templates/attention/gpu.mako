<%doc>
Attention and its gradients for devices where a work-item is a lane. A work-group of B x 4 lanes owns B rows (queries; keys for
`by_keys`), four lanes to a row, and walks over tiles of B rows of the other side in local memory. Four lanes hold a row's
results in registers, every fourth number each. W is the room for a head's width.
kind: forward, by_query (gradient of q), by_keys (gradients of k and v).
</%doc>\
<%namespace name="tiles" file="tiles.mako"/>\
<%
LANES = 4
GROUP = B * LANES
keys = kind == "by_keys"
forward = kind == "forward"
each = W // LANES
%>\
% for h in headers:
${h}
% endfor
typedef ${acc} T;
#define FETCH(dst, src, sr, sc, first, end, cols, by) \
    for (int i = lid; i < ${B * W}; i += ${GROUP}) { \
        const int r = i / ${W}, c = i % ${W}; \
        dst[r][c] = (first) + r < (end) && c < (cols) ? ${load("(src)[((first) + r) * (sr) + c * (sc)]")} * (by) : (T)0; \
    }
<%def name="dot(a, b)">\
            { T sum = 0; for (int d = 0; d < ${W}; d++) sum += ${a}[row][d] * ${b}[c][d]; value = sum; }
</%def>\
<%def name="score()">\
            const int qi = ${'k0 + c' if keys else 'own + row'}, ki = ${'own + row' if keys else 'k0 + c'};
            const int seen = qi < L && ki < S && !(causal && ki > qi);
            T value;
${dot('mine', 'other')}\
            T s = seen ? value : (T)(-INFINITY);
% if mask == 'bool':
            if (seen && !mask_z[qi * mask_r + ki * mask_c]) s = -INFINITY;
% elif mask:
            if (seen) s += ${mask_load('mask_z[qi * mask_r + ki * mask_c]')};
% endif
</%def>\
<%def name="gather(to, table, side)">\
            for (int c = 0; c < ${B}; c++) {
                const T p = ${table}[row][c];
                for (int j = 0; j < ${each}; j++) ${to}[j] += p * ${side}[c][lane + ${LANES} * j];
            }
</%def>\
<%def name="put(name, table, cols, by)">\
            for (int j = 0; j < ${each}; j++) {
                const int c = lane + ${LANES} * j;
                if (c < ${cols}) ${name}[z0 * ${name}_0 + z1 * ${name}_1 + z2 * ${name}_2 + (own + row) * ${name}_r + c] = ${table}[j] * ${by};
            }
</%def>\
__kernel __attribute__((reqd_work_group_size(${GROUP}, 1, 1)))
void ${fn}(${', '.join(parameters)},
% if forward:
    __global ${to} *out, __global T *sums, const long out_0, const long out_1, const long out_2, const long out_r,
% elif keys:
    __global T *dk, __global T *dv,
    const long dk_0, const long dk_1, const long dk_2, const long dk_r, const long dv_0, const long dv_1, const long dv_2, const long dv_r,
% else:
    __global T *dq, const long dq_0, const long dq_1, const long dq_2, const long dq_r,
% endif
    const int n1, const int n2, const int tasks, const int L, const int S, const int E, const int EV, const int causal, const T scale)
{
    __local T mine[${B}][${W + 1}], other[${B}][${W + 1}], other_v[${B}][${W + 1}], table[${B}][${B + 1}];
% if not forward:
    __local T mine_v[${B}][${W + 1}];
% endif
% if keys:
    __local T slopes[${B}][${B + 1}];
% endif
    const int lid = get_local_id(0), row = lid / ${LANES}, lane = lid % ${LANES};
    const int own_rows = ${'S' if keys else 'L'}, other_rows = ${'L' if keys else 'S'}, blocks = (own_rows + ${B - 1}) / ${B};
    for (int task = get_group_id(0); task < tasks; task += get_num_groups(0)) {
        const long z = task / blocks, z2 = z % n2, z1 = z / n2 % n1, z0 = z / n2 / n1;
        const int own = task % blocks * ${B};
        __global const ${ta} *qz = ${tiles.batch('q')}, *kz = ${tiles.batch('k')}, *vz = ${tiles.batch('v')};
% if not forward:
        __global const ${ta} *gz = ${tiles.batch('g')};
        __global const T *lse_z = ${tiles.batch('lse')}, *delta_z = ${tiles.batch('delta')};
% endif
% if mask:
        __global const ${mask_type} *mask_z = ${tiles.batch('mask')};
% endif
% if keys:
        FETCH(mine, kz, k_r, k_c, own, S, E, 1)
        FETCH(mine_v, vz, v_r, v_c, own, S, EV, 1)
        T by_k[${each}], by_v[${each}];
        for (int j = 0; j < ${each}; j++) by_k[j] = by_v[j] = 0;
% else:
        FETCH(mine, qz, q_r, q_c, own, L, E, scale)
        T found[${each}];
        for (int j = 0; j < ${each}; j++) found[j] = 0;
% if forward:
        T top = -INFINITY, total = 0;
% else:
        FETCH(mine_v, gz, g_r, g_c, own, L, EV, 1)
        const T lse_row = own + row < L ? lse_z[(own + row) * lse_r] : (T)INFINITY;
        const T delta_row = own + row < L ? delta_z[(own + row) * delta_r] : 0;
% endif
% endif
% if keys:
        for (int k0 = causal ? own : 0; k0 < other_rows; k0 += ${B}) {
            FETCH(other, qz, q_r, q_c, k0, L, E, scale)
            FETCH(other_v, gz, g_r, g_c, k0, L, EV, 1)
% else:
        for (int k0 = 0; k0 < other_rows && !(causal && k0 >= own + ${B}); k0 += ${B}) {
            FETCH(other, kz, k_r, k_c, k0, S, E, 1)
            FETCH(other_v, vz, v_r, v_c, k0, S, EV, 1)
% endif
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int c = lane; c < ${B}; c += ${LANES}) {
${score()}\
% if forward:
                table[row][c] = s;
% else:
% if keys:
                const T lse_row = qi < L ? lse_z[qi * lse_r] : (T)INFINITY, delta_row = qi < L ? delta_z[qi * delta_r] : 0;
% endif
                const T p = exp(s - lse_row);
${dot('mine_v', 'other_v')}\
% if keys:
                table[row][c] = p;
                slopes[row][c] = p * (value - delta_row);
% else:
                table[row][c] = p * (value - delta_row);
% endif
% endif
            }
            barrier(CLK_LOCAL_MEM_FENCE);
% if forward:
            T most = top;
            for (int c = 0; c < ${B}; c++) most = table[row][c] > most ? table[row][c] : most;
            const T base = most == -INFINITY ? 0 : most, less = exp(top - base);
            top = most;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int c = lane; c < ${B}; c += ${LANES}) table[row][c] = exp(table[row][c] - base);
            barrier(CLK_LOCAL_MEM_FENCE);
            total *= less;
            for (int c = 0; c < ${B}; c++) total += table[row][c];
            for (int j = 0; j < ${each}; j++) found[j] *= less;
${gather('found', 'table', 'other_v')}\
% elif keys:
${gather('by_v', 'table', 'other_v')}\
${gather('by_k', 'slopes', 'other')}\
% else:
${gather('found', 'table', 'other')}\
% endif
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (own + row < own_rows) {
% if forward:
            const T share = total == 0 ? 0 : 1 / total;
            if (lane == 0) sums[z * L + own + row] = total == 0 ? (T)INFINITY : top + log(total);
            __global ${to} *o = out + z0 * out_0 + z1 * out_1 + z2 * out_2 + (own + row) * out_r;
            for (int j = 0; j < ${each}; j++) {
                const int c = lane + ${LANES} * j;
                if (c < EV) { ${store("(found[j] * share)", "o", "c")}; }
            }
% elif keys:
${put('dk', 'by_k', 'E', '1')}\
${put('dv', 'by_v', 'EV', '1')}\
% else:
${put('dq', 'found', 'E', 'scale')}\
% endif
        }
    }
}
