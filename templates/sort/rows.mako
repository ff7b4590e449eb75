<%doc>
Stable sort of pieces of rows, CPU schedule: a work-item takes whole pieces (a piece is a row, or one of `chunks` equal
parts of it). Short pieces: a key's place is the number of keys before it, counted for a vector of keys at a time. Long
ones: radix sort.
One integer is moved, the key above its position. Of keys of eight bytes it has the 32 highest bits that differ; keys
that these do not tell apart are sorted by insertion, or, if that takes many moves, all are sorted by the lower bits
first. A pass takes up to 11 bits, depending on the keys' range. Passes in which all keys have the same digit are
skipped; all passes, if keys are sorted already; and those of low digits, if the others tell most keys apart. Without
`order` there are no positions, and keys alone are moved.
`final`: pieces are rows and the results are written; else the sorted words stay in the first half of scratch memory for
merge.mako: keys and positions in one integer, or (`wide`, keys of eight bytes) in arrays of their own.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="s" file="keys.mako"/>\
<%
names = ['s', 'v', 'x'] if order else ['s', 'v']
AHEAD = 16 # prefetch distance, in elements, for keys read at random addresses
wide = order and dt.itemsize == 8
def also(text): return text if order else ''
%>\
## Make the keys of all elements, and find the least and the largest.
<%def name="make(step)">
                for (I i = 0; i < count; ++i) {
                    const K k = clt_key(from[i${step}]);
                    least = k < least ? k : least; most = k > most ? k : most;
% if wide:
                    w0[i] = k; x0[i] = (uint)(begin + i);
% else:
                    w0[i] = clt_word(k, begin + i);
% endif
                }
</%def>\
${w.prelude()}
${headers}
typedef ${I} I;
${s.keys(dt, descending, order)}
${s.words(order)}
${s.radix(32 if order else 0, 32 if order else 8 * dt.itemsize)}
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const K *restrict src, __global K *values${also(', __global long *indices')}, __global W *words${', __global uint *places' if wide else ''}
, const I length, const I rows, const I chunks, const I half_size, const I os, const I ov${also(', const I ox')}
, const I sl, const I vl${also(', const I xl')}${w.params('p', rank, names)}\
) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), n = rows * chunks;
    const I first = n / parts * part + min(part, (I)(n % parts)), last = first + n / parts + (part < n % parts);
    const I step = (length + chunks - 1) / chunks;
    ${s.few(dt)}
    for (I piece = first; piece < last; ++piece) {
        const I row = piece / chunks, begin = min(length, (I)(piece % chunks * step)), count = min(step, (I)(length - begin));
        ${w.decode('p', rank, names, 'row')}
        __global const K *from = src + os + p_s_at + begin * sl;
        const I base = ${"part * length" if final else "row * length + begin"};
        __global W *w0 = words + base, *w1 = words + half_size + base;
        ${'__global uint *x0 = places + base;' if wide else ''}
        if (count <= CLT_FEW) {
            for (int i = 0; i < (int)count; ++i) held[i] = clt_key(from[i * sl]);
<%s:each_of_few dt="${dt}" count="(int)count">
% if wide:
                w0[to] = held[i]; x0[to] = (uint)(begin + i);
% else:
                w0[to] = clt_word((K)held[i], begin + i);
% endif
</%s:each_of_few>
        } else {
            uint hist[CLT_ROOM];
            K least = CLT_TOP, most = 0;
            if (sl == 1) {
                ${make('')}
            } else {
                ${make(' * sl')}
            }
            int falls = 0;
            for (I i = 1; i < count; ++i) falls |= w0[i] < w0[i - 1];
            const int bits = ${8 * dt.itemsize} - (int)clz((K)(most - least));
% if wide:
            if (falls) {
                const int rest = max(0, bits - 32);
                for (I i = 0; i < count; ++i) w0[i] = clt_word((w0[i] - least) >> rest, i);
                int low = 1, in = clt_radix(w0, w1, hist, count, 0, bits - rest, &low);
                __global const W *sorted = in ? w1 : w0;
                for (I i = 0; i < count; ++i) {
                    const W word = sorted[i];
                    const uint x = (uint)word;
                    if (rest) CLT_PREFETCH(from + (I)(uint)sorted[i + ${AHEAD} < count ? i + ${AHEAD} : i] * sl);
                    x0[i] = (uint)begin + x;
                    w0[i] = rest ? clt_key(from[(I)x * sl]) : (word >> 32) + least;
                }
                I moves = rest || low ? count : -1; // moves by insertion that take less time than another sort
                for (I i = 1; i < count && moves >= 0; ++i) {
                    const K k = w0[i];
                    if (w0[i - 1] <= k) continue;
                    const uint x = x0[i];
                    I j = i;
                    for (; j > 0 && w0[j - 1] > k; --j) { w0[j] = w0[j - 1]; x0[j] = x0[j - 1]; }
                    w0[j] = k; x0[j] = x;
                    moves -= i - j;
                }
                if ((rest || low) && moves < 0) {
                    for (I i = 0; i < count; ++i) w0[i] = clt_word((uint)(clt_key(from[i * sl]) - least), i);
                    low = 0;
                    in = clt_radix(w0, w1, hist, count, 0, min(bits, 32), &low);
                    sorted = in ? w1 : w0;
                    for (I i = 0; rest && i < count; ++i) {
                        const uint x = (uint)sorted[i];
                        w0[i] = clt_word((clt_key(from[(I)x * sl]) - least) >> 32, x);
                    }
                    low = 0;
                    if (rest) in = clt_radix(w0, w1, hist, count, 0, rest, &low);
                    sorted = in ? w1 : w0;
                    for (I i = 0; i < count; ++i) {
                        const uint x = (uint)sorted[i];
                        x0[i] = (uint)begin + x;
                        w0[i] = clt_key(from[(I)x * sl]);
                    }
                }
            }
% else:
            if (falls) {
                const W lowest = ${'(W)least << 32' if order else 'least'};
                int low = 1;
                if (clt_radix(w0, w1, hist, count, lowest, bits, &low)) { __global W *const t = w0; w0 = w1; w1 = t; }
                if (low) {
                    I moves = count; // moves by insertion that take less time than another sort
                    for (I i = 1; i < count && moves >= 0; ++i) {
                        const W k = w0[i];
                        if (w0[i - 1] <= k) continue;
                        I j = i;
                        for (; j > 0 && w0[j - 1] > k; --j) w0[j] = w0[j - 1];
                        w0[j] = k;
                        moves -= i - j;
                    }
                    low = 0;
                    if (moves < 0 && clt_radix(w0, w1, hist, count, lowest, bits, &low)) { __global W *const t = w0; w0 = w1; w1 = t; }
                }
            }
% endif
        }
% if final:
        for (I i = 0; i < count; ++i) {
% if wide:
            const uint x = x0[i];
            values[ov + p_v_at + i * vl] = clt_bits(w0[i], from + (I)x * sl);
% elif order:
            const uint x = (uint)w0[i];
            values[ov + p_v_at + i * vl] = clt_bits((K)(w0[i] >> 32), from + (I)x * sl);
% else:
            values[ov + p_v_at + i * vl] = clt_bits(w0[i]);
% endif
            ${also('indices[ox + p_x_at + i * xl] = (long)x;')}
        }
% elif not wide:
        if (w0 != words + base)
            for (I i = 0; i < count; ++i) w1[i] = w0[i];
% endif
    }
}
