<%doc>
Bags of table rows reduced: out[b] = ${kind} over i in [offsets[b], offsets[b + 1]) of table[indices[i]], the last bag
up to n.
The row `padding` does not count; `scaled` weights each row. sizes[b] is how many rows counted, bag_of[i] the bag of i.
A work-item takes whole bags (CPU: four vectors of columns at a time, prefetching rows) or a column of a bag (GPU), so
nothing collides. A bad index or offset is noted in status together with the index's position, or -1 .. -3 for offsets.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="w" file="/walk.mako"/>\
<%
R = dt.reg
V = R if gpu else memory.reg
AHEAD = 16
%>\
${headers}
% if dt.code == 'f64':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
${w.prelude()}
typedef ${I} I;
typedef ${R} R;
% if not gpu:
typedef ${V} V;
${lane_memory.helpers({dt.code: memory}, L, {(dt.code, 'load'), (dt.code, 'store')})}\
% if kind == 'max':
typedef ${'long' if dt.itemsize == 8 else 'int'}${L} B;
% endif
% endif
${w.element(dt, 'e')}
static inline void clt_note(__global long *status, const long value, const long what) {
% if gpu:
    if (atomic_cmpxchg((volatile __global int *)status, 0, 1)) return;
% else:
    if (status[0]) return;
    status[0] = 1;
% endif
    status[1] = value;
    status[2] = what;
}
<%def name="begin()">
        const long first = (long)offsets[oo + b * so], last = b + 1 < bags ? (long)offsets[oo + (b + 1) * so] : (long)n;
        if (first < 0 || last > (long)n || first > last || (b == 0 && first != 0)) {
            const int late = b + 2 == bags && last > (long)n;
            clt_note(status, b == 0 && first != 0 ? first : last, b == 0 && first != 0 ? -1 : late ? -2 : -3);
            continue;
        }
        long counted = 0;
</%def>\
<%def name="row()">
            const long row = (long)indices[oi + i * si];
            if (c == 0) bag_of[i] = (long)b;
            if (row < 0 || row >= (long)rows) { clt_note(status, row, (long)i); break; }
            if (row == padding) continue;
            __global const ${dt.cl} *p = table + ot + (I)row * st + c * ct;
% if scaled:
            const R by = clt_ld_e(scale + ow + i * sw);
% endif
</%def>\
## One pass over the rows of a bag, for `count` vectors of columns from c on, or for the last `left` columns.
<%def name="columns(count, whole)">
            {
            counted = 0;
% for k in range(count):
            V sum${k} = 0;
% if kind == 'max':
            B best${k} = 0;
% endif
% endfor
            for (I i = (I)first; i < (I)last; ++i) {
                if (i + ${AHEAD} < n) {
                    __global const ${dt.cl} *next = table + ot + (I)indices[oi + (i + ${AHEAD}) * si] * st + c;
% for k in range(0, count * L * dt.itemsize, 64):
                    CLT_PREFETCH(next + ${k // dt.itemsize});
% endfor
                }
                ${row()}
% for k in range(count):
                {
                    const V v = ${memory.vector_load(f'p + {k * L}') if whole else f'load_{dt.code}(p, (int)left)'};
% if kind == 'max':
                    const B take = counted == 0 ? (B)-1 : v > sum${k};
                    sum${k} = take ? v : sum${k};
                    best${k} = take ? (B)row : best${k};
% else:
                    sum${k} += ${'by * v' if scaled else 'v'};
% endif
                }
% endfor
                ++counted;
            }
% for k in range(count):
            {
                const V v = ${f'sum{k} / (V)(R)max(counted, 1L)' if kind == 'mean' else f'sum{k}'};
                __global ${dt.cl} *o = out + b * width + c + ${k * L};
                ${memory.vector_store('o', 'v') if whole else f'store_{dt.code}(o, v, (int)left)'};
% if kind == 'max':
                ${'long' if dt.itemsize == 8 else 'int'} t[${L}];
                vstore${L}(best${k}, 0, t);
                for (int j = 0; j < ${L if whole else '(int)left'}; ++j) best_row[b * width + c + ${k * L} + j] = (long)t[j];
% endif
            }
% endfor
            }
</%def>\
#define CLT_WHOLE
__kernel void ${fn}(__global const ${dt.cl} *restrict table, __global const ${index} *restrict indices, __global const ${offset} *restrict offsets,
                    __global ${dt.cl} *restrict out, __global long *restrict sizes, __global long *restrict bag_of\
% if kind == 'max':
, __global long *restrict best_row\
% endif
% if scaled:
, __global const ${dt.cl} *restrict scale\
% endif
, __global long *restrict status, const I slot, const I n, const I bags, const I rows, const I width, const I ot, const I st, const I ct,
                    const I oi, const I si, const I oo, const I so${", const I ow, const I sw" if scaled else ""}, const long padding) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
% if gpu:
    const I columns = max(width, (I)1);
    status += slot;
    for (I q = part; q < bags * columns; q += parts) {
        const I b = q / columns, c = q % columns;
        ${begin()}
        R sum = 0;
% if kind == 'max':
        long best = 0;
% endif
        for (I i = (I)first; i < (I)last; ++i) {
            ${row()}
            if (c < width) {
                const R v = clt_ld_e(p);
% if kind == 'max':
                const int take = counted == 0 || v > sum;
                sum = take ? v : sum;
                best = take ? row : best;
% else:
                sum += ${'by * v' if scaled else 'v'};
% endif
            }
            ++counted;
        }
        if (c == 0) sizes[b] = counted;
        if (c < width) {
            clt_st_e(out + b * width + c, ${'sum / (R)max(counted, 1L)' if kind == 'mean' else 'sum'});
% if kind == 'max':
            best_row[b * width + c] = best;
% endif
        }
    }
% else:
    status += slot + 4 * part;
    const I start = bags / parts * part + min(part, (I)(bags % parts)), stop = start + bags / parts + (part < bags % parts);
    for (I b = start; b < stop; ++b) {
        ${begin()}
        I c = 0;
        for (; c + ${4 * L} <= width; c += ${4 * L}) ${columns(4, True)}
        for (; c + ${L} <= width; c += ${L}) ${columns(1, True)}
        const I left = width - c;
        if (left) ${columns(1, False)}
        if (!width) for (I i = (I)first; i < (I)last; ++i) {
            ${row()}
            ++counted;
        }
        sizes[b] = counted;
    }
% endif
}
