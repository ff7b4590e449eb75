<%doc>
Correlation with 3 x 3 filters at stride 1 by Winograd's F(2 x 2, 3 x 3) (Lavin and Gray 2015, arXiv:1509.09308), for
devices where a work-item is a thread's loop over wide vectors (work-groups of one).

A tile is 2 x 2 outputs; it needs 4 x 4 inputs d, which are transformed to 16 numbers B^T d B. Each of the 16 is
multiplied by its own matrix of filters (conv/winograd_filters.mako), and A^T m A of the 16 products m is the tile's
outputs. Tiles are counted over columns, rows and images. Work-item (x, y, z) makes tiles x * T .. x * T + T - 1 in
panels y * span .. y * span + span - 1 (of MR output channels) of group z: `block` panels at a time, summed over `part`
input channels at a time, it
    gathers: the rows of input under a run of neighbouring tiles, zeros outside the input, and from these
             vs[16][part][pitch];
    multiplies: ms[16][block * MR][T], a register tile of MR x NR, NR = NV * V;
    scatters: the outputs of a run of tiles. The transforms add up four inputs, which may overflow where the output
    itself would not, and infinite inputs give NaN: where an output is not finite its run is computed again, by the
    plain sum.
Lanes past the end of a run belong to no tile; the next run overwrites them, or they are past the last tile, and are
never stored.
Variables: fn MR NV V room (floats) tiles (T at most) few (channels gathered at a time) longs limits.
</%doc>
<%
NR = NV * V
fv = f"float{V}"
H = V // 2
hv = f"float{H}"
wide = 2 * tiles + 2 * V + V
%>\
${limits}
#pragma OPENCL FP_CONTRACT ON
## PLAIN marks remainder and copy loops: vectorizing or unrolling them costs compile time and gains nothing.
#define PLAIN _Pragma("clang loop vectorize(disable)") _Pragma("clang loop unroll(disable)")
typedef ${fv} ${fv}_u __attribute__((aligned(4)));
typedef ${hv} ${hv}_u __attribute__((aligned(4)));
#define AT(p) (*(__local ${fv}_u *)(p))

CLT_WIDE static void clear(__local float *q, long n)
{
    long j = 0;
    for (; j + ${V} <= n; j += ${V})
        AT(q + j) = 0;
    PLAIN
    for (; j < n; j++)
        q[j] = 0;
}

## Copy n numbers to local memory; the last vector may overlap the one before.
CLT_WIDE static void copy_in(__local float *q, __global const float *p, long step, long n)
{
    long j = 0;
    if (step == 1 && n >= ${V}) {
        for (; j + ${V} <= n; j += ${V})
            AT(q + j) = *(__global const ${fv}_u *)(p + j);
        AT(q + n - ${V}) = *(__global const ${fv}_u *)(p + n - ${V});
        return;
    }
    if (step == 1 && n >= ${H}) {
        *(__local ${hv}_u *)q = *(__global const ${hv}_u *)p;
        *(__local ${hv}_u *)(q + n - ${H}) = *(__global const ${hv}_u *)(p + n - ${H});
        return;
    }
    PLAIN
    for (; j < n; j++)
        q[j] = p[j * step];
}

## Store the first n <= 2 * V numbers of the vectors a and b.
CLT_WIDE static void copy_out(__global float *p, long step, const ${fv} a, const ${fv} b, __local float *q, long n)
{
    if (step == 1 && n == ${2 * V}) {
        *(__global ${fv}_u *)p = a;
        *(__global ${fv}_u *)(p + ${V}) = b;
        return;
    }
    AT(q) = a;
    AT(q + ${V}) = b;
    long j = 0;
    if (step == 1 && n >= ${V}) {
        *(__global ${fv}_u *)p = a;
        j = ${V};
    }
    PLAIN
    for (; j < n; j++)
        p[j * step] = q[j];
}

// The 16 numbers of V neighbouring tiles whose four rows begin at p, to v and every `plane` on.
CLT_WIDE static void gather(__local const float *p, __local float *v, const long plane)
{
% for i in range(4):
% for name, at in (("a", 0), ("b", V), ("c", 2), ("d", V + 2)):
    const ${fv} ${name}${i} = AT(p + ${i * wide + at});
% endfor
% endfor
% for i, (x, y, sign) in enumerate(((0, 2, "-"), (1, 2, "+"), (2, 1, "-"), (1, 3, "-"))):
    {
% for name in "abcd":
        const ${fv} ${name} = ${name}${x} ${sign} ${name}${y};
% endfor
        const ${fv} t0 = (${fv})(a.even, b.even), t1 = (${fv})(a.odd, b.odd);
        const ${fv} t2 = (${fv})(c.even, d.even), t3 = (${fv})(c.odd, d.odd);
        AT(v + ${4 * i} * plane) = t0 - t2;
        AT(v + ${4 * i + 1} * plane) = t1 + t2;
        AT(v + ${4 * i + 2} * plane) = t2 - t1;
        AT(v + ${4 * i + 3} * plane) = t1 - t3;
    }
% endfor
}

