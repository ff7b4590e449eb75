<%doc>
Consecutive runs of a dim: x is (outer, n, width), bounds (outer, segments + 1) says where each run begins and the last
one ends.
'spread' gives every element the value of its run, x then being (outer, segments, width), and 0 outside of all runs; the
other kinds reduce each run to (outer, segments, width). Bounds are clamped to the dim.
A work-item takes whole runs (CPU: vectors along the width, or along the run where the width is 1) or a column of one
(GPU).
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="w" file="/walk.mako"/>\
<%
R = dt.reg
spread = kind == 'spread'
START = {'sum': '0', 'prod': '1', 'max': '-INFINITY', 'min': 'INFINITY', 'spread': '0'}[kind]
def joined(a, b):
    if kind == 'sum': return f'{a} + {b}'
    if kind == 'prod': return f'{a} * {b}'
    return f'({b} {">" if kind == "max" else "<"} {a} | {b} != {b}) ? {b} : {a}'
%>\
${headers}
% if dt.code == 'f64':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
${w.prelude()}
typedef ${I} I;
typedef ${R} R;
${w.element(dt, 'e')}
% if not gpu:
typedef ${memory.reg} V;
typedef ${'long' if dt.itemsize == 8 else 'int'}${L} B;
${lane_memory.helpers({dt.code: memory}, L, {(dt.code, 'load'), (dt.code, 'store')})}\
% endif
## Declare the bounds of run q, the rows of its dim, and the pointer to its value.
<%def name="run()">
        const I o = q / segments, s = q % segments;
        __global const long *b = bounds + o * (segments + 1) + s;
        const I first = (I)clamp(b[0], 0L, (long)n), last = (I)clamp(b[1], (long)first, (long)n);
% if spread:
        const I from = s ? first : 0, to = s + 1 < segments ? last : n;
        __global ${dt.cl} *rows = out + o * n * width;
        __global const ${dt.cl} *value = x + q * width;
% else:
        __global const ${dt.cl} *rows = x + (o * n + first) * width;
        __global ${dt.cl} *value = out + q * width;
        const I count = last - first;
% endif
</%def>\
__kernel void ${fn}(__global const ${dt.cl} *restrict x, __global const long *restrict bounds, __global ${dt.cl} *restrict out,
                    const I runs, const I segments, const I n, const I width, const I ox, const I ob) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    x += ox;
    bounds += ob;
% if gpu:
    for (I p = part; p < runs * width; p += parts) {
        const I q = p / width, c = p % width;
        ${run()}
% if spread:
        const R v = clt_ld_e(value + c);
        for (I i = from; i < to; ++i) clt_st_e(rows + i * width + c, i < first || i >= last ? (R)0 : v);
% else:
        R sum = ${START};
        for (I i = 0; i < count; ++i) {
            const R v = clt_ld_e(rows + i * width + c);
            sum = ${joined('sum', 'v')};
        }
        clt_st_e(value + c, sum);
% endif
    }
% else:
    const I start = runs / parts * part + min(part, (I)(runs % parts)), stop = start + runs / parts + (part < runs % parts);
    for (I q = start; q < stop; ++q) {
        ${run()}
% if spread:
        for (I i = from; i < to; ++i) {
            const int inside = i >= first & i < last;
            I c = 0;
            for (; c + ${L} <= width; c += ${L}) {
                __global ${dt.cl} *row = rows + i * width + c;
                const V v = inside ? ${memory.vector_load('value + c')} : (V)0;
                ${memory.vector_store('row', 'v')};
            }
            for (; c < width; ++c) clt_st_e(rows + i * width + c, inside ? clt_ld_e(value + c) : (R)0);
        }
% else:
        if (width == 1) {
            V sum = (V)(${START});
            I k = 0;
            for (; k + ${L} <= count; k += ${L}) {
                const V v = ${memory.vector_load('rows + k')};
                sum = ${joined('sum', 'v')};
            }
            R lanes[${L}], total = ${START};
            if (k) {
                vstore${L}(sum, 0, lanes);
                for (int j = 0; j < ${L}; ++j) total = ${joined('total', 'lanes[j]')};
            }
            for (; k < count; ++k) {
                const R v = clt_ld_e(rows + k);
                total = ${joined('total', 'v')};
            }
            clt_st_e(value, total);
            continue;
        }
        for (I c = 0; c < width; c += ${L}) {
            const int left = (int)min(width - c, (I)${L});
            V sum = (V)(${START});
            for (I i = 0; i < count; ++i) {
                const V v = load_${dt.code}(rows + i * width + c, left);
                sum = ${joined('sum', 'v')};
            }
            store_${dt.code}(value + c, sum, left);
        }
% endif
    }
% endif
}
