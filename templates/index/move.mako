<%doc>
Moves elements between a strided region and one whose offset index operands add to, on a CPU.
get: dst[p] = src[p + sum index_k[p] * step_k];  set: dst[p + sum ...] = src[p] or a scalar. No index operand: a strided
copy or fill.
A work-item walks one chunk of the space in row-major order.
`hoist`: no index varies along the innermost dim, so it is read once per run and the inner loop only moves.
`ahead`: prefetch distance of a get, in units of eight elements; 0 for no prefetches.
`step`: 1 or -1 if a run is a copy of contiguous vectors in the same or the reverse order; whole cache lines are
written, with non-temporal stores if `headers` define them. A reversed run is then written from its end on, so that
reads are in the order of memory.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%
k = len(index)
names = ['d'] + ([] if scalar else ['s']) + [f'i{j}' for j in range(k)]
swing = 's' if side == 'get' else 'd'
%>\
${headers}
${w.prelude()}
typedef ${I} I;
typedef ${T} T;
% if step:
<%
lanes = min(16, 32 // size)
back = step < 0 and headers
def put(value, place): return f"CLT_STREAM({value}, (__global V *)({place}));" if headers else f"*(__global U *)({place}) = {value};"
%>\
typedef ${T}${lanes} V;
typedef ${T}${lanes} __attribute__((aligned(${size}))) U;

static inline void copy_run(__global T *restrict to, __global const T *restrict from, const I n) {
    I i = 0;
% if headers:
    for (; i < n && (size_t)(to + i) % 64; ++i) to[i] = from[${'-' * (step < 0)}i];
% endif
% if back:
    const I begin = i, whole = (n - i) / ${64 // size} * ${64 // size};
    for (i = begin + whole; (i -= ${64 // size}) >= begin;) {
% else:
    for (; i + ${64 // size} <= n; i += ${64 // size}) {
% endif
% for at in range(0, 64 // size, lanes):
% if step > 0:
        const V v${at} = *(__global const U *)(from + i + ${at});
% else:
        const V v${at} = (*(__global const U *)(from - i - ${at + lanes - 1})).s${''.join(f'{lanes - 1 - j:x}' for j in range(lanes))};
% endif
% endfor
% for at in range(0, 64 // size, lanes):
        ${put(f'v{at}', f'to + i + {at}')}
% endfor
    }
% if back:
    i = begin + whole;
% endif
    for (; i < n; ++i) to[i] = from[${'-' * (step < 0)}i];
}
% endif
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global T *restrict dst\
% if not scalar:
, __global const T *restrict src\
% endif
% for j, t in enumerate(index):
, __global const ${t} *restrict i${j}\
% endfor
% if k:
, __global long *restrict status, const I slot\
% endif
, const I n, const I od\
% if not scalar:
, const I os\
% endif
% for j in range(k):
, const I oi${j}, const I t${j}_size, const I t${j}_step\
% endfor
${w.params('p', rank, names)}\
% if scalar:
, const ulong lo, const ulong hi\
% endif
) {
% if scalar:
    union { ulong word[2]; T value; } pun;
    pun.word[0] = lo; pun.word[1] = hi;
    const T fill = pun.value;
% endif
% if k:
    status += slot + 4 * (I)get_global_id(0);
% endif
<% value = 'fill' if scalar else 'src[xs]' %>
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), first = n / parts * part + min(part, (I)(n % parts));
    const I count = n / parts + (part < n % parts);
% if step:
<% run = 'copy_run(dst + od + p_d_at, src + os + p_s_at, p_run);' %>
<%w:each p="p" rank="${rank}" names="${names}" first="first" last="first + count" units="${units}" run="${run}" limit="0">
</%w:each>
% elif hoist:
<% run = 'I lift = 0, lim = p_run;' + capture(w.lookup, k, 'p', 'lift', wrap, False, 'lim = 0;', 'p_pos', '_at') %>
<%w:each p="p" rank="${rank}" names="${names}" first="first" last="first + count" units="${units}" run="${run}" limit="lim">
            dst[od + p_d${" + lift" if side == "set" else ""}] = ${"fill" if scalar else "src[os + p_s" + (" + lift]" if side == "get" else "]")};
</%w:each>
% elif side == 'get':
<% z = rank - 1 %>\
% for j, t in enumerate(index):
% if flat[j]:
    typedef ${t}8 __attribute__((aligned(${widths[j]}))) clt_index${j};
% endif
% endfor
    int bad = ${" | ".join(f"(t{j}_size == 0)" for j in range(k))};
    if (!bad) {
        long8 bads = 0;
% if ahead:
        long waiting[${8 * ahead}] __attribute__((aligned(64)));
% endif
<%def name="eights()">
        I p_b = 0;
% if ahead:
        for (I p_a = 0; p_b + 8 <= p_run; p_a += 8) {
            long *const places = waiting + p_a % ${8 * ahead};
            const long8 from = *(const long8 *)places;
            if (p_a + 8 <= p_run) {
                ${w.lookup_eight(index, flat, 'p', z, 'p_a', 'place', wrap, 'bads')}
                *(long8 *)places = place;
                if ((ulong)(place.s7 - place.s0 + 32) > 64) { // not for neighbours: hardware prefetches these
                    __global const T *next = src + os + p_s_at + p_a${"" if units[1] else f" * p_s{z}"};
                    for (int j = 0; j < 8; ++j) CLT_PREFETCH(next + ${"j" if units[1] else f"j * p_s{z}"} + places[j]);
                }
            }
            if (p_a < ${8 * ahead}) continue;
% else:
        for (; p_b + 8 <= p_run; p_b += 8) {
            ${w.lookup_eight(index, flat, 'p', z, 'p_b', 'from', wrap, 'bads')}
% endif
            __global T *to = dst + od + p_d_at + p_b${"" if units[0] else f" * p_d{z}"};
            __global const T *of = src + os + p_s_at + p_b${"" if units[1] else f" * p_s{z}"};
% for j in range(8):
            const T v${j} = of[${f"{j} + " if units[1] else f"{j} * p_s{z} + "}from.s${j}];
% endfor
% for j in range(8):
            to[${j if units[0] else f"{j} * p_d{z}"}] = v${j};
% endfor
% if ahead:
            p_b += 8;
% endif
        }
</%def>\
<%w:each p="p" rank="${rank}" names="${names}" first="first" last="first + count" units="${units}" run="${capture(eights)}" start="p_b">
            I xs = os + p_s;
            ${w.lookup_all(k, 'p', 'xs', wrap, 'bad')}
            dst[od + p_d] = src[xs];
</%w:each>
        const long4 rest = bads.lo | bads.hi;
        bad |= (rest.x | rest.y | rest.z | rest.w) != 0;
    }
    if (bad) {
<%w:each p="p" rank="${rank}" names="${names}" first="first" last="first + count" units="${units}">
            I ignored = 0;
            ${w.lookup(k, 'p', 'ignored', wrap, False, 'continue;', 'p_i')}
</%w:each>
    }
% else:
<%w:each p="p" rank="${rank}" names="${names}" first="first" last="first + count" units="${units}">
            I xd = od + p_d${"" if scalar else ", xs = os + p_s"};
            ${w.lookup(k, 'p', 'x' + swing, wrap, False, 'continue;', 'p_i')}
            dst[xd] = ${value};
</%w:each>
% endif
}
