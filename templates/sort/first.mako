<%doc>
The first k of each row in order, CPU schedule, for larger k than topk.mako holds: a work-item takes whole rows and
keeps candidates in order of position. When it holds `most`, all but the best k are dropped, and later elements have to
be better than the last of these; nearly all elements then cost one comparison, ${BLOCK} at a time. Equal values come in
order of position.
</%doc>\
<%!
BLOCK = 64
%>\
<%
step = '' if unit else ' * sl'
size = dt.itemsize
%>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="s" file="keys.mako"/>\
${w.prelude()}
typedef ${I} I;
${s.keys(dt, largest)}
## Keep the first k in order of `held` keys, found digit by digit, and return the last of these.
static inline K clt_keep(__global K *key, __global uint *place, const I held, const I k) {
    uint hist[256];
    I want = k - 1;
    K last = 0;
% for d in reversed(range(size)):
    for (int b = 0; b < 256; ++b) hist[b] = 0;
    for (I i = 0; i < held; ++i) ${'' if d == size - 1 else f'if ((key[i] >> {8 * (d + 1)}) == last) '}++hist[(key[i] >> ${8 * d}) & 255];
    {
        int b = 0;
        for (; b < 255 && want >= (I)hist[b]; ++b) want -= (I)hist[b];
        last = ${'(K)b' if d == size - 1 else '(K)((last << 8) | (K)b)'};
    }
% endfor
    I n = 0, alike = want + 1;
    for (I i = 0; i < held && n < k; ++i) {
        const K c = key[i];
        if (c > last || (c == last && !alike)) continue;
        alike -= c == last;
        key[n] = c; place[n] = place[i]; ++n;
    }
    return last;
}
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const K *src, __global K *values, __global long *indices, __global K *keys, __global uint *places
, const I length, const I rows, const I k, const I most, const I os, const I ov, const I ox
, const I sl, const I vl, const I xl${w.params('p', rank, ['s', 'v', 'x'])}\
) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I first = rows / parts * part + min(part, (I)(rows % parts)), last = first + rows / parts + (part < rows % parts);
    __global K *key = keys + part * most;
    __global uint *place = places + part * most;
    for (I row = first; row < last; ++row) {
        ${w.decode('p', rank, ['s', 'v', 'x'], 'row')}
        __global const K *from = src + os + p_s_at;
        K limit = 0;
        int limited = 0;
        I held = 0;
        for (I i = 0; i < length;) {
            if (limited && i + ${BLOCK} <= length) {
                int any = 0;
                for (int j = 0; j < ${BLOCK}; ++j) any |= clt_key(from[(i + j)${step}]) < limit;
                if (!any) { i += ${BLOCK}; continue; }
            }
            for (const I stop = min(length, (I)(i + ${BLOCK})); i < stop; ++i) {
                const K c = clt_key(from[i${step}]);
                if (limited && c >= limit) continue;
                key[held] = c; place[held] = (uint)i; ++held;
                if (held == most) { limit = clt_keep(key, place, held, k); held = k; limited = 1; }
            }
        }
        if (held > k) clt_keep(key, place, held, k);
        for (I i = 0; i < k; ++i) {
            const K c = key[i];
            uint before = 0;
            for (I j = 0; j < i; ++j) before += key[j] <= c;
            for (I j = i + 1; j < k; ++j) before += key[j] < c;
            values[ov + p_v_at + (I)before * vl] = from[(I)place[i]${step}];
            indices[ox + p_x_at + (I)before * xl] = (long)place[i];
        }
    }
}
