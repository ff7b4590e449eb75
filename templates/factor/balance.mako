<%doc>
Balances column-major matrices, in batches, for the computation of eigenvalues (Parlett and Reinsch, Numer. Math. 13,
1969; James, Langou and Lowery, "On matrix balancing and eigenvector computation", 2014). Rows and columns that isolate
an eigenvalue are exchanged with the last and the first ones; the rest is scaled by powers of 2, a similarity transform
that brings the norms of each row and its column together. `places`: the rows of A that the balanced matrix's rows were;
`scales`: the factors of the columns. A work-item, on a GPU a work-group, takes a matrix, columns `step` numbers apart.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="numbers" file="/factor/numbers.mako"/>\
<%namespace name="reflector" file="/factor/reflector.mako"/>\
${headers}\
typedef ${I} I;
${numbers.helpers(dt, memory, lane_memory, gpu, lanes, ())}\
#define LARGE ${large}
#define H(i, j) h[(i) + (j) * step]
#define LENGTH(z) ${'hypot((z).x, (z).y)' if dt.is_complex else 'fabs(z)'}
/* Exchange rows i and k and columns i and k. Rows are zero before column lo, columns below row hi. */
static inline void clt_exchange(__global T *h, __global int *places, const I step, const I n, const I lo, const I hi, const I i, const I k) {
    SYNC;
    if (i != k) {
        for (I j = LANE; j <= hi; j += LANES) {
            const T x = H(j, i);
            H(j, i) = H(j, k), H(j, k) = x;
        }
        SYNC;
        for (I j = lo + LANE; j < n; j += LANES) {
            const T x = H(i, j);
            H(i, j) = H(k, j), H(k, j) = x;
        }
        if (LANE == 0) {
            const int place = places[i];
            places[i] = places[k], places[k] = place;
        }
    }
    SYNC;
}
#define CLT_WHOLE
__attribute__((reqd_work_group_size(${lanes if gpu else 1}, 1, 1)))
__kernel void ${fn}(__global T *a, __global int *all_places, __global R *all_scales, const I count, const I n, const I step) {
% if gpu:
    __local R sums[${lanes}];
% endif
    for (I z = (I)get_group_id(0); z < count; z += (I)get_num_groups(0)) {
        __global T *h = a + z * n * step;
        __global int *places = all_places + z * n;
        __global R *scales = all_scales + z * n;
        for (I i = LANE; i < n; i += LANES) places[i] = (int)i, scales[i] = 1;
        SYNC;
        I lo = 0, hi = n - 1;
        for (int again = 1; again && hi > 0;) {
            again = 0;
            for (I i = hi; i >= 0 && hi > 0; --i) {
                I j = 0;
                while (j <= hi && (j == i || IS_ZERO(H(i, j)))) ++j;
                if (j <= hi) continue;
                clt_exchange(h, places, step, n, 0, hi, i, hi);
                --hi, again = 1;
            }
        }
        for (int again = 1; again && lo < hi;) {
            again = 0;
            for (I j = lo; j <= hi && lo < hi; ++j) {
                I i = lo;
                while (i <= hi && (i == j || IS_ZERO(H(i, j)))) ++i;
                if (i <= hi) continue;
                clt_exchange(h, places, step, n, lo, hi, j, lo);
                ++lo, again = 1;
            }
        }
        for (int again = 1, sweep = 0; again && sweep < 100; ++sweep) {
            again = 0;
            for (I i = lo; i <= hi; ++i) {
                R column = 0, row = 0;
                for (I k = lo + LANE; k <= hi; k += LANES) {
                    const R x = LENGTH(H(k, i)), y = LENGTH(H(i, k));
                    column += x * x, row += y * y;
                }
${reflector.add('column')}\
${reflector.add('row')}\
                column = sqrt(column), row = sqrt(row);
                ## Also false for numbers that are not finite.
                if (!(column > 0 && row > 0 && column < INFINITY && row < INFINITY)) continue;
                const R sum = column + row, known = scales[i];
                R by = 1;
                while (column < row / 2 && by * known < LARGE) by *= 2, column *= 2, row /= 2;
                while (column / 2 >= row && by * known > 1 / LARGE) by /= 2, column /= 2, row *= 2;
                if (column + row >= (R)0.95f * sum) continue;
                again = 1;
                for (I j = lo + LANE; j < n; j += LANES) H(i, j) /= by;
                SYNC;
                for (I j = LANE; j <= hi; j += LANES) H(j, i) *= by;
                if (LANE == 0) scales[i] *= by;
                SYNC;
            }
        }
    }
}
