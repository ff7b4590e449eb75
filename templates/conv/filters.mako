<%doc>
Prepares what a convolution on a CPU reads besides its input, once per call. filters: weights as panels of MR output
channels, [group, panel, channel, tap, MR], zeros past the last channel. shift: each tap's distance from an output
position in the box (conv/patch.mako). Work-item (x, y) makes panel x of group y; the first also makes the shifts.

`spread`: for the transposed correlation. Output places of remainder (r0, r1, r2) by the stride take the taps k for
which r + pad - k * step is a multiple of the stride: every m-th from the first such on. Weights are [group, panel,
remainder, channel, tap of it, MR]; a tap's place in the box is counted from `low`. The shifts of all remainders are
concatenated, followed by the offsets at which each remainder's begin, and their end.
Variables: fn ta acc load MR longs headers spread.
</%doc>
<%namespace name="patch" file="patch.mako"/>\
<%def name="weights()" filter="trim">
if (live == ${MR})
                    for (long t2 = from2; t2 < k2; t2 += m2, from += m2 * f_2, q += ${MR}) {
% for r in range(MR):
                        q[${r}] = ${load(f"from[{r} * f_o]")};
% endfor
                    }
                else
                    for (long t2 = from2; t2 < k2; t2 += m2, from += m2 * f_2, q += ${MR})
                        for (int r = 0; r < ${MR}; r++)
                            q[r] = r < live ? ${load("from[r * f_o]")} : 0;
</%def>\
% for h in headers:
${h}
% endfor
% if spread:
## The first of k taps that outputs of one remainder of the stride use, or k if they use none. r: that remainder plus
## the padding.
static long first_tap(long r, long stride, long step, long k)
{
    for (long t = 0; t < MIN(stride, k); t++)
        if ((r - t * step) % stride == 0) return t;
    return k;
}

% endif
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${ta} *F, __global ${acc} *filters, __global int *shift, ${', '.join(f'const long {name}' for name in longs)})
{
${patch.geometry()}
    const long panel = get_global_id(0), group = get_global_id(1);
% if spread:
    const long remainders = stride0 * stride1 * stride2;
    if (panel == 0 && group == 0) {
        int next = 0;
        for (long rem = 0; rem < remainders; rem++) {
            const long r0 = rem / (stride1 * stride2) + pad0, r1 = rem / stride2 % stride1 + pad1, r2 = rem % stride2 + pad2;
            shift[taps + rem] = next;
            for (long t0 = first_tap(r0, stride0, step0, k0); t0 < k0; t0 += m0)
                for (long t1 = first_tap(r1, stride1, step1, k1); t1 < k1; t1 += m1)
                    for (long t2 = first_tap(r2, stride2, step2, k2); t2 < k2; t2 += m2)
                        shift[next++] = (((r0 - t0 * step0) / stride0 - low0) * e1 + (r1 - t1 * step1) / stride1 - low1) * e2
                            + (r2 - t2 * step2) / stride2 - low2;
        }
        shift[taps + remainders] = next;
    }
% else:
    const long from2 = 0, m2 = 1;
    if (panel == 0 && group == 0)
        for (long t = 0; t < taps; t++) {
            const long t0 = t / (k1 * k2), t1 = t / k2 % k1, t2 = t % k2;
            const long phase = (t0 % h0 * h1 + t1 % h1) * h2 + t2 % h2;
            shift[t] = phase * n * area + (t0 * step0 / stride0 * e1 + t1 * step1 / stride1) * e2 + t2 * step2 / stride2;
        }
% endif
% if MR:
    __global ${acc} *q = filters + (group * get_global_size(0) + panel) * channels * taps * ${MR};
    __global const ${ta} *p = F + f_off + group * f_g + panel * ${MR} * f_o;
    const int live = (int)MIN(rows - panel * ${MR}, (long)${MR});
% if spread:
    for (long rem = 0; rem < remainders; rem++) {
        const long from0 = first_tap(rem / (stride1 * stride2) + pad0, stride0, step0, k0);
        const long from1 = first_tap(rem / stride2 % stride1 + pad1, stride1, step1, k1), from2 = first_tap(rem % stride2 + pad2, stride2, step2, k2);
        for (long c = 0; c < channels; c++)
            for (long t0 = from0; t0 < k0; t0 += m0)
                for (long t1 = from1; t1 < k1; t1 += m1) {
                    __global const ${ta} *from = p + c * f_c + t0 * f_0 + t1 * f_1 + from2 * f_2;
                    ${weights()}
                }
    }
% else:
    for (long c = 0; c < channels; c++)
        for (long t0 = 0; t0 < k0; t0++)
            for (long t1 = 0; t1 < k1; t1++) {
                __global const ${ta} *from = p + c * f_c + t0 * f_0 + t1 * f_1;
                ${weights()}
            }
% endif
% endif
}
