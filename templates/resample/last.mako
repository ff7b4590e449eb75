<%doc>
Weighted sums over two axes (height, width) of channels-last images, on a CPU: out[n, h, w, c] = sum over what both axes
read. An axis reads size[o] positions from start[o] on; weight[k * no + o] is the k-th one's weight.
A work-item takes rows of the output: it adds up the input rows that an output row depends on, as long runs of memory,
into a row of its own in `scratch`, then for each place the columns that it reads, by vectors of channels. `streamed`:
the output is written with non-temporal stores.
</%doc>\
<%
L = 16 if dt.itemsize <= 4 else 8
T = dt.cl
%>\
% if dt.code == 'f64':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
${headers}
typedef ${I} I;
typedef ${T} T;
typedef ${T}${L} V;
typedef V u_V __attribute__((aligned(${dt.itemsize})));
## Compute the elements from `start` to `stop`, each a weighted sum of n elements `step` apart: four vectors at a time,
## then one; the last vector is moved back to end at `stop`.
<%def name="sums(start, stop, from_, n, step, weight, to, stream)">\
        I at = ${start};
% for beside in (4, 1):
        for (; at ${f'+ {4 * L} <=' if beside > 1 else '<'} ${stop}; at += ${beside * L}) {
% if beside == 1:
            at = min(at, ${stop} - ${L});
% endif
            __global const T *p = ${from_} + at;
            V ${', '.join(f'sum{u} = (V)(0)' for u in range(beside))};
            for (int k = 0; k < ${n}; ++k, p += ${step}) {
                const V factor = (V)(${weight});
% for u in range(beside):
                { const V v = *(__global const u_V *)(p + ${u * L}); sum${u} += factor * v; }
% endfor
            }
% for u in range(beside):
% if stream:
            CLT_STREAM(sum${u}, (__global V *)(${to} + at + ${u * L}));
% else:
            *(__global u_V *)(${to} + at + ${u * L}) = sum${u};
% endif
% endfor
        }
% endfor
</%def>\
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const T *restrict src, __global T *restrict out, __global T *scratch,
    __global const int *restrict h_start, __global const int *restrict h_size, __global const T *restrict h_weight,
    __global const int *restrict w_start, __global const int *restrict w_size, __global const T *restrict w_weight,
    const I images, const I os, const I sn, const I mh, const I sh, const I nw, const I mw, const I channels) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), total = images * mh, run = nw * channels;
    const I begin = total / parts * part + min(part, (I)(total % parts)), end = begin + total / parts + (part < total % parts);
    __global T *const own = scratch + part * run;
    for (I row = begin; row < end; ++row) {
        const I oh = row % mh;
        __global const T *const above = src + os + row / mh * sn + h_start[oh] * sh;
        const int many = h_size[oh];
        {
${sums('0', 'run', 'above', 'many', 'sh', 'h_weight[k * mh + oh]', 'own', False)}\
        }
        ## Meanwhile prefetch the input rows that the next output row reads and this one did not.
        const I next = oh + 1 < mh ? oh + 1 : oh, met = max((I)h_start[next], (I)h_start[oh] + many);
        const I fresh = max((I)h_start[next] + h_size[next] - met, (I)0) * run;
        const I share = (fresh / ${64 // dt.itemsize} + mw) / mw;
        __global const T *later = src + os + row / mh * sn + met * sh, *const last = later + fresh;
        for (I ow = 0; ow < mw; ++ow) {
            for (I k = 0; k < share && later < last; ++k, later += ${64 // dt.itemsize}) CLT_PREFETCH_BESIDE(later);
            __global const T *const before = own + w_start[ow] * channels;
            __global T *const to = out + (row * mw + ow) * channels;
            const int few = w_size[ow];
${sums('0', 'channels', 'before', 'few', 'channels', 'w_weight[k * mw + ow]', 'to', streamed)}\
        }
    }
}
