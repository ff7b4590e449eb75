<%doc>
The first k of each row in order, CPU schedule, k at most ${most}: a work-item takes whole rows and keeps the best so
far sorted, so that nearly all elements cost one comparison, ${BLOCK} at a time and, if they are contiguous, in vectors.
Equal values come in order of position.
</%doc>\
<%
BLOCK = 64
step = '' if unit else ' * sl'
lanes = min(16, 64 // dt.itemsize)
%>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="s" file="keys.mako"/>\
${w.prelude()}
typedef ${I} I;
${s.keys(dt, largest)}
% if unit:
${s.vector_keys(dt, largest, lanes)}
% endif
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const K *src, __global K *values, __global long *indices
, const I length, const I rows, const I k, const I os, const I ov, const I ox
, const I sl, const I vl, const I xl${w.params('p', rank, ['s', 'v', 'x'])}\
) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I first = rows / parts * part + min(part, (I)(rows % parts)), last = first + rows / parts + (part < rows % parts);
    ${s.few(dt)}
    K key[${most}];
    uint place[${most}];
    for (I row = first; row < last; ++row) {
        ${w.decode('p', rank, ['s', 'v', 'x'], 'row')}
        __global const K *from = src + os + p_s_at;
        if (length <= CLT_FEW) {
            for (int i = 0; i < (int)length; ++i) held[i] = clt_key(from[i${step}]);
<%s:each_of_few dt="${dt}" count="(int)length">
                if (to < (int)k) {
                    values[ov + p_v_at + to * vl] = from[i${step}];
                    indices[ox + p_x_at + to * xl] = (long)i;
                }
</%s:each_of_few>
            continue;
        }
        int best = 0;
        for (I i = 0; i < length;) {
            if (best == (int)k && i + ${BLOCK} <= length) {
                const K limit = key[best - 1];
% if unit:
                const int any = clt_any(
% for at in range(0, BLOCK, lanes):
                    ${'| ' if at else ''}(clt_keys(*(__global const KU *)(from + i + ${at})) < (KV)(limit))
% endfor
                );
% else:
                int any = 0;
                for (int j = 0; j < ${BLOCK}; ++j) any |= clt_key(from[(i + j) * sl]) < limit;
% endif
                if (!any) { i += ${BLOCK}; continue; }
            }
            for (const I stop = min(length, (I)(i + ${BLOCK})); i < stop; ++i) {
                const K c = clt_key(from[i${step}]);
                if (best == (int)k && c >= key[best - 1]) continue;
                int j = best < (int)k ? best++ : best - 1;
                for (; j > 0 && key[j - 1] > c; --j) { key[j] = key[j - 1]; place[j] = place[j - 1]; }
                key[j] = c; place[j] = (uint)i;
            }
        }
        for (int i = 0; i < best; ++i) {
            values[ov + p_v_at + i * vl] = from[(I)place[i] * sl];
            indices[ox + p_x_at + i * xl] = (long)place[i];
        }
    }
}
