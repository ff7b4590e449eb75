<%doc>
The first k elements of each row in order (mode topk), or one element by rank as in select.mako, without sorting the
row;
GPU schedule: a work-group takes a row; mode ${mode}. The last wanted element is found digit by digit, from the highest:
by the digits of the key, then, if more equal keys remain than are wanted, by those of the position. All elements up to
it are then picked; they are few enough to be sorted in local memory.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="s" file="keys.mako"/>\
<%
bits, copies = 8 * dt.itemsize, 8
first_k = mode == 'topk'
floating = dt.is_floating_point
%>\
${w.prelude()}
typedef ${I} I;
${s.keys(dt, descending)}
#define LANES ${lanes}
## Run the body for each element of the row, with its key and position x; several elements are read before the first is
## used.
<%def name="each()">
<% ahead = 8 %>\
        {
            I i = lane;
            for (; i + ${ahead - 1} * LANES < length; i += ${ahead} * LANES) {
                const K ${', '.join(f'k{j} = clt_key(from[(i + {j} * LANES) * sl])' for j in range(ahead))};
% for j in range(ahead):
                { const K key = k${j}; const uint x = (uint)(i + ${j} * LANES); ${caller.body()} }
% endfor
            }
            for (; i < length; i += LANES) { const K key = clt_key(from[i * sl]); const uint x = (uint)i; ${caller.body()} }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
</%def>\
__attribute__((reqd_work_group_size(${lanes}, 1, 1)))
__kernel void ${fn}(__global const K *src, __global K *values, __global long *indices
, const I length, const I rows, const I k, const I os, const I ov, const I ox
, const I sl, const I vl, const I xl${w.params('p', rank, ['s', 'v', 'x'])}\
) {
    __local uint bins[${256 * copies}], sums[16], answer[3];
% if first_k:
    __local K picked[${most}];
    __local uint picked_at[${most}];
% endif
    const int lane = (int)get_local_id(0);
    for (I row = (I)get_group_id(0); row < rows; row += (I)get_num_groups(0)) {
        ${w.decode('p', rank, ['s', 'v', 'x'], 'row')}
        __global const K *from = src + os + p_s_at;
        uint want = (uint)k - 1; // rank of the last wanted element among those that share the digits found so far
% if mode in ('median', 'nanmedian'):
% if floating:
        if (lane == 0) answer[0] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
<%self:each>if (clt_is_nan_key(key)) atomic_inc(answer);</%self:each>\
        const uint nans = answer[0];
        barrier(CLK_LOCAL_MEM_FENCE);
% else:
        const uint nans = 0;
% endif
% if mode == 'median':
        want = nans ? (uint)length - nans : ((uint)length - 1) / 2;
% else:
        want = nans == (uint)length ? 0 : ((uint)length - nans - 1) / 2;
% endif
% endif
        K digits = 0, mask = 0;
        uint place_digits = 0, place_mask = 0, count = 0;
        int shift = ${bits - 8}, of_place = 0;
        for (;;) {
            for (int d = lane; d < ${256 * copies}; d += LANES) bins[d] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
<%self:each>\
                if ((key & mask) == digits && (x & place_mask) == place_digits)
                    atomic_inc(bins + ((of_place ? x >> shift : (uint)(key >> shift)) & 255) * ${copies} + (lane & ${copies - 1}));\
</%self:each>\
            for (int d = lane; d < 256; d += LANES) {
                uint sum = 0;
                for (int c = 0; c < ${copies}; ++c) sum += bins[d * ${copies} + ((c + lane) & ${copies - 1})];
                bins[d * ${copies}] = sum;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane < 16) {
                uint sum = 0;
                for (int d = 0; d < 16; ++d) sum += bins[(lane * 16 + d) * ${copies}];
                sums[lane] = sum;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane == 0) {
                int block = 0;
                for (; block < 15 && want >= sums[block]; ++block) want -= sums[block];
                int d = block * 16;
                for (; d < block * 16 + 15 && want >= bins[d * ${copies}]; ++d) want -= bins[d * ${copies}];
                answer[0] = (uint)d;
                answer[1] = want;
                answer[2] = bins[d * ${copies}];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            want = answer[1];
            count = answer[2];
            if (of_place) {
                place_digits |= answer[0] << shift;
                place_mask |= 255u << shift;
            } else {
                digits |= (K)((K)answer[0] << shift);
                mask |= (K)((K)255 << shift);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (count == ${'want + 1' if first_k else '1'}) break; // ${'all that are left are wanted' if first_k else 'no other is left'}
            if (shift) shift -= 8;
            else {
                of_place = 1;
                shift = 0;
                while ((uint)length >> shift > 255) shift += 8;
            }
        }
% if first_k:
        int many = 1;
        while (many < (int)k) many <<= 1;
        if (lane == 0) answer[0] = 0;
        for (int i = (int)k + lane; i < many; i += LANES) {
            picked[i] = CLT_TOP;
            picked_at[i] = 0xffffffffu;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
<%self:each>\
            if ((key & mask) < digits || ((key & mask) == digits && (x & place_mask) <= place_digits)) {
                const uint at = atomic_inc(answer);
                picked[at] = key;
                picked_at[at] = x;
            }\
</%self:each>\
        ## A bitonic network over the next power of two elements; missing ones have the largest key.
        for (int size = 2; size <= many; size <<= 1)
            for (int gap = size >> 1; gap > 0; gap >>= 1) {
                for (int t = lane; t < many / 2; t += LANES) {
                    const int i = 2 * t - (t & (gap - 1)), j = i + gap;
                    const K a = picked[i], b = picked[j];
                    const uint at_a = picked_at[i], at_b = picked_at[j];
                    const int above = a > b || (a == b && at_a > at_b);
                    if (above == ((i & size) == 0)) { picked[i] = b; picked[j] = a; picked_at[i] = at_b; picked_at[j] = at_a; }
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        for (int i = lane; i < (int)k; i += LANES) {
            values[ov + p_v_at + i * vl] = clt_bits(picked[i], from + (I)picked_at[i] * sl);
            indices[ox + p_x_at + i * xl] = (long)picked_at[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% else:
<%self:each>\
            if ((key & mask) == digits && (x & place_mask) == place_digits) {
                values[ov + p_v_at] = from[(I)x * sl];
                indices[ox + p_x_at] = (long)x;
            }\
</%self:each>\
% endif
    }
}
