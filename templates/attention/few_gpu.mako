<%doc>
Attention of one query over many keys, where a work-item is a lane: a work-group of GROUP lanes takes a query and a part
of the keys, BK of them at a time. BESIDE lanes read a key's row side by side, and add up the parts of its score in
local memory; then W lanes, or all of the work-group, sum a column of the values each, of every SUBSETS-th key.
attention/join.mako combines the results of the parts.
</%doc>\
<%namespace name="tiles" file="tiles.mako"/>\
<%
BESIDE = 16
WIDTH = min(W, GROUP)
SUBSETS = GROUP // WIDTH
COLUMNS = W // WIDTH
each = W // BESIDE
%>\
% for h in headers:
${h}
% endfor
typedef ${acc} T;
typedef ${acc}4 T4;
__kernel __attribute__((reqd_work_group_size(${GROUP}, 1, 1)))
void ${fn}(${', '.join(parameters)}, __global T *partial,
    const int n1, const int n2, const int tasks, const int parts, const int part_keys,
    const int L, const int S, const int E, const int EV, const int causal, const T scale)
{
    __local T pieces[${BK}][${BESIDE + 1}], ends[${SUBSETS}][${W}];
    __local T4 table[${BK // 4}];
    __local T *const scores = (__local T *)table;
    const int lid = get_local_id(0), lane = lid % ${BESIDE}, column = lid % ${WIDTH}, subset = lid / ${WIDTH};
    for (int task = get_group_id(0); task < tasks; task += get_num_groups(0)) {
        const int part = task % parts, qi = task / parts % L;
        const long z = task / parts / L, z2 = z % n2, z1 = z / n2 % n1, z0 = z / n2 / n1;
        __global const ${ta} *qz = ${tiles.batch('q')} + qi * q_r, *kz = ${tiles.batch('k')}, *vz = ${tiles.batch('v')};
% if mask:
        __global const ${mask_type} *mask_z = ${tiles.batch('mask')} + qi * mask_r;
% endif
% for j in range(each):
        const int c${j} = lane + ${BESIDE * j};
        const T q${j} = c${j} < E ? ${load(f'qz[c{j} * q_c]')} * scale : (T)0;
% endfor
        T top = -INFINITY, total = 0, ${', '.join(f'found{m} = 0' for m in range(COLUMNS))};
        const int last = min(S, (part + 1) * part_keys), end = causal ? min(last, qi + 1) : last;
        for (int k0 = part * part_keys; k0 < end; k0 += ${BK}) {
            ## Beyond an edge a lane reads another element and then replaces it by zero: an unconditional load can be
            ## issued before others have arrived.
#pragma unroll ${max(1, min(BK * BESIDE // GROUP, 16 // each))}
            for (int k = lid / ${BESIDE}; k < ${BK}; k += ${GROUP // BESIDE}) {
                __global const ${ta} *from = kz + min(k0 + k, end - 1) * k_r;
                T s = 0;
% for j in range(each):
                s += c${j} < E ? q${j} * ${load(f'from[min(c{j}, E - 1) * k_c]')} : (T)0;
% endfor
                pieces[k][lane] = s;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = lid; k < ${BK}; k += ${GROUP}) {
                T s = 0;
#pragma unroll
                for (int i = 0; i < ${BESIDE}; i++) s += pieces[k][i];
% if mask == 'bool':
                if (k0 + k < end && !mask_z[(k0 + k) * mask_c]) s = -INFINITY;
% elif mask:
                if (k0 + k < end) s += ${mask_load('mask_z[(k0 + k) * mask_c]')};
% endif
                scores[k] = k0 + k < end ? s : (T)(-INFINITY);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            T most = top;
            for (int k = 0; k < ${BK // 4}; k++) {
                const T4 s = table[k];
% for k in range(4):
                most = s.s${k} > most ? s.s${k} : most;
% endfor
            }
            const T base = most == -INFINITY ? 0 : most, less = exp(top - base);
            top = most;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = lid; k < ${BK}; k += ${GROUP}) scores[k] = exp(scores[k] - base);
            barrier(CLK_LOCAL_MEM_FENCE);
            total *= less;
            for (int k = 0; k < ${BK // 4}; k++) {
                const T4 p = table[k];
                total += (p.s0 + p.s1) + (p.s2 + p.s3);
            }
% for m in range(COLUMNS):
            found${m} *= less;
% endfor
#pragma unroll ${min(BK // SUBSETS, 16 // COLUMNS)}
            for (int k = subset; k < ${BK}; k += ${SUBSETS}) {
                __global const ${ta} *from = vz + min(k0 + k, end - 1) * v_r;
                const T p = scores[k];
% for m in range(COLUMNS):
                found${m} += k0 + k < end ? p * ${load(f'from[min(column + {m * WIDTH}, EV - 1) * v_c]')} : (T)0;
% endfor
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
% for m in range(COLUMNS):
        ends[subset][column + ${m * WIDTH}] = found${m};
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int c = lid; c < EV; c += ${GROUP}) {
            T sum = ends[0][c];
            for (int i = 1; i < ${SUBSETS}; i++) sum += ends[i][c];
            partial[(long)task * EV + c] = sum;
        }
        if (lid == 0) {
            partial[(long)tasks * EV + task] = top;
            partial[(long)tasks * EV + tasks + task] = total;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
