<%doc>
Matrices that lie by columns, made narrow by Householder reflectors from both sides, in batches: Hermitian ones tridiagonal, others (m rows, no more
columns n) upper bidiagonal. Of a panel of columns each is brought up to date when its turn comes, the columns behind the panel are not; what is
wrong with them is known as two products of thin matrices (Dongarra, Sorensen and Hammarling, "Block reduction of matrices to condensed forms",
J. Comput. Appl. Math. 27, 1989): A - V W^H - W V^H where A is Hermitian, else A - V Y^H - X U^H with the left vectors V and the right ones U.

For each column i phases follow each other, `from` to before `to` in one launch: what is thin is one work-group's work (a work-item's on a CPU), the
products with the rest of A are divided into `parts`.

    tridiagonal: 0 column i - 1 of W is finished, 1 column i is brought up to date and reflected, 2 A v
    bidiagonal:  0 column i - 1 of X is finished, 1 column i is brought up to date and reflected, 2 A^H v,
                 3 column i of Y is finished, 4 row i is brought up to date and reflected, 5 A u
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="numbers" file="/factor/numbers.mako"/>\
<%namespace name="reflector" file="/factor/reflector.mako"/>\
<%
bidiagonal = kind == 'bidiagonal'
unit = lanes if gpu else 4 * memory.lanes
product = "(T)(factor.x * sum.x - factor.y * sum.y, factor.x * sum.y + factor.y * sum.x)" if dt.is_complex else "factor * sum"
%>\
${headers}\
typedef ${I} I;
${numbers.helpers(dt, memory, lane_memory, gpu, lanes, ('load', 'store'), sums=True)}\
/* out[j] = a_j^H v for columns a_j of a, their rows from `first` to before `m`. */
static inline void clt_inner(__global T *out, __global const T *v, __global const T *a, const I step, const I many, const I first, const I m\
${', __local T *sums' if gpu else ''}) {
    for (I j = 0; j < many; j += 4) {
        const int left = (int)min(many - j, (I)4);
        __global const T *p = a + j * step;
        F ${', '.join(f'd{s} = 0' for s in range(4))};
        ROWS(i, first) {
            const int n = COUNT(i);
            const F y = clt_clip(LOAD(v + i, n), n);
            d0 = clt_plus_conj(d0, LOAD(p + i, n), y);
% for s in range(1, 4):
            if (${s} < left) d${s} = clt_plus_conj(d${s}, LOAD(p + i + ${s} * step, n), y);
% endfor
        }
% for s in range(4):
        {
            T sum = SUM(d${s});
${reflector.add('sum')}\
            if (LANE == 0 && ${s} < left) out[j + ${s}] = sum;
        }
% endfor
    }
    SYNC;
}
/* x -= a_j by[j] for all columns a_j, rows from `first` to before `m`. */
static inline void clt_take_off(__global T *x, __global const T *a, const I step, __global const T *by, const I many, const I first, const I m) {
    for (I j = 0; j < many; j += 4) {
        const int left = (int)min(many - j, (I)4);
        __global const T *p = a + j * step;
        const F b0 = SPREAD(by[j])${''.join(f', b{s} = {s} < left ? SPREAD(by[j + {s}]) : (F)(0)' for s in range(1, 4))};
        ROWS(i, first) {
            const int n = COUNT(i);
            F y = clt_less(LOAD(x + i, n), LOAD(p + i, n), b0);
% for s in range(1, 4):
            if (${s} < left) y = clt_less(y, LOAD(p + i + ${s} * step, n), b${s});
% endfor
            STORE(x + i, y, n);
        }
    }
    SYNC;
}
#define CLT_WHOLE
__attribute__((reqd_work_group_size(${lanes if gpu else 1}, 1, 1)))
__kernel void ${fn}(__global T *a, __global T *v, __global T *taus, __global T *inverse, __global R *diagonal, __global R *beside, __global T *w, __global T *coefficients\
% if bidiagonal:
, __global T *u, __global T *inverse_u, __global T *x_panel, __global T *rows\
% endif
, const I count, const I rows_of_a, const I n, const I first, const I stop, const I begin, const I end, const I from, const I to, const I parts) {
% if gpu:
    __local R sizes[${lanes}];
    __local T sums[${lanes}];
% endif
    for (I g = (I)get_group_id(0); g < count * parts; g += (I)get_num_groups(0)) {
        const I z = g / parts, part = g % parts, height = rows_of_a;
        __global T *A = a + z * height * n, *c = coefficients + z * ${width}, *tau = taus + z * ${'2 * ' if bidiagonal else ''}n;
% if bidiagonal:
        __global T *VV = v + z * height * n + first * height, *UU = u + z * (n - 1) * (n - 1) + first * (n - 1) - 1;
        __global T *Y = w + z * ${width} * n, *X = x_panel + z * ${width} * height, *row = rows + z * n;
        const I v_step = height, u_step = n - 1;
% else:
        __global T *VV = v + z * (n - 1) * (n - 1) + first * (n - 1) - 1, *W = w + z * ${width} * n;
        const I v_step = n - 1;
% endif
        for (I i = begin; i < end; ++i)
            for (int phase = (int)from; phase < (int)to; ++phase) {
                if (phase == 0 ? i == first || i == n : i == stop || (phase > 1 && i + 1 == n)) continue;
## What changes is x, in rows `head` to before `m`: the products of two thin matrices, `one` and `other`, with a few numbers each are taken off.
## These are inner products of the columns of `of_one` and `of_other` with y where a column is finished, and rows of them, conjugated, where one is
## `found`, that is brought up to date and reflected into y. What is `divided` is a product of the whole of A.
                const I q = i - first - (phase == 0);
                __global T *x, *y, *one, *other, *of_one, *of_other, *out_tau = tau + i - (phase == 0);
                I m, head = i, y_first = i, y_end = n, many = q, one_step, other_step, of_one_step, of_other_step;
                int divided = 0, found = 0;
% if bidiagonal:
                if (phase == 0 || phase == 3) {
                    const int right = phase == 0;
                    x = right ? X + q * height : Y + q * n, m = right ? height : n, head = right ? i : i + 1;
                    y = right ? UU + q * u_step : VV + q * v_step, y_end = right ? n : height;
                    one = right ? VV : Y, one_step = right ? v_step : n, of_one = right ? Y : VV, of_one_step = right ? n : v_step;
                    other = right ? X : UU, other_step = right ? height : u_step, of_other = right ? UU : X, of_other_step = right ? u_step : height;
                    many = right ? q + 1 : q;
                    if (right) out_tau += n;
                } else if (phase == 1 || phase == 4) {
                    const int right = phase == 4;
                    found = 1;
                    x = right ? row : A + i * height, m = right ? n : height, head = right ? i + 1 : i;
                    y = right ? UU + q * u_step : VV + q * v_step;
                    one = right ? Y : VV, one_step = right ? n : v_step, of_one = right ? VV + i : Y + i, of_one_step = right ? v_step : n;
                    other = right ? UU : X, other_step = right ? u_step : height, of_other = right ? X + i : UU + i, of_other_step = right ? height : u_step;
                    many = right ? q + 1 : q;
                    if (right) {
                        for (I r = i + 1 + LANE; r < n; r += LANES) row[r] = CONJ(A[i + r * height]);
                        out_tau += n;
                    }
                } else {
                    divided = 1;
                    y = VV + q * v_step, y_end = height;
                    x = phase == 2 ? Y + q * n : X + q * height, m = phase == 2 ? n : height, head = i + 1;
                }
% else:
                m = n, y = VV + q * v_step;
                if (phase == 0) {
                    x = W + q * n, one = of_other = VV, other = of_one = W, one_step = of_other_step = v_step, other_step = of_one_step = n;
                } else if (phase == 1) {
                    found = 1, head = i;
                    x = A + i * n, one = VV, other = W, one_step = of_other_step = v_step, other_step = of_one_step = n, of_one = W + i, of_other = VV + i;
                } else {
                    divided = 1, x = W + q * n, head = y_first = i + 1;
                }
% endif
                if (divided) {
                    // One product is made of inner products with columns, the other adds columns up: each part takes some numbers of the result.
                    const I all = m - head, chunk = (all + parts * ${unit} - 1) / (parts * ${unit}) * ${unit};
                    const I lo = head + min(part * chunk, all), hi = min(lo + chunk, m);
% if bidiagonal:
                    if (phase == 5) {
                        for (I r = lo + LANE; r < hi; r += LANES) x[r] = 0;
                        SYNC;
                        clt_take_off(x, A + (i + 1) * height, height, UU + q * u_step + i + 1, n - i - 1, lo, hi);
                        continue;
                    }
% endif
                    clt_inner(x + lo, y, A + lo * height, height, hi - lo, y_first, y_end${', sums' if gpu else ''});
                    continue;
                }
                SYNC;
                for (int s = 0; s < 2; ++s) {
                    __global const T *of = s ? of_other : of_one;
                    const I step = s ? of_other_step : of_one_step, columns = s ? q : many;
                    if (found) {
                        for (I j = LANE; j < columns; j += LANES) c[j] = CONJ(of[j * step]);
                        SYNC;
                    } else
                        clt_inner(c, y, of, step, columns, y_first, y_end${', sums' if gpu else ''});
% if bidiagonal:
                    if (phase == 0) {  // x is -A u
                        for (I j = LANE; j < columns; j += LANES) c[j] = -c[j];
                        SYNC;
                    }
% endif
                    clt_take_off(x, s ? other : one, s ? other_step : one_step, c, columns, head, m);
                }
                if (!found) {
                    const T factor = ${'phase == 0 ? -*out_tau : *out_tau' if bidiagonal else '*out_tau'};
                    ROWS(r, head) STORE(x + r, clt_times(LOAD(x + r, COUNT(r)), SPREAD(factor)), COUNT(r));
                    SYNC;
% if not bidiagonal:
                    F d = 0;
                    ROWS(r, head) {
                        const int many = COUNT(r);
                        d = clt_plus_conj(d, LOAD(x + r, many), clt_clip(LOAD(y + r, many), many));
                    }
                    T sum = SUM(d);
${reflector.add('sum')}\
                    const T by = 0.5f * ${product};
                    ROWS(r, head) STORE(x + r, clt_less(LOAD(x + r, COUNT(r)), LOAD(y + r, COUNT(r)), SPREAD(by)), COUNT(r));
                    SYNC;
% endif
                    continue;
                }
                I j = head;
% if not bidiagonal:
                if (LANE == 0) diagonal[z * n + i] = REAL(x[i]);
                if (i + 1 == n) continue;
                ++j;
% endif
${reflector.find('x', 'j')}\
                if (LANE == 0) {
                    *out_tau = factor;
                    const T inverted = IS_ZERO(factor) ? OF_REAL(INFINITY) : DIV(ONE, factor);
% if bidiagonal:
                    if (phase == 4) {
                        beside[z * n + i] = REAL(end);
                        inverse_u[z * (n - 1) + i] = inverted;
                    } else {
                        diagonal[z * n + i] = REAL(end);
                        inverse[z * n + i] = inverted;
                    }
                    for (I r = phase == 4; r < j; ++r) y[r] = 0;
% else:
                    beside[z * n + i] = REAL(end);
                    inverse[z * (n - 1) + i] = inverted;
                    for (I r = 1; r < j; ++r) y[r] = 0;
% endif
                    y[j] = ONE;
                }
                ROWS(r, j + 1) STORE(y + r, LOAD(x + r, COUNT(r)), COUNT(r));
                SYNC;
            }
    }
}
