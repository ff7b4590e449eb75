<%doc>
Rows of ${run} elements of each of ${parts} dense sources in turn, one after another: a join along short last dims, read and written once.
CPU: a work-item makes one chunk of the rows. GPU: a work-item makes a row, grid-stride. Sizes are known here, so that compilers
move neighbours by vectors.
</%doc>\
typedef ${I} I;
typedef ${T} T;
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(__global T *restrict dst${''.join(f', __global const T *restrict src{k}' for k in range(parts))}
, const I rows, const I od${''.join(f', const I o{k}' for k in range(parts))}) {
    const I part = (I)get_global_id(0), number = (I)get_global_size(0);
% if gpu:
    for (I i = part; i < rows; i += number)
% else:
    const I first = rows / number * part + min(part, (I)(rows % number)), last = first + rows / number + (part < rows % number);
    for (I i = first; i < last; ++i)
% endif
    {
% for k in range(parts):
% for j in range(run):
        dst[od + i * ${parts * run} + ${k * run + j}] = src${k}[o${k} + i * ${run} + ${j}];
% endfor
% endfor
    }
}
