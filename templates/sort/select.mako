<%doc>
One element of each row by rank, CPU schedule: a work-item takes whole rows and finds the key digit by digit from
histograms, reading the row once per digit and writing nothing.
mode kth: the k-th smallest, k counting from 1. median: the lower middle, or the first NaN. nanmedian: of those that are not NaN.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="s" file="keys.mako"/>\
<% bits = 8 * dt.itemsize %>\
${w.prelude()}
typedef ${I} I;
${s.keys(dt, False)}
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const K *src, __global K *values, __global long *indices
, const I length, const I rows, const I k, const I os, const I ov, const I ox
, const I sl${w.params('p', rank, ['s', 'v', 'x'])}\
) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I first = rows / parts * part + min(part, (I)(rows % parts)), last = first + rows / parts + (part < rows % parts);
    for (I row = first; row < last; ++row) {
        ${w.decode('p', rank, ['s', 'v', 'x'], 'row')}
        __global const K *from = src + os + p_s_at;
        uint hist[256];
        I want = k - 1, nans = 0;
        K found = 0;
% for d in reversed(range(dt.itemsize)):
        for (int b = 0; b < 256; ++b) hist[b] = 0;
        for (I i = 0; i < length; ++i) {
            const K key = clt_key(from[i * sl]);
% if d == dt.itemsize - 1:
            nans += clt_is_nan_key(key);
            ++hist[(key >> ${8 * d}) & 255];
% else:
            if ((key >> ${8 * (d + 1)}) == found) ++hist[(key >> ${8 * d}) & 255];
% endif
        }
% if d == dt.itemsize - 1 and mode == 'median':
        want = nans ? length - nans : (length - 1) / 2;
% elif d == dt.itemsize - 1 and mode == 'nanmedian':
        want = nans == length ? 0 : (length - nans - 1) / 2;
% endif
        {
            int b = 0;
            for (; b < 255 && want >= (I)hist[b]; ++b) want -= (I)hist[b];
            found = ${"(K)b" if d == dt.itemsize - 1 else "(K)((found << 8) | (K)b)"};
        }
% endfor
        I at = 0;
        for (; at < length - 1 && clt_key(from[at * sl]) != found; ++at) {}
        values[ov + p_v_at] = from[at * sl];
        indices[ox + p_x_at] = (long)at;
    }
}
