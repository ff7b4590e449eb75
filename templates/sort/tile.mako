<%doc>
GPU schedule: a work-group sorts one tile of ${tile} keys of one row in local memory (bitonic network on key and position, so it
is stable), or with `out` writes sorted keys to the results, a lane an element.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="s" file="keys.mako"/>\
${w.prelude()}
typedef ${I} I;
${s.keys(dt, descending)}
% if not out:
__attribute__((reqd_work_group_size(${lanes}, 1, 1)))
% endif
__kernel void ${fn}(__global const K *src, __global K *values, __global long *indices, __global K *keys, __global uint *places
, const I length, const I rows, const I tiles, const I a, const I os, const I ov, const I ox
, const I sl, const I vl, const I xl${w.params('p', rank, ['s', 'v', 'x'])}\
) {
% if out:
    for (I i = (I)get_global_id(0); i < rows * length; i += (I)get_global_size(0)) {
        const I row = i / length, at = i % length;
        ${w.decode('p', rank, ['s', 'v', 'x'], 'row')}
        const uint x = places[a + i];
        values[ov + p_v_at + at * vl] = clt_bits(keys[a + i], src + os + p_s_at + (I)x * sl);
        indices[ox + p_x_at + at * xl] = (long)x;
    }
% else:
    __local K lk[${tile}];
    __local uint lx[${tile}];
    const int lane = (int)get_local_id(0);
    for (I group = (I)get_group_id(0); group < rows * tiles; group += (I)get_num_groups(0)) {
        const I row = group / tiles, begin = group % tiles * ${tile}, count = min((I)${tile}, (I)(length - begin));
        ${w.decode('p', rank, ['s', 'v', 'x'], 'row')}
        for (int i = lane; i < ${tile}; i += ${lanes}) {
            lk[i] = i < count ? clt_key(src[os + p_s_at + (begin + i) * sl]) : CLT_TOP;
            lx[i] = i < count ? (uint)(begin + i) : 0xffffffffu;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int size = 2; size <= ${tile}; size <<= 1)
            for (int gap = size >> 1; gap > 0; gap >>= 1) {
                for (int t = lane; t < ${tile // 2}; t += ${lanes}) {
                    const int i = 2 * t - (t & (gap - 1)), j = i + gap;
                    const K p = lk[i], q = lk[j];
                    const uint xp = lx[i], xq = lx[j];
                    const int above = p > q || (p == q && xp > xq);
                    if (above == ((i & size) == 0)) { lk[i] = q; lk[j] = p; lx[i] = xq; lx[j] = xp; }
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        for (int i = lane; i < count; i += ${lanes}) {
            keys[row * length + begin + i] = lk[i];
            places[row * length + begin + i] = lx[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
% endif
}
