<%doc>
Factorizes column-major symmetric matrices, or, if `conjugated`, Hermitian ones, in batches, reading the lower triangle:
A = P L D L^T P^T with D of 1 x 1 and 2 x 2 blocks (Bunch and Kaufman, "Some stable methods for calculating inertia and
solving symmetric linear systems", Math. Comp. 31, 1977), laid out as LAPACK's sytrf and hetrf do. A work-item, on a GPU
a work-group, takes a matrix. After each block the trailing matrix is updated: by L's columns times the rows of D L^T,
which are kept above the diagonal meanwhile. `info` is set to the number of the first zero block, 0 if there is none.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="numbers" file="/factor/numbers.mako"/>\
<% turned = 'CONJ' if conjugated else '' %>\
${headers}\
typedef ${I} I;
${numbers.helpers(dt, memory, lane_memory, gpu, lanes, ('load', 'store'))}\
#define P(i, j) p[(i) + (j) * column]
#define TIMES(a, b) (-clt_less_one((T)(0), a, b))
#define OWN(z) ${'fabs(REAL(z))' if conjugated else 'SIZE(z)'}
#define ALPHA ${alpha}
## Subtract from the trailing matrix the product of L's `size` columns from k on and the numbers to their right in rows
## k and on.
<%def name="update(size)">\
                for (I j = k + ${size}; j < m; j += 4) {
                    const int many = (int)min(m - j, (I)4);
% for s in range(size):
                    const T ${', '.join(f'u{s}{t} = {t} < many ? P(k + {s}, j + {t}) : (T)(0)' for t in range(4))};
% endfor
<%numbers:rows first="j">\
% for s in range(size):
                        const F l${s} = LOAD(&P(i, k + ${s}), n);
% endfor
% for t in range(4):
                        if (${t} < many) {
                            F y = LOAD(&P(i, j + ${t}), n);
% for s in range(size):
                            y = clt_less(y, l${s}, SPREAD(u${s}${t}));
% endfor
                            STORE(&P(i, j + ${t}), y, n);
                        }
% endfor
</%numbers:rows>\
                }
</%def>\
__attribute__((reqd_work_group_size(${lanes if gpu else 1}, 1, 1)))
__kernel void ${fn}(__global T *a, __global int *info, __global int *pivots, const I count, const I m, const I a_at, const I a_batch, const I column, const I p_at, const I p_batch) {
% if gpu:
    __local R sizes[${lanes}];
    __local I places[${lanes}];
% endif
    for (I z = (I)get_group_id(0); z < count; z += (I)get_num_groups(0)) {
        __global T *p = a + a_at + z * a_batch;
        __global int *exchanges = pivots + p_at + z * p_batch;
        I bad = 0;
        for (I k = 0; k < m;) {
            const R own = OWN(P(k, k));
            I row = k;
            int two = 0;
            R highest;
            {
${numbers.largest(memory, gpu, 'P(0, k)', 'k + 1')}\
                highest = fmax(one, (R)0);
                if (own < ALPHA * highest) {
                    ## The largest size in row `place` off the diagonal.
                    const I other = place;
                    R beside = 0;
                    for (I j = k + LANE; j < other; j += LANES) beside = fmax(beside, SIZE(P(other, j)));
% if gpu:
                    sizes[LANE] = beside;
                    SYNC;
                    for (int s = 0; s < LANES; ++s) beside = fmax(beside, sizes[s]);
                    SYNC;
% endif
                    {
${numbers.largest(memory, gpu, 'P(0, other)', 'other + 1')}\
                        beside = fmax(beside, one);
                    }
                    if (own < ALPHA * highest * (highest / beside)) row = other, two = OWN(P(other, other)) < ALPHA * beside;
                }
            }
            if (isnan(own) || fmax(own, highest) == 0) {
                if (!bad) bad = k + 1;
                if (LANE == 0) exchanges[k] = (int)(k + 1);
                ++k;
                continue;
            }
            const I at = k + two;
            SYNC;
            if (row != at) {
<%numbers:rows first="row + 1">\
                    const F held = LOAD(&P(i, at), n);
                    STORE(&P(i, at), LOAD(&P(i, row), n), n);
                    STORE(&P(i, row), held, n);
</%numbers:rows>\
                for (I j = at + 1 + LANE; j < row; j += LANES) {
                    const T held = P(j, at);
                    P(j, at) = ${turned}(P(row, j));
                    P(row, j) = ${turned}(held);
                }
                if (LANE == 0) {
                    T held = P(at, at);
                    P(at, at) = P(row, row);
                    P(row, row) = held;
% if conjugated:
                    P(row, at) = CONJ(P(row, at));
% endif
                    if (two) {
                        held = P(at, k);
                        P(at, k) = P(row, k);
                        P(row, k) = held;
                    }
                }
                SYNC;
            }
% if conjugated:
            if (LANE == 0)
                for (I j = k; j <= at; ++j) P(j, j) = OF_REAL(REAL(P(j, j)));
% endif
            for (I j = at + 1 + LANE; j < m; j += LANES)
                for (I s = k; s <= at; ++s) P(s, j) = ${turned}(P(j, s));
            if (LANE == 0)
                for (I j = k; j <= at; ++j) exchanges[j] = (int)(two ? -row - 1 : row + 1);
            SYNC;
            if (two) {
                const T off = P(k + 1, k);
% if conjugated:
                const R size = hypot(off.x, off.y), below = P(k + 1, k + 1).x / size, top = P(k, k).x / size, scale = 1 / (below * top - 1) / size;
                const T direction = off / size * scale;
                const T c0 = OF_REAL(scale * below), c1 = direction, c2 = OF_REAL(scale * top), c3 = CONJ(direction);
% else:
                const T below = DIV(P(k + 1, k + 1), off), top = DIV(P(k, k), off), scale = DIV(DIV(ONE, TIMES(below, top) - ONE), off);
                const T c0 = TIMES(scale, below), c1 = scale, c2 = TIMES(scale, top), c3 = scale;
% endif
<%numbers:rows first="k + 2">\
                    const F x = LOAD(&P(i, k), n), y = LOAD(&P(i, k + 1), n);
                    STORE(&P(i, k), clt_less(clt_times(x, SPREAD(c0)), y, SPREAD(c1)), n);
                    STORE(&P(i, k + 1), clt_less(clt_times(y, SPREAD(c2)), x, SPREAD(c3)), n);
</%numbers:rows>\
                SYNC;
${update(2)}\
            } else {
                const T top = P(k, k);
<%numbers:rows first="k + 1">\
                    const F x = LOAD(&P(i, k), n);
% if conjugated:
                    STORE(&P(i, k), x / top.x, n);
% elif dt.is_complex:
                    STORE(&P(i, k), clt_times(x, SPREAD(DIV(ONE, top))), n);
% else:
                    STORE(&P(i, k), x / top, n);
% endif
</%numbers:rows>\
                SYNC;
${update(1)}\
            }
            SYNC;
            k = at + 1;
        }
        for (I j = 1; j < m; ++j)
            for (I i = LANE * V; i < j; i += LANES * V) STORE(&P(i, j), (F)(0), (int)min(j - i, (I)V));
        if (LANE == 0) info[z] = (int)bad;
        SYNC;
    }
}
