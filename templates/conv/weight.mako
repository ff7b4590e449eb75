<%doc>
Weight gradient of a correlation for devices where a work-item is a thread's loop over wide vectors (work-groups of one).

Work-item (x, y, z): boxes x * each .. x * each + each - 1, block y of `span` output channels by `part` input channels, group z. Box by box it
copies input and output gradient into local memory as rows of equal length (conv/patch.mako; zeros at junk positions), then for
every RO output channels and RC pairs of input channel and tap multiplies along the positions, RO x RC sums in registers.
Result: partial sums [piece, group, output channel, input channel, tap], dense.
Variables: fn ta acc load loadv RO RC V room longs headers unaligned.
</%doc>
<%namespace name="patch" file="patch.mako"/>\
<% av = f"{acc}{V}" %>\
% for h in headers:
${h}
% endfor
${patch.types()}
${patch.copies()}
${patch.total()}
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${ta} *X, __global const ${ta} *Y, __global const int *shift, __global ${acc} *out,
    ${', '.join(f'const long {name}' for name in longs)})
{
    __local ${acc} xp[${room + V}] __attribute__((aligned(64)));
${patch.geometry()}
    const long group = get_global_id(2), across = (channels + part - 1) / part;
    const long cb = get_global_id(1) % across * part, cn = MIN(part, channels - cb);
    const long ob = get_global_id(1) / across * span, on = MIN(span, rows - ob);
    const long m0 = (p0 + b0 - 1) / b0, m1 = (p1 + b1 - 1) / b1, m2 = (p2 + b2 - 1) / b2;
    const long boxes = m0 * m1 * m2, first = get_global_id(0) * each;
    const long last = MIN(first + each, (batch + n - 1) / n * boxes);
    out += ((get_global_id(0) * groups + group) * rows + ob) * channels * taps + cb * taps;
    PLAIN
    for (long o = 0; o < on; o++)
        PLAIN
        for (long k = 0; k < cn * taps; k++)
            out[o * channels * taps + k] = 0;
    __local ${acc} *yp = xp + cn * plane + tail;
    for (long at = first; at < last; at++) {
        const long ib = at / boxes * n, box = at % boxes;
        const long i2 = box % m2 * b2, i1 = box / m2 % m1 * b1, i0 = box / (m2 * m1) * b0;
        const long nb = MIN(n, batch - ib), n0 = MIN(b0, p0 - i0), n1 = MIN(b1, p1 - i1), n2 = MIN(b2, p2 - i2);
        const long Q = (((nb - 1) * e0 + n0 - 1) * e1 + n1 - 1) * e2 + n2, full = (Q + ${V - 1}) / ${V} * ${V};
        ${patch.copy_box("cb", "cn")}
        for (long o = 0; o < on; o++) {
            __local ${acc} *q = yp + o * full;
            clear(q, full);
            for (long b = 0; b < nb; b++)
                for (long j0 = 0; j0 < n0; j0++)
                    for (long j1 = 0; j1 < n1; j1++)
                        copy_row(q + ((b * e0 + j0) * e1 + j1) * e2, Y + y_off + group * y_g + (ib + b) * y_b + (ob + o) * y_o
                            + (i0 + j0) * y_0 + (i1 + j1) * y_1 + i2 * y_2, y_2, n2);
        }
        ## Taps are the inner loop, as those of a channel read the same input, while RO rows of the output's gradient
        ## stay in the nearest cache.
        for (long o = 0; o < on; o += ${RO}) {
% for r in range(RO):
            __local const ${acc} *y${r} = yp + MIN(o + ${r}, on - 1) * full;
% endfor
            for (long k = 0, c = 0, t = 0; k < cn * taps; k += ${RC}) {
                ## Columns of the tile past the end repeat the last one and are not kept.
% for c in range(RC):
                __local const ${acc} *x${c} = xp + c * plane + shift[t];
                if (k + ${c + 1} < cn * taps && ++t == taps) { t = 0; ++c; }
% endfor
% for r in range(RO):
                ${av} ${', '.join(f"s{r}_{c} = 0" for c in range(RC))};
% endfor
                for (long q = 0; q < full; q += ${V}) {
% for c in range(RC):
                    const ${av} u${c} = *(__local const ${av}_u *)(x${c} + q);
% endfor
% for r in range(RO):
                    {
                        const ${av} v = *(__local const ${av}_u *)(y${r} + q);
% for c in range(RC):
                        s${r}_${c} = v * u${c} + s${r}_${c};
% endfor
                    }
% endfor
                }
% for r in range(RO):
                if (o + ${r} < on) {
                    __global ${acc} *to = out + (o + ${r}) * channels * taps + k;
% for c in range(RC):
                    if (k + ${c} < cn * taps) to[${c}] += total(s${r}_${c});
% endfor
                }
% endfor
            }
        }
    }
}
