<%doc>
Reduces column-major matrices, in batches, to upper Hessenberg form Q^H A Q by Householder reflectors. A work-item, on a
GPU a work-group, takes a matrix. Column j's reflector is applied from the right, then from the left: A v is summed
first, and each later column then takes both updates while it is in the cache. `v` receives the reflectors' vectors, n -
1 numbers each from row 1 on, with explicit ones and zeros; `inverse` 1 / tau, which is infinity where the reflector is
the identity; `product` is room for A v. Columns of A are `step` numbers apart.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="numbers" file="/factor/numbers.mako"/>\
<%namespace name="reflector" file="/factor/reflector.mako"/>\
<%
complex_ = dt.is_complex
def times(a, b): return f"(T)({a}.x * {b}.x - {a}.y * {b}.y, {a}.x * {b}.y + {a}.y * {b}.x)" if complex_ else f"{a} * {b}"
def each(what, join=', '): return join.join(what.format(s) for s in range(4))
%>\
${headers}\
typedef ${I} I;
${numbers.helpers(dt, memory, lane_memory, gpu, lanes, ('load', 'store'), sums=True)}\
#define CLT_WHOLE
__attribute__((reqd_work_group_size(${lanes if gpu else 1}, 1, 1)))
__kernel void ${fn}(__global T *a, __global T *v, __global T *inverse, __global T *product, const I count, const I n, const I step) {
% if gpu:
    __local R sizes[${lanes}];
    __local T sums[${lanes}];
% endif
    const I m = n, below = n - 1;
    for (I z = (I)get_group_id(0); z < count; z += (I)get_num_groups(0)) {
        __global T *p = a + z * n * step, *w = product + z * n;
        for (I j = 0; j < below; ++j) {
            __global T *x = p + j * step, *u = v + (z * below + j) * below;
${reflector.find('x', 'j + 1')}\
            if (LANE == 0) {
                x[j + 1] = end;
                inverse[z * below + j] = IS_ZERO(factor) ? OF_REAL(INFINITY) : DIV(ONE, factor);
                for (I i = 0; i < j; ++i) u[i] = 0;
                u[j] = ONE;
            }
<%numbers:rows first="j + 2">\
                STORE(u + i - 1, LOAD(x + i, n), n);
                STORE(x + i, (F)(0), n);
</%numbers:rows>\
            SYNC;
            ## Four columns at a time; past the last column, the last one is taken again and changes nothing.
            for (I c = j + 1; c < m; c += 4) {
                __global const T ${each("*q{0} = p + min(c + {0}, m - 1) * step")};
                const F ${each("b{0} = SPREAD(c + {0} < m ? u[c + {0} - 1] : (T)(0))")};
<%numbers:rows first="0">\
                    F y = c > j + 1 ? LOAD(w + i, n) : (F)(0);
% for s in range(4):
                    y = clt_less(y, LOAD(q${s} + i, n), b${s});
% endfor
                    STORE(w + i, y, n);
</%numbers:rows>\
            }
            for (I c = j + 1; c < m; c += 4) {
                const int many = (int)min(m - c, (I)4);
                __global T ${each("*q{0} = p + min(c + {0}, m - 1) * step")};
                const T ${each("g{0} = " + ("(T)(u[min(c + {0}, m - 1) - 1].x, -u[min(c + {0}, m - 1) - 1].y)" if complex_ else "u[min(c + {0}, m - 1) - 1]"))};
                ## w is -A v, and A H = A - tau A v v^H.
                const F ${each("b{0} = SPREAD(-(" + times('factor', 'g{0}') + "))")};
                F ${each("d{0} = 0")};
<%numbers:rows first="0">\
                    const F y = LOAD(w + i, n);
% for s in range(4):
                    if (${s} < many) STORE(q${s} + i, clt_less(LOAD(q${s} + i, n), y, b${s}), n);
% endfor
</%numbers:rows>\
                SYNC;
<%numbers:rows first="j + 1">\
                    const F y = clt_clip(LOAD(u + i - 1, n), n);
% for s in range(4):
                    d${s} = clt_plus_conj(d${s}, y, LOAD(q${s} + i, n));
% endfor
</%numbers:rows>\
                T by[4], all[4] = {${each('SUM(d{0})')}};
                for (int s = 0; s < 4; ++s) {
                    T sum = all[s];
${reflector.add('sum')}\
                    by[s] = ${'(T)(factor.x * sum.x + factor.y * sum.y, factor.x * sum.y - factor.y * sum.x)' if complex_ else 'factor * sum'};
                }
<%numbers:rows first="j + 1">\
                    const F y = LOAD(u + i - 1, n);
% for s in range(4):
                    if (${s} < many) STORE(q${s} + i, clt_less(LOAD(q${s} + i, n), y, SPREAD(by[${s}])), n);
% endfor
</%numbers:rows>\
                SYNC;
            }
        }
    }
}
