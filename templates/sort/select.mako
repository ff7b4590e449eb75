<%doc>
One element of each row by rank, CPU schedule: a work-item takes whole rows and finds the key digit by digit with
histograms; only elements that have a digit found take part in the search for the next one.
mode kth: the k-th smallest, k counting from 1. median: the lower middle, or the first NaN. nanmedian: of those that are
not NaN.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="s" file="keys.mako"/>\
<% bits, short = 8 * dt.itemsize, 80 %>\
${w.prelude()}
typedef ${I} I;
${s.keys(dt, False)}
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const K *src, __global K *values, __global long *indices, __global K *scratch
, const I length, const I rows, const I k, const I os, const I ov, const I ox
, const I sl${w.params('p', rank, ['s', 'v', 'x'])}\
) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I first = rows / parts * part + min(part, (I)(rows % parts)), last = first + rows / parts + (part < rows % parts);
    for (I row = first; row < last; ++row) {
        ${w.decode('p', rank, ['s', 'v', 'x'], 'row')}
        __global const K *from = src + os + p_s_at;
        __global K *own = scratch + part * length;
        K least = clt_key(from[0]), most = least;
        I nans = 0;
        for (I i = 0; i < length; ++i) {
            const K key = clt_key(from[i * sl]);
            least = min(least, key);
            most = max(most, key);
% if mode != 'kth':
            nans += clt_is_nan_key(key);
% endif
        }
% if mode == 'median':
        I want = nans ? length - nans : (length - 1) / 2;
% elif mode == 'nanmedian':
        I want = nans == length ? 0 : (length - nans - 1) / 2;
% else:
        I want = k - 1;
% endif
        ## Search among differences from the least key, by digits that begin at the highest bit in which these differ.
        int shift = ${bits - 8};
        while (shift > 0 && !((K)(most - least) >> shift)) shift -= 8;
        for (; shift > 0 && !((K)(most - least) >> (shift + 7)); --shift) {}
        K found = least;
        uint hist[4 * 256]; // four copies, as an increment of a counter waits for the one before
        I count = least == most ? 0 : length;
        for (I i = 0; i < count; ++i) own[i] = clt_key(from[i * sl]) - least;
        if (count <= ${short}) { // compare with all others: clearing histograms would take longer
            for (I i = 0; i < count; ++i) {
                const K key = own[i];
                int less = 0, upto = 0;
                for (I j = 0; j < count; ++j) {
                    less += own[j] < key;
                    upto += own[j] <= key;
                }
                if (less <= want && want < upto) {
                    found += key;
                    break;
                }
            }
            count = 0;
        }
        while (count) {
            for (int b = 0; b < 4 * 256; ++b) hist[b] = 0;
            I i = 0;
            for (; i + 4 <= count; i += 4) {
% for lane in range(4):
                ++hist[${256 * lane} + ((own[i + ${lane}] >> shift) & 255)];
% endfor
            }
            for (; i < count; ++i) ++hist[(own[i] >> shift) & 255];
            int b = 0;
            for (; b < 255; ++b) {
                const I here = (I)hist[b] + (I)hist[256 + b] + (I)hist[512 + b] + (I)hist[768 + b];
                if (want < here) break;
                want -= here;
            }
            I kept = 0;
            if (shift) for (I j = 0; j < count; ++j) {
                const K key = own[j];
                own[kept] = key;
                kept += ((key >> shift) & 255) == (K)b;
            }
            found += (K)b << shift;
            count = kept;
            if (shift < 8) for (I j = 0; j < count; ++j) own[j] &= ((K)1 << shift) - 1; // the last digit overlaps bits already found
            shift = max(shift - 8, 0);
        }
        I at = 0;
        for (; at < length - 1 && clt_key(from[at * sl]) != found; ++at) {}
        values[ov + p_v_at] = from[at * sl];
        indices[ox + p_x_at] = (long)at;
    }
}
