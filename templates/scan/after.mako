<%doc>
Where parts of rows were scanned as rows of their own, each part is given what came before it: ${kind} of float32. A work-item
takes whole parts; the last of a row is as long as it may be. `back`: rows begin where they end in memory.
</%doc>\
<%namespace name="state" file="/scan/state.mako"/>\
<%namespace name="w" file="/walk.mako"/>\
<%
names = ['s', 'd']
whole, single = ('to - i - 15', 'to[-i]') if back else ('to + i', 'to[i]')
%>\
${headers}
${state.memory('float')}
${state.functions('float', 'I', '', False)}\
${state.functions('float16', 'int16', '16', False)}\
typedef float16 u16 __attribute__((aligned(4)));
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const float *src, __global float *dst, const I rows, const I pieces, const I step, const I length, const I os, const I od\
${w.params('p', rank, names)}\
) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), n = rows * pieces;
    const I first = n * part / parts, last = n * (part + 1) / parts;
    for (I k = first; k < last; ++k) {
        const I row = k / pieces, piece = k % pieces, begin = (piece + 1) * step;
        const I end = piece + 1 == pieces ? length : begin + step;
        ${w.decode('p', rank, names, 'row')}
        const float before = src[os + p_s_at + piece];
        const S16 all = clt_lift16((float16)(before), (int16)(0));
        const S one = clt_lift(before, 0);
        __global float *to = dst + od + p_d_at;
        I i = begin;
        for (; i + 16 <= end; i += 16)
            *(__global u16 *)(${whole}) = clt_value16(clt_join16(all, clt_lift16(*(__global const u16 *)(${whole}), (int16)(0))));
        for (; i < end; ++i) ${single} = clt_value(clt_join(one, clt_lift(${single}, 0)));
    }
}
