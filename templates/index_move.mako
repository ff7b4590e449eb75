<%doc>
Moves elements between a strided region and one whose offset index operands add to.
get: dst[p] = src[p + sum index_k[p] * step_k];  set: dst[p + sum ...] = src[p] or a scalar. No index operand: a strided copy or fill.
CPU: a work-item walks one chunk of the space in row-major order. GPU: a work-item is an element, grid-stride.
`hoist`: no index varies along the innermost dim, so it is read once per run and the inner loop only moves.
</%doc>\
<%namespace name="w" file="walk.mako"/>\
<%
k = len(index)
names = ['d'] + ([] if scalar else ['s']) + [f'i{j}' for j in range(k)]
swing = 's' if side == 'get' else 'd'
%>\
${w.prelude()}
typedef ${I} I;
typedef ${T} T;
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
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
    status += slot${"" if gpu else " + 4 * (I)get_global_id(0)"};
% endif
<% value = 'fill' if scalar else 'src[xs]' %>
% if gpu:
<%w:lane p="p" rank="${rank}" names="${names}" last="n">
        I xd = od + p_d${"" if scalar else ", xs = os + p_s"};
        ${w.lookup(k, 'p', 'x' + swing, wrap, gpu, 'continue;', 'p_i')}
        dst[xd] = ${value};
</%w:lane>
% else:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), first = n / parts * part + min(part, (I)(n % parts));
    const I size = n / parts + (part < n % parts);
% if hoist:
<% run = 'I lift = 0, lim = p_run;' + capture(w.lookup, k, 'p', 'lift', wrap, gpu, 'lim = 0;', 'p_pos', '_at') %>
<%w:each p="p" rank="${rank}" names="${names}" first="first" last="first + size" units="${units}" run="${run}" limit="lim">
            dst[od + p_d${" + lift" if side == "set" else ""}] = ${"fill" if scalar else "src[os + p_s" + (" + lift]" if side == "get" else "]")};
</%w:each>
% else:
<%w:each p="p" rank="${rank}" names="${names}" first="first" last="first + size" units="${units}">
            I xd = od + p_d${"" if scalar else ", xs = os + p_s"};
            ${w.lookup(k, 'p', 'x' + swing, wrap, gpu, 'continue;', 'p_i')}
            dst[xd] = ${value};
</%w:each>
% endif
% endif
}
