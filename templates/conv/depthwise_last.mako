<%doc>
A filter of K x K for each channel of channels-last images, for devices where a work-item is a thread's loop over wide
vectors (work-groups of one): vectors run over the channels.

Work-item x makes rows x * each .. x * each + each - 1 of the outputs, V channels at a time, whose filters it keeps in
local memory. Where all taps' columns are inside the input, R places are summed together, so that inputs they share are
loaded once. Stride S is 1 or 2. With `spread` this is the transposed correlation of stride 2: outputs at even or odd
places use taps at even or odd places of the filter. If fewer than V channels are left, the last V are computed again.
Variables: fn K S R V spread longs headers unaligned.
</%doc>
<%namespace name="patch" file="patch.mako"/>\
<% av = f"float{V}" %>\
% for h in headers:
${h}
% endfor
${patch.types()}
<%def name="weight(k)">*(__local const ${av} *)(w + (ky * ${K} + ${k}) * ${V})</%def>\
## `rows` outputs from column j on, all of whose taps' columns lie inside the image.
<%def name="strip(rows)">\
{
    __global const float *x = row + (j * ${S} - pad2) * x_2;
    ${av} ${', '.join(f't{r} = shift' for r in range(rows))};
    for (long ky = k0; ky < k1; ky++, x += x_1) {
% for u in range((rows - 1) * S + K):
        const ${av} v${u} = *(__global const ${av}_u *)(x + ${u} * x_2);
% endfor
% for k in range(K):
        {
            const ${av} f = ${weight(k)};
% for r in range(rows):
            t${r} = f * v${r * S + k} + t${r};
% endfor
        }
% endfor
    }
% for r in range(rows):
    *(__global ${av}_u *)(to + (j + ${r}) * y_2) = t${r};
% endfor
}
</%def>\
## One output at an edge, some of whose taps may lie outside the image.
<%def name="edge()">\
{
    const long from = j * ${S} - pad2, kb = MAX(-from, 0L), ke = MIN(${K}L, s2 - from);
    __global const float *x = row + from * x_2;
    ${av} t = shift;
    for (long ky = k0; ky < k1; ky++, x += x_1)
        for (long k = kb; k < ke; k++)
            t = ${weight('k')} * *(__global const ${av}_u *)(x + k * x_2) + t;
    *(__global ${av}_u *)(to + j * y_2) = t;
}
</%def>\
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const float *X, __global const float *F, __global float *Y, __global const float *D, int has_bias,
    ${', '.join(f'const long {name}' for name in longs)})
{
    __local float w[${K * K * V}] __attribute__((aligned(64))), shifts[${V}] __attribute__((aligned(64)));
    const long begin = get_global_id(0) * each, end = MIN(begin + each, batch * p1);
    for (long c = 0; c < groups; c += ${V}) {
        c = MIN(c, groups - ${V});
        __global const float *f = F + f_off + c * f_g;
        PLAIN
        for (int lane = 0; lane < ${V}; lane++) {
            PLAIN
            for (int k = 0; k < ${K * K}; k++)
                w[k * ${V} + lane] = f[lane * f_g + k / ${K} * f_1 + k % ${K} * f_2];
            shifts[lane] = has_bias ? D[d_off + (c + lane) * d_g] : 0;
        }
        const ${av} shift = *(__local const ${av} *)shifts;
        for (long r = begin; r < end; r++) {
            const long b = r / p1, i = r % p1;
            __global const float *image = X + x_off + b * x_b + c;
            __global float *to = Y + y_off + b * y_b + i * y_1 + c;
% if spread:
            for (long j = 0; j < p2; j++) {
                ${av} t = shift;
                for (long ky = (i + pad1) % 2, u = (i + pad1) / 2; ky < ${K} && u >= 0; ky += 2, u--)
                    if (u < s1) {
                        __global const float *row = image + u * x_1;
                        for (long k = (j + pad2) % 2, v = (j + pad2) / 2; k < ${K} && v >= 0; k += 2, v--)
                            if (v < s2)
                                t = ${weight('k')} * *(__global const ${av}_u *)(row + v * x_2) + t;
                    }
                *(__global ${av}_u *)(to + j * y_2) = t;
            }
% else:
            const long top = i * ${S} - pad1, k0 = MAX(-top, 0L), k1 = MIN(${K}L, s1 - top);
            __global const float *row = image + (top + k0) * x_1;
            const long whole = s2 + pad2 - ${K}, first = MIN((pad2 + ${S - 1}) / ${S}, p2);
            const long last = MAX(first, whole < 0 ? 0L : MIN(whole / ${S} + 1, p2));
            long j = 0;
            for (; j < first; j++)
                ${edge()}
            for (; j + ${R} <= last; j += ${R})
                ${strip(R)}
            for (; j < last; j++)
                ${strip(1)}
            for (; j < p2; j++)
                ${edge()}
% endif
        }
    }
}
