<%doc>
Attention and its gradients for devices where a work-item is a lane. A work-group of B x 4 lanes owns B rows (queries; keys for
`by_keys`), four lanes to a row, and walks over tiles of B rows of the other side in local memory. Of a tile's scores a lane makes every
fourth of its row together, and of a row's results it holds every fourth four numbers in registers: local memory is read by vectors, each
for four multiply-adds or more. Rows there are four numbers longer than they need be, so that those which are read at once lie apart.
Sums go through their terms in order. Loops are
unrolled so far and no further: LLVM would load all of a tile at once, and run out of registers. W is the room for a head's width.
kind: forward, by_query (gradient of q), by_keys (gradients of k and v).
</%doc>\
<%namespace name="tiles" file="tiles.mako"/>\
<%
LANES = 4
GROUP = B * LANES
keys = kind == "by_keys"
forward = kind == "forward"
pitch, beside = W + 4, B + 4
fours = W // LANES // 4
each = B // LANES
row_step = max(GROUP // W, 1)
%>\
% for h in headers:
${h}
% endfor
typedef ${acc} T;
typedef ${acc}4 T4;
#define NUMBER(table, r, c, pitch) ((__local T *)(table))[(r) * (pitch) + (c)]
#define FETCH(dst, src, sr, sc, first, end, cols, by) \
    for (int c = lid % ${W}; c < ${W}; c += ${GROUP}) { \
        __global const ${ta} *from = (src) + ((first) + lid / ${W}) * (sr) + c * (sc); \
        for (int r = lid / ${W}; r < ${B}; r += ${row_step}, from += ${row_step} * (sr)) \
            NUMBER(dst, r, c, ${pitch}) = (first) + r < (end) && c < (cols) ? ${load("from[0]")} * (by) : (T)0; \
    }
## The products of a lane's row of `a` with each of its rows of `b`: ${name}0, ${name}1, ...
<%def name="dots(name, a, b)">\
            T ${', '.join(f'{name}{j} = 0' for j in range(each))};
#pragma unroll 2
            for (int d = 0; d < ${W // 4}; d++) {
                const T4 m = ${a}[row][d];
% for j in range(each):
                {
                    const T4 o = ${b}[lane + ${LANES * j}][d];
% for k in range(4):
                    ${name}${j} += m.s${k} * o.s${k};
% endfor
                }
% endfor
            }
</%def>\
## The score of a lane's column j, from what `dots` made: -inf where it is not seen.
<%def name="score(j)">\
                const int c = lane + ${LANES * j};
                const int qi = ${'k0 + c' if keys else 'own + row'}, ki = ${'own + row' if keys else 'k0 + c'};
                const int seen = qi < L && ki < S && !(causal && ki > qi);
                T s = seen ? value${j} : (T)(-INFINITY);
% if mask == 'bool':
                if (seen && !mask_z[qi * mask_r + ki * mask_c]) s = -INFINITY;
% elif mask:
                if (seen) s += ${mask_load('mask_z[qi * mask_r + ki * mask_c]')};
% endif
</%def>\
<%def name="gather(to, table, side)">\
#pragma unroll 1
            for (int c = 0; c < ${B // 4}; c++) {
                const T4 p = ${table}[row][c];
% for k in range(4):
% for j in range(fours):
                ${to}${j} += p.s${k} * ${side}[4 * c + ${k}][lane + ${LANES * j}];
% endfor
% endfor
            }
</%def>\
<%def name="zeros(name)">\
        T4 ${', '.join(f'{name}{j} = (T4)(0)' for j in range(fours))};
</%def>\
<%def name="put(name, table, cols, by)">\
            {
                __global T *o = ${name} + z0 * ${name}_0 + z1 * ${name}_1 + z2 * ${name}_2 + (own + row) * ${name}_r;
% for j in range(fours):
% for k in range(4):
                if (4 * lane + ${4 * LANES * j + k} < ${cols}) o[4 * lane + ${4 * LANES * j + k}] = ${table}${j}.s${k} * ${by};
% endfor
% endfor
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
    __local T4 mine[${B}][${pitch // 4}], other[${B}][${pitch // 4}], other_v[${B}][${pitch // 4}], table[${B}][${beside // 4}];
% if not forward:
    __local T4 mine_v[${B}][${pitch // 4}];
% endif
% if keys:
    __local T4 slopes[${B}][${beside // 4}];
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
${zeros('by_k')}${zeros('by_v')}\
% else:
        FETCH(mine, qz, q_r, q_c, own, L, E, scale)
${zeros('found')}\
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
${dots('value', 'mine', 'other')}\
% if not forward:
${dots('slope', 'mine_v', 'other_v')}\
% endif
% for j in range(each):
            {
${score(j)}\
% if forward:
                NUMBER(table, row, c, ${beside}) = s;
% else:
% if keys:
                const T lse_row = qi < L ? lse_z[qi * lse_r] : (T)INFINITY, delta_row = qi < L ? delta_z[qi * delta_r] : 0;
% endif
                const T p = exp(s - lse_row);
% if keys:
                NUMBER(table, row, c, ${beside}) = p;
% endif
                NUMBER(${'slopes' if keys else 'table'}, row, c, ${beside}) = p * (slope${j} - delta_row);
% endif
            }
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
% if forward:
            T most = top;
            for (int c = 0; c < ${B // 4}; c++) {
                const T4 s = table[row][c];
% for k in range(4):
                most = s.s${k} > most ? s.s${k} : most;
% endfor
            }
            const T base = most == -INFINITY ? 0 : most, less = exp(top - base);
            top = most;
            barrier(CLK_LOCAL_MEM_FENCE);
% for j in range(each):
            NUMBER(table, row, lane + ${LANES * j}, ${beside}) = exp(NUMBER(table, row, lane + ${LANES * j}, ${beside}) - base);
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
            total *= less;
            for (int c = 0; c < ${B // 4}; c++) {
                const T4 p = table[row][c];
% for k in range(4):
                total += p.s${k};
% endfor
            }
% for j in range(fours):
            found${j} *= less;
% endfor
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
% for j in range(fours):
% for k in range(4):
            if (4 * lane + ${4 * LANES * j + k} < EV) { ${store(f"(found{j}.s{k} * share)", "o", f"4 * lane + {4 * LANES * j + k}")}; }
% endfor
% endfor
% elif keys:
${put('dk', 'by_k', 'E', '1')}\
${put('dv', 'by_v', 'EV', '1')}\
% else:
${put('dq', 'found', 'E', 'scale')}\
% endif
        }
    }
}
