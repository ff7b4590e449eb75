<%doc>
The gradient with respect to filters of K x K, one for each plane, for devices where a work-item is a thread's loop over
wide vectors.

Work-item x makes channels x * each .. x * each + each - 1: image by image, `band` rows of output gradient ("slopes") at
a time, it copies slopes and input to local memory, zero-padded, and sums the products of every vector of slopes with
the input at BLOCK x K taps, R rows at a time. Input lanes past the end of a row are replaced by zero, as they may not
be finite. Stride S is 1 or 2.
Result: [channel, tap], dense. Variables: fn ta acc K S R V BLOCK room slack longs headers loadv load unaligned.
</%doc>
<%namespace name="patch" file="patch.mako"/>\
<% av, iv = f"float{V}", f"int{V}" %>\
% for h in headers:
${h}
% endfor
${patch.types()}
${patch.copies()}
${patch.total()}
<%def name="strip(rows)">\
{
    __local const float *y = yp + i * y_pitch + j, *x = xp + (i * ${S} + k0) * pitch + j * ${S};
% for r in range(rows):
    const ${av} y${r} = *(__local const ${av}_u *)(y + ${r} * y_pitch);
% endfor
% for u in range((rows - 1) * S + BLOCK):
    {
% if S == 1:
% for k in range(K):
        ${av} v${k} = *(__local const ${av}_u *)(x + ${k});
% endfor
% else:
% for k in range(0, K, 2):
        const ${av} a${k} = *(__local const ${av}_u *)(x + ${k}), b${k} = *(__local const ${av}_u *)(x + ${k + V});
        ${av} v${k} = (${av})(a${k}.even, b${k}.even), v${k + 1} = (${av})(a${k}.odd, b${k}.odd);
% endfor
% endif
% for k in range(K):
        v${k} = live ? v${k} : 0;
% endfor
% for r in range(rows):
% if 0 <= u - r * S < BLOCK:
% for k in range(K):
        s${(u - r * S) * K + k} = y${r} * v${k} + s${(u - r * S) * K + k};
% endfor
% endif
% endfor
        x += pitch;
    }
% endfor
}
</%def>\
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const float *X, __global const float *Y, __global float *out, ${', '.join(f'const long {name}' for name in longs)})
{
    __local float xp[${room}] __attribute__((aligned(64))), yp[${room}] __attribute__((aligned(64)));
    __local float sums[${K * K * V}] __attribute__((aligned(64)));
    const long gb = get_global_id(0) * each, ge = MIN(gb + each, groups);
    const long columns = (p2 - 1) * ${S} + ${K}, skip = MAX(-pad2, 0L), at = MAX(pad2, 0L);
    const long run = MAX(MIN(s2 - skip, columns - at), 0L);
    const bool cut = band < p1;
    const ${iv} lane = (${iv})(${', '.join(map(str, range(V)))});
    clear(xp, ((band - 1) * ${S} + ${K}) * pitch + ${slack});
    clear(yp, band * y_pitch);
    for (long g = gb; g < ge; g++) {
        clear(sums, ${K * K * V});
        for (long b = 0; b < batch; b++) {
            __global const float *Xz = X + x_off + g * x_g + b * x_b + skip * x_2, *Yz = Y + y_off + g * y_g + b * y_b;
            for (long i0 = 0; i0 < p1; i0 += band) {
                const long n1 = MIN(band, p1 - i0), needed = (n1 - 1) * ${S} + ${K}, top = i0 * ${S} - pad1;
                const long u0 = MIN(MAX(-top, 0L), needed), u1 = MAX(MIN(s1 - top, needed), u0);
                if (cut) {
                    clear(xp, u0 * pitch);
                    clear(xp + u1 * pitch, (needed - u1) * pitch);
                }
                for (long u = u0; u < u1; u++)
                    copy_row(xp + u * pitch + at, Xz + (top + u) * x_1, 1, run);
                for (long i = 0; i < n1; i++)
                    copy_row(yp + i * y_pitch, Yz + (i0 + i) * y_1, 1, p2);
                for (long k0 = 0; k0 < ${K}; k0 += ${BLOCK}) {
                    __local float *to = sums + k0 * ${K * V};
% for k in range(BLOCK * K):
                    ${av} s${k} = *(__local const ${av}_u *)(to + ${k * V});
% endfor
                    for (long j = 0; j < p2; j += ${V}) {
                        const ${iv} live = lane < (${iv})(int)MIN(p2 - j, ${V}L);
                        long i = 0;
                        for (; i + ${R} <= n1; i += ${R})
                            ${strip(R)}
                        for (; i < n1; i++)
                            ${strip(1)}
                    }
% for k in range(BLOCK * K):
                    *(__local ${av}_u *)(to + ${k * V}) = s${k};
% endfor
                }
            }
        }
        PLAIN
        for (long k = 0; k < ${K * K}; k++)
            out[g * ${K * K} + k] = total(*(__local const ${av}_u *)(sums + k * ${V}));
    }
}
