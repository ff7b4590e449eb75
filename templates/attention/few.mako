<%doc>
Attention of a few queries, on a CPU, as in token-by-token generation: keys and values are read once, in place, while
attention/forward.mako copies tiles of them for many rows of queries. A task is one query of a batch element; a
work-item does neighbouring tasks. Scores are computed ${V} keys at a time, values summed ${4 * V} columns at a time;
${BK} keys make a step (online softmax).
</%doc>\
<%namespace name="tiles" file="tiles.mako"/>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%
exp = f"clt_exp_neg_{acc}{V}" if acc == "float" else "exp"
exp1 = "clt_exp_neg_float" if acc == "float" else "exp"
log1 = "log_float" if acc == "float" else "log"
stages = V.bit_length() - 1
rows = "most_queries" if ragged else "L"
%>\
${tiles.helpers()}
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(${', '.join(parameters)}, __global ${to} *out, __global T *lse, __global T *scratch, const long slot,
    const long out_0, const long out_1, const long out_2, const long out_r,
    const int n1, const int n2, const int tasks, const int L, const int S, const int E, const int EV, const int causal, const T scale)
{
    CLT_FLUSH;
    const int e = UP(E, ${V}), ev = UP(EV, ${V});
    __global T *query = scratch + get_global_id(0) * slot, *found = query + e, *s = found + ev;
    const int first = (long)tasks * get_global_id(0) / get_global_size(0), last = (long)tasks * (get_global_id(0) + 1) / get_global_size(0);
    for (int task = first; task < last; task++) {
        const long z = task / ${rows}, z2 = z % n2, z1 = z / n2 % n1, z0 = z / n2 / n1;
        const int q0 = task % ${rows};
${tiles.sequence()}\
% if ragged:
        if (q0 >= L) continue;
% endif
        __global const ${ta} *qz = ${tiles.batch('q')}, *kz = ${tiles.batch('k')}, *vz = ${tiles.batch('v')};
% if mask:
        __global const ${mask_type} *mask_z = ${tiles.batch('mask')};
% endif
        pack(qz + q0 * q_r, q_r, q_c, 1, E, scale, query, e, 1, e);
        for (int c = 0; c < ev; c += ${V}) AT(found + c) = (F)(0);
        T top = -INFINITY;
        F sum = 0;
        for (int k0 = ${tiles.first_key('q0', BK)}; k0 < S && !(${tiles.beyond('k0', 'q0 + 1')}); k0 += ${BK}) {
            const int n = min(S - k0, ${BK}), seen = ${'min(n, q0 + after - k0 + 1)' if ragged else 'causal ? min(n, q0 - k0 + 1) : n'}, edge = UP(seen, ${V});
            for (int j = 0; j < seen; j += ${V}) {
% for i in range(V):
                __global const ${ta} *near${i} = kz + (k0 + min(j + ${i}, seen - 1)) * k_r;
                F s0_${i} = 0;
% endfor
                int c = 0;
% for i in range(V):
                for (c = 0; c + ${V} <= E; c += ${V})
                    s0_${i} = AT(query + c) * ${loadv(f"near{i} + c")} + s0_${i};
% endfor
${lane_memory.joined('F', V, 16)}\
                F all = s${stages}_0;
                for (; c < E; c++) all += query[c] * (F)(${', '.join(load(f"near{i}[c]") for i in range(V))});
                AT(s + j) = all;
            }
${tiles.masked('q0')}${tiles.below('q0')}\
            F most = (F)(-INFINITY);
            for (int j = 0; j < edge; j += ${V}) { const F x = AT(s + j); most = x > most ? x : most; }
            ${tiles.folded('most', lambda a, b: f"{a} > {b} ? {a} : {b}")}\
            const T before = top;
            top = most1 > before ? most1 : before;
            const T base = top == -INFINITY ? 0 : top, by = ${exp1}(before - base);
            sum *= by;
            for (int j = 0; j < edge; j += ${V}) {
                const F p = ${exp}(AT(s + j) - base);
                AT(s + j) = p;
                sum += p;
            }
            __global const ${ta} *v = vz + k0 * v_r;
            int c = 0;
% for many in (8, 4, 1):
            for (; c + ${many * V} <= EV; c += ${many * V}) {
% for i in range(many):
                F f${i} = AT(found + c + ${i * V}) * by;
% endfor
                for (int j = 0; j < seen; j++) {
                    const T p = s[j];
% for i in range(many):
                    f${i} = p * ${loadv(f"v + j * v_r + c + {i * V}")} + f${i};
% endfor
                }
% for i in range(many):
                AT(found + c + ${i * V}) = f${i};
% endfor
            }
% endfor
            for (; c < EV; c++) {
                T f = found[c] * by;
                for (int j = 0; j < seen; j++) f += s[j] * ${load("v[j * v_r + c]")};
                found[c] = f;
            }
        }
        ${tiles.folded('sum', lambda a, b: f"{a} + {b}")}\
        const T share = sum1 == 0 ? 0 : 1 / sum1;
        lse[${tiles.sums_from()} + q0] = sum1 == 0 ? INFINITY : top + ${log1}(sum1);
        __global ${to} *o = out + ${tiles.element('out')} + q0 * out_r;
        int c = 0;
        for (; c + ${V} <= EV; c += ${V}) { ${storev("(AT(found + c) * share)", "o + c")}; }
        PLAIN
        for (; c < EV; c++) { ${store("(found[c] * share)", "o", "c")}; }
    }
    CLT_FLUSH_END;
}
