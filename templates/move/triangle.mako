<%doc>
A triangle of matrices, zeros elsewhere: the elements of row i before column i + cut (lower), or from there on (upper),
come from src.
CPU: a work-item makes whole rows, by vectors of ${lanes}; streamed: with non-temporal stores. GPU: a lane makes an
element.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
${w.prelude()}
${headers}
typedef ${I} I;
typedef ${T} T;
% if lanes > 1:
typedef ${T}${lanes} W;
typedef W V __attribute__((aligned(${size})));
<%def name="put(at, value)">${f'CLT_STREAM((W)({value}), (__global W *)(to + {at}))' if streamed else f'*(__global V *)(to + {at}) = (W)({value})'};</%def>\
% endif
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(__global T *restrict dst, __global const T *restrict src, const I all, const I rows, const I columns, const I cut, const I os\
${w.params('p', rank, ['s'])}\
) {
    const T none = {0};
% if gpu:
    for (I q = (I)get_global_id(0); q < all * columns; q += (I)get_global_size(0)) {
        const I row = q / columns, j = q % columns;
        ${w.decode('p', rank, ['s'], 'row')}
        dst[q] = (j < row % rows + cut) == ${int(lower)} ? src[os + p_s_at + j] : none;
    }
% else:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), first = all / parts * part + min(part, (I)(all % parts));
    const I last = first + all / parts + (part < all % parts);
    for (I row = first; row < last; ++row) {
        ${w.decode('p', rank, ['s'], 'row')}
        __global const T *from = src + os + p_s_at;
        __global T *to = dst + row * columns;
        const I edge = min(max(row % rows + cut, (I)0), columns);
        I j = 0;
% for begins in (True, False):
<% kept, end = begins == lower, 'edge' if begins else 'columns' %>\
% if lanes > 1:
        for (; j + ${lanes} <= ${end}; j += ${lanes}) { ${put('j', '*(__global const V *)(from + j)' if kept else '0')} }
% endif
% if begins:
        ## Single elements across the diagonal, up to the next multiple of a vector.
        for (const I stop = ${f'min(columns, (edge + {lanes - 1}) / {lanes} * {lanes})' if lanes > 1 else 'edge'}; j < stop; ++j) to[j] = (j < edge) == ${int(lower)} ? from[j] : none;
% else:
        for (; j < columns; ++j) to[j] = ${'from[j]' if kept else 'none'};
% endif
% endfor
    }
% endif
}
