<%doc>
The QR factorization of the first columns of column-major matrices, in batches, by Householder reflectors, whose vectors
replace the columns below the diagonal. A work-item, on a GPU a work-group, takes a matrix. `v` receives the vectors
with explicit ones and zeros, `inverse` 1 / tau, which is infinity where the reflector is the identity.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="numbers" file="/factor/numbers.mako"/>\
<%namespace name="reflector" file="/factor/reflector.mako"/>\
${headers}\
typedef ${I} I;
${numbers.helpers(dt, memory, lane_memory, gpu, lanes, ('load', 'store'), sums=True)}\
#define P(i, j) p[(i) + (j) * column]
#define CLT_WHOLE
__attribute__((reqd_work_group_size(${lanes if gpu else 1}, 1, 1)))
__kernel void ${fn}(__global T *a, __global T *tau, __global T *inverse, __global T *v, const I count, const I m, const I width, const I a_at, const I a_batch,
                    const I column, const I t_at, const I t_batch, const I v_at, const I v_batch, const I v_column) {
% if gpu:
    __local R sizes[${lanes}];
    __local T sums[${lanes}];
% endif
    for (I z = (I)get_group_id(0); z < count; z += (I)get_num_groups(0)) {
        __global T *p = a + a_at + z * a_batch, *vectors = v + v_at + z * v_batch;
        for (I j = 0; j < width; ++j) {
            __global T *x = &P(0, j);
${reflector.find('x', 'j')}\
            if (LANE == 0) {
                P(j, j) = end;
                tau[t_at + z * t_batch + j] = factor;
                inverse[t_at + z * t_batch + j] = IS_ZERO(factor) ? OF_REAL(INFINITY) : DIV(ONE, factor);
                for (I i = 0; i < j; ++i) vectors[i + j * v_column] = 0;
                vectors[j + j * v_column] = ONE;
            }
<%numbers:rows first="j + 1">\
                STORE(vectors + i + j * v_column, LOAD(&P(i, j), n), n);
</%numbers:rows>\
            for (I c = j + 1; c < width; c += 4) {
                const int many = (int)min(width - c, (I)4);
                F ${', '.join(f'd{s} = 0' for s in range(4))};
<%numbers:rows first="j + 1">\
                    const F y = clt_clip(LOAD(&P(i, j), n), n);
% for s in range(4):
                    if (${s} < many) d${s} = clt_plus_conj(d${s}, y, LOAD(&P(i, c + ${s}), n));
% endfor
</%numbers:rows>\
                T by[4], all[4] = {${', '.join(f'SUM(d{s})' for s in range(4))}};
                for (int s = 0; s < 4; ++s) {
                    T sum = all[s];
${reflector.add('sum')}\
                    if (s < many) sum += P(j, c + s);
                    by[s] = ${'(T)(factor.x * sum.x + factor.y * sum.y, factor.x * sum.y - factor.y * sum.x)' if dt.is_complex else 'factor * sum'};
                }
                SYNC;
                if (LANE == 0)
                    for (int s = 0; s < 4; ++s)
                        if (s < many) P(j, c + s) -= by[s];
<%numbers:rows first="j + 1">\
                    const F y = LOAD(&P(i, j), n);
% for s in range(4):
                    if (${s} < many) STORE(&P(i, c + ${s}), clt_less(LOAD(&P(i, c + ${s}), n), y, SPREAD(by[${s}])), n);
% endfor
</%numbers:rows>\
                SYNC;
            }
        }
    }
}
