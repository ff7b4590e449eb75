<%doc>
How each of `no` positions of an axis reads the `ni` positions of another: ${kind}, arithmetic in ${T}.
start[o] is the first position read, size[o] <= taps their number, weight[k * no + o] the weight of the k-th.
The weights of taps beyond an edge are added to the position at the edge.
A work-item per position. fma(): torch's own build contracts this one expression, and an index must not differ from
torch's.
</%doc>\
<%
f = 'f' if T == 'float' else ''
antialias = kind.startswith('antialias')
cubic = kind == 'cubic'
bits = f'as_{T}({"(int)" if T == "float" else ""}scale_bits)'
%>\
% if T == 'double':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
typedef ${I} I;
typedef ${T} T;
static inline T clt_near(const T x, const T a) { return ((a + 2.0${f}) * x - (a + 3.0${f})) * x * x + 1.0${f}; }
static inline T clt_far(const T x, const T a) { return ((a * x - 5.0${f} * a) * x + 8.0${f} * a) * x - 4.0${f} * a; }
% if antialias:
static inline T clt_filter(T x) {
    x = x < 0 ? -x : x;
% if kind == 'antialias_linear':
    return x < 1.0${f} ? 1.0${f} - x : 0.0${f};
% elif kind == 'antialias_cubic':
    return x < 1.0${f} ? clt_near(x, -0.5${f}) : x < 2.0${f} ? clt_far(x, -0.5${f}) : 0.0${f};
% else:
    return x == 0 ? 1.0${f} : x < 3.0${f} ? sinpi(x) * sinpi(x / 3.0${f}) * 3.0${f} / (9.869604401089358${f} * x * x) : 0.0${f};
% endif
}
## x + 0.5, cut to an integer, as if the sum were exact.
static inline long clt_round(const T x) {
    const T below = floor(x);
    return (long)below + (x - below >= 0.5${f});
}
% endif
__kernel void ${fn}(__global int *start\
% if fixed != 1:
, __global int *size, __global T *weight\
% endif
, const I ni, const I no, const I aligned, const I taps, const long scale_bits) {
    const T scale = ${bits};
    for (I o = (I)get_global_id(0); o < no; o += (I)get_global_size(0)) {
% if kind == 'nearest':
        const long at = (long)floor((float)(scale * (T)o));
        start[o] = (int)clamp(at, 0L, (long)ni - 1);
% elif kind == 'exact':
        T real = fma(scale, (T)o + 0.5${f}, -0.5${f});
        real = real < 0 ? 0 : real;
        start[o] = (int)clamp((long)floor((float)(real + 0.5${f})), 0L, (long)ni - 1);
% elif antialias:
        const T support = ${radius}.0${f} * (scale >= 1 ? scale : 1), inverse = scale >= 1 ? 1 / scale : 1;
        const T center = scale * ((T)o + 0.5${f});
        const long first = clamp(clt_round(center - support), 0L, (long)ni - 1);
        const int n = (int)clamp(min(clt_round(center + support), (long)ni) - first, 1L, (long)taps);
        T total = 0;
        for (int k = 0; k < n; ++k) {
            const T w = clt_filter(((T)(first + k) - center + 0.5${f}) * inverse);
            weight[k * no + o] = w;
            total += w;
        }
        if (total != 0) for (int k = 0; k < n; ++k) weight[k * no + o] /= total;
        start[o] = (int)first;
        size[o] = n;
% else:
        T real = aligned ? scale * (T)o : fma(scale, (T)o + 0.5${f}, -0.5${f});
% if not cubic:
        real = real < 0 ? 0 : real;
% endif
        const long at = min((long)floor((float)real), (long)ni - 1);
        const T t = clamp(real - (T)at, (T)0, (T)1);
% if cubic:
        const T w[4] = {clt_far(t + 1, -0.75${f}), clt_near(t, -0.75${f}), clt_near(1 - t, -0.75${f}), clt_far(2 - t, -0.75${f})};
        const long first = at - 1;
% else:
        const T w[2] = {1 - t, t};
        const long first = at;
% endif
        const long lo = clamp(first, 0L, (long)ni - 1), hi = clamp(first + ${fixed - 1}, 0L, (long)ni - 1);
        start[o] = (int)lo;
        size[o] = (int)(hi - lo) + 1;
        for (int k = 0; k < ${fixed}; ++k) weight[k * no + o] = 0;
        for (int k = 0; k < ${fixed}; ++k) weight[(clamp(first + k, lo, hi) - lo) * no + o] += w[k];
% endif
    }
}
