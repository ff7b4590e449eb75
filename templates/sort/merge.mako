<%doc>
One merge of neighbouring sorted runs of `run` keys within each row, CPU schedule, stable; from scratch half `a` to half
`b`. A work-item makes one contiguous part of the output, finding where to begin in each pair of runs by the merge path;
with `final` it writes the results; without `order` there are no positions. The input is what rows.mako leaves: words of
a key and its position, or (`wide`) both in arrays of their own.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="s" file="keys.mako"/>\
<%
names = ['s', 'v', 'x'] if order else ['s', 'v']
wide = order and dt.itemsize == 8
def also(text): return text if order else ''
def apart(text): return text if wide else ''
%>\
${w.prelude()}
typedef ${I} I;
${s.keys(dt, descending, order)}
${s.words(order)}
__kernel void ${fn}(__global const K *src, __global K *values${also(', __global long *indices')}, __global W *words${apart(', __global uint *places')}
, const I length, const I rows, const I run, const I a, const I b, const I os, const I ov${also(', const I ox')}
, const I sl, const I vl${also(', const I xl')}${w.params('p', rank, names)}\
) {
    __global const W *ka = words + a;
    ${'' if final else '__global W *kb = words + b;'}
    ${apart('__global const uint *xa = places + a;')}
    ${apart('' if final else '__global uint *xb = places + b;')}
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), n = rows * length;
    I at = n / parts * part + min(part, (I)(n % parts));
    const I last = at + n / parts + (part < n % parts);
    while (at < last) {
        const I row = at / length, pair = (at - row * length) / (2 * run), begin = row * length + pair * 2 * run;
        const I rest = length - pair * 2 * run, na = min(run, rest), nb = min(run, (I)(rest - na));
        __global const W *A = ka + begin, *B = ka + begin + na;
        ${apart('__global const uint *XA = xa + begin, *XB = xa + begin + na;')}
        const I d = at - begin, count = min((I)(last - at), (I)(na + nb - d));
        I lo = max((I)0, (I)(d - nb)), hi = min(d, na);
        while (lo < hi) {
            const I mid = lo + (hi - lo) / 2;
            if (A[mid] <= B[d - 1 - mid]) lo = mid + 1; else hi = mid;
        }
        I i = lo, j = d - lo, o = 0;
% if final:
        ${w.decode('p', rank, names, 'row')}
        __global const K *from = src + os + p_s_at;
        __global K *to = values + ov + p_v_at + (at - row * length) * vl;
        ${also('__global long *tx = indices + ox + p_x_at + (at - row * length) * xl;')}
<%
put = 'to[o * vl] = clt_bits(k);'
if wide: put = 'to[o * vl] = clt_bits(k, from + (I)x * sl); tx[o * xl] = (long)x;'
elif order: put = 'to[o * vl] = clt_bits((K)(k >> 32), from + (I)(uint)k * sl); tx[o * xl] = (long)(uint)k;'
%>
% else:
        __global W *to = kb + at;
        ${apart('__global uint *tx = xb + at;')}
<% put = 'to[o] = k;' + apart(' tx[o] = x;') %>
% endif
        while (o < count && i < na && j < nb) {
            const W p = A[i], q = B[j];
            ${apart('const uint xp = XA[i], xq = XB[j];')}
            const int second = q < p;
            const W k = second ? q : p;
            ${apart('const uint x = second ? xq : xp;')}
            i += 1 - second; j += second;
            ${put}
            ++o;
        }
        for (; o < count && i < na; ++i, ++o) { const W k = A[i]; ${apart('const uint x = XA[i];')} ${put} }
        for (; o < count; ++j, ++o) { const W k = B[j]; ${apart('const uint x = XB[j];')} ${put} }
        at += count;
    }
}
