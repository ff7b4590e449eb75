<%doc>
Correlation for devices where a work-item is a thread's loop over wide vectors (work-groups of one).

Work-item (x, y, z) makes `span` panels of MR output channels from panel y * span on, of group z, for box x of output positions.
It goes through the input channels `part` at a time: copies the box (conv_patch.mako), then for `block` panels at a time (their
weights stay in cache), for every NR positions and every panel runs a register tile of MR x NR over channels and taps.
NR = NV * V. Sums between parts lie in the output.
Variables: fn ta to acc load loadv store storev MR NV V room longs headers.
</%doc>
<%namespace name="patch" file="conv_patch.mako"/>\
<%
NR = NV * V
av = f"{acc}{V}"
%>\
% for h in headers:
${h}
% endfor
${patch.types()}
${patch.copies()}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${ta} *X, __global const ${acc} *filters, __global const int *shift, __global ${to} *Y, __global const ${ta} *D,
    int has_bias, ${', '.join(f'const long {name}' for name in longs)})
{
    __local ${acc} xp[${room + NR}] __attribute__((aligned(64)));
    __local ${acc} tile[${MR * NR}] __attribute__((aligned(64)));
${patch.geometry()}
    const long group = get_global_id(2), panels = (rows + ${MR - 1}) / ${MR};
    const long pb = get_global_id(1) * span, pe = min(pb + span, panels);
    const long m0 = (p0 + b0 - 1) / b0, m1 = (p1 + b1 - 1) / b1, m2 = (p2 + b2 - 1) / b2, box = get_global_id(0);
    const long i2 = box % m2 * b2, i1 = box / m2 % m1 * b1, i0 = box / (m2 * m1) % m0 * b0, ib = box / (m2 * m1 * m0) * n;
    const long nb = min(n, batch - ib), n0 = min(b0, p0 - i0), n1 = min(b1, p1 - i1), n2 = min(b2, p2 - i2);
    const long Q = (((nb - 1) * e0 + n0 - 1) * e1 + n1 - 1) * e2 + n2;
    __global ${to} *Yg = Y + y_off + group * y_g + ib * y_b + i0 * y_0 + i1 * y_1 + i2 * y_2;
    for (long cb = 0; cb == 0 || cb < channels; cb += part) {
        const long cn = min(part, channels - cb);
        ${patch.copy_box("cb", "cn")}
        for (long pi = pb; pi < pe; pi += block)
        for (long q = 0; q < Q; q += ${NR}) {
            for (long panel = pi; panel < min(pi + block, pe); panel++) {
                __global const ${acc} *a = filters + ((group * panels + panel) * channels + cb) * taps * ${MR};
% for r in range(MR):
                ${av} ${', '.join(f"t{r}_{v} = 0" for v in range(NV))};
% endfor
                __local const ${acc} *x = xp + q;
                for (long c = 0; c < cn; c++, x += plane)
                    for (long t = 0; t < taps; t++, a += ${MR}) {
                        __local const ${acc} *b = x + shift[t];
% for v in range(NV):
                        const ${av} b${v}_ = *(__local const ${av}_u *)(b + ${v * V});
% endfor
% for r in range(MR):
                        {
                            const ${av} w = a[${r}];
% for v in range(NV):
                            t${r}_${v} = w * b${v}_ + t${r}_${v};
% endfor
                        }
% endfor
                    }
% for r in range(MR):
% for v in range(NV):
                *(__local ${av}_u *)(tile + ${(r * NV + v) * V}) = t${r}_${v};
% endfor
% endfor
                const long o0 = panel * ${MR}, live = min(rows - o0, (long)${MR});
                // The positions of the tile, one piece of an output row at a time.
                for (long j = 0; j < ${NR};) {
                    const long at = q + j, j2 = at % e2, row = at / e2, j1 = row % e1, j0 = row / e1 % e0, jb = row / (e1 * e0);
                    const long rest = min(e2 - j2, ${NR} - j), run = min(n2 - j2, rest);
                    if (run > 0 && j1 < n1 && j0 < n0 && jb < nb) {
                        __global ${to} *y = Yg + o0 * y_o + jb * y_b + j0 * y_0 + j1 * y_1 + j2 * y_2;
                        PLAIN
                        for (long r = 0; r < live; r++, y += y_o) {
                            __local const ${acc} *s = tile + r * ${NR} + j;
                            const ${acc} shifted = has_bias && cb == 0 ? ${load("D[d_off + group * d_g + (o0 + r) * d_o]")} : 0;
                            long i = 0;
                            if (y_2 == 1)
                                for (; i + ${V} <= run; i += ${V}) {
                                    ${av} value = *(__local const ${av}_u *)(s + i) + shifted;
                                    if (cb) value += ${loadv("y + i", "to")};
                                    ${storev("value", "y + i")};
                                }
                            PLAIN
                            for (; i < run; i++) {
                                ${acc} value = s[i] + shifted;
                                if (cb) value += ${load("y[i * y_2]", "to")};
                                ${store("value", "y", "i * y_2")};
                            }
                        }
                    }
                    j += rest;
                }
            }
        }
    }
}
