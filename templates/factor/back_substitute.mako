<%doc>
Eigenvectors of upper triangular matrices T (column-major, columns `step` numbers apart) by back substitution. Real
matrices may have 2 x 2 blocks on the diagonal, of conjugate eigenvalues. An eigenvector is a lane of the vectors, so
that all take the same rows at the same time: a lane is zero in the rows below its eigenvalue's, and solves (T - value
I) x = 0 upwards from there. A work-item, on a GPU a work-group, takes neighbouring eigenvectors: `out` is [count,
groups, n, width]. A pivot that vanishes is replaced by a small number, and a vector whose numbers grow is scaled down.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="numbers" file="/factor/numbers.mako"/>\
<% V, F = memory.lanes, memory.reg %>\
${headers}\
typedef ${I} I;
${numbers.helpers(dt, memory, lane_memory, gpu, lanes, ('load', 'store'))}\
typedef ${'R' if real else 'T'} M;
#define EPSILON ${epsilon}
#define LARGE ${large}
#define H(i, j) h[(i) + (j) * step]
#define X(i) x[(i) * LANES]
#define MADE(re, im) make_${F}((RV)(re), (RV)(im))
#define PICK(mask, a, b) pick_${F}(mask, a, b)
#define OVER(a, b) cdiv_${F}(a, b)
#define SCALED(z, by) make_${F}((z).lo * (by), (z).hi * (by))
% if V == 1:
#define ANY(x) (x)
% else:
#define ANY(x) any(x)
% endif
% if real:
#define NUMBER(t) MADE(t, 0)
#define LESS(c, t, y) ((c) - (y) * (t))
% else:
#define NUMBER(t) SPREAD(t)
#define LESS(c, t, y) clt_less(c, SPREAD(t), y)
% endif
/* Scale rows 0 .. top of the vectors whose newest number, of this size, is large; return the factors. */
static APART RV clt_shrunk(__global F *x, const I top, const RV size) {
    const RV by = size > (RV)(LARGE) ? 1 / size : (RV)(1);
    for (I i = 0; i <= top; ++i) X(i) = SCALED(X(i), by);
    return by;
}
#define CLT_WHOLE
__attribute__((reqd_work_group_size(${lanes if gpu else 1}, 1, 1)))
__kernel void ${fn}(__global T *out, __global const T *values, __global const M *matrices, const I count, const I n, const I step, const I groups) {
    const R tiny = ${tiny} * (n / EPSILON);
    for (I item = (I)get_group_id(0); item < count * groups; item += (I)get_num_groups(0)) {
        const I at = item / groups, begin = item % groups * (LANES * V), own = begin + LANE * V;
        __global const M *h = matrices + at * n * step;
        __global F *x = (__global F *)(out + item * n * (LANES * V)) + LANE;
        const F value = LOAD(values + at * n + min(own, n - 1), (int)clamp(n - own, (I)1, (I)V));
        const JV k = (JV)((int)own) + IDS;
        const RV least = fmax(EPSILON * SIZE(value), (RV)(tiny));
        I top = min(begin + LANES * V, n) - 1;
% if real:
        if (top + 1 < n && H(top + 1, top) != 0) ++top;
% endif
        for (I i = 0; i < n; ++i) X(i) = MADE(0, 0);
        for (I j = top; j >= 0; --j) {
            const F gap = NUMBER(H(j, j)) - value, right = X(j);
            const JV here = k == (JV)((int)j), above = k < (JV)((int)j);
% if real:
            if (j > 0 && H(j, j - 1) != 0) {
                const I p = j - 1;
                const R b = H(p, j), c = H(j, p);
                const F other = NUMBER(H(p, p)) - value, first = X(p);
                const RV size = fmax(fmax(SIZE(gap), SIZE(other)), (RV)(fmax(fabs(b), fabs(c))));
                F det = clt_times(other, gap) - MADE(b * c, 0);
                det = PICK(SIZE(det) < least * size, MADE(least * size, 0), det);
                F y = OVER(clt_times(gap, first) - right * b, det), u = OVER(clt_times(other, right) - first * c, det);
                const int wide = fabs(b) >= fabs(c);
                const JV pair = here | (k == (JV)((int)p)), none = k < (JV)((int)p);
                y = PICK(pair, wide ? MADE(1, 0) : gap / -c, PICK(none, MADE(0, 0), y));
                u = PICK(pair, wide ? other / -b : MADE(1, 0), PICK(none, MADE(0, 0), u));
                X(p) = y, X(j) = u;
                const RV grown = fmax(SIZE(y), SIZE(u));
                if (ANY(grown > (RV)(LARGE))) {
                    const RV by = clt_shrunk(x, top, grown);
                    y = SCALED(y, by), u = SCALED(u, by);
                }
                for (I i = 0; i < p; ++i) X(i) = X(i) - y * H(i, p) - u * H(i, j);
                --j;
                continue;
            }
% endif
            F y = OVER(right, PICK(SIZE(gap) < least, MADE(least, 0), gap));
            y = PICK(here, MADE(1, 0), PICK(above, MADE(0, 0), y));
            X(j) = y;
            if (ANY(SIZE(y) > (RV)(LARGE))) {
                const RV by = clt_shrunk(x, top, SIZE(y));
                y = SCALED(y, by);
            }
            for (I i = 0; i < j; ++i) X(i) = LESS(X(i), H(i, j), y);
        }
% if V > 1:
        for (I i = 0; i < n; ++i) {
            const F y = X(i);
            STORE((__global T *)&X(i), y, V);
        }
% endif
    }
}
