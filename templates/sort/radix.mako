<%doc>
A pass over long rows by a digit of eight bits, from the lowest, GPU schedule; three kernels. A row is cut into chunks
of one or more tiles. count: a work-group counts the digits of a chunk: table[row][chunk][digit]. offsets: lanes replace
each count by the sum of the earlier chunks' counts of that digit, and store a row's totals after its last chunk. move:
a work-group moves the elements of its chunk, tile by tile; a tile is sorted in local memory first, so that neighbours
in it are written to adjacent places.
Keys come from the source in the first pass and go to the results in the last. In between they lie in one of two halves
of scratch memory: halves[row][pass] says in which one, as a pass in which all keys of a row share the digit moves none.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="s" file="keys.mako"/>\
<%namespace name="t" file="ranks.mako"/>\
<%
names = ['s', 'v', 'x'] if order else ['s', 'v']
def also(text): return text if order else ''
copies = 8 # of each counter: fewer lanes then contend for one
%>\
${w.prelude()}
typedef ${I} I;
${s.keys(dt, descending, order)}
${t.sizes(lanes, items)}
__attribute__((reqd_work_group_size(${lanes}, 1, 1)))
__kernel void ${fn}(__global const K *src, __global K *values${also(', __global long *indices')}, __global uint *table, __global uint *halves\
% if passes > 1:
, __global K *keys${also(', __global uint *places')}\
% endif
, const I length, const I rows, const I chunks, const I size, const I pass, const I segments, const I os, const I ov${also(', const I ox')}
, const I sl, const I vl${also(', const I xl')}${w.params('p', rank, names)}\
) {
    const int shift = 8 * (int)pass;
% if step == 'offsets':
    ## A group takes some digits of a row; a segment of its lanes takes some of the chunks.
    __local uint sums[${lanes}];
    const int lane = (int)get_local_id(0), width = LANES / (int)segments, segment = lane / width;
    const I blocks = 256 / width, row = (I)get_group_id(0) / blocks;
    __global uint *mine = table + row * (chunks + 1) * 256 + (I)get_group_id(0) % blocks * width + lane % width;
    const I each = (chunks + segments - 1) / segments, from = min(chunks, (I)(segment * each)), to = min(chunks, (I)(from + each));
    uint sum = 0;
    for (I c = from; c < to; ++c) sum += mine[c * 256];
    sums[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0;
    for (int at = lane % width; at < lane; at += width) sum += sums[at];
    for (I c = from; c < to; ++c) {
        const uint count = mine[c * 256];
        mine[c * 256] = sum;
        sum += count;
    }
    if (segment == (int)segments - 1) mine[chunks * 256] = sum;
% else:
    const I row = (I)get_group_id(0) / chunks, chunk = (I)get_group_id(0) % chunks;
    const I begin = chunk * size, end = min(length, (I)(begin + size));
    __global uint *counted = table + (row * (chunks + 1) + chunk) * 256;
% if first or last:
    ${w.decode('p', rank, names, 'row')}
% endif
% if first:
    __global const K *from = src + os + p_s_at;
#define KEY(i) clt_key(from[(i) * sl])
% else:
    const uint which = halves[row * ${passes} + pass];
    __global const K *from = keys + which * ((long)rows * length) + row * length;
#define KEY(i) from[i]
% endif
% if step == 'count':
    __local uint bins[256 * ${copies}];
    const int lane = (int)get_local_id(0);
    for (int d = lane; d < 256 * ${copies}; d += LANES) bins[d] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    I i = begin + lane;
    for (; i + 3 * LANES < end; i += 4 * LANES) {
        const K a = KEY(i), b = KEY(i + LANES), c = KEY(i + 2 * LANES), d = KEY(i + 3 * LANES);
% for k in 'abcd':
        atomic_inc(bins + ((uint)(${k} >> shift) & 255) * ${copies} + (lane & ${copies - 1}));
% endfor
    }
    for (; i < end; i += LANES) atomic_inc(bins + ((uint)(KEY(i) >> shift) & 255) * ${copies} + (lane & ${copies - 1}));
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = lane; d < 256; d += LANES) {
        uint sum = 0;
        for (int c = 0; c < ${copies}; ++c) sum += bins[d * ${copies} + ((c + lane) & ${copies - 1})];
        counted[d] = sum;
    }
% else:
${t.room(lanes, items, word)}
    __local uint next[256], start[256], stop[256]; // per digit: where its next key goes; where it begins and ends in the sorted tile
% if not (first or last):
    __local int alike;
% endif
    {
        __global const uint *every = table + (row * (chunks + 1) + chunks) * 256;
        const int own_digit = lane * ${256 // lanes};
        uint own = 0;
% if not (first or last):
        if (lane == 0) alike = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
        for (int q = 0; q < ${256 // lanes}; ++q) {
            const uint count = every[own_digit + q];
% if not (first or last):
            if (count == (uint)length) alike = 1;
% endif
            own += count;
        }
        ${t.scan('own')}
        uint sum = prefix;
        for (int q = 0; q < ${256 // lanes}; ++q) {
            start[own_digit + q] = stop[own_digit + q] = 0;
            next[own_digit + q] = sum + counted[own_digit + q];
            sum += every[own_digit + q];
        }
% if not last:
<% to_half = '0u' if first else 'which ^ (uint)!alike' %>\
        if (chunk == 0 && lane == 0) halves[row * ${passes} + pass + 1] = ${to_half};
% if not first:
        if (alike) return;
% endif
% endif
    }
% if not last:
<% half = '' if first else '(which ^ 1u) * ((long)rows * length) + ' %>\
    __global K *to = keys + ${half}row * length;
    ${also(f'__global uint *to_place = places + {half}row * length;')}
% endif
    ${also('' if first else '__global const uint *from_place = places + which * ((long)rows * length) + row * length;')}
    barrier(CLK_LOCAL_MEM_FENCE);
    for (I at = begin; at < end; at += TILE) {
        const int count = (int)min((I)TILE, (I)(end - at));
        uint place[ITEMS], where[ITEMS];
        EACH_ITEM {
            const int i = lane + j * LANES;
            staged[CLT_AT_EACH] = i < count ? KEY(at + i) : CLT_TOP;
            place[j] = lane * ITEMS + j;
        }
        _Pragma("unroll 1") for (int part = shift; part < shift + 8; part += 4) {
            ${t.order_by('(uint)(staged[CLT_AT(place[j])] >> part) & 15')}
        }
#define DIGIT(i) ((uint)(staged[CLT_AT(held[CLT_AT(i)])] >> shift) & 255)
        for (int i = lane; i < count; i += LANES) {
            const uint d = DIGIT(i);
            const uint before = i ? DIGIT(i - 1) : d;
            if (d != before) start[d] = stop[before] = (uint)i;
            if (i == count - 1) stop[d] = (uint)count;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int d = lane; d < 256; d += LANES) {
            const uint opens = start[d], many = stop[d] - opens;
            start[d] = next[d] - opens;
            next[d] += many;
            stop[d] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH_ITEM {
            const int i = lane + j * LANES;
            if (i < count) {
                const uint x = held[CLT_AT_EACH];
                const K k = (K)staged[CLT_AT(x)];
                where[j] = start[(uint)(k >> shift) & 255] + i;
% if last:
                values[ov + p_v_at + (I)where[j] * vl] = clt_bits(k${also(f", src + os + p_s_at + (I){'(at + x)' if first else 'from_place[at + x]'} * sl")});
% else:
                to[where[j]] = k;
% endif
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int d = lane; d < 256; d += LANES) start[d] = 0;
% if order:
% if not first:
        for (int i = lane; i < count; i += LANES) staged[CLT_AT(i)] = from_place[at + i];
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
        EACH_ITEM {
            const int i = lane + j * LANES;
            if (i < count) {
                const uint x = held[CLT_AT_EACH], mine = ${'(uint)at + x' if first else '(uint)staged[CLT_AT(x)]'};
                ${'indices[ox + p_x_at + (I)where[j] * xl] = (long)mine;' if last else 'to_place[where[j]] = mine;'}
            }
        }
% endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
% endif
% endif
}
