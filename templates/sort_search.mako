<%doc>
Binary search of each value in its sorted row (or in the one row there is): the first place where value <= sorted[place], with
`right` the first where value < sorted[place]. NaN goes last. CPU: a chunk of values per work-item; GPU: a lane a value.
</%doc>\
<%namespace name="w" file="walk.mako"/>\
${w.prelude()}
typedef ${I} I;
typedef ${dt.reg} R;
${w.element(dt, 'e')}
<%def name="search()">
    __global const ${dt.cl} *row = sorted + os + p_s;
    const R v = clt_ld_e(values + ov + p_v);
    I lo = 0, hi = length;
    while (lo < hi) {
        const I mid = lo + (hi - lo) / 2;
        const R m = clt_ld_e(row + ${"(I)sorter[oq + p_z + mid * ql]" if sorter else "mid"} * sl);
        if (${"!(m > v)" if right else "!(m >= v)"}) lo = mid + 1; else hi = mid;
    }
    result[od + p_d] = lo;
</%def>\
<% names = ['s', 'v', 'd'] + (['z'] if sorter else []) %>\
__kernel void ${fn}(__global const ${dt.cl} *sorted, __global const ${dt.cl} *values, __global ${out} *result\
% if sorter:
, __global const long *sorter\
% endif
, const I n, const I length, const I sl, const I os, const I ov, const I od\
% if sorter:
, const I ql, const I oq\
% endif
${w.params('p', rank, names)}\
) {
% if gpu:
<%w:lane p="p" rank="${rank}" names="${names}" last="n">
    ${search()}
</%w:lane>
% else:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), first = n / parts * part + min(part, (I)(n % parts));
    const I size = n / parts + (part < n % parts);
<%w:each p="p" rank="${rank}" names="${names}" first="first" last="first + size">
    ${search()}
</%w:each>
% endif
}