CLT_WIDE static bool some(const int${V} truth)
{
    const int${V} r${V} = truth;
% for n in [V >> k for k in range(1, V.bit_length())]:
    const int${n if n > 1 else ""} r${n} = r${2 * n}.lo | r${2 * n}.hi;
% endfor
    return r1 != 0;
}

## Compute n adjacent outputs of a row, without bias, by plain sums over the taps; the first output's first tap reads
## row r, column c. Stops early once all outputs are nan.
CLT_WIDE static void sum_plainly(__local float *q, __global const float *x, __global const float *f, const long *sizes, long r, long c, long n)
{
    const long channels = sizes[0], s1 = sizes[1], s2 = sizes[2], x_c = sizes[3], x_1 = sizes[4], x_2 = sizes[5];
    PLAIN
    for (long k = 0; k < n + ${V}; k++)
        q[k] = k < n ? 0 : NAN;
    bool live = true;
    for (long channel = 0; channel < channels && live; channel++, x += x_c, f += sizes[6]) {
        for (long i = MAX(-r, 0L); i < MIN(s1 - r, 3L); i++)
            for (long j = 0; j < 3; j++) {
                const float w = f[i * sizes[7] + j * sizes[8]];
                const long hi = MIN(s2 - c - j, n);
                __global const float *p = x + (r + i) * x_1 + (c + j) * x_2;
                long k = MAX(-c - j, 0L);
                if (x_2 == 1)
                    for (; k + ${V} <= hi; k += ${V})
                        AT(q + k) += w * *(__global const ${fv}_u *)(p + k);
                PLAIN
                for (; k < hi; k++)
                    q[k] += w * p[k * x_2];
            }
        live = false;
        for (long k = 0; k < n; k += ${V})
            live |= some(AT(q + k) == AT(q + k));
    }
}

