<%doc>
Factorizes the first columns of column-major matrices, in batches: "lu" (row exchanges within these columns, pivots
counted from 1) or "cholesky" (of the lower triangle; elements above the diagonal are not preserved). A work-item, on a
GPU a work-group, takes a matrix. Four columns at a time are updated by the columns before them, four by four
(left-looking: Golub and Van Loan, "Matrix Computations", 3.2 and 4.2), then finished one after the other. `info`, if
still 0, is set to the number of the first zero pivot, or of the first leading minor that is not positive.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="numbers" file="/factor/numbers.mako"/>\
<% lu = kind == 'lu' %>\
${headers}\
typedef ${I} I;
${numbers.helpers(dt, memory, lane_memory, gpu, lanes, ('load', 'store'), apart=False)}\
#define P(i, j) p[(i) + (j) * column]
#define CLT_WHOLE
__attribute__((reqd_work_group_size(${lanes if gpu else 1}, 1, 1)))
__kernel void ${fn}(__global T *a, __global int *info\
% if lu:
, __global int *pivots\
% endif
, const I count, const I rows, const I width, const I before, const I a_at, const I a_batch, const I column\
% if lu:
, const I exchanged, const I p_at, const I p_batch\
% endif
) {
% if gpu and lu:
    __local R sizes[${lanes}];
    __local I places[${lanes}];
% endif
    const I m = rows;
    for (I z = (I)get_group_id(0); z < count; z += (I)get_num_groups(0)) {
        __global T *p = a + a_at + z * a_batch;
        for (I first = 0; first < width; first += 4) {
            const I many = min(width - first, (I)4);
            for (I k = 0; k < first; k += 4) {
## Separate variables instead of an array: a GPU keeps an array with computed indices in memory, not in registers.
% for t in range(4):
                T ${', '.join(f'u{s}{t} = 0' for s in range(4))};
                if (${t} < many) {
% for s in range(4):
                    u${s}${t} = ${f'P(k + {s}, first + {t})' if lu else f'CONJ(P(first + {t}, k + {s}))'};
% endfor
% if lu:
% for s in range(3):
% for i in range(s + 1, 4):
                    u${i}${t} = clt_less_one(u${i}${t}, P(k + ${i}, k + ${s}), u${s}${t});
% endfor
% endfor
% endif
                }
% endfor
                SYNC;
% if lu:
% for t in range(4):
                if (LANE == 0 && ${t} < many) {
% for s in range(1, 4):
                    P(k + ${s}, first + ${t}) = u${s}${t};
% endfor
                }
% endfor
% endif
<%numbers:rows first="${'k + 4' if lu else 'first'}">\
% for s in range(4):
                    const F l${s} = LOAD(&P(i, k + ${s}), n);
% endfor
% for t in range(4):
                    if (${t} < many) {
                        F y = LOAD(&P(i, first + ${t}), n);
% for s in range(4):
                        y = clt_less(y, l${s}, SPREAD(u${s}${t}));
% endfor
                        STORE(&P(i, first + ${t}), y, n);
                    }
% endfor
</%numbers:rows>\
                SYNC;
            }
            for (int t = 0; t < (int)many; ++t) {
                const I j = first + t;
                T beside[4];
% if lu:
                I best = j;
                if (exchanged) {
                    const int kept = isnan(SIZE(P(j, j)));  // a nan there stays the pivot, as nothing compares larger; as in BLAS
${numbers.largest(memory, gpu, 'P(0, j)', 'j')}\
                    if (!kept) best = place;
                    if (best != j)
                        for (I c = LANE; c < width; c += LANES) {
                            const T held = P(j, c);
                            P(j, c) = P(best, c);
                            P(best, c) = held;
                        }
                    SYNC;
                }
                if (LANE == 0) pivots[p_at + z * p_batch + j] = (int)(before + best + 1);
                T top = P(j, j);
                if (IS_ZERO(top)) {
                    if (LANE == 0 && !info[z]) info[z] = (int)(before + j + 1);
                    top = ONE;
                }
                for (int s = 1; s < 4; ++s) beside[s] = t < s && s < many ? P(j, first + s) : (T)(0);
% else:
                const R square = REAL(P(j, j)), root = sqrt(square);
                if (LANE == 0 && !(square > 0) && !info[z]) info[z] = (int)(before + j + 1);
                const T top = OF_REAL(root);
                for (int s = 1; s < 4; ++s) beside[s] = t < s && s < many ? CONJ(P(first + s, j) / root) : (T)(0);
                SYNC;
                if (LANE == 0) P(j, j) = top;
% endif
<%numbers:rows first="j + 1">\
                    F l = LOAD(&P(i, j), n);
% if not lu:
                    l /= root;
% elif dt.is_complex:
                    l = clt_times(l, SPREAD(DIV(ONE, top)));
% else:
                    l /= top;
% endif
                    STORE(&P(i, j), l, n);
                    for (int s = 1; s < 4; ++s)
                        if (t < s && s < many) {
                            const F y = LOAD(&P(i, first + s), n);
                            STORE(&P(i, first + s), clt_less(y, l, SPREAD(beside[s])), n);
                        }
</%numbers:rows>\
                SYNC;
            }
        }
    }
}
