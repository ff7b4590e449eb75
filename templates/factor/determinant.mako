<%doc>
Determinants from packed LU factors: "det" the product of the pivots, "slogdet" its sign (for complex numbers, its
direction) and the logarithm of its magnitude. Each row exchange flips the sign. A work-item takes several matrices;
logarithms are summed in blocks of ${block}, then those sums, so that each term passes through few roundings.
</%doc>\
<%
T, complex_ = dt.reg, dt.is_complex
R = dt.to_real().reg if complex_ else T
%>\
typedef ${I} I;
typedef ${T} T;
typedef ${R} R;
static inline T clt_product(const T a, const T b) {
% if complex_:
    return (T)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
% else:
    return a * b;
% endif
}
__kernel void ${fn}(__global const T *a, __global const int *pivots, __global T *value${', __global R *logs' if kind == 'slogdet' else ''},
    const I count, const I n, const I batch) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
% if gpu:
    for (I z = part; z < count; z += parts) {
% else:
    const I from = count / parts * part + min(part, (I)(count % parts)), to = from + count / parts + (part < count % parts);
    for (I z = from; z < to; ++z) {
% endif
        __global const T *p = a + z * batch;
        __global const int *rows = pivots + z * n;
        T all = ${'(T)(1, 0)' if complex_ else '1'};
        R total = 0;
        int turns = 0;
        for (I begin = 0; begin < n; begin += ${block}) {
            R sum = 0;
            const I end = min(n, begin + ${block});
            for (I j = begin; j < end; ++j) {
                const T u = p[j * (n + 1)];
                turns ^= rows[j] != (int)(j + 1);
% if kind == 'det':
                all = clt_product(all, u);
% elif complex_:
                const R size = hypot(u.x, u.y);
                all = clt_product(all, size == 0 ? (T)(0, 0) : (T)(u.x / size, u.y / size));
                sum += log(size);
% else:
                all *= u > 0 ? (R)1 : u < 0 ? (R)-1 : (R)0;
                sum += log(fabs(u));
% endif
            }
            total += sum;
        }
        value[z] = turns ? -all : all;
% if kind == 'slogdet':
        logs[z] = total;
% endif
    }
}
