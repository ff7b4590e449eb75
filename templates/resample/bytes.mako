<%doc>
Weights of 8-bit images as 16-bit fixed point, with as many fractional bits as the largest weight leaves room for,
stored in bits[0]. The weights of taps that are not read are 0. One work-group of ${lanes} lanes, on a CPU of one: each
lane converts every ${lanes}th weight, and all of them find the largest.
</%doc>\
% if T == 'double':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
typedef ${I} I;
__attribute__((reqd_work_group_size(${lanes}, 1, 1)))
__kernel void ${fn}(__global const ${T} *weight, __global const int *size, __global int *fixed_point, __global int *bits,
                    const I no, const I taps) {
% if lanes > 1:
    __local ${T} best[${lanes}];
% endif
    const int lane = (int)get_local_id(0);
    ${T} most = 0;
    for (I o = lane; o < no; o += ${lanes})
        for (int k = 0; k < size[o]; ++k) most = max(most, weight[k * no + o]);
% if lanes > 1:
    best[lane] = most;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < ${lanes}; ++i) most = max(most, best[i]);
% endif
    int shift = 0;
    while (shift < 22 && (int)(${half} + most * (${T})(1 << (shift + 1))) < (1 << 15)) ++shift;
    if (lane == 0) bits[0] = shift;
    for (I o = lane; o < no; o += ${lanes})
        for (int k = 0; k < size[o]; ++k) {
            const ${T} w = weight[k * no + o] * (${T})(1 << shift);
            fixed_point[k * no + o] = (int)(w < 0 ? w - ${half} : w + ${half});
        }
    for (I o = lane; o < no; o += ${lanes})
        for (int k = size[o]; k < taps; ++k) fixed_point[k * no + o] = 0;
}
