<%doc>
Binary search of each value in its sorted row (or in the one row there is): the first place where value <=
sorted[place], with `right` the first where value < sorted[place]. NaN goes last. GPU: a lane per value. CPU: a chunk of
values per work-item; if all search the same row, ${many} at once, to overlap the latency of memory in each step. No
branch depends on the data.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
${w.prelude()}
typedef ${I} I;
typedef ${dt.reg} R;
${w.element(dt, 'e')}
<%
before = "!(m > v)" if right else "!(m >= v)"
def place(at): return f"(I)sorter[oq + p_z + ({at}) * ql]" if sorter else at
%>\
static inline I clt_before(const R m, const R v) { return -(I)(${before}); }
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
    const R v = clt_ld_e(values + ov + p_v);
    I lo = 0, hi = length;
    while (lo < hi) {
        const I mid = lo + (hi - lo) / 2;
        if (clt_before(clt_ld_e(sorted + os + p_s + ${place('mid')} * sl), v)) lo = mid + 1; else hi = mid;
    }
    result[od + p_d] = lo;
</%w:lane>
% else:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), first = n / parts * part + min(part, (I)(n % parts));
    const I size = n / parts + (part < n % parts);
<%w:each p="p" rank="${rank}" names="${names}" first="first" last="first + size">
    const int live = (int)min((I)${many}, (I)(p_run - p_j));
    R v[${many}];
    I at[${many}];
    for (int j = 0; j < ${many}; ++j) {
        v[j] = clt_ld_e(values + ov + p_v + min(j, live - 1) * p_v${rank - 1});
        at[j] = 0;
    }
    I rest = length;
    while (rest > 1) {
        const I half_way = rest / 2;
        for (int j = 0; j < ${many}; ++j) {
            const I mid = at[j] + half_way - 1;
            at[j] += half_way & clt_before(clt_ld_e(sorted + os + p_s + ${place('mid')} * sl), v[j]);
        }
        rest -= half_way;
    }
    for (int j = 0; j < live; ++j)
        result[od + p_d + j * p_d${rank - 1}] = at[j] - (rest ? clt_before(clt_ld_e(sorted + os + p_s + ${place('at[j]')} * sl), v[j]) : 0);
    p_j += live - 1;
</%w:each>
% endif
}
