<%doc>
Second pass of templates/conv/winograd_weight.mako: adds up its pieces u and makes G^T u G, the gradient of 3 x 3
filters, dense [group, row, channel, 9]. Work-item (x, y, z) makes `each` vectors of channels from x * each on, of row y
of group z.
Variables: fn MR NV V longs limits.
</%doc>
<% fv = f"float{V}" %>\
${limits}
typedef ${fv} ${fv}_u __attribute__((aligned(4)));
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const float *in, __global float *out, ${', '.join(f'const long {name}' for name in longs)})
{
    __local float taps[${9 * V}] __attribute__((aligned(64)));
    const long row = get_global_id(1), group = get_global_id(2), rows = get_global_size(1), groups = get_global_size(2);
    const long vectors = (channels + ${NV * V - 1}) / ${NV * V} * ${NV}, high = (rows + ${MR - 1}) / ${MR} * ${MR}, plane = high * vectors * ${V};
    const long first = get_global_id(0) * each;
    for (long v = first; v < MIN(first + each, (channels + ${V - 1}) / ${V}); v++) {
        __global const float *p = in + group * 16 * plane + (row * vectors + v) * ${V};
% for i in range(16):
        ${fv} u${i} = *(__global const ${fv}_u *)(p + ${i} * plane);
% endfor
        for (long piece = 1; piece < pieces; piece++) {
            p += groups * 16 * plane;
% for i in range(16):
            u${i} += *(__global const ${fv}_u *)(p + ${i} * plane);
% endfor
        }
% for c in range(4):
        const ${fv} h${c} = 0.5f * (u${4 + c} + u${8 + c});
        const ${fv} g0${c} = u${c} + h${c}, g1${c} = 0.5f * (u${4 + c} - u${8 + c}), g2${c} = h${c} + u${12 + c};
% endfor
% for i in range(3):
        {
            const ${fv} h = 0.5f * (g${i}1 + g${i}2);
            *(__local ${fv}_u *)(taps + ${3 * i * V}) = g${i}0 + h;
            *(__local ${fv}_u *)(taps + ${(3 * i + 1) * V}) = 0.5f * (g${i}1 - g${i}2);
            *(__local ${fv}_u *)(taps + ${(3 * i + 2) * V}) = h + g${i}3;
        }
% endfor
        __global float *q = out + ((group * rows + row) * channels + v * ${V}) * 9;
        for (long c = 0; c < MIN(channels - v * ${V}, ${V}L); c++, q += 9)
            for (int k = 0; k < 9; k++)
                q[k] = taps[k * ${V} + c];
    }
}
