<%doc>
What a convolution on a CPU reads besides its input, prepared once per call. filters: weights as panels of MR output channels,
[group, panel, channel, tap, MR], zeros past the last channel. shift: how far from an output position its tap lies in the box
(conv/patch.mako). Work-item (x, y) makes panel x of group y; the first also makes the shifts.
Variables: fn ta to acc load store MR longs headers.
</%doc>
<%namespace name="patch" file="patch.mako"/>\
% for h in headers:
${h}
% endfor
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${ta} *F, __global ${acc} *filters, __global int *shift, ${', '.join(f'const long {name}' for name in longs)})
{
${patch.geometry()}
    const long panel = get_global_id(0), group = get_global_id(1);
    if (panel == 0 && group == 0)
        for (long t = 0; t < taps; t++) {
            const long t0 = t / (k1 * k2), t1 = t / k2 % k1, t2 = t % k2;
            const long phase = (t0 % h0 * h1 + t1 % h1) * h2 + t2 % h2;
            shift[t] = phase * n * area + (t0 * step0 / stride0 * e1 + t1 * step1 / stride1) * e2 + t2 * step2 / stride2;
        }
% if MR:
    __global ${acc} *q = filters + (group * get_global_size(0) + panel) * channels * taps * ${MR};
    __global const ${ta} *p = F + f_off + group * f_g + panel * ${MR} * f_o;
    const int live = (int)MIN(rows - panel * ${MR}, (long)${MR});
    for (long c = 0; c < channels; c++)
        for (long t0 = 0; t0 < k0; t0++)
            for (long t1 = 0; t1 < k1; t1++) {
                __global const ${ta} *from = p + c * f_c + t0 * f_0 + t1 * f_1;
                if (live == ${MR})
                    for (long t2 = 0; t2 < k2; t2++, from += f_2, q += ${MR}) {
% for r in range(MR):
                        q[${r}] = ${load(f"from[{r} * f_o]")};
% endfor
                    }
                else
                    for (long t2 = 0; t2 < k2; t2++, from += f_2, q += ${MR})
                        for (int r = 0; r < ${MR}; r++)
                            q[r] = r < live ? ${load("from[r * f_o]")} : 0;
            }
% endif
}
