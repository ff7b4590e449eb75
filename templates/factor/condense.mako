<%doc>
Reduces column-major matrices, in batches, to condensed form by Householder reflectors from both sides: Hermitian ones
to tridiagonal, others (m rows, n <= m columns) to upper bidiagonal. Within a panel of columns each column is updated
when its turn comes; the columns after the panel are not updated: their pending update is kept as two products of thin
matrices (Dongarra, Sorensen and Hammarling, "Block reduction of matrices to condensed forms", J. Comput. Appl. Math.
27, 1989): A - V W^H - W V^H where A is Hermitian, else A - V Y^H - X U^H with the left vectors V and the right ones U.
The thin matrices are stored side by side, so that one product applies both: W, V and W again, or V and X, and Y and U.

Each column i passes through phases; one launch runs those from `from` to before `to`. Work on thin matrices is done by
one work-group (on a CPU one work-item), products with the rest of A are divided into `parts`.

    tridiagonal: 0 column i - 1 of W is finished, 1 column i is updated and its reflector made, 2 A v
    bidiagonal:  0 column i - 1 of X is finished, 1 column i is updated and its reflector made, 2 A^H v,
                 3 column i of Y is finished, 4 row i is updated and its reflector made, 5 A u

Columns of A (`step` numbers apart) and of thin matrices (`step` or `short_step`) are padded with zeros to whole
vectors, and are processed by whole vectors, from the vector with the first row in question on. Earlier rows in that
vector contribute nothing, as V and U have zeros there, and what is written to them is never read. On a CPU only the
lower triangle of a Hermitian A is read and kept.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="numbers" file="/factor/numbers.mako"/>\
<%namespace name="reflector" file="/factor/reflector.mako"/>\
<%
bidiagonal = kind == 'bidiagonal'
unit = lanes if gpu else 4 * memory.lanes
columns = (4,) if gpu else (8, 4)  # columns taken at a time: first eights on a CPU, then fours for the rest
R = (dt.to_real() if dt.is_complex else dt).reg
product = "(T)(factor.x * sum.x - factor.y * sum.y, factor.x * sum.y + factor.y * sum.x)" if dt.is_complex else "factor * sum"
def four(what, k=0): return ', '.join(what.format(s) for s in range(k, k + 4))
%>\
${headers}\
typedef ${I} I;
## Begin a loop over columns, C at a time: p0, p1, ... point to columns j, j + 1, ...; past the last column, to the last
## one.
<%def name="group(C)">\
    for (; j + ${C if C > 4 else 1} <= many; j += ${C}) {
        __global const T ${', '.join(f"*p{s} = a + {f'min(j + {s}, many - 1)' if 0 < s and C == 4 else f'(j + {s})'} * step" for s in range(C))};
</%def>\
## Declare all[s], s = 0 .. 3: the sum of the lanes of the vector d(k + s).
<%def name="all_sums(k=0)">\
% if dt.is_complex:
            const R4 re = clt_sums(${four('d{}.lo', k)}), im = clt_sums(${four('d{}.hi', k)});
            const T all[4] = {${four('(T)(re.s{0}, im.s{0})')}};
% else:
            const R4 all = clt_sums(${four('d{}', k)});
% endif
</%def>\
${numbers.helpers(dt, memory, lane_memory, gpu, lanes, ('load', 'store'), sums=True)}\
#define ALL(p) LOAD(p, V)
## Loop over whole vectors of rows, from the vector on that holds row `first`.
#define VECTORS(i, first) for (I i = (first) - (first) % V + LANE * V; i < m; i += LANES * V)
% if not gpu:
typedef ${R}4 R4;
## The sum of each of four vectors' lanes.
static inline R4 clt_sums(const RV a, const RV b, const RV c, const RV d) {
<% halves, left = list("abcd"), memory.lanes %>\
% while left > 4:
<% left //= 2 %>\
    const ${R}${left} ${', '.join(f"{x}{left} = {y}.lo + {y}.hi" for x, y in zip("abcd", halves))};
<% halves = [f"{x}{left}" for x in "abcd"] %>\
% endwhile
    return ${' + '.join(f"(R4)({', '.join(f'{x}.s{k}' for x in halves)})" for k in range(4))};
}
% endif
/* out[j] = a_j^H v for columns a_j of a, their rows from `first` to before `m`. */
static APART void clt_inner(__global T *out, __global const T *v, __global const T *a, const I step, const I many, const I first, const I m\
${', __local T *sums' if gpu else ''}) {
    I j = 0;
% for C in columns:
${group(C)}\
        F ${', '.join(f'd{s} = 0' for s in range(C))};
        VECTORS(i, first) {
            const F y = ALL(v + i);
% for s in range(C):
            d${s} = clt_plus_conj(d${s}, ALL(p${s} + i), y);
% endfor
        }
% if not gpu:
% for k in range(0, C, 4):
        {
${all_sums(k)}\
            for (int s = 0; s < ${"min(many - j, (I)4)" if C == 4 else 4}; ++s) out[j + s + ${k}] = all[s];
        }
% endfor
% else:
% for s in range(C):
        {
            T sum = d${s};
${reflector.add('sum')}\
            if (LANE == 0 && j + ${s} < many) out[j + ${s}] = sum;
        }
% endfor
% endif
    }
% endfor
    SYNC;
}
/* x -= a_j by[j] for all columns a_j, rows from `first` to before `m`. */
static APART void clt_take_off(__global T *x, __global const T *a, const I step, __global const T *by, const I many, const I first, const I m) {
    I j = 0;
% for C in columns:
${group(C)}\
        const F ${', '.join(f'b{s} = ' + (f'j + {s} < many ? SPREAD(by[j + {s}]) : (F)(0)' if 0 < s and C == 4 else f'SPREAD(by[j + {s}])') for s in range(C))};
        VECTORS(i, first) {
            F y = ALL(x + i);
% for s in range(C):
            y = clt_less(y, ALL(p${s} + i), b${s});
% endfor
            STORE(x + i, y, V);
        }
    }
