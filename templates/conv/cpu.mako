<%doc>
Correlation for devices where a work-item is a thread's loop over wide vectors (work-groups of one).

Work-item (x, y, z) makes `span` panels of MR output channels from panel y * span on, of group z, for box x of output
positions. It walks the input channels `part` at a time: copies the box of input (conv/patch.mako), then for `block`
panels at a time (their weights stay in cache), for every NR positions and every panel runs a register tile of MR x NR
over channels and taps. NR = NV * V. Between parts the sums are kept in the output.

`spread`: the transposed correlation. The output has z0 x z1 x z2 places; a position stands for u0 x u1 x u2 of them,
one for each remainder by the stride, and each is summed over the taps that reach its remainder (listed by
conv/filters.mako). Two remainders along the last dim are stored together.
Variables: fn ta to acc load loadv store storev MR NV V room longs headers spread unaligned.
</%doc>
<%namespace name="patch" file="patch.mako"/>\
<%
NR = NV * V
PITCH = NR * (2 if spread else 1)
along = [f"u{d} * y_{d}" if spread else f"y_{d}" for d in range(3)]
av = f"{acc}{V}"
# Vectors for storing outputs, widest first: lanes, type, load and store text.
rows = [(V, f"{av}_u", lambda p: loadv(p, "to"), storev)]
if to == acc:
    rows += [
        (n, f"{acc}{n}_u", lambda p, n=n: f"*(__global const {acc}{n}_u *)({p})", lambda v, p, n=n: f"*(__global {acc}{n}_u *)({p}) = {v}")
        for n in (V // 2, V // 4) if n > 1
    ]
%>\
<%def name="step(at, by)" filter="trim">
for (${at}2 += ${by}; ${at}2 >= e2; ${at}2 -= e2)
                if (++${at}1 == e1) {
                    ${at}1 = 0;
                    if (++${at}0 == e0) { ${at}0 = 0; ++${at}b; }
                }
</%def>\
<%def name="remainders()" filter="trim">
for (long rem = 0; rem < u0 * u1 * u2; rem++) {
                const long first = shift[taps + rem], many = shift[taps + rem + 1] - first, r2 = rem % u2, r1 = rem / u2 % u1, r0 = rem / (u2 * u1);
                __global const int *at = shift + first;
</%def>\
## Sums of one remainder, rows of vectors, in the tile; of two along the last dim the first are kept, and lie between the second.
<%def name="lay(sums)">\
                if (u2 == 2 && r2 == 0) {
% for r, row in enumerate(sums):
% for v, t in enumerate(row):
                    *(__local ${av}_u *)(even + ${r * NR + v * V}) = ${t};
% endfor
% endfor
                    continue;
                }
                if (u2 == 2) {
% for r, row in enumerate(sums):
% for v, t in enumerate(row):
                    {
                        const ${av} odd = ${t}, before = *(__local const ${av}_u *)(even + ${r * NR + v * V});
                        ${av} lo, hi;
                        lo.even = before.lo, lo.odd = odd.lo, hi.even = before.hi, hi.odd = odd.hi;
                        *(__local ${av}_u *)(tile + ${r * PITCH + 2 * v * V}) = lo;
                        *(__local ${av}_u *)(tile + ${r * PITCH + (2 * v + 1) * V}) = hi;
                    }
% endfor
% endfor
                } else {
% for r, row in enumerate(sums):
% for v, t in enumerate(row):
                    *(__local ${av}_u *)(tile + ${r * PITCH + v * V}) = ${t};
% endfor
% endfor
                }
</%def>\
## Store `run` positions of the tile from j on, whose first output is `begin` along its row.
<%def name="spread_out(y, j, begin, d, live)" filter="trim">
                        if (u2 == 2)
                            put(${y} + r0 * y_0 + r1 * y_1, y_o, y_2, tile + 2 * ${j}, ${d}, d_o, has_bias, MIN(2 * run, z2 - ${begin}), ${live}, cb);
                        else
                            put(${y} + r0 * y_0 + r1 * y_1 + r2 * y_2, y_o, u2 * y_2, tile + ${j}, ${d}, d_o, has_bias, MIN(run, (z2 - ${begin} - r2 + u2 - 1) / u2), ${live}, cb);
</%def>\
% for h in headers:
${h}
% endfor
${patch.types()}
${patch.copies()}
## Store `live` rows of n sums, PITCH apart, as rows of outputs: `apart` is the stride between rows, `step` that within
## a row. With `more` the sums are added to the outputs; otherwise, with a bias, row r gets the bias d[r * d_o] added.
## The last vector of a row may overlap the one before.
CLT_WIDE static void put(__global ${to} *y, long apart, long step, __local const ${acc} *s, __global const ${ta} *d, long d_o, int has_bias,
    long n, long live, long more)
{
    const int shifted = has_bias && !more;
% for lanes, kind, read, save in rows:
    if (step == 1 && n >= ${lanes}) {
        PLAIN
        for (long r = 0; r < live; r++, y += apart, s += ${PITCH}) {
            const ${acc} shift = shifted ? ${load("d[r * d_o]")} : 0;
            ${acc}${lanes} last = *(__local const ${kind} *)(s + n - ${lanes}) + shift;
            if (more) last += ${read(f"(y + n - {lanes})")};
            PLAIN
            for (long i = 0; i + ${lanes} < n; i += ${lanes}) {
                ${acc}${lanes} value = *(__local const ${kind} *)(s + i) + shift;
                if (more) value += ${read("(y + i)")};
                ${save("value", "(y + i)")};
            }
            ${save("last", f"(y + n - {lanes})")};
        }
        return;
    }
% endfor
    PLAIN
    for (long r = 0; r < live; r++, y += apart, s += ${PITCH}) {
        const ${acc} shift = shifted ? ${load("d[r * d_o]")} : 0;
        PLAIN
        for (long i = 0; i < n; i++) {
            ${acc} value = s[i] + shift;
            if (more) value += ${load("y[i * step]", "to")};
            ${store("value", "y", "i * step")};
        }
    }
}

#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${ta} *X, __global const ${acc} *filters, __global const int *shift, __global ${to} *Y, __global const ${ta} *D,
    int has_bias, ${', '.join(f'const long {name}' for name in longs)})
{
    __local ${acc} xp[${room + NR}] __attribute__((aligned(64)));
    __local ${acc} tile[${MR * PITCH}] __attribute__((aligned(64)));
% if spread:
    __local ${acc} even[${MR * NR}] __attribute__((aligned(64)));
% endif
${patch.geometry()}
    const long group = get_global_id(2), panels = (rows + ${MR - 1}) / ${MR};
    const long pb = get_global_id(1) * span, pe = MIN(pb + span, panels);
    const long m0 = (p0 + b0 - 1) / b0, m1 = (p1 + b1 - 1) / b1, m2 = (p2 + b2 - 1) / b2, box = get_global_id(0);
    const long i2 = box % m2 * b2, i1 = box / m2 % m1 * b1, i0 = box / (m2 * m1) % m0 * b0, ib = box / (m2 * m1 * m0) * n;
    const long nb = MIN(n, batch - ib), n0 = MIN(b0, p0 - i0), n1 = MIN(b1, p1 - i1), n2 = MIN(b2, p2 - i2);
    const long Q = (((nb - 1) * e0 + n0 - 1) * e1 + n1 - 1) * e2 + n2;
    __global ${to} *Yg = Y + y_off + group * y_g + ib * y_b + i0 * ${along[0]} + i1 * ${along[1]} + i2 * ${along[2]};
    for (long cb = 0; cb == 0 || cb < channels; cb += part) {
        const long cn = MIN(part, channels - cb);
        ${patch.copy_box("cb", "cn")}
% if MR == 1:
        ## One output channel: NV vectors at a time, each within one output row; a row's last vector is moved back to
        ## end with the row and may overlap the one before.
% if not spread:
        const ${acc} shift0 = has_bias && cb == 0 ? ${load("D[d_off + group * d_g]")} : 0;
        const bool whole = cb == 0 && y_2 == 1 && n2 >= ${V};
% endif
        const long slots = nb * n0 * n1 * ((n2 + ${V - 1}) / ${V});
        __local const ${acc} *xr = xp;
        __global ${to} *yr = Yg;
        for (long slot = 0, j2 = 0, j1 = 0, j0 = 0, jb = 0; slot < slots; slot += ${NV}) {
% for v in range(NV):
            const long at${v} = MAX(MIN(j2, n2 - ${V}), 0L), skip${v} = j2 - at${v};
            __local const ${acc} *x${v} = xr + at${v};
% if spread:
            const long from0_${v} = (i0 + j0) * u0, from1_${v} = (i1 + j1) * u1, from2_${v} = (i2 + j2) * u2;
            __global ${to} *y${v} = yr + j2 * ${along[2]};
% else:
            __global ${to} *y${v} = yr + at${v} * y_2;
% endif
            if ((j2 += ${V}) >= n2) {
                j2 = 0;
                xr += e2;
                yr += ${along[1]};
                if (++j1 == n1) {
                    j1 = 0;
                    if (++j0 == n0) { j0 = 0; ++jb; }
                    if (jb == nb) jb = 0; // slots past the last repeat the first ones
                    xr = xp + (jb * e0 + j0) * e1 * e2;
                    yr = Yg + jb * y_b + j0 * ${along[0]};
                }
            }
% endfor
% if spread:
            ${remainders()}
            __global const ${acc} *a = filters + group * channels * taps + first * channels + cb * many;
% else:
            const long many = taps;
            __global const int *at = shift;
            __global const ${acc} *a = filters + (group * channels + cb) * taps;
% endif
% for v in range(NV):
            ${av} t${v} = ${0 if spread else 'shift0'};
% endfor
            for (long c = 0; c < cn; c++)
                for (long t = 0; t < many; t++, a++) {
                    const ${av} w = *a;
                    const long to_tap = c * plane + at[t];
% for v in range(NV):
                    t${v} = w * *(__local const ${av}_u *)(x${v} + to_tap) + t${v};
% endfor
                }
            const long left = slots - slot;
% if not spread:
            if (whole) {
% for v in range(NV):
                ${storev(f"t{v}", f"y{v}")};
% endfor
                continue;
            }
% for v in range(NV):
            *(__local ${av}_u *)(tile + ${v * V}) = t${v};
% endfor
            __global ${to} *const to[] = {${', '.join(f'y{v}' for v in range(NV))}};
            const long skips[] = {${', '.join(f'skip{v}' for v in range(NV))}};
            PLAIN
            for (long v = 0; v < MIN(left, ${NV}L); v++)
                put(to[v] + skips[v] * y_2, 0, y_2, tile + v * ${V} + skips[v], D, 0, 0, MIN(n2, ${V}L) - skips[v], 1, cb);
% else:
${lay([[f"t{v}" for v in range(NV)]])}
            __global ${to} *const to[] = {${', '.join(f'y{v}' for v in range(NV))}};
            const long skips[] = {${', '.join(f'skip{v}' for v in range(NV))}};
            const long froms[][3] = {${', '.join(f'{{from0_{v}, from1_{v}, from2_{v}}}' for v in range(NV))}};
            PLAIN
            for (long v = 0; v < MIN(left, ${NV}L); v++) {
                const long run = MIN(n2, ${V}L) - skips[v];
                if (froms[v][0] + r0 < z0 && froms[v][1] + r1 < z1)
                    ${spread_out("to[v]", f"(v * {V} + skips[v])", "froms[v][2]", "D + d_off + group * d_g", "1")}
            }
            }
% endif
        }
% else:
        for (long pi = pb; pi < pe; pi += block)
        for (long q = 0, q2 = 0, q1 = 0, q0 = 0, qb = 0; q < Q; q += ${NR}) {
            ## Positions behind the outputs of a row, plane or image are skipped: q goes on to the next row, plane or
            ## image.
            if (q2 >= n2) { q += e2 - q2; q2 = 0; ++q1; }
            if (q1 >= n1) { q += (e1 - q1) * e2 - q2; q2 = q1 = 0; ++q0; }
            if (q0 >= n0) { q += ((e0 - q0) * e1 - q1) * e2 - q2; q2 = q1 = q0 = 0; ++qb; }
            if (q >= Q) break;
            for (long panel = pi; panel < MIN(pi + block, pe); panel++) {
% if spread:
                ${remainders()}
                __global const ${acc} *a = filters + ((group * panels + panel) * channels * taps + first * channels + cb * many) * ${MR};
% else:
                const long many = taps;
                __global const int *at = shift;
                __global const ${acc} *a = filters + ((group * panels + panel) * channels + cb) * taps * ${MR};
% endif
% for r in range(MR):
                ${av} ${', '.join(f"t{r}_{v} = 0" for v in range(NV))};
% endfor
                __local const ${acc} *x = xp + q;
                for (long c = 0; c < cn; c++, x += plane)
                    for (long t = 0; t < many; t++, a += ${MR}) {
                        __local const ${acc} *b = x + at[t];
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
                const long o0 = panel * ${MR}, live = MIN(rows - o0, (long)${MR});
% if spread:
${lay([[f"t{r}_{v}" for v in range(NV)] for r in range(MR)])}
% else:
                if (cb == 0 && y_2 == 1 && live == ${MR} && q2 + ${NR} <= n2 && q1 < n1 && q0 < n0) {
                    __global ${to} *y = Yg + o0 * y_o + qb * y_b + q0 * y_0 + q1 * y_1 + q2;
% for r in range(MR):
                    {
                        const ${acc} shifted = has_bias ? ${load(f"D[d_off + group * d_g + (o0 + {r}) * d_o]")} : 0;
% for v in range(NV):
                        ${storev(f"(t{r}_{v} + shifted)", f"y + {r} * y_o + {v * V}")};
% endfor
                    }
% endfor
                    continue;
                }
% for r in range(MR):
% for v in range(NV):
                *(__local ${av}_u *)(tile + ${(r * NV + v) * V}) = t${r}_${v};
% endfor
% endfor
% endif
                ## Store the tile, one run of positions within an output row at a time.
                long j2 = q2, j1 = q1, j0 = q0, jb = qb;
                for (long j = 0; j < ${NR} && jb < nb;) {
                    const long rest = MIN(e2 - j2, ${NR} - j), run = MIN(n2 - j2, rest);
                    if (run > 0 && j1 < n1 && j0 < n0${' && (i1 + j1) * u1 + r1 < z1 && (i0 + j0) * u0 + r0 < z0' if spread else ''}) {
                        __global ${to} *y = Yg + o0 * y_o + jb * y_b + j0 * ${along[0]} + j1 * ${along[1]} + j2 * ${along[2]};
                        __global const ${ta} *d = D + d_off + group * d_g + o0 * d_o;
% if spread:
                        ${spread_out("y", "j", "(i2 + j2) * u2", "d", "live")}
% else:
                        put(y, y_o, y_2, tile + j, d, d_o, has_bias, run, live, cb);
% endif
                    }
                    j += rest;
                    ${step("j", "rest")}
                }
${'                }' if spread else ''}
            }
            ${step("q", NR)}
        }
% endif
    }
}
