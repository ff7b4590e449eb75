<%doc>
The patches of a correlation as an operand of a matrix product (im2col): u[g, c, tap, b, p] is the input that output p
of image b reads at a tap of channel c, zero where that is outside the input. Places are adjacent; u_g, u_k (of channel
and tap) and u_b are strides. Work-item (x, y, z): `span` channels from x * span on, of `many` images from y * many on,
group z.
Variables: fn ta acc load loadv V longs headers unaligned.
</%doc>
<%namespace name="patch" file="patch.mako"/>\
% for h in headers:
${h}
% endfor
${patch.types()}
${patch.copies("__global")}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${ta} *X, __global ${acc} *U, ${', '.join(f'const long {name}' for name in longs)})
{
    const long first = get_global_id(1) * many, g = get_global_id(2), cb = get_global_id(0) * span, ce = MIN(cb + span, channels);
    for (long c = cb; c < ce; c++)
        for (long t = 0; t < k0 * k1 * k2; t++) {
            const long r0 = t / (k1 * k2) * step0 - pad0, r1 = t / k2 % k1 * step1 - pad1, r2 = t % k2 * step2 - pad2;
            const long lo = MIN(r2 < 0 ? (-r2 + stride2 - 1) / stride2 : 0L, p2);
            const long hi = MAX(MIN(s2 > r2 ? (s2 - r2 + stride2 - 1) / stride2 : 0L, p2), lo);
            for (long b = first; b < first + many; b++) {
                __global const ${ta} *x = X + x_off + g * x_g + b * x_b + c * x_c + (r2 + lo * stride2) * x_2;
                __global ${acc} *q = U + g * u_g + b * u_b + (c * k0 * k1 * k2 + t) * u_k;
                for (long i0 = 0, a0 = r0; i0 < p0; i0++, a0 += stride0)
                    for (long i1 = 0, a1 = r1; i1 < p1; i1++, a1 += stride1, q += p2) {
                        if (a0 < 0 || a0 >= s0 || a1 < 0 || a1 >= s1) {
                            clear(q, p2);
                            continue;
                        }
                        clear(q, lo);
                        copy_row(q + lo, x + a0 * x_0 + a1 * x_1, stride2 * x_2, hi - lo);
                        clear(q + hi, p2 - hi);
                    }
            }
        }
}
