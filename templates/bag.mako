<%doc>
Bags of table rows reduced: out[b] = ${kind} over i in [offsets[b], offsets[b + 1]) of table[indices[i]], the last bag up to n.
The row `padding` counts for nothing; `scaled` weights each row. sizes[b] is how many rows counted, bag_of[i] the bag of i.
A work-item takes ${block} columns of a bag (CPU: of every bag of its part), so nothing collides.
A bad index or offset is noted in status with what it is: its position, or -1 .. -3 for offsets.
</%doc>\
<%namespace name="w" file="walk.mako"/>\
<% R = dt.reg %>\
% if dt.code == 'f64':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
${w.prelude()}
typedef ${I} I;
typedef ${R} R;
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
    const I blocks = (width + ${block - 1}) / ${block}, total = bags * max(blocks, (I)1);
% if gpu:
    status += slot;
    for (I q = part; q < total; q += parts) {
% else:
    status += slot + 4 * part;
    const I start = total / parts * part + min(part, (I)(total % parts)), stop = start + total / parts + (part < total % parts);
    for (I q = start; q < stop; ++q) {
% endif
        const I b = q / max(blocks, (I)1), c = q % max(blocks, (I)1) * ${block}, lim = min((I)${block}, (I)(width - c));
        const long first = (long)offsets[oo + b * so], last = b + 1 < bags ? (long)offsets[oo + (b + 1) * so] : (long)n;
        if (first < 0 || last > (long)n || first > last || (b == 0 && first != 0)) {
            const int late = b + 2 == bags && last > (long)n;
            clt_note(status, b == 0 && first != 0 ? first : last, b == 0 && first != 0 ? -1 : late ? -2 : -3);
            continue;
        }
        R sum[${block}];
% if kind == 'max':
        long best[${block}];
        for (I j = 0; j < ${block}; ++j) best[j] = 0;
% endif
        for (I j = 0; j < ${block}; ++j) sum[j] = 0;
        long counted = 0;
        for (I i = (I)first; i < (I)last; ++i) {
            const long row = (long)indices[oi + i * si];
            if (c == 0) bag_of[i] = (long)b;
            if (row < 0 || row >= (long)rows) { clt_note(status, row, (long)i); break; }
            if (row == padding) continue;
            __global const ${dt.cl} *p = table + ot + (I)row * st + c * ct;
% if scaled:
            const R by = clt_ld_e(scale + ow + i * sw);
% endif
<%def name="columns(limit)">\
            for (I j = 0; j < ${limit}; ++j) {
                const R v = clt_ld_e(p + j${'' if unit else ' * ct'});
% if kind == 'max':
                const int take = counted == 0 || v > sum[j];
                sum[j] = take ? v : sum[j];
                best[j] = take ? row : best[j];
% else:
                sum[j] += ${'by * v' if scaled else 'v'};
% endif
            }
</%def>\
            if (lim == ${block}) {
                ${columns(block)}
            } else {
                ${columns('lim')}
            }
            ++counted;
        }
        if (c == 0) sizes[b] = counted;
        for (I j = 0; j < lim; ++j) {
            clt_st_e(out + b * width + c + j, ${'counted ? sum[j] / (R)counted : (R)0' if kind == 'mean' else 'sum[j]'});
% if kind == 'max':
            best_row[b * width + c + j] = best[j];
% endif
        }
    }
}
