<%doc>
Stable sort of pieces of rows, CPU schedule: a work-item takes whole pieces (a piece is a row, or one of `chunks` equal
parts of it). Short pieces: each key's place is how many come before it, a vector of keys at a time. Long ones: radix, 8 bits a pass, all
histograms from one read, passes in which every key has the same digit skipped, all of them where keys never fall, and those of low digits left out where the others
tell most keys apart: insertion then puts right what is left, or every digit's pass does if that is much. `final`: pieces are rows and the results are written; else sorted keys and positions stay
in the first half of the scratch for merge.mako. Without `order` nothing is known of positions.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="s" file="keys.mako"/>\
<%
passes = dt.itemsize
names = ['s', 'v', 'x'] if order else ['s', 'v']
def also(text): return text if order else ''
%>\
${w.prelude()}
typedef ${I} I;
${s.keys(dt, descending, order)}
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const K *src, __global K *values${also(', __global long *indices')}, __global K *keys${also(', __global uint *places')}
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
        __global K *k0 = keys + base, *k1 = keys + half_size + base;
        ${also('__global uint *x0 = places + base, *x1 = places + half_size + base;')}
        if (count <= CLT_FEW) {
            for (int i = 0; i < (int)count; ++i) held[i] = clt_key(from[i * sl]);
<%s:each_of_few dt="${dt}" count="(int)count">
                k0[to] = (K)held[i]; ${also('x0[to] = (uint)(begin + i);')}
</%s:each_of_few>
        } else {
            uint hist[${passes}][256];
            for (int d = 0; d < ${passes}; ++d) for (int b = 0; b < 256; ++b) hist[d][b] = 0;
            K before = 0;
            int falls = 0;
            for (I i = 0; i < count; ++i) {
                const K k = clt_key(from[i * sl]);
                falls |= k < before;
                before = k;
                k0[i] = k; ${also('x0[i] = (uint)(begin + i);')}
% for d in range(passes):
                ++hist[${d}][(k >> ${8 * d}) & 255];
% endfor
            }
            int low = 0;
% if passes > 2:
            // How likely two keys are to agree in the digits so far, were these independent.
            float alike = (float)count;
            for (low = ${passes}; low > 0 && alike > 0.25f;) {
                float16 squares = 0;
                --low;
                for (int b = 0; b < 256; b += 16) {
                    const float16 c = convert_float16(vload16(0, hist[low] + b));
                    squares += c * c;
                }
                const float8 s8 = squares.lo + squares.hi;
                const float4 s4 = s8.lo + s8.hi;
                alike *= (s4.x + s4.y + s4.z + s4.w) / ((float)count * (float)count);
            }
% endif
            while (falls) {
                for (int d = low; d < ${passes}; ++d) {
                    uint total = 0, single = 0;
                    for (int b = 0; b < 256; ++b) {
                        const uint c = hist[d][b];
                        single |= c == (uint)count;
                        hist[d][b] = total; total += c;
                    }
                    if (single) continue;
                    const int shift = 8 * d;
                    for (I i = 0; i < count; ++i) {
                        const K k = k0[i];
                        const uint to = hist[d][(k >> shift) & 255]++;
                        k1[to] = k; ${also('x1[to] = x0[i];')}
                    }
                    __global K *const kt = k0; k0 = k1; k1 = kt;
                    ${also('__global uint *const xt = x0; x0 = x1; x1 = xt;')}
                }
% if passes > 2:
                if (!low) break;
                I moves = count; // that are worth making
                for (I i = 1; i < count && moves >= 0; ++i) {
                    const K k = k0[i];
                    if (k0[i - 1] <= k) continue;
                    ${also('const uint x = x0[i];')}
                    I j = i;
                    for (; j > 0 && k0[j - 1] > k; --j) { k0[j] = k0[j - 1]; ${also('x0[j] = x0[j - 1];')} }
                    k0[j] = k; ${also('x0[j] = x;')}
                    moves -= i - j;
                }
                if (moves >= 0) break;
                low = 0;
                for (int d = 0; d < ${passes}; ++d) for (int b = 0; b < 256; ++b) hist[d][b] = 0;
                for (I i = 0; i < count; ++i) {
                    const K k = k0[i];
% for d in range(passes):
                    ++hist[${d}][(k >> ${8 * d}) & 255];
% endfor
                }
% else:
                break;
% endif
            }
        }
% if final:
        for (I i = 0; i < count; ++i) {
% if order:
            const uint x = x0[i];
            values[ov + p_v_at + i * vl] = clt_bits(k0[i], from + (I)x * sl);
            indices[ox + p_x_at + i * xl] = (long)x;
% else:
            values[ov + p_v_at + i * vl] = clt_bits(k0[i]);
% endif
        }
% else:
        if (k0 != keys + base)
            for (I i = 0; i < count; ++i) { k1[i] = k0[i]; ${also('x1[i] = x0[i];')} }
% endif
    }
}
