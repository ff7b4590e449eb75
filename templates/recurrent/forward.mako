<%doc>
All steps of a recurrent layer in one launch: the rows of a batch do not depend on each other. Each step adds the
product of the state before to the projected input (`by_x`, all gates), and computes the gates while the sums are in
registers.
CPU: a work-item takes `share` rows, by vectors. GPU: a work-group does; ${lanes} lanes compute a unit each, and `parts`
such sets of lanes share the terms of the product. A plan lists the first row of the data and the number of rows of each
step; without one every step has `batch` rows. With `trace`, what backward.mako needs is stored: the gates (gru: r, z, n
and r's other factor) and the states before each step.
</%doc>\
<%namespace name="steps" file="steps.mako"/>\
<% N = G * U %>\
${steps.helpers()}
${steps.gates()}
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(${lanes * parts if gpu else 1}, 1, 1)))
void ${fn}(__global const T *by_x, const long by_x_o, __global const T *h0, const long h0_o,
% if mode == 'lstm':
    __global const T *c0, const long c0_o, __global T *cells, __global T *cn,
% endif
% if trace:
    __global T *kept, __global T *before,
% endif
% if plan:
    __global const long *plan,
% endif
    __global T *out, __global T *hn, __global const T *packed,
    const long batch, const long steps, const long width, const int reverse, const long share)
{
${steps.lane(N)}\
${steps.rows()}\
    for (long s = 0; s < steps; s++) {
${steps.step('old', 's - 1', 's > 0')}\
${steps.step('now', 's', '1')}\
${steps.step('new', 's + 1', 's + 1 < steps')}\
        const long end = min(until, now_rows);
${steps.blocks()}\
            for (long first = from; first < end; first += ${R}) {
                __global const T *bias = packed + ${'width * %d * width + j' % G if gpu else f'(j * (width + 1) + width) * {N * V}'};
% for r in range(R):
                const long b${r} = min(first + ${r}, end - 1), y${r} = now_at + b${r};
                const int goes${r} = b${r} < old_rows;
                __global const T *x${r} = goes${r} ? out + (old_at + b${r}) * width : h0 + h0_o + b${r} * width;
                F ${', '.join(f'a{r}_{n} = ' + (f'part ? 0 : GET(bias + {n} * width)' if gpu else f'GET(bias + {n} * {V})') for n in range(N))};
% if gpu: ## on their way during the product
                F ${', '.join(f'g{r}_{g} = part ? 0 : by_x[by_x_o + (y{r} * {G} + {g}) * width + j]' for g in range(G))};
% endif
% endfor
${steps.product(N, 'width', 'width + 1')}\
% if gpu:
${steps.joined(N)}\
% endif
% for u in range(U):
                const long i${u} = START(j * ${U} + ${u});
% for r in range(R):
${gates(r, u, [f'a{r}_{g * U + u}' for g in range(G)])}\
% endfor
% endfor
% if gpu:
${steps.ended()}\
            }
% endif
            }
% if gpu:
        barrier(CLK_GLOBAL_MEM_FENCE);
% endif
    }
}
## Compute the gates of row r and vector u of the block from the sums `a`.
<%def name="gates(r, u, a)">\
<%
def x(g):
    return f'g{r}_{g}' if gpu else f'GET(bx + {g} * width)'
kept = 4 if mode in ('lstm', 'gru') else 1
%>\
                {
% if not gpu:
                    __global const T *bx = by_x + by_x_o + y${r} * ${G} * width + i${u};
% endif
% if mode == 'lstm':
                    const F i = sigmoid(${a[0]} + ${x(0)}), f = sigmoid(${a[1]} + ${x(1)}), g = hyperbolic(${a[2]} + ${x(2)}), o = sigmoid(${a[3]} + ${x(3)});
                    const F c = f * GET((goes${r} ? cells + (old_at + b${r}) * width : c0 + c0_o + b${r} * width) + i${u}) + i * g;
                    const F h = o * hyperbolic(c);
                    AT(cells + y${r} * width + i${u}) = c;
% elif mode == 'gru':
                    const F r = sigmoid(${a[0]} + ${x(0)}), z = sigmoid(${a[1]} + ${x(1)}), n = hyperbolic(${x(2)} + r * ${a[2]});
                    const F h = n + z * (GET(x${r} + i${u}) - n);
% elif mode == 'rnn_tanh':
                    const F h = hyperbolic(${a[0]} + ${x(0)});
% else:
                    const F sum = ${a[0]} + ${x(0)}, h = sum < 0 ? (F)(0) : sum;
% endif
% if trace:
                    __global T *k = kept + y${r} * ${kept} * width + i${u};
% for g, name in enumerate({'lstm': 'ifgo', 'gru': ['r', 'z', 'n', a[-1]]}.get(mode, 'h')):
                    AT(k + ${g} * width) = ${name};
% endfor
                    AT(before + y${r} * width + i${u}) = GET(x${r} + i${u});
% endif
                    AT(out + y${r} * width + i${u}) = h;
                    if (b${r} >= new_rows) {
                        AT(hn + b${r} * width + i${u}) = h;
% if mode == 'lstm':
                        AT(cn + b${r} * width + i${u}) = c;
% endif
                    }
                }
</%def>\
