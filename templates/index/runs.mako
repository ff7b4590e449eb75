<%doc>
Reduces contributions that are sorted by the keys of keys.mako, equal keys in index order; GPU schedule, two kernels. As
a run of equal keys may be long, the sorted contributions are cut into stretches of `span`: in the first kernel the lane
at the first contribution of a run, or of a stretch into which a run continues, walks to the end of the run or stretch.
A run within a stretch then goes to its destination, parts of others to partial[stretch][whether the run begins there].
`joined`: the lane of the stretch in which such a run begins adds up its parts, in order. If indices do not vary along
s, the lanes are (positions of c) x (positions of s), adjacent lanes along s. Keys from `none` on have no destination.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="r" file="combine.mako"/>\
<%
k = len(index)
names = ['d', 's'] + [f'i{j}' for j in range(k)]
width = 'ns' if hoist else '1'
%>\
${w.prelude()}
typedef ${I} I;
typedef ${dt.cl} T;
typedef ${dt.reg} R;
${w.element(dt, 'e')}
${r.combine(dt, action)}
${r.scaling(dt, scale)}
## Declare xd, the offset in dst of contribution `at`.
<%def name="place(at)">
        ${w.decode('s', rank_s, names, 's' if hoist else f'{at} / nc')}
        I xd;
        {
            ${w.decode('c', rank_c, names, at if hoist else f'{at} % nc')}
            xd = od + c_d_at + s_d_at;
% for j in range(k):
            {
                long v = (long)i${j}[oi${j} + c_i${j}_at + s_i${j}_at];
                v += v < 0 ? (long)t${j}_size : 0;
                xd += (I)v * t${j}_step;
            }
% endfor
        }
</%def>\
__kernel void ${fn}(__global T *dst, __global const T *src\
% if scale:
, __global const T *factor\
% endif
, __global const ${key} *keys, __global const long *order, __global R *partial\
% for j, t in enumerate(index):
, __global const ${t} *i${j}\
% endfor
, const I n, const I nc, const I ns, const I span, const I od, const I os\
% for j in range(k):
, const I oi${j}, const I t${j}_size, const I t${j}_step\
% endfor
${w.params('c', rank_c, names)}${w.params('s', rank_s, names)}\
, const long none) {
% if joined:
    const I stretches = n / span; // without the last, partial one, after which no run can continue
    for (I lane = (I)get_global_id(0); lane < stretches * ${width}; lane += (I)get_global_size(0)) {
        const I stretch = lane / ${width}, begin = stretch * span;
        I next = begin + span;
        ${'const I s = lane % ns;' if hoist else ''}
        if (next >= n) continue;
        const ${key} own = keys[next];
        if ((ulong)own >= (ulong)none || keys[next - 1] != own || (begin > 0 && keys[begin - 1] == own)) continue;
        R acc = partial[(2 * stretch + 1) * ${width}${' + s' if hoist else ''}];
        for (; next < n && keys[next] == own; next += span)
            acc = clt_combine(acc, partial[2 * (next / span) * ${width}${' + s' if hoist else ''}]);
        const I at = (I)order[begin + span];
        ${place('at')}
        clt_st_e(dst + xd, clt_combine(clt_ld_e(dst + xd), acc));
    }
% else:
% if scale:
    const R alpha = clt_ld_e(factor);
% endif
    for (I lane = (I)get_global_id(0); lane < n * ${width}; lane += (I)get_global_size(0)) {
        const I t = lane / ${width};
        ${'const I s = lane % ns;' if hoist else ''}
        const ${key} own = keys[t];
        const int begins = t == 0 || keys[t - 1] != own;
        if ((ulong)own >= (ulong)none || !(begins || t % span == 0)) continue;
        const I at = (I)order[t], end = min(n, (I)((t / span + 1) * span));
        ${place('at')}
        R acc;
        I u = t;
        do {
            const I q = (I)order[u]${"" if hoist else " % nc"};
            ${w.decode('c', rank_c, names, 'q')}
            R v = clt_ld_e(src + os + c_s_at + s_s_at);
% if scale:
            v = clt_scale(alpha, v);
% endif
            acc = u == t ? v : clt_combine(acc, v);
            ++u;
        } while (u < end && keys[u] == own);
        if (begins && (u == n || keys[u] != own)) clt_st_e(dst + xd, clt_combine(clt_ld_e(dst + xd), acc));
        else partial[(2 * (t / span) + begins) * ${width}${' + s' if hoist else ''}] = acc;
    }
% endif
}
