<%doc>
A product of dense matrices, computed only where a sparse one has entries: out[e] = sum over k of left[first[e], k] *
right[second[e], k].
CPU: a work-item takes a run of entries and sums in vectors of ${V} lanes. GPU: a lane takes an entry.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%
R = dt.reg
vector = not gpu and dt.cl == R
%>\
% if dt.code == 'f64':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
#pragma OPENCL FP_CONTRACT OFF
${w.prelude()}
${headers}
typedef ${I} I;
typedef ${R} R;
${w.element(dt, 'e')}
% if vector:
typedef ${R}${V} RV;
typedef ${R}${V} RU __attribute__((aligned(${dt.itemsize})));
% endif
__kernel void ${fn}(__global const long *restrict first, __global const long *restrict second, __global const ${dt.cl} *restrict left,
                    __global const ${dt.cl} *restrict right, __global ${dt.cl} *restrict out,
                    const I count, const I width, const I lstep, const I rstep, const I of, const I os, const I ol, const I or) {
    first += of; second += os; left += ol; right += or;
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
% if gpu:
    for (I e = part; e < count; e += parts) {
% else:
    const I start = count / parts * part + min(part, (I)(count % parts)), stop = start + count / parts + (part < count % parts);
    for (I e = start; e < stop; ++e) {
% endif
        __global const ${dt.cl} *a = left + (I)first[e] * lstep, *b = right + (I)second[e] * rstep;
        R sum = 0;
        I k = 0;
% if ahead:
        __global const ${dt.cl} *soon = right + (I)second[e + ${ahead} < stop ? e + ${ahead} : e] * rstep;
        for (I j = 0; j < width; j += ${64 // dt.itemsize}) CLT_PREFETCH(soon + j);
% endif
% if vector:
        RV s = (RV)0;
        for (; k + ${V} <= width; k += ${V}) s += *(__global const RU *)(a + k) * *(__global const RU *)(b + k);
% if V == 16:
        const ${R}8 h = s.lo + s.hi;
        const ${R}4 q = h.lo + h.hi;
% else:
        const ${R}4 q = s.lo + s.hi;
% endif
        sum = (q.s0 + q.s2) + (q.s1 + q.s3);
% endif
        for (; k < width; ++k) sum += clt_ld_e(a + k) * clt_ld_e(b + k);
        clt_st_e(out + e, sum);
    }
}
