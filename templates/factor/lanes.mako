<%doc>
Factorizes many small column-major matrices at once: "lu" (row exchanges, pivots counted from 1) or "cholesky" (of the
lower triangle; elements above the diagonal are not preserved). Each matrix is one lane of the vectors, so that all
operations fill whole vectors; if fewer matrices than lanes are left, the last ones are repeated. A work-item owns a run
of matrices. `info` is set to the number of the first zero pivot, or of the first leading minor that is not positive.
</%doc>\
<%
lu, V = kind == 'lu', memory.lanes
J = 'int' if dt.itemsize == 4 else 'long'
%>\
typedef ${I} I;
typedef ${dt.reg} T;
typedef ${memory.reg} F;
typedef ${J}${V} JV;
#define X(i, c) x[(c) * n + (i)]
#define CLT_WHOLE
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global T *a, __global int *info\
% if lu:
, __global int *pivots\
% endif
, const I count, const I n, const I a_at, const I a_batch, const I column\
% if lu:
, const I exchanged, const I p_at, const I p_batch\
% endif
) {
    __local F x[${most * most}];
    const I parts = (I)get_num_groups(0), part = (I)get_group_id(0);
    const I begin = count / parts * part + min(part, (I)(count % parts)), end = begin + count / parts + (part < count % parts);
    for (I z = begin; z < end; z += ${V}) {
        for (I s = 0; s < ${V}; ++s) {
            __global const T *from = a + a_at + min(z + s, end - 1) * a_batch;
            __local T *to = (__local T *)x + s;
            for (I c = 0; c < n; ++c)
                for (I i = ${'0' if lu else 'c'}; i < n; ++i) to[(c * n + i) * ${V}] = from[c * column + i];
        }
        JV bad = 0;
        for (I k = 0; k < n; ++k) {
% if lu:
            JV at = (JV)((${J})k);
            if (exchanged) {
                F most = fabs(X(k, k));
                for (I i = k + 1; i < n; ++i) {
                    const F size = fabs(X(i, k));
                    const JV larger = size > most;
                    most = larger ? size : most;
                    at = larger ? (JV)((${J})i) : at;
                }
                for (I i = k + 1; i < n; ++i) {
                    const JV here = at == (JV)((${J})i);
                    if (!any(here)) continue;
                    for (I c = 0; c < n; ++c) {
                        const F upper = X(k, c), lower = X(i, c);
                        X(k, c) = here ? lower : upper;
                        X(i, c) = here ? upper : lower;
                    }
                }
            }
            for (I s = 0; s < min(end - z, (I)${V}); ++s) pivots[p_at + (z + s) * p_batch + k] = (int)at[s] + 1;
            const JV zero = X(k, k) == (F)(0);
            bad = zero && bad == (JV)(0) ? (JV)((${J})k + 1) : bad;
            const F top = zero ? (F)(1) : X(k, k);
            for (I i = k + 1; i < n; ++i) X(i, k) /= top;
            for (I c = k + 1; c < n; ++c) {
                const F above = X(k, c);
                for (I i = k + 1; i < n; ++i) X(i, c) -= X(i, k) * above;
            }
% else:
            const F square = X(k, k), root = sqrt(square);
            bad = !(square > (F)(0)) && bad == (JV)(0) ? (JV)((${J})k + 1) : bad;
            X(k, k) = root;
            for (I i = k + 1; i < n; ++i) X(i, k) /= root;
            for (I c = k + 1; c < n; ++c) {
                const F beside = X(c, k);
                for (I i = c; i < n; ++i) X(i, c) -= X(i, k) * beside;
            }
% endif
        }
        for (I s = 0; s < min(end - z, (I)${V}); ++s) {
            __global T *to = a + a_at + (z + s) * a_batch;
            __local const T *from = (__local const T *)x + s;
            for (I c = 0; c < n; ++c)
                for (I i = ${'0' if lu else 'c'}; i < n; ++i) to[c * column + i] = from[(c * n + i) * ${V}];
            info[z + s] = (int)bad[s];
        }
    }
}
