<%doc>
Rows of ${run} elements of each of ${parts} dense sources in turn, one after another: a join along short last dims, read
and written once.
CPU: a work-item makes one chunk of the rows. GPU: a work-item makes a row, grid-stride. Sizes are compile-time
constants, so that compilers move neighbours by vectors. `streamed`: this many rows at a time are made in local memory
and written with non-temporal stores.
</%doc>\
<%
L = min(16, 64 // size)
def row(to, number):
    return [f"{to} + {k * run + j}] = src{k}[o{k} + ({number}) * {run} + {j}];" for k in range(parts) for j in range(run)]
%>\
${headers}
typedef ${I} I;
typedef ${T} T;
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(__global T *restrict dst${''.join(f', __global const T *restrict src{k}' for k in range(parts))}
, const I rows, const I od${''.join(f', const I o{k}' for k in range(parts))}) {
    const I part = (I)get_global_id(0), number = (I)get_global_size(0);
% if streamed:
    __local T lines[${streamed * parts * run}] __attribute__((aligned(64)));
    const I blocks = (rows + ${streamed - 1}) / ${streamed}, first = blocks * part / number, last = blocks * (part + 1) / number;
    for (I b = first; b < last; ++b) {
        const I begin = b * ${streamed}, end = min(begin + ${streamed}, rows);
        if (end - begin < ${streamed}) {
            for (I i = begin; i < end; ++i) {
% for line in row(f'dst[od + i * {parts * run}', 'i'):
                ${line}
% endfor
            }
            continue;
        }
        for (int i = 0; i < ${streamed}; ++i) {
% for line in row(f'lines[i * {parts * run}', 'begin + i'):
            ${line}
% endfor
        }
        __global T *to = dst + od + begin * ${parts * run};
        for (int j = 0; j < ${streamed * parts * run}; j += ${L}) CLT_STREAM(*(__local ${T}${L} *)(lines + j), (__global ${T}${L} *)(to + j));
    }
% else:
% if gpu:
    for (I i = part; i < rows; i += number) {
% else:
    const I first = rows / number * part + min(part, (I)(rows % number)), last = first + rows / number + (part < rows % number);
    for (I i = first; i < last; ++i) {
% endif
% for line in row(f'dst[od + i * {parts * run}', 'i'):
        ${line}
% endfor
    }
% endif
}
