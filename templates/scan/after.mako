<%doc>
After parts of rows were scanned as rows of their own, combines each part with the result of the parts before it:
${kind} of float32 and float64. A work-item takes whole parts; a row's last part may be longer. `back`: rows begin at
their end in memory.
</%doc>\
<%namespace name="state" file="/scan/state.mako"/>\
<%namespace name="w" file="/walk.mako"/>\
<%
names = ['s', 'd']
L, F, W = lanes, dt.reg, 'int16' if dt.reg == 'float' else 'long8'
whole, single = (f'to - i - {L - 1}', 'to[-i]') if back else ('to + i', 'to[i]')
%>\
${headers}
${state.memory(F)}
${state.functions(F, 'I', '', False)}\
${state.functions(f'{F}{L}', W, L, False)}\
typedef ${F}${L} clt_many __attribute__((aligned(${dt.itemsize})));
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const ${F} *src, __global ${F} *dst, const I rows, const I pieces, const I step, const I length, const I os, const I od\
${w.params('p', rank, names)}\
) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), n = rows * pieces;
    const I first = n * part / parts, last = n * (part + 1) / parts;
    for (I k = first; k < last; ++k) {
        const I row = k / pieces, piece = k % pieces, begin = (piece + 1) * step;
        const I end = piece + 1 == pieces ? length : begin + step;
        ${w.decode('p', rank, names, 'row')}
        const ${F} before = src[os + p_s_at + piece];
        const S${L} all = clt_lift${L}((${F}${L})(before), (${W})(0));
        const S one = clt_lift(before, 0);
        __global ${F} *to = dst + od + p_d_at;
        I i = begin;
        for (; i + ${L} <= end; i += ${L})
            *(__global clt_many *)(${whole}) = clt_value${L}(clt_join${L}(all, clt_lift${L}(*(__global const clt_many *)(${whole}), (${W})(0))));
        for (; i < end; ++i) ${single} = clt_value(clt_join(one, clt_lift(${single}, 0)));
    }
}
