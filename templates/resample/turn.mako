<%doc>
The transpose of an axis: the outputs that read each of its `ni` inputs are size[i] ones from start[i] on. As both ends
of what an output reads are monotonic in the output's position, they are found by bisection. A work-item per position.
sized: also transposes the weights: turned[k * ni + i] is that of the k-th output, 0 beyond the last.
</%doc>\
% if T == 'double':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
typedef ${I} I;
__kernel void ${fn}(__global const int *first\
% if sized:
, __global const int *count\
% endif
, __global int *start, __global int *size\
% if sized:
, __global const ${T} *weight, __global ${T} *turned\
% endif
, const I ni, const I no, const I taps) {
    for (I i = (I)get_global_id(0); i < ni; i += (I)get_global_size(0)) {
        I lo = 0, hi = no;
        while (lo < hi) {
            const I mid = lo + (hi - lo) / 2;
            if (first[mid]${" + count[mid] - 1" if sized else ""} < (int)i) lo = mid + 1; else hi = mid;
        }
        I low = lo, high = no;
        while (low < high) {
            const I mid = low + (high - low) / 2;
            if (first[mid] <= (int)i) low = mid + 1; else high = mid;
        }
        start[i] = (int)lo;
        size[i] = (int)(low - lo);
% if sized:
        for (I k = 0; k < taps; ++k) turned[k * ni + i] = lo + k < low ? weight[(i - (I)first[lo + k]) * no + lo + k] : 0;
% endif
    }
}
