<%doc>
Sort of rows of which a tile holds one or more, GPU schedule: a work-group sorts as many rows as fit in local memory, by
the digits of their keys and then by the number of the row, and writes the results.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="s" file="keys.mako"/>\
<%namespace name="t" file="ranks.mako"/>\
<%
names = ['s', 'v', 'x'] if order else ['s', 'v']
def also(text): return text if order else ''
%>\
${w.prelude()}
typedef ${I} I;
${s.keys(dt, descending, order)}
${t.sizes(lanes, items)}
__attribute__((reqd_work_group_size(${lanes}, 1, 1)))
__kernel void ${fn}(__global const K *src, __global K *values${also(', __global long *indices')}
, const I length, const I rows, const I per, const I digits, const I os, const I ov${also(', const I ox')}
, const I sl, const I vl${also(', const I xl')}${w.params('p', rank, names)}\
) {
${t.room(lanes, items, word)}
    const uint row_length = (uint)length;
    for (I first = (I)get_group_id(0) * per; first < rows; first += (I)get_num_groups(0) * per) {
        const int count = (int)(min(per, (I)(rows - first)) * length);
        uint place[ITEMS];
        for (int i = lane; i < TILE; i += LANES) {
            K key = CLT_TOP;
            if (i < count) {
                const uint row = (uint)i / row_length;
                ${w.decode('p', rank, names[:1], '(I)(first + row)')}
                key = clt_key(src[os + p_s_at + (I)(i - row * row_length) * sl]);
            }
            staged[CLT_AT(i)] = key;
        }
        EACH_ITEM place[j] = lane * ITEMS + j;
        for (int digit = 0; digit < (int)digits; ++digit) {
            const int shift = 4 * digit;
            ${t.order_by('(uint)(staged[CLT_AT(place[j])] >> shift) & 15')}
        }
        for (int shift = 0; per > 1 && per >> shift; shift += 4) {
            ${t.order_by('(place[j] / row_length >> shift) & 15')}
        }
        for (int i = lane; i < count; i += LANES) {
            const uint row = (uint)i / row_length, x = held[CLT_AT(i)];
            const I at = (I)(i - row * row_length);
            const K key = (K)staged[CLT_AT(x)];
            ${w.decode('p', rank, names, '(I)(first + row)')}
% if order:
            values[ov + p_v_at + at * vl] = clt_bits(key, src + os + p_s_at + (I)(x - row * row_length) * sl);
            indices[ox + p_x_at + at * xl] = (long)(x - row * row_length);
% else:
            values[ov + p_v_at + at * vl] = clt_bits(key);
% endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
