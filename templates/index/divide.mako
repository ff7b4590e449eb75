<%doc>
dst[p] /= count[p] where the count is above 1; integers round down. CPU: a chunk per work-item. GPU: grid-stride lanes.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
${w.prelude()}
typedef ${I} I;
typedef ${dt.reg} R;
${w.element(dt, 'e')}
static inline R clt_divide(const R a, const int n) {
% if dt.is_complex:
    return a / (${dt.reg[:-1]})n;
% elif dt.is_floating_point:
    return a / (R)n;
% elif dt.is_signed:
    const long v = (long)a, q = v / n;
    return (R)(q - (v % n < 0));
% else:
    return (R)((ulong)a / (ulong)n);
% endif
}
__kernel void ${fn}(__global ${dt.cl} *dst, __global const int *count, const I n, const I od, const I oc\
${w.params('p', rank, ['d', 'c'])}) {
% if gpu:
<%w:lane p="p" rank="${rank}" names="${['d', 'c']}" last="n">
    const int c = count[oc + p_c];
    if (c > 1) clt_st_e(dst + od + p_d, clt_divide(clt_ld_e(dst + od + p_d), c));
</%w:lane>
% else:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), first = n / parts * part + min(part, (I)(n % parts));
    const I size = n / parts + (part < n % parts);
<%w:each p="p" rank="${rank}" names="${['d', 'c']}" first="first" last="first + size">
    const int c = count[oc + p_c];
    if (c > 1) clt_st_e(dst + od + p_d, clt_divide(clt_ld_e(dst + od + p_d), c));
</%w:each>
% endif
}
