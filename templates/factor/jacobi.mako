<%doc>
Eigenvalues of many small symmetric matrices at once, and, with `vectors`, eigenvectors, by Jacobi's method: plane
rotations make the off-diagonal elements zero, one after the other, until all are negligible beside the diagonal. Each
matrix is one lane of the vectors; if fewer matrices than lanes are left, the last ones are repeated. A work-item owns a
run of matrices. Only the lower triangle is read, or, with `row` and `column` exchanged, the upper one. Values are in
ascending order, vectors are rows. `info` is set to 1 for a matrix with infinities or NaNs.
</%doc>\
<%
V = memory.lanes
wide = dt.itemsize == 8
J, exponent, least = ('long', '0x7ff0000000000000L', '0x0010000000000000L') if wide else ('int', '0x7f800000', '0x00800000')
half, tiny = ('1.2e-32', '1e-300') if wide else ('3.5e-15f', '1e-36f')
%>\
${headers}
typedef ${I} I;
typedef ${dt.reg} T;
typedef ${memory.reg} F;
typedef ${J}${V} JV;
## Only the lower triangle is stored: i >= c.
#define X(i, c) x[(i) * n + (c)]
#define CLT_WHOLE
static inline void clt_turn(__local F *a, __local F *b, const F s, const F r) {
    const F u = *a, v = *b;
    *a = u - s * (v + r * u);
    *b = v + s * (u - r * v);
}
static inline void clt_exchange(__local F *a, __local F *b, const JV here) {
    const F u = *a, v = *b;
    *a = here ? v : u;
    *b = here ? u : v;
}
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const T *a, __global T *values, __global int *info\
% if vectors:
, __global T *rows\
% endif
, const I count, const I n, const I at, const I batch, const I row, const I column) {
    __local F x[${most * most}];
% if vectors:
    __local F w[${most * most}];
% endif
    const I parts = (I)get_num_groups(0), part = (I)get_group_id(0);
    const I begin = count / parts * part + min(part, (I)(count % parts)), end = begin + count / parts + (part < count % parts);
    for (I z = begin; z < end; z += ${V}) {
        for (I s = 0; s < ${V}; ++s) {
            __global const T *from = a + at + min(z + s, end - 1) * batch;
            __local T *to = (__local T *)x + s;
            for (I i = 0; i < n; ++i)
                for (I c = 0; c <= i; ++c) to[(i * n + c) * ${V}] = from[i * row + c * column];
        }
        ## Scale by a power of 2, so that no square overflows or underflows.
        F most = (F)(0), zero = (F)(0);
        for (I i = 0; i < n; ++i)
            for (I c = 0; c <= i; ++c) {
                const F size = fabs(X(i, c));
                most = size > most ? size : most;
                zero += X(i, c) * (F)(0);
            }
        const JV bad = zero != (F)(0);
        JV power = as_${J}${V}(most) & (JV)(${exponent});
        power = power == (JV)(0) ? (JV)(${least}) : power;
        const F scale = as_${memory.reg}(power);
        for (I i = 0; i < n; ++i)
            for (I c = 0; c <= i; ++c) X(i, c) = bad ? (F)(0) : X(i, c) / scale;
% if vectors:
        for (I i = 0; i < n; ++i)
            for (I c = 0; c < n; ++c) w[i * n + c] = (F)(i == c);
% endif
        for (int sweep = 0; sweep < 40; ++sweep) {
            JV some = (JV)(0);
            for (I q = 1; q < n; ++q)
                for (I p = 0; p < q; ++p) {
                    const F b = X(q, p), square = b * b, first = X(p, p), last = X(q, q);
                    const JV large = square > fabs(first * last) * (F)(${half}) && square > (F)(${tiny});
                    if (!any(large)) continue;
                    some |= large;
                    const F theta = (last - first) / (large ? b + b : (F)(1));
                    const F size = (F)(1) / (fabs(theta) + sqrt(theta * theta + (F)(1)));
                    const F t = large ? (theta < (F)(0) ? -size : size) : (F)(0);
                    const F c = (F)(1) / sqrt(t * t + (F)(1)), s = t * c, r = s / (c + (F)(1));
                    X(p, p) = first - t * b;
                    X(q, q) = last + t * b;
                    X(q, p) = large ? (F)(0) : b;
                    for (I k = 0; k < p; ++k) clt_turn(&X(p, k), &X(q, k), s, r);
                    for (I k = p + 1; k < q; ++k) clt_turn(&X(k, p), &X(q, k), s, r);
                    for (I k = q + 1; k < n; ++k) clt_turn(&X(k, p), &X(k, q), s, r);
% if vectors:
                    for (I k = 0; k < n; ++k) clt_turn(w + p * n + k, w + q * n + k, s, r);
% endif
                }
            if (!any(some)) break;
        }
        for (I q = 1; q < n; ++q)
            for (I p = q; p > 0; --p) {
                const JV here = X(p, p) < X(p - 1, p - 1);
                if (!any(here)) break;
                clt_exchange(&X(p - 1, p - 1), &X(p, p), here);
% if vectors:
                for (I k = 0; k < n; ++k) clt_exchange(w + (p - 1) * n + k, w + p * n + k, here);
% endif
            }
        for (I i = 0; i < n; ++i) X(i, i) *= scale;
        for (I s = 0; s < min(end - z, (I)${V}); ++s) {
            info[z + s] = bad[s] != 0;
            __local const T *found = (__local const T *)x + s;
            for (I i = 0; i < n; ++i) values[(z + s) * n + i] = found[i * (n + 1) * ${V}];
% if vectors:
            __local const T *turned = (__local const T *)w + s;
            for (I k = 0; k < n * n; ++k) rows[(z + s) * n * n + k] = turned[k * ${V}];
% endif
        }
    }
}