#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const float *X, __global const float *U, __global const float *F, __global float *Y, __global const float *D, int has_bias,
    ${', '.join(f'const long {name}' for name in longs)})
{
    __local float vs[${room}] __attribute__((aligned(64)));
    __local float ms[${room + V}] __attribute__((aligned(64)));
    __local float lines[${few * 4 * wide}] __attribute__((aligned(64)));
    __local float last[${2 * V}] __attribute__((aligned(64)));
    const long sizes[] = {channels, s1, s2, x_c, x_1, x_2, f_c, f_1, f_2};
    const long group = get_global_id(2), panels = (rows + ${MR - 1}) / ${MR};
    const long pb = get_global_id(1) * span, pe = MIN(pb + span, panels);
    const long across = (p2 + 1) / 2, down = (p1 + 1) / 2, first = get_global_id(0) * T;
    const long count = MIN(T, batch * down * across - first), full = (count + ${NR - 1}) / ${NR} * ${NR};
    const long pitch = T + ${V}, v_plane = part * pitch + 16, m_plane = block * ${MR} * T + 16;
    const long place = panels * part * ${MR} + 16, parts = (channels + part - 1) / part;
    for (long pi = pb; pi < pe; pi += block) {
        const long pn = MIN(pi + block, pe);
        for (long cb = 0; cb == 0 || cb < channels; cb += part) {
            const long cn = MIN(part, channels - cb);
            if (pi == pb || part < channels) {
                for (long t = 0; t < count;) {
                    const long j2 = (first + t) % across, j1 = (first + t) / across % down, jb = (first + t) / (across * down);
                    const long run = MIN(across - j2, count - t), need = (run + ${V - 1}) / ${V} * ${2 * V} + 2;
                    const long at1 = 2 * j1 - pad1, at2 = 2 * j2 - pad2;
                    const long lo = MIN(MAX(-at2, 0L), need), hi = MAX(MIN(s2 - at2, 2 * run + 2), lo);
                    __global const float *x = X + x_off + group * x_g + jb * x_b + cb * x_c + at1 * x_1 + (at2 + lo) * x_2;
                    for (long cf = 0; cf < cn; cf += ${few}) {
                        const long ce = MIN(cf + ${few}, cn);
                        __local float *q = lines;
                        for (long c = cf; c < ce; c++)
                            for (long i = 0; i < 4; i++, q += ${wide}) {
                                if (at1 + i < 0 || at1 + i >= s1) {
                                    clear(q, need);
                                    continue;
                                }
                                clear(q, lo);
                                copy_in(q + lo, x + c * x_c + i * x_1, x_2, hi - lo);
                                clear(q + hi, need - hi);
                            }
                        for (long c = cf; c < ce; c++)
                            for (long j = 0; j < run; j += ${V})
                                gather(lines + (c - cf) * ${4 * wide} + 2 * j, vs + c * pitch + t + j, v_plane);
                    }
                    t += run;
                }
                if (count < full)
                    for (long i = 0; i < 16; i++)
                        for (long c = 0; c < cn; c++)
                            clear(vs + i * v_plane + c * pitch + count, full - count);
            }
            for (long i = 0; i < 16; i++)
                for (long panel = pi; panel < pn; panel++)
                    for (long j = 0; j < full; j += ${NR}) {
                        __global const float *a = U + ((group * parts + cb / part) * 16 + i) * place + panel * part * ${MR};
                        __local const float *b = vs + i * v_plane + j;
% for r in range(MR):
                        ${fv} ${', '.join(f"t{r}_{v} = 0" for v in range(NV))};
% endfor
                        for (long c = 0; c < cn; c++, a += ${MR}, b += pitch) {
% for v in range(NV):
                            const ${fv} b${v}_ = AT(b + ${v * V});
% endfor
% for r in range(MR):
                            {
                                const ${fv} w = a[${r}];
% for v in range(NV):
                                t${r}_${v} = w * b${v}_ + t${r}_${v};
% endfor
                            }
% endfor
                        }
                        __local float *m = ms + i * m_plane + (panel - pi) * ${MR} * T + j;
                        if (cb) {
% for r in range(MR):
% for v in range(NV):
                            t${r}_${v} += AT(m + ${r} * T + ${v * V});
% endfor
% endfor
                        }
% for r in range(MR):
% for v in range(NV):
                        AT(m + ${r} * T + ${v * V}) = t${r}_${v};
% endfor
% endfor
                    }
        }
        for (long t = 0; t < count;) {
            const long j2 = (first + t) % across, j1 = (first + t) / across % down, jb = (first + t) / (across * down);
            const long run = MIN(across - j2, count - t);
            __global float *y = Y + y_off + group * y_g + jb * y_b + 2 * j1 * y_1 + 2 * j2 * y_2;
            for (long o = pi * ${MR}; o < MIN(pn * ${MR}, rows); o++) {
                const float bias = has_bias ? D[d_off + group * d_g + o * d_o] : 0;
                ${fv} watch = 0;
                for (long k = 0; k < run; k += ${V}) {
                    ## The last vector of a run may overlap the one before.
                    const long j = MAX(MIN(k, run - ${V}), 0L), n = MIN(${2 * V}L, MIN(p2 - 2 * j2, 2 * run) - 2 * j);
                    __local const float *m = ms + (o - pi * ${MR}) * T + t + j;
                    __global float *to = y + o * y_o + 2 * j * y_2;
% for i in range(4):
% for c in range(4):
                    const ${fv} m${i}${c} = AT(m + ${4 * i + c} * m_plane);
% endfor
% endfor
% for i in range(2):
                    ${"if (2 * j1 + 1 < p1) " if i else ""}{
% for c in range(4):
                        const ${fv} u${c} = ${f"m0{c} + m1{c} + m2{c}" if i == 0 else f"m1{c} - m2{c} - m3{c}"};
% endfor
                        const ${fv} e = u0 + u1 + u2 + bias, f = u1 - u2 - u3 + bias;
                        watch = 0.0f * e + watch;
                        watch = 0.0f * f + watch;
                        ${fv} a, b;
                        a.even = e.lo; a.odd = f.lo;
                        b.even = e.hi; b.odd = f.hi;
                        copy_out(to${" + y_1" if i else ""}, y_2, a, b, last, n);
                    }
% endfor
                }
                if (some(watch != watch)) {
                    __global const float *x = X + x_off + group * x_g + jb * x_b, *f = F + f_off + group * f_g + o * f_o;
                    const long n = MIN(2 * run, p2 - 2 * j2);
                    for (long i = 0; i < MIN(p1 - 2 * j1, 2L); i++) {
                        sum_plainly(lines, x, f, sizes, 2 * j1 + i - pad1, 2 * j2 - pad2, n);
                        PLAIN
                        for (long k = 0; k < n; k++)
                            y[o * y_o + i * y_1 + k * y_2] = lines[k] + bias;
                    }
                }
            }
            t += run;
        }
    }
}
