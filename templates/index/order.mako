<%doc>
First step of out-of-place index_add on a GPU, one kernel: initialises the rows of dst, and sorts contributions by row.
A work-group owns a range of rows: it copies them from `start`, or makes them zeros, reads all indices, counts those of
rows before its own, and lists those of its own as integers of row and position. The place of a contribution is the
number of smaller entries of the list, so nothing depends on the order in which lanes fill it. If there are more than
the list holds, they are counted by row, and placed tile by tile of indices.
keys: the row of each contribution, order: its position. Bad indices are noted by the first group; their keys come last
and name no row.
Variables: fn T start index wrap I L U M: L lanes, U indices that each has in flight, M rows of a group and entries of
its list, at most.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
## Turn the index v into its row; -1 for a bad one.
<%def name="row(v)">\
% if wrap:
            ${v} += ${v} < 0 ? (long)rows : 0;
% endif
            if ((ulong)${v} >= (ulong)rows) ${v} = -1;
</%def>\
${w.prelude()}
typedef ${I} I;
#define CLT_NONE 0xffffffffu
typedef ${T} T;
__attribute__((reqd_work_group_size(${L}, 1, 1)))
__kernel void ${fn}(__global T *restrict dst\
% if start:
, __global const T *restrict start\
% endif
, __global const ${index} *restrict i0, __global uint *restrict keys, __global uint *restrict order, __global long *status, const I slot,
  const I n, const I rows, const I width, const I bits\
% if start:
, const I ob\
% endif
, const I oi0, const I index_step) {
    __local uint found[${M}], count, before;
    __local uint4 tile[${L // 4}];
    const int lane = (int)get_local_id(0);
    const I part = (I)get_group_id(0), parts = (I)get_num_groups(0);
    const I each = rows / parts, more = rows % parts;
    const I top = part * each + min(part, more), bottom = top + each + (part < more);
    status += slot;
    if (lane == 0) count = before = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint less = 0;
    for (I first = lane; first < n; first += ${L * U}) {
% for u in range(U):
        const I at${u} = first + ${u * L};
        long v${u} = at${u} < n ? (long)i0[oi0 + at${u} * index_step] : -1;
% endfor
% for u in range(U):
        if (at${u} < n) {
            ${row(f'v{u}')}
            if (v${u} < 0) {
                if (part == 0 && atomic_cmpxchg((volatile __global int *)status, 0, 1) == 0) {
                    status[1] = (long)i0[oi0 + at${u} * index_step]; status[2] = 0; status[3] = (long)at${u};
                }
            } else if (v${u} < (long)top) ++less;
            else if (v${u} < (long)bottom) {
                const uint place = atomic_inc(&count);
                if (place < ${M}) found[place] = (uint)(v${u} - (long)top) << bits | (uint)at${u};
            }
        }
% endfor
    }
    if (less) atomic_add(&before, less);
    const I end = bottom * width;
    I e = top * width + lane;
% if start:
    __global const T *from = start + ob;
    for (; e + ${3 * L} < end; e += ${4 * L}) { // four loads in flight
        const T ${', '.join(f'm{j} = from[e + {j * L}]' for j in range(4))};
% for j in range(4):
        dst[e + ${j * L}] = m${j};
% endfor
    }
    for (; e < end; e += ${L}) dst[e] = from[e];
% else:
    for (; e < end; e += ${L}) dst[e] = (T)(0);
% endif
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint base = before;
    if (count <= ${M}) {
        for (uint k = (uint)lane; k < count; k += ${L}) {
            const uint own = found[k];
            uint rank = 0;
            for (uint j = 0; j < count; ++j) rank += found[j] < own;
            keys[base + rank] = (uint)top + (own >> bits);
            order[base + rank] = own & ((1u << bits) - 1);
        }
    } else {
        const int mine = (int)(bottom - top);
        for (int k = lane; k < mine; k += ${L}) found[k] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (I at = lane; at < n; at += ${L}) {
            long v = (long)i0[oi0 + at * index_step];
            ${row('v')}
            if (v >= (long)top && v < (long)bottom) atomic_inc(found + (int)(v - (long)top));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        ## Replace each row's count by the place where its contributions begin.
% for r in range(-(-M // L)):
        uint begins${r} = base;
        for (int k = 0; k < min(mine, lane + ${r * L}); ++k) begins${r} += found[k];
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
% for r in range(-(-M // L)):
        if (lane + ${r * L} < mine) found[lane + ${r * L}] = begins${r};
% endfor
        for (I first = 0; first < n; first += ${L}) {
            const I at = first + lane;
            long v = at < n ? (long)i0[oi0 + at * index_step] : -1;
            if (at < n) {
                ${row('v')}
            }
            const uint own = v >= (long)top && v < (long)bottom ? (uint)(v - (long)top) : CLT_NONE;
            ((__local uint *)tile)[lane] = own;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (own != CLT_NONE) {
                uint place = found[own];
                for (int j = 0; j < lane / 4; ++j) {
                    const uint4 same = tile[j];
                    place += (same.x == own) + (same.y == own) + (same.z == own) + (same.w == own);
                }
                for (int j = lane & -4; j < lane; ++j) place += ((__local uint *)tile)[j] == own;
                keys[place] = (uint)top + own;
                order[place] = (uint)at;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (own != CLT_NONE) atomic_inc(found + own);
        }
    }
    if (part == parts - 1)
        for (I k = (I)(base + count) + lane; k < n; k += ${L}) keys[k] = CLT_NONE;
}
