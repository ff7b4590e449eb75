<%doc>
Combines values into positions that index operands choose, where several may choose the same: dst[...] = dst[...] op src.
The space is split in dims c (positions along them may collide) and s (they never do). A CPU work-item owns one chunk of s
and walks all of c in order, so contributions to an element always arrive in index order and never from two work-items.
GPU: a work-item owns one position of s at a time.
`outer`: which of the two walks is the outer loop.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="r" file="combine.mako"/>\
<%
k = len(index)
names = ['d', 's'] + [f'i{j}' for j in range(k)]
inner = 's' if outer == 'c' else 'c'
%>\
${w.prelude()}
typedef ${I} I;
% if action == 'move':
typedef ${T} T;
typedef ${T} R;
static inline R clt_ld_e(__global const T *p) { return *p; }
static inline void clt_st_e(__global T *p, const R v) { *p = v; }
% else:
typedef ${dt.cl} T;
typedef ${dt.reg} R;
${w.element(dt, 'e')}
${r.combine(dt, action)}
${r.scaling(dt, scale)}
% endif
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(__global T *dst, __global const T *src\
% if scale:
, __global const T *factor\
% endif
% for j, t in enumerate(index):
, __global const ${t} *i${j}\
% endfor
, __global long *status, const I slot, const I nc, const I ns, const I od, const I os\
% for j in range(k):
, const I oi${j}, const I t${j}_size, const I t${j}_step\
% endfor
${w.params('c', rank_c, names)}${w.params('s', rank_s, names)}\
) {
% if scale:
    const R alpha = clt_ld_e(factor);
% endif
% if gpu:
    status += slot;
    for (I piece = (I)get_global_id(0); piece < ns; piece += (I)get_global_size(0)) {
    const I first_s = piece, last_s = piece + 1;
% else:
    {
    const I part = (I)get_global_id(0), parts = (I)get_global_size(0);
    const I first_s = ns / parts * part + min(part, (I)(ns % parts)), last_s = first_s + ns / parts + (part < ns % parts);
    status += slot + 4 * part;
% endif
<%
first = {'c': '0', 's': 'first_s'}
last = {'c': 'nc', 's': 'last_s'}
%>\
<%w:each p="${outer}" rank="${rank_c if outer == 'c' else rank_s}" names="${names}" first="${first[outer]}" last="${last[outer]}">
% if hoist:
        I lift = 0;
        ${w.lookup(k, outer, 'lift', wrap, gpu, 'continue;', outer + '_i')}
% endif
<%w:each p="${inner}" rank="${rank_s if outer == 'c' else rank_c}" names="${names}" first="${first[inner]}" last="${last[inner]}" units="${units}">
% if hoist:
            const I xd = od + lift + ${outer}_d + ${inner}_d;
% else:
            I xd = od + ${outer}_d + ${inner}_d;
            ${w.lookup(k, outer, 'xd', wrap, gpu, 'continue;', outer + '_i', f' + {inner}_i{{k}}')}
% endif
            R v = clt_ld_e(src + os + ${outer}_s + ${inner}_s);
% if scale:
            v = clt_scale(alpha, v);
% endif
% if action == 'move':
            clt_st_e(dst + xd, v);
% else:
            clt_st_e(dst + xd, clt_combine(clt_ld_e(dst + xd), v));
% endif
</%w:each>
</%w:each>
    }
}
