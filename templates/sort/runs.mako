<%doc>
Runs of equal neighbours in a row of n: flags the first of each run, or turns the starts of runs into their lengths.
Grid-stride: CPU work-items interleave too little to matter, GPU lanes take neighbours.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
${w.prelude()}
typedef ${I} I;
% if lengths:
__kernel void ${fn}(__global const long *starts, __global long *out, const I n, const I total) {
    for (I i = (I)get_global_id(0); i < n; i += (I)get_global_size(0))
        out[i] = (i + 1 < n ? starts[i + 1] : (long)total) - starts[i];
}
% else:
${w.element(dt, 'e')}
__kernel void ${fn}(__global const ${dt.cl} *src, __global uchar *out, const I n, const I os, const I step) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
% if gpu:
    for (I i = part; i < n; i += parts) {
% else:
    const I first = n / parts * part + min(part, (I)(n % parts)), last = first + n / parts + (part < n % parts);
    for (I i = first; i < last; ++i) {
% endif
        if (i == 0) { out[0] = ${1 if first_flag else 0}; continue; }
        const ${dt.reg} a = clt_ld_e(src + os + (i - 1) * step), b = clt_ld_e(src + os + i * step);
        out[i] = ${"a.x != b.x || a.y != b.y" if dt.is_complex else "a != b"};
    }
}
% endif
