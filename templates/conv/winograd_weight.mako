<%doc>
Weight gradient of the correlation in templates/conv/winograd.mako, by the same tiles, for devices where a work-item is
a thread's loop over wide vectors (work-groups of one): a tile's 4 x 4 inputs d and 2 x 2 output gradients ("slopes") s
are transformed to B^T d B and A s A^T, 16 numbers each; the 16 products, summed over tiles, are the gradient of the
transformed filters (conv/winograd_taps.mako makes that of filters).

Work-item (x, y, z) sums tiles x * each .. x * each + each - 1 for panels y * span .. y * span + span - 1 (of MR output
channels) of group z: T tiles, `part` vectors of input channels and `block` panels at a time. The lanes of a vector are
neighbouring channels: lines[row][column][V] is the input that a run of tiles reads, vs[16][part][T][V] and
ms[16][T][pitch] are the transforms. Lanes past the last channel repeat it. Result: [piece, group, 16, panels * MR,
vectors * V], which includes sums for the lanes past the last channels.
Variables: fn MR NV V T v_room m_room (floats) longs limits.
</%doc>
<%namespace name="square" file="/square.mako"/>\
<%
fv = f"float{V}"
wide = 2 * T + 2
%>\
${limits}
#pragma OPENCL FP_CONTRACT ON
## PLAIN marks remainder and copy loops: vectorizing or unrolling them costs compile time and gains nothing.
#define PLAIN _Pragma("clang loop vectorize(disable)") _Pragma("clang loop unroll(disable)")
typedef ${fv} ${fv}_u __attribute__((aligned(4)));
#define AT(p) (*(__local ${fv}_u *)(p))
#define FROM(p) (*(__global const ${fv}_u *)(p))

CLT_WIDE static void clear(__local float *q, long n)
{
    for (long j = 0; j < n; j++)
        AT(q + j * ${V}) = 0;
}

## Transpose n numbers of each of V channels, `by` apart, so that channels are adjacent. Only `live` channels exist; the
## last one stands in for the others.
CLT_WIDE static void turn(__local float *q, __global const float *p, long by, long live, long step, long n)
{
    if (step == 1 && n >= ${V}) {
% for k in range(V):
        __global const float *p${k} = p + MIN(${k}L, live - 1) * by;
% endfor
        for (long k = 0; k < n; k += ${V}) {
            const long j = MIN(k, n - ${V}); // the last block overlaps the one before
% for i in range(V):
            const ${fv} r${i} = FROM(p${i} + j);
% endfor
${square.turned(fv, V, 'r', 't')}\
% for i in range(V):
            AT(q + (j + ${i}) * ${V}) = t${i};
% endfor
        }
        return;
    }
    if (by == 1 && live >= ${V}) {
        for (long j = 0; j < n; j++)
            AT(q + j * ${V}) = FROM(p + j * step);
        return;
    }
    PLAIN
    for (long j = 0; j < n; j++)
        PLAIN
        for (long k = 0; k < ${V}; k++)
            q[j * ${V} + k] = p[MIN(k, live - 1) * by + j * step];
}

