<%doc>
Writes each number i to the places [ends[i - 1], ends[i]) of dst. CPU: a work-item takes one chunk of the numbers. GPU:
a lane takes one, grid-stride.
</%doc>\
typedef ${I} I;
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(__global ${T} *restrict dst, __global const long *restrict ends, const I n) {
    const I part = (I)get_global_id(0), parts = (I)get_global_size(0);
% if gpu:
    for (I i = part; i < n; i += parts) {
        I at = i ? (I)ends[i - 1] : 0;
% else:
    const I first = n / parts * part + min(part, (I)(n % parts)), last = first + n / parts + (part < n % parts);
    I at = first ? (I)ends[first - 1] : 0;
    for (I i = first; i < last; ++i) {
% endif
        for (const I end = (I)ends[i]; at < end; ++at) dst[at] = (${T})i;
    }
}
