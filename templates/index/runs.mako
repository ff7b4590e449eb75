<%doc>
Reduces contributions that keys.mako and a stable sort brought together: the lane at the first of a run of equal keys
walks the run, which is in index order, and writes once. Grid-stride lanes; where indices do not vary along s, the lanes
are (positions of c) x (positions of s), neighbours in s side by side.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="r" file="combine.mako"/>\
<%
k = len(index)
names = ['d', 's'] + [f'i{j}' for j in range(k)]
%>\
${w.prelude()}
typedef ${I} I;
typedef ${dt.cl} T;
typedef ${dt.reg} R;
${w.element(dt, 'e')}
${r.combine(dt, action)}
${r.scaling(dt, scale)}
__kernel void ${fn}(__global T *dst, __global const T *src\
% if scale:
, __global const T *factor\
% endif
, __global const long *keys, __global const long *order\
% for j, t in enumerate(index):
, __global const ${t} *i${j}\
% endfor
, const I n, const I nc, const I ns, const I od, const I os\
% for j in range(k):
, const I oi${j}, const I t${j}_size, const I t${j}_step\
% endfor
${w.params('c', rank_c, names)}${w.params('s', rank_s, names)}\
) {
% if scale:
    const R alpha = clt_ld_e(factor);
% endif
% if hoist:
    for (I lane = (I)get_global_id(0); lane < n * ns; lane += (I)get_global_size(0)) {
        const I t = lane / ns, s = lane % ns;
        const I at = (I)order[t], c = at;
% else:
    for (I t = (I)get_global_id(0); t < n; t += (I)get_global_size(0)) {
        const I at = (I)order[t], s = at / nc, c = at % nc;
% endif
        const long key = keys[t];
        if (key < 0 || (t > 0 && keys[t - 1] == key)) continue;
        ${w.decode('s', rank_s, names, 's')}
        I xd;
        {
            ${w.decode('c', rank_c, names, 'c')}
            xd = od + c_d_at + s_d_at;
% for j in range(k):
            {
                long v = (long)i${j}[oi${j} + c_i${j}_at + s_i${j}_at];
                v += v < 0 ? (long)t${j}_size : 0;
                xd += (I)v * t${j}_step;
            }
% endfor
        }
        R acc = clt_ld_e(dst + xd);
        for (I u = t; u < n && keys[u] == key; ++u) {
            const I q = (I)order[u]${"" if hoist else " % nc"};
            ${w.decode('c', rank_c, names, 'q')}
            R v = clt_ld_e(src + os + c_s_at + s_s_at);
% if scale:
            v = clt_scale(alpha, v);
% endif
            acc = clt_combine(acc, v);
        }
        clt_st_e(dst + xd, acc);
    }
}
