<%doc>
Runs of equal neighbours in a row of n: flags the first of each run, or turns the starts of runs into their lengths.
CPU: a work-item takes a part of the row, by vectors if the row is contiguous (`wide`). GPU: adjacent lanes take
adjacent elements.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
${w.prelude()}
typedef ${I} I;
<%def name="each(start)">\
% if gpu:
    for (I i = (I)get_global_id(0); i < n; i += (I)get_global_size(0))\
% else:
    for (I i = ${start}; i < last; ++i)\
% endif
</%def>\
<%def name="share()">\
% if not gpu:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I first = n / parts * part + min(part, (I)(n % parts)), last = first + n / parts + (part < n % parts);
% endif
</%def>\
% if lengths:
__kernel void ${fn}(__global const long *starts, __global long *out, const I n, const I total) {
${share()}\
${each('first')}
        out[i] = (i + 1 < n ? starts[i + 1] : (long)total) - starts[i];
}
% else:
<%
lanes = min(16, 64 // dt.itemsize)
vector = f"{dt.cl}{lanes}"
%>\
${w.element(dt, 'e')}
% if wide:
typedef ${vector} V __attribute__((aligned(${dt.itemsize})));
typedef uchar${lanes} B __attribute__((aligned(1)));
% endif
__kernel void ${fn}(__global const ${dt.cl} *src, __global uchar *out, const I n, const I os, const I step) {
${share()}\
% if not gpu:
    I at = first;
    if (at == 0) out[at++] = ${1 if first_flag else 0};
% endif
% if wide:
    for (; at + ${lanes} <= last; at += ${lanes}) {
        __global const ${dt.cl} *p = src + os + at;
        *(__global B *)(out + at) = CLT_TRUTH(convert_uchar${lanes}(*(__global const V *)(p - 1) != *(__global const V *)p), uchar${lanes});
    }
% endif
${each('at')} {
% if gpu:
        if (i == 0) { out[0] = ${1 if first_flag else 0}; continue; }
% endif
        const ${dt.reg} a = clt_ld_e(src + os + (i - 1) * step), b = clt_ld_e(src + os + i * step);
        out[i] = ${"a.x != b.x || a.y != b.y" if dt.is_complex else "a != b"};
    }
}
% endif
