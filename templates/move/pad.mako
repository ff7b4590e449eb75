<%doc>
Padding in one pass: every element of dst is one of src or, with mode constant, the fill. Arguments per dim: its size in
src, its size in dst, the elements added before, its stride in src, and for circular mode the part that is repeated,
[low, high): elements cropped at one end do not reappear at the other.
CPU: a work-item makes whole rows of dst, their middle by vectors of ${lanes}. GPU: a lane reads ${at_once} elements
before it writes the first.
`staged`: elements of a buffer in which short rows are made, whose whole cache lines are then written with non-temporal
stores; 0 for none.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%
z = rank - 1
space = '' if staged else '__global '
line = 'ulong8' if size == 8 else 'uint16'
%>\
${headers}
${w.prelude()}
typedef ${I} I;
typedef ${T} T;
% if lanes > 1:
typedef ${T}${lanes} V __attribute__((aligned(${size})));
% endif
## The index in src, of a dim of size n, that index i (relative to src's first element) is read from; -1 for a
## constant's padding.
static inline I clt_place(const I i, const I n, const I low, const I high) {
% if mode == 'constant':
    return i < 0 || i >= n ? -1 : i;
% elif mode == 'replicate':
    return min(max(i, (I)0), (I)(n - 1));
% elif mode == 'circular':
    const I around = high - low;
    if (around <= 0) return 0;
    return i < low ? high - 1 - (low - 1 - i) % around : i >= high ? low + (i - high) % around : i;
% else:
    const I up = max(i, (I)0) - min(i, (I)0);
    return up >= n ? 2 * (n - 1) - up : up;
% endif
}
% if staged:
typedef ${line} W;
## Write the whole cache lines of the buffer t, which has `held` elements, and move the rest to its begin. The first
## `start` elements belong to another work-item and are not written.
static inline I put_lines(__global T *to, T *t, const I start, const I held) {
    I i = 0;
    if (start && held >= ${side})
        for (i = start; i < ${side}; ++i) to[i] = t[i];
    for (; i + ${side} <= held; i += ${side}) { const W line = *(const W *)(t + i); CLT_STREAM(line, (__global W *)(to + i)); }
    if (i) *(W *)t = *(const W *)(t + i);
    return i;
}
% endif
## Make the padding of a row up to `end`.
<%def name="around(end)">\
% if mode == 'constant':
% if lanes > 1:
        for (; j + ${lanes} <= ${end}; j += ${lanes}) *(${space}V *)(to + j) = (V)(fill);
% endif
        _Pragma("clang loop vectorize(disable) unroll(disable)")
        for (; j < ${end}; ++j) to[j] = fill;
% else:
        for (; j < ${end}; ++j) to[j] = from[clt_place(j - b${z}, n${z}, low${z}, high${z}) * s${z}];
% endif
</%def>\
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(__global T *restrict dst, __global const T *restrict src, const I n, const I os\
% for d in range(rank):
, const I n${d}, const I m${d}, const I b${d}, const I s${d}, const I low${d}, const I high${d}\
% endfor
, const ulong lo, const ulong hi) {
    union { ulong word[2]; T value; } pun;
    pun.word[0] = lo; pun.word[1] = hi;
    const T fill = pun.value;
% if gpu:
    for (I first = (I)get_group_id(0) * ${at_once * group} + (I)get_local_id(0); first < n; first += (I)get_num_groups(0) * ${at_once * group}) {
        T ${', '.join(f'v{u}' for u in range(at_once))};
% for u in range(at_once):
        {
            I q = min((I)(first + ${u * group}), (I)(n - 1)), at, inside = 1;
            __global const T *from = src + os;
% for d in reversed(range(rank)):
            at = clt_place(q ${f'% m{d}' if d else ''} - b${d}, n${d}, low${d}, high${d}); q ${f'/= m{d}' if d else '= 0'};
            inside &= at >= 0;
            from += at * s${d};
% endfor
            v${u} = inside ? *from : fill;
        }
% endfor
% for u in range(at_once):
        if (first + ${u * group} < n) dst[first + ${u * group}] = v${u};
% endfor
    }
% else:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), first = n / parts * part + min(part, (I)(n % parts));
    const I last = first + n / parts + (part < n % parts), begin = min(max(b${z}, (I)0), m${z}), end = max(begin, min(m${z}, (I)(b${z} + n${z})));
    I q = first;
% for d in reversed(range(z)):
    I at${d} = q ${f'% m{d}' if d else ''}; q ${f'/= m{d}' if d else '= 0'};
% endfor
% if staged:
    T t[${staged + side}] __attribute__((aligned(64)));
    I start = (I)((size_t)(dst + first * m${z}) / ${size} % ${side}), held = start;
    __global T *lines = dst + first * m${z} - held;
% endif
    for (I row = first; row < last; ++row) {
% if staged:
        if (held + m${z} > ${staged}) {
            const I put = put_lines(lines, t, start, held);
            lines += put;
            held -= put;
            start = put ? 0 : start;
        }
        T *const to = t + held;
        held += m${z};
% else:
        __global T *to = dst + row * m${z};
% endif
        __global const T *from = src + os;
        I inside = 1;
% for d in range(z):
        {
            const I at = clt_place(at${d} - b${d}, n${d}, low${d}, high${d});
            inside &= at >= 0;
            from += at * s${d};
        }
% endfor
        const I left = inside ? begin : m${z}, right = inside ? end : m${z};
        I j = 0;
${around('left')}\
        __global const T *middle = from - b${z}${f' * s{z}' if lanes == 1 else ''};
% if lanes > 1:
        for (; j + ${lanes} <= right; j += ${lanes}) *(${space}V *)(to + j) = *(__global const V *)(middle + j);
        if (j < right && right - left >= ${lanes}) {
            *(${space}V *)(to + right - ${lanes}) = *(__global const V *)(middle + right - ${lanes});
            j = right;
        }
% endif
        for (; j < right; ++j) to[j] = middle[j${f' * s{z}' if lanes == 1 else ''}];
${around(f'm{z}')}\
% for d in reversed(range(z)):
        if (++at${d} == m${d}) {
            at${d} = 0;
% endfor
        ${'}' * z}
    }
% if staged:
    const I put = put_lines(lines, t, start, held);
    for (I i = put ? 0 : start; i < held - put; ++i) lines[put + i] = t[i];
% endif
% endif
}
