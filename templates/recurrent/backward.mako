<%doc>
The gradient through all steps of a recurrent layer in one launch, from the last step to the first: a state's gradient
from the step after is the product of that step's slopes (the gradient of the gates' sums, before their functions) and
the weights. The kernel stores the slopes, for the products that give the other gradients; in gru also those of the
projected input. One more round, s = -1, gives the gradients of the first states: rows not active at step s began at the
step after. Schedules and plan as in forward.mako. `carry` holds, for two steps alternately, the gradient that bypasses
the product.
</%doc>\
<%namespace name="steps" file="steps.mako"/>\
<% gated = mode in ('lstm', 'gru') %>\
${steps.helpers()}
${steps.gates()}
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(${lanes * parts if gpu else 1}, 1, 1)))
void ${fn}(__global const T *grad, const long grad_o, __global const T *gh, const long gh_o,
% if mode == 'lstm':
    __global const T *gc, const long gc_o, __global const T *c0, const long c0_o, __global const T *cells, __global T *gc0,
% elif mode == 'gru':
    __global const T *before, __global T *x_slopes,
% endif
% if gated:
    __global T *carry,
% endif
% if plan:
    __global const long *plan,
% endif
    __global const T *kept, __global T *slopes, __global T *gh0, __global const T *packed, const long packed_o,
    const long batch, const long steps, const long width, const int reverse, const long share)
{
${steps.lane(U)}\
    packed += packed_o;
${steps.rows()}\
    for (long s = steps - 1; s >= -1; s--) {
${steps.step('old', 's - 1', 's > 0')}\
${steps.step('now', 's', 's >= 0')}\
${steps.step('new', 's + 1', 's + 1 < steps')}\
        const long end = min(until, max(now_rows, new_rows));
% if gated:
        __global const T *carried = carry + (s + 1 & 1) * batch * width;
        __global T *next = carry + (s & 1) * batch * width;
% endif
${steps.blocks()}\
            for (long first = from; first < end; first += ${R}) {
% for r in range(R):
                const long b${r} = min(first + ${r}, end - 1), y${r} = now_at + b${r};
                F ${', '.join(f'a{r}_{u} = 0' for u in range(U))};
% endfor
                if (new_rows > first) { // otherwise none of these rows has a next step, and the reads would hit another work-item's rows
% for r in range(R):
                __global const T *x${r} = slopes + (new_at + min(b${r}, new_rows - 1)) * ${G} * width;
% endfor
${steps.product(U, f'{G} * width', f'{G} * width')}\
                }
% if gpu:
${steps.joined(U)}\
% endif
% for u in range(U):
                const long i${u} = START(j * ${U} + ${u});
% for r in range(R):
${slope(r, u)}\
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
## Compute the gradients of row r and vector u of the block.
<%def name="slope(r, u)">\
                {
                    const long at = b${r} * width + i${u};
                    const int goes = b${r} < new_rows;
                    F h = goes ? a${r}_${u}${' + GET(carried + at)' if mode == 'gru' else ''} : GET(gh + gh_o + at);
                    if (b${r} >= now_rows) {
                        AT(gh0 + at) = h;
% if mode == 'lstm':
                        AT(gc0 + at) = GET(carried + at);
% endif
                    } else {
                        h += GET(grad + grad_o + y${r} * width + i${u});
                        __global const T *k = kept + y${r} * ${4 if gated else 1} * width + i${u};
                        __global T *out = slopes + y${r} * ${G} * width + i${u};
% if mode == 'lstm':
                        const F i = GET(k), f = GET(k + width), g = GET(k + 2 * width), o = GET(k + 3 * width);
                        const F c = GET((b${r} < old_rows ? cells + (old_at + b${r}) * width : c0 + c0_o + b${r} * width) + i${u});
                        const F t = hyperbolic(f * c + i * g);
                        const F by_c = (goes ? GET(carried + at) : GET(gc + gc_o + at)) + h * o * (1 - t * t);
                        AT(out) = by_c * g * i * (1 - i);
                        AT(out + width) = by_c * c * f * (1 - f);
                        AT(out + 2 * width) = by_c * i * (1 - g * g);
                        AT(out + 3 * width) = h * t * o * (1 - o);
                        AT(next + at) = by_c * f;
% elif mode == 'gru':
                        const F r = GET(k), z = GET(k + width), n = GET(k + 2 * width), product = GET(k + 3 * width);
                        const F by_n = h * (1 - z) * (1 - n * n), by_r = by_n * product * r * (1 - r);
                        const F by_z = h * (GET(before + y${r} * width + i${u}) - n) * z * (1 - z);
                        __global T *x = x_slopes + y${r} * ${G} * width + i${u};
                        AT(out) = by_r; AT(out + width) = by_z; AT(out + 2 * width) = by_n * r;
                        AT(x) = by_r; AT(x + width) = by_z; AT(x + 2 * width) = by_n;
                        AT(next + at) = h * z;
% elif mode == 'rnn_tanh':
                        const F y = GET(k);
                        AT(out) = h * (1 - y * y);
% else:
                        const F y = GET(k);
                        AT(out) = y > 0 ? h : (F)(0);
% endif
                    }
                }
</%def>\
