<%doc>
A filter of K x K for each plane, for devices where a work-item is a thread's loop over wide vectors (work-groups of
one).

Work-item x makes planes x * each .. x * each + each - 1 of the output, which are contiguous in memory, `band` rows at a
time (pairs of rows with `spread`). The input they read is copied to local memory, zero-padded, in rows `pitch` apart;
then R rows of output at a time are summed with the taps in registers, so that each vector of input is loaded once for
all of these rows. Stride S is 1 or 2. With `spread` this is the transposed correlation of stride 2: outputs at even and
odd places take different taps; a vector of each is computed and the two are interleaved. EVEN: whether the padding is
even. A row stored as one vector may reach past its end, into the next row, which is written later; memory past the
work-item's outputs is saved and restored.
Variables: fn ta acc K S R V spread EVEN room slack longs headers loadv load unaligned.
</%doc>
<%namespace name="patch" file="patch.mako"/>\
<%
av = f"float{V}"
# For each of two neighbouring outputs of a pair: its taps, and the input position of each relative to the pair's.
near = [[(k, (c + 1 - EVEN) // 2 - (k - (c + 1 - EVEN) % 2) // 2) for k in range((c + 1 - EVEN) % 2, K, 2)] for c in (0, 1)]
first = min(at for taps in near for _, at in taps)
W = 2 * V if spread else V
reach = max(at for taps in near for _, at in taps) - first
%>\
% for h in headers:
${h}
% endfor
${patch.types()}
${patch.copies()}
<%def name="write(value, row, column)">\
{
    __global float *y = Yz + (${row}) * p2 + ${column};
    if (p2 - (${column}) >= ${V} || (p2 <= ${W} && end - y >= ${V}))
        *(__global ${av}_u *)y = ${value};
    else {
        *(__local ${av}_u *)tile = ${value};
        PLAIN
        for (long n = 0; n < MIN(p2 - (${column}), ${V}L); n++)
            y[n] = tile[n];
    }
}
</%def>\
<%def name="strip(rows)">\
for (long j = 0; j < p2; j += ${V}) {
    j = whole ? MIN(j, p2 - ${V}) : j;
    __local const float *x = xp + (i - i0) * ${S} * pitch + j * ${S};
    ${av} ${', '.join(f't{r} = shift' for r in range(rows))};
% for u in range((rows - 1) * S + K):
    {
% if S == 1:
% for k in range(K):
        const ${av} v${k} = *(__local const ${av}_u *)(x + ${k});
% endfor
% else:
% for k in range(0, K, 2):
        const ${av} a${k} = *(__local const ${av}_u *)(x + ${k}), b${k} = *(__local const ${av}_u *)(x + ${k + V});
        const ${av} v${k} = (${av})(a${k}.even, b${k}.even), v${k + 1} = (${av})(a${k}.odd, b${k}.odd);
% endfor
% endif
% for r in range(rows):
% if 0 <= u - r * S < K:
% for k in range(K):
        t${r} = w${(u - r * S) * K + k} * v${k} + t${r};
% endfor
% endif
% endfor
        x += pitch;
    }
% endfor
% for r in range(rows):
    ${write(f"t{r}", f"i + {r}", "j")}
% endfor
}
</%def>\
<%def name="pairs(rows)">\
for (long j = 0; j < p2; j += ${W}) {
    ## The last vector is moved back to overlap the one before only where it then still begins with a pair.
    j = whole ? MIN(j, p2 - ${W}) : j;
    __local const float *x = xp + (i - i0) * pitch + j / 2;
    ${av} ${', '.join(f't{r}_{c} = shift' for r in range(2 * rows) for c in (0, 1))};
% for u in range(rows + reach):
    {
% for k in range(reach + 1):
        const ${av} v${k} = *(__local const ${av}_u *)(x + ${k});
% endfor
% for r in range(2 * rows):
% for k1, at1 in near[r % 2]:
% if r // 2 + at1 - first == u:
% for c in (0, 1):
% for k2, at2 in near[c]:
        t${r}_${c} = w${k1 * K + k2} * v${at2 - first} + t${r}_${c};
% endfor
% endfor
% endif
% endfor
% endfor
        x += pitch;
    }
% endfor
% for r in range(2 * rows):
    if (2 * i + ${r} < p1) {
        ${av} lo, hi;
        lo.even = t${r}_0.lo, lo.odd = t${r}_1.lo, hi.even = t${r}_0.hi, hi.odd = t${r}_1.hi;
        ${write("lo", f"2 * i + {r}", "j")}
        ${write("hi", f"2 * i + {r}", f"j + {V}")}
    }
% endfor
}
</%def>\
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const float *X, __global const float *F, __global float *Y, __global const float *D, int has_bias,
    ${', '.join(f'const long {name}' for name in longs)})
{
    __local float xp[${room}] __attribute__((aligned(64)));
    __local float tile[${V}] __attribute__((aligned(64)));
    const long planes = batch * groups, zb = get_global_id(0) * each, ze = MIN(zb + each, planes);
    __global float *end = Y + y_off + ze * p1 * p2;
    const bool whole = p2 >= ${W}${' && p2 % 2 == 0' if spread else ''};
% if spread:
    const long total = (p1 + 1) / 2, columns = (p2 + 1) / 2 + ${reach};
    const long left = ${-first} - pad2 / 2, above = ${-first} - pad1 / 2;
% else:
    const long total = p1, columns = (p2 - 1) * ${S} + ${K}, left = pad2, above = pad1;
% endif
    const long skip = MAX(-left, 0L), at = MAX(left, 0L), run = MAX(MIN(s2 - skip, columns - at), 0L);
    const bool cut = band < total;
    clear(xp, ${f"((band + {R - 1}) / {R} * {R} + {reach})" if spread else f"((band - 1) * {S} + {K})"} * pitch + ${slack});
    for (long z = zb; z < ze; z++) {
        const long g = z % groups, b = z / groups;
        __global const float *f = F + f_off + g * f_g, *Xz = X + x_off + g * x_g + b * x_b + skip * x_2;
        __global float *Yz = Y + y_off + z * p1 * p2;
% for k in range(K * K):
        const float w${k} = f[${k // K} * f_1 + ${k % K} * f_2];
% endfor
        const float shift = has_bias ? D[d_off + g * d_g] : 0;
        for (long i0 = 0; i0 < total; i0 += band) {
            const long ie = MIN(i0 + band, total);
% if spread:
            const long needed = (ie - i0 + ${R - 1}) / ${R} * ${R} + ${reach}, top = i0 - above;
% else:
            const long needed = (ie - i0 - 1) * ${S} + ${K}, top = i0 * ${S} - above;
% endif
            const long u0 = MIN(MAX(-top, 0L), needed), u1 = MAX(MIN(s1 - top, needed), u0);
            if (cut) {
                clear(xp, u0 * pitch);
                clear(xp + u1 * pitch, (needed - u1) * pitch);
            }
            for (long u = u0; u < u1; u++)
                copy_row(xp + u * pitch + at, Xz + (top + u) * x_1, 1, run);
% if spread:
            for (long i = i0; i < ie; i += ${R}) {
                ${pairs(R)}
            }
% else:
            if (ie - i0 < ${R})
                for (long i = i0; i < ie; i++) {
                    ${strip(1)}
                }
            else
                for (long i = i0; i < ie; i += ${R}) {
                    i = MIN(i, ie - ${R});
                    ${strip(R)}
                }
% endif
        }
    }
}
