<%doc>
One element of each sorted row: kth, median, nanmedian as in select.mako; mode: the most frequent value, the smallest of
equally frequent ones, with the last of its positions. A work-item (on a GPU a lane) takes rows in turn.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="s" file="keys.mako"/>\
${w.prelude()}
typedef ${I} I;
${s.keys(dt, False)}
__kernel void ${fn}(__global const K *sorted, __global const long *order, __global K *values, __global long *indices
, const I length, const I rows, const I k, const I ov, const I ox${w.params('p', rank, ['v', 'x'])}\
) {
    for (I row = (I)get_global_id(0); row < rows; row += (I)get_global_size(0)) {
        ${w.decode('p', rank, ['v', 'x'], 'row')}
        __global const K *from = sorted + row * length;
        I at = k - 1;
% if mode == 'mode':
        I best = 0;
        for (I i = 0; i < length;) {
            const K key = clt_key(from[i]);
            I j = i + 1;
            while (j < length && clt_key(from[j]) == key && !clt_is_nan_key(key)) ++j;
            if (j - i > best) { best = j - i; at = j - 1; }
            i = j;
        }
% elif mode != 'kth':
        I lo = 0, hi = length;
        while (lo < hi) {
            const I mid = lo + (hi - lo) / 2;
            if (clt_is_nan_key(clt_key(from[mid]))) hi = mid; else lo = mid + 1;
        }
% if mode == 'median':
        at = lo < length ? lo : (length - 1) / 2;
% else:
        at = (lo - 1) / 2; // 0 if all elements are NaN
% endif
% endif
        values[ov + p_v_at] = from[at];
        indices[ox + p_x_at] = order[row * length + at];
    }
}