#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const float *X, __global const float *Y, __global float *out, ${', '.join(f'const long {name}' for name in longs)})
{
    __local float vs[${v_room}] __attribute__((aligned(64)));
    __local float ms[${m_room}] __attribute__((aligned(64)));
    __local float lines[${4 * wide * V}] __attribute__((aligned(64)));
    const long group = get_global_id(2), panels = (rows + ${MR - 1}) / ${MR}, vectors = (channels + ${NV * V - 1}) / ${NV * V} * ${NV};
    const long pb = get_global_id(1) * span, pe = MIN(pb + span, panels);
    const long across = (p2 + 1) / 2, down = (p1 + 1) / 2, first = get_global_id(0) * each;
    const long end = MIN(first + each, batch * down * across);
    const long pitch = (block * ${MR} + ${V - 1}) / ${V} * ${V} + ${V}, v_plane = part * ${T * V} + 16, m_plane = ${T} * pitch + 16;
    out += (get_global_id(0) * groups + group) * 16 * panels * ${MR} * vectors * ${V};
    for (long t0 = first; t0 < end; t0 += ${T})
    for (long vb = 0; vb < vectors; vb += part)
    for (long pi = pb; pi < pe; pi += block) {
        const long count = MIN(end - t0, ${T}L), vn = MIN(vectors - vb, part);
        for (long t = pi == pb ? 0 : count; t < count;) { // only for the first panel: later ones use the same tiles
            const long j2 = (t0 + t) % across, j1 = (t0 + t) / across % down, jb = (t0 + t) / (across * down);
            const long run = MIN(across - j2, count - t), need = 2 * run + 2, at1 = 2 * j1 - pad1, at2 = 2 * j2 - pad2;
            const long lo = MIN(MAX(-at2, 0L), need), hi = MAX(MIN(s2 - at2, need), lo);
            for (long v = 0; v < vn; v++) {
                const long c = MIN((vb + v) * ${V}, channels - 1);
                __global const float *x = X + x_off + group * x_g + jb * x_b + c * x_c + at1 * x_1 + (at2 + lo) * x_2;
                for (long i = 0; i < 4; i++) {
                    __local float *q = lines + i * ${wide * V};
                    if (at1 + i < 0 || at1 + i >= s1) {
                        clear(q, need);
                        continue;
                    }
                    clear(q, lo);
                    turn(q + lo * ${V}, x + i * x_1, x_c, channels - c, x_2, hi - lo);
                    clear(q + hi * ${V}, need - hi);
                }
                for (long j = 0; j < run; j++) {
                    __local const float *p = lines + j * ${2 * V};
                    __local float *q = vs + (v * ${T} + t + j) * ${V};
% for i in range(4):
% for c in range(4):
                    const ${fv} d${i}${c} = AT(p + ${(i * wide + c) * V});
% endfor
% endfor
% for i, (a, b, sign) in enumerate(((0, 2, "-"), (1, 2, "+"), (2, 1, "-"), (1, 3, "-"))):
                    {
% for c in range(4):
                        const ${fv} e${c} = d${a}${c} ${sign} d${b}${c};
% endfor
                        AT(q + ${4 * i} * v_plane) = e0 - e2;
                        AT(q + ${4 * i + 1} * v_plane) = e1 + e2;
                        AT(q + ${4 * i + 2} * v_plane) = e2 - e1;
                        AT(q + ${4 * i + 3} * v_plane) = e1 - e3;
                    }
% endfor
                }
            }
            t += run;
        }
        const long pn = MIN(pi + block, pe), ob = pi * ${MR}, on = MIN(pn * ${MR}, rows) - ob;
        for (long t = 0; t < count;) {
            const long j2 = (t0 + t) % across, j1 = (t0 + t) / across % down, jb = (t0 + t) / (across * down);
            const long run = MIN(across - j2, count - t), n = MIN(2 * run, p2 - 2 * j2);
            for (long o = 0; o < (pn - pi) * ${MR}; o += ${V}) {
                const long from = MIN(o, on - 1);
                __global const float *y = Y + y_off + group * y_g + jb * y_b + (ob + from) * y_o + 2 * j1 * y_1 + 2 * j2 * y_2;
                for (long i = 0; i < 2; i++) {
                    __local float *q = lines + i * ${wide * V};
                    const long there = 2 * j1 + i < p1 ? n : 0;
                    turn(q, y + i * y_1, y_o, on - from, y_2, there);
                    clear(q + there * ${V}, 2 * run - there);
                }
                for (long j = 0; j < run; j++) {
                    __local const float *p = lines + j * ${2 * V};
                    __local float *q = ms + (t + j) * pitch + o;
% for c in range(2):
                    const ${fv} e0${c} = AT(p + ${c * V}), low${c} = AT(p + ${(wide + c) * V});
                    const ${fv} e1${c} = e0${c} + low${c}, e2${c} = e0${c} - low${c}, e3${c} = -low${c};
% endfor
% for i in range(4):
                    AT(q + ${4 * i} * m_plane) = e${i}0;
                    AT(q + ${4 * i + 1} * m_plane) = e${i}0 + e${i}1;
                    AT(q + ${4 * i + 2} * m_plane) = e${i}0 - e${i}1;
                    AT(q + ${4 * i + 3} * m_plane) = -e${i}1;
% endfor
                }
            }
            t += run;
        }
        for (long i = 0; i < 16; i++)
            for (long panel = pi; panel < pn; panel++)
                for (long v = 0; v < vn; v += ${NV}) {
                    __local const float *a = ms + i * m_plane + (panel - pi) * ${MR};
                    __local const float *b = vs + i * v_plane + v * ${T * V};
% for r in range(MR):
                    ${fv} ${', '.join(f"t{r}_{v} = 0" for v in range(NV))};
% endfor
                    for (long t = 0; t < count; t++, a += pitch, b += ${V}) {
% for v in range(NV):
                        const ${fv} b${v}_ = AT(b + ${v * T * V});
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
                    __global float *to = out + ((i * panels + panel) * ${MR} * vectors + vb + v) * ${V};
% for r in range(MR):
% for v in range(NV):
                    {
                        __global ${fv}_u *p = (__global ${fv}_u *)(to + (${r} * vectors + ${v}) * ${V});
                        *p = t0 > first ? *p + t${r}_${v} : t${r}_${v};
                    }
% endfor
% endfor
                }
    }
}
