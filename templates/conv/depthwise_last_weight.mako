<%doc>
The gradient with respect to filters of K x K, one for each channel of channels-last images, for devices where a
work-item is a thread's loop over wide vectors (work-groups of one): vectors run over the channels.

Work-item x sums the products of output gradient ("slopes") and input over rows x * each .. x * each + each - 1 of the
slopes, V channels at a time; the sums of one row of taps are in registers, the others in local memory. Result:
[work-item, channel, tap], dense. Stride S is 1 or 2. If fewer than V channels are left, the last V are computed again.
Variables: fn K S V longs headers unaligned.
</%doc>
<%namespace name="patch" file="patch.mako"/>\
<% av = f"float{V}" %>\
% for h in headers:
${h}
% endfor
${patch.types()}
<%def name="load(place)">*(__global const ${av}_u *)(${place})</%def>\
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const float *X, __global const float *Y, __global float *out, ${', '.join(f'const long {name}' for name in longs)})
{
    __local float sums[${K * K * V}] __attribute__((aligned(64)));
    const long piece = get_global_id(0), begin = piece * each, end = MIN(begin + each, batch * p1);
    const long whole = s2 + pad2 - ${K}, first = MIN((pad2 + ${S - 1}) / ${S}, p2);
    const long last = MAX(first, whole < 0 ? 0L : MIN(whole / ${S} + 1, p2));
    for (long c = 0; c < groups; c += ${V}) {
        c = MIN(c, groups - ${V});
        for (int k = 0; k < ${K * K}; k++)
            *(__local ${av} *)(sums + k * ${V}) = 0;
        for (long r = begin; r < end; r++) {
            const long b = r / p1, i = r % p1, top = i * ${S} - pad1;
            __global const float *slopes = Y + y_off + b * y_b + i * y_1 + c;
            for (long ky = MAX(-top, 0L); ky < MIN(${K}L, s1 - top); ky++) {
                __global const float *row = X + x_off + b * x_b + (top + ky) * x_1 + c;
                __local float *to = sums + ky * ${K * V};
                for (long j = first ? 0 : last; j < p2; j = j + 1 == first ? last : j + 1) { // the edges
                    const long from = j * ${S} - pad2;
                    for (long k = MAX(-from, 0L); k < MIN(${K}L, s2 - from); k++)
                        *(__local ${av} *)(to + k * ${V}) += ${load('slopes + j * y_2')} * ${load('row + (from + k) * x_2')};
                }
% for k in range(K):
                ${av} s${k} = *(__local const ${av} *)(to + ${k * V});
% endfor
                __global const float *x = row + (first * ${S} - pad2) * x_2;
                for (long j = first; j < last; j++, x += ${S} * x_2) {
                    const ${av} y = ${load('slopes + j * y_2')};
% for k in range(K):
                    s${k} = y * ${load(f'x + {k} * x_2')} + s${k};
% endfor
                }
% for k in range(K):
                *(__local ${av} *)(to + ${k * V}) = s${k};
% endfor
            }
        }
        PLAIN
        for (int lane = 0; lane < ${V}; lane++) {
            PLAIN
            for (int k = 0; k < ${K * K}; k++)
                out[(piece * groups + c + lane) * ${K * K} + k] = sums[k * ${V} + lane];
        }
    }
}
