<%doc>
Replaces X by A^-1 X, given ldl.mako's factorization of A, in batches; X is column-major. A work-item, on a GPU a
work-group, takes four columns of an X at a time.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="numbers" file="/factor/numbers.mako"/>\
<%namespace name="reflector" file="/factor/reflector.mako"/>\
<% turned = 'CONJ' if conjugated else '' %>\
${headers}\
typedef ${I} I;
${numbers.helpers(dt, memory, lane_memory, gpu, lanes, ('load', 'store'), sums=True)}\
#define P(i, j) p[(i) + (j) * column]
#define X(i, t) x[(i) + (t) * x_column]
#define TIMES(a, b) (-clt_less_one((T)(0), a, b))
#define CLT_WHOLE
<%def name="exchange()">\
            if (row != at)
                for (int t = (int)LANE; t < many; t += (int)LANES) {
                    const T held = X(at, t);
                    X(at, t) = X(row, t);
                    X(row, t) = held;
                }
            SYNC;
</%def>\
__attribute__((reqd_work_group_size(${lanes if gpu else 1}, 1, 1)))
__kernel void ${fn}(__global const T *ld, __global const int *pivots, __global T *xs, const I count, const I m, const I columns, const I a_at, const I a_batch, const I column,
                    const I p_at, const I p_batch, const I x_at, const I x_batch, const I x_column) {
% if gpu:
    __local T sums[${lanes}];
% endif
    const I runs = (columns + 3) / 4;
    for (I q = (I)get_group_id(0); q < count * runs; q += (I)get_num_groups(0)) {
        const I z = q / runs, c = q % runs * 4;
        const int many = (int)min(columns - c, (I)4);
        __global const T *p = ld + a_at + z * a_batch;
        __global const int *exchanges = pivots + p_at + z * p_batch;
        __global T *x = xs + x_at + z * x_batch + c * x_column;
        for (I k = 0; k < m;) {
            const int two = exchanges[k] < 0 && k + 1 < m;
            const I at = k + two, row = abs(exchanges[k]) - 1;
${exchange()}\
            T ${', '.join(f'v{t} = {t} < many ? X(k, {t}) : (T)(0), w{t} = {t} < many ? X(at, {t}) : (T)(0)' for t in range(4))};
<%numbers:rows first="at + 1">\
                const F l = LOAD(&P(i, k), n), other = LOAD(&P(i, at), n);
% for t in range(4):
                if (${t} < many) {
                    F y = clt_less(LOAD(&X(i, ${t}), n), l, SPREAD(v${t}));
                    if (two) y = clt_less(y, other, SPREAD(w${t}));
                    STORE(&X(i, ${t}), y, n);
                }
% endfor
</%numbers:rows>\
            SYNC;
            for (int t = (int)LANE; t < many; t += (int)LANES) {
                if (!two) {
                    X(k, t) = DIV(X(k, t), P(k, k));
                    continue;
                }
                const T off = P(k + 1, k), top = DIV(P(k, k), ${turned}(off)), below = DIV(P(k + 1, k + 1), off), by = TIMES(top, below) - ONE;
                const T one = DIV(X(k, t), ${turned}(off)), next = DIV(X(k + 1, t), off);
                X(k, t) = DIV(TIMES(below, one) - next, by);
                X(k + 1, t) = DIV(TIMES(top, next) - one, by);
            }
            SYNC;
            k = at + 1;
        }
        for (I k = m; k > 0;) {
            const int two = exchanges[k - 1] < 0 && k > 1;
            const I at = k - 1, row = abs(exchanges[at]) - 1;
            k = at - two;
            for (I j = k; j <= at; ++j) {
                F ${', '.join(f'd{t} = 0' for t in range(4))};
<%numbers:rows first="at + 1">\
                    const F l = clt_clip(LOAD(&P(i, j), n), n);
% for t in range(4):
                    if (${t} < many) d${t} = ${'clt_plus_conj' if conjugated else 'clt_less'}(d${t}, l, LOAD(&X(i, ${t}), n));
% endfor
</%numbers:rows>\
                const T all[4] = {${', '.join(f'SUM(d{t})' for t in range(4))}};
                for (int t = 0; t < 4; ++t) {
                    T sum = all[t];
${reflector.add('sum')}\
                    if (LANE == 0 && t < many) X(j, t) ${'-' if conjugated else '+'}= sum;
                }
            }
            SYNC;
${exchange()}\
        }
    }
}