% endfor
    SYNC;
}
% if not bidiagonal and not gpu:
## v with zeros in the lanes before lane `first`.
static inline F clt_from(const F v, const int first) {
    const JV kept = IDS >= (JV)(first);
% if dt.is_complex:
    F r;
    r.lo = kept ? v.lo : (RV)(0);
    r.hi = kept ? v.hi : (RV)(0);
    return r;
% else:
    return kept ? v : (F)(0);
% endif
}
/* y = A x for a part of the columns of the lower triangle of A, rows and columns from `first` to before `m`: each number counts for its row and,
   conjugated, for its column. */
static APART void clt_both(__global T *y, __global const T *x, __global const T *a, const I step, const I first, const I m, const I part, const I parts) {
    VECTORS(i, first) STORE(y + i, (F)(0), V);
    const I begin = first / 4;
    for (I j = 4 * (begin + (part + parts - begin % parts) % parts); j < m; j += 4 * parts) {
        __global const T ${four("*p{0} = a + min(j + {0}, m - 1) * step")};
        const F ${four("b{0} = SPREAD(j + {0} < m ? -x[j + {0}] : (T)(0))")};
        const I top = j - j % V;
        const int at = (int)(j - top);
        F r = ALL(y + top), ${four("d{} = 0")};
        {
            const F s = ALL(x + top), ${four("a{0} = ALL(p{0} + top)")};
% for s in range(4):
            r = clt_less(r, clt_from(a${s}, at + ${s}), b${s}), d${s} = clt_plus_conj(d${s}, clt_from(a${s}, at + ${s + 1}), s);
% endfor
            STORE(y + top, r, V);
        }
        for (I i = top + V; i < m; i += V) {
            const F s = ALL(x + i), ${four("a{0} = ALL(p{0} + i)")};
            r = ALL(y + i);
% for s in range(4):
            r = clt_less(r, a${s}, b${s}), d${s} = clt_plus_conj(d${s}, a${s}, s);
% endfor
            STORE(y + i, r, V);
        }
${all_sums()}\
        for (int s = 0; s < min(m - j, (I)4); ++s) y[j + s] += all[s];
    }
}
% endif
#define CLT_WHOLE
__attribute__((reqd_work_group_size(${lanes if gpu else 1}, 1, 1)))
__kernel void ${fn}(__global T *a, __global T *v, __global T *taus, __global T *inverse, __global R *diagonal, __global R *beside, __global T *thin, __global T *coefficients\
% if bidiagonal:
, __global T *u, __global T *inverse_u, __global T *short_thin, __global T *rows\
% else:
, __global T *sums_of_parts\
% endif
, const I count, const I rows_of_a, const I n, const I step, const I short_step, const I first, const I stop, const I begin, const I end, const I from, const I to, const I parts, const I pieces) {
% if gpu:
    __local R sizes[${lanes}];
    __local T sums[${lanes}];
% endif
    for (I g = (I)get_group_id(0); g < count * parts; g += (I)get_num_groups(0)) {
        const I z = g / parts, part = g % parts, height = rows_of_a;
        __global T *A = a + z * step * n, *c = coefficients + z * ${width}, *tau = taus + z * ${'2 * ' if bidiagonal else ''}n;
% if bidiagonal:
        __global T *L = thin + z * ${2 * width} * step, *X = L + ${width} * step, *Y = short_thin + z * ${2 * width} * short_step, *U = Y + ${width} * short_step;
        __global T *row = rows + z * short_step;
% else:
        __global T *W = thin + z * ${3 * width} * step, *L = W + ${width} * step;
% endif
        for (I i = begin; i < end; ++i)
            for (int phase = (int)from; phase < (int)to; ++phase) {
                if (phase == 0 ? i == first || i == n : i == stop || (phase > 1 && i + 1 == n)) continue;
## What changes is x, in rows `head` to before `m`: the products of two thin matrices, `one` and `other`, with a few numbers each are taken off.
## These are inner products of the columns of `of_one` and `of_other` with y where a column is finished, and rows of them, conjugated, where one is
## `found`, that is brought up to date and reflected into y, and into `to_keep`. What is `divided` is a product of the whole of A.
                const I q = i - first - (phase == 0);
                __global T *x, *y, *one, *other, *of_one, *of_other, *out_tau = tau + i - (phase == 0), *to_keep;
                I m = n, head = i, y_end = n, many = q;
                int divided = 0, found = 0;
% if bidiagonal:
                I one_step = step, other_step = step, of_one_step = step, of_other_step = step;
                if (phase == 0 || phase == 3) {
                    const int right = phase == 0;
                    x = right ? X + q * step : Y + q * short_step, m = right ? height : n, head = right ? i : i + 1;
                    y = right ? U + q * short_step : L + q * step, y_end = right ? n : height;
                    one = right ? L : Y, of_one = right ? Y : L, other = right ? X : U, of_other = right ? U : X;
                    if (right)
                        of_one_step = of_other_step = short_step, many = q + 1, out_tau += n;
                    else
                        one_step = other_step = short_step;
                } else if (phase == 1 || phase == 4) {
                    const int right = phase == 4;
                    found = 1;
                    x = right ? row : A + i * step, m = right ? n : height, head = right ? i + 1 : i;
                    y = right ? U + q * short_step : L + q * step;
                    one = right ? Y : L, of_one = (right ? L : Y) + i, other = right ? U : X, of_other = (right ? X : U) + i;
                    to_keep = right ? u + (z * (n - 1) + i) * (n - 1) - 1 : v + (z * n + i) * height;
                    if (right) {
                        one_step = other_step = short_step, many = q + 1, out_tau += n;
                        for (I r = i + 1 + LANE; r < n; r += LANES) row[r] = CONJ(A[i + r * step]);
                    } else
                        of_one_step = of_other_step = short_step;
                } else {
                    divided = 1;
                    y = L + q * step, y_end = height;
                    x = phase == 2 ? Y + q * short_step : X + q * step, m = phase == 2 ? n : height, head = i + 1;
                }
% else:
                const I one_step = step, other_step = step, of_one_step = step, of_other_step = step;
                y = L + q * step;
                if (phase == 0) {
                    x = W + q * step, one = of_other = L, other = of_one = W;
                } else if (phase == 1) {
                    found = 1;
                    x = A + i * step, one = L, other = W, of_one = W + i, of_other = L + i;
                    to_keep = v + (z * (n - 1) + i) * (n - 1) - 1;
                } else {
                    divided = 1, x = W + q * step, head = i + 1;
                }
% endif
                if (divided) {
% if not bidiagonal and not gpu:
                    clt_both(part ? sums_of_parts + (z * (parts - 1) + part - 1) * step : x, y, A, step, head, n, part, parts);
% else:
                    ## With A^H the product consists of inner products with columns, with A of a sum of columns: each
                    ## part computes a range of the result's numbers.
                    const I base = head - head % V, chunk = (m - base + parts * ${unit} - 1) / (parts * ${unit}) * ${unit};
                    const I lo = base + part * chunk, hi = min(lo + chunk, m);
                    if (lo >= m) continue;
% if bidiagonal:
                    if (phase == 5) {
                        for (I r = lo + LANE * V; r < hi; r += LANES * V) STORE(x + r, (F)(0), V);
                        SYNC;
                        clt_take_off(x, A + (i + 1) * step, step, U + q * short_step + i + 1, n - i - 1, lo, hi);
                        continue;
                    }
% endif
                    clt_inner(x + lo, y, A + lo * step, step, hi - lo, ${'i' if bidiagonal else 'head'}, y_end${', sums' if gpu else ''});
% endif
                    continue;
                }
                SYNC;
% if not bidiagonal and not gpu:
                for (I p = 0; phase == 0 && p + 1 < pieces; ++p)
                    VECTORS(r, head) STORE(x + r, ALL(x + r) + ALL(sums_of_parts + (z * (pieces - 1) + p) * step + r), V);
% endif
                for (int s = 0; s < 2; ++s) {
                    __global const T *of = s ? of_other : of_one;
                    const I of_step = s ? of_other_step : of_one_step, columns = s ? q : many;
                    if (found) {
                        for (I j = LANE; j < columns; j += LANES) c[j] = CONJ(of[j * of_step]);
                        SYNC;
                    } else
                        clt_inner(c, y, of, of_step, columns, i, y_end${', sums' if gpu else ''});
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
% if bidiagonal:
                    VECTORS(r, head) STORE(x + r, clt_times(ALL(x + r), SPREAD(factor)), V);
% else:
                    F d = 0;
                    VECTORS(r, head) {
                        const F of_x = clt_times(ALL(x + r), SPREAD(factor));
                        STORE(x + r, of_x, V);
                        d = clt_plus_conj(d, of_x, ALL(y + r));
                    }
                    T sum = SUM(d);
${reflector.add('sum')}\
                    const T by = 0.5f * ${product};
                    VECTORS(r, head) {
                        const F of_x = clt_less(ALL(x + r), ALL(y + r), SPREAD(by));
                        STORE(x + r, of_x, V);
                        STORE(x + ${2 * width} * step + r, of_x, V);
                    }
% endif
                    SYNC;
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
% else:
                    beside[z * n + i] = REAL(end);
                    inverse[z * (n - 1) + i] = inverted;
% endif
                    for (I r = j - j % V; r < j; ++r) x[r] = 0;
                    x[j] = ONE;
                }
                SYNC;
                for (I r = ${'(phase == 4)' if bidiagonal else 1} + LANE * V; r < j; r += LANES * V) STORE(to_keep + r, (F)(0), (int)min(j - r, (I)V));
<%numbers:rows first="j">\
                    STORE(to_keep + i, LOAD(x + i, n), n);
</%numbers:rows>\
                VECTORS(r, j) STORE(y + r, ALL(x + r), V);
                SYNC;
            }
    }
}
