<%doc>
Samples of images (${dims} spatial axes) at the points of a grid: ${mode}, outside ${padding}, corners ${'aligned' if aligned else 'not aligned'}.
Each point reads a product of ${taps} positions per axis; one outside has offset -1 and counts as 0.
out: the samples; grid: the gradient by the points; input: the gradient by the images.
A work-item takes ${block} points at a time: first their offsets and weights, then for every channel the sums. input: a work-item owns
whole planes and adds its points in order, so the result does not depend on timing.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%
import itertools
T = dt.reg
f = 'f' if T == 'float' else ''
axes = 'whd'[:dims]
spots = list(itertools.product(range(taps), repeat=dims))  # taps of w, h (, d)
n = len(spots)
by_grid = kind == 'grid'
%>\
% if dt.code == 'f64':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
${w.prelude()}
typedef ${I} I;
typedef ${T} T;
${w.element(dt, 'e')}
typedef struct { I at[${taps}]; T by[${taps}], slope[${taps}]; } Axis;
static inline T clt_clip(const T x, const T most) { return x > 0 ? x < most ? x : most : 0; }
static inline T clt_reflect(T x, const T size, T *sign) {
    const T low = ${f'0.0{f}' if aligned else f'-0.5{f}'}, span = ${'size - 1' if aligned else 'size'};
    if (span <= 0) { *sign = 0; return 0; }
    x -= low;
    *sign = x < 0 ? -1 : 1;
    x = fabs(x);
    const T turns = floor(x / span), rest = x - turns * span;
    const int odd = turns - 2 * floor(turns / 2) != 0;
    *sign = odd ? -*sign : *sign;
    return (odd ? span - rest : rest) + low;
}
/* The position of a tap, or -1: comparisons with NaN fail. */
static inline I clt_at(const T x, const I size) { return x > -1 && x < (T)size ? (I)x : (I)-1; }
/* How much a limited position moves with the position, and the limited position in *x. */
static inline T clt_limit(T *x, const I size) {
    T sign = 1;
% if padding == 'reflection':
    *x = clt_reflect(*x, (T)size, &sign);
% endif
% if padding != 'zeros':
    if (!(*x > 0 && *x < (T)(size - 1))) sign = 0;
    *x = clt_clip(*x, (T)(size - 1));
% endif
    return sign;
}
static inline Axis clt_axis(const T g, const I size) {
    Axis a;
% if aligned:
    const T factor = (T)(size - 1) / 2;
    T x = (g + 1) * factor;
% else:
    const T factor = (T)size / 2;
    T x = (g + 1) * factor - 0.5${f};
% endif
% if mode == 'bicubic':
    const T base = floor(x), t = x - base, r = 1 - t, s = -0.75${f};
    const T by[4] = {((s * (t + 1) - 5 * s) * (t + 1) + 8 * s) * (t + 1) - 4 * s, ((s + 2) * t - (s + 3)) * t * t + 1,
                     ((s + 2) * r - (s + 3)) * r * r + 1, ((s * (r + 1) - 5 * s) * (r + 1) + 8 * s) * (r + 1) - 4 * s};
    const T slope[4] = {(3 * s * (t + 1) - 10 * s) * (t + 1) + 8 * s, (3 * (s + 2) * t - 2 * (s + 3)) * t,
                        -((3 * (s + 2) * r - 2 * (s + 3)) * r), -((3 * s * (r + 1) - 10 * s) * (r + 1) + 8 * s)};
    for (int k = 0; k < 4; ++k) {
        T place = base + (T)(k - 1);
        clt_limit(&place, size);
        a.at[k] = clt_at(place, size);
        a.by[k] = by[k];
        a.slope[k] = slope[k] * factor;
    }
% else:
    const T moves = factor * clt_limit(&x, size);
% if mode == 'nearest':
    const T place = rint(x);
    a.at[0] = clt_at(place == 0 ? (T)0 : place, size);
    a.by[0] = 1;
    a.slope[0] = 0;
% else:
    const T base = floor(x), t = x - base;
    a.at[0] = base >= 0 ? clt_at(base, size) : (I)-1;
    a.at[1] = base >= -1 ? clt_at(base + 1, size) : (I)-1;
    a.by[0] = 1 - t; a.by[1] = t;
    a.slope[0] = -moves; a.slope[1] = moves;
% endif
% endif
    return a;
}
<%def name="spot(t)"><% ks = dict(zip(axes, spots[t])) %>${' || '.join(f"{a}.at[{k}] < 0" for a, k in ks.items())} ? (I)-1 : ${' + '.join(f"{a}.at[{k}] * s{a}" for a, k in ks.items())}</%def>\
<%def name="product(t, sloped='')">${' * '.join(f"{a}.{'slope' if a == sloped else 'by'}[{k}]" for a, k in zip(axes, spots[t]))}</%def>\
## Offsets and weights of up to ${block} points from `first` on.
<%def name="points(first, count)">\
            for (I j = 0; j < ${count}; ++j) {
                __global const ${dt.cl} *where = grid + (number * points + ${first} + j) * ${dims};
% for i, a in enumerate(axes):
                const Axis ${a} = clt_axis(clt_ld_e(where + ${i}), n${a});
% endfor
% for t in range(n):
                at[${t}][j] = ${spot(t)};
                by[${t}][j] = ${product(t)};
% if by_grid:
% for i, a in enumerate(axes):
                slope[${i}][${t}][j] = ${product(t, a)};
% endfor
% endif
% endfor
            }
</%def>\
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(\
% if kind != 'input':
__global const ${dt.cl} *restrict src, \
% endif
__global const ${dt.cl} *restrict grid\
% if kind != 'out':
, __global const ${dt.cl} *restrict g\
% endif
, __global ${dt.cl if kind != 'input' else T} *restrict out, const I batch, const I channels, const I points, const I os, const I sn, const I sc\
% for a in axes:
, const I n${a}, const I s${a}\
% endfor
) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    I at[${n}][${block}];
    T by[${n}][${block}];
% if by_grid:
    T slope[${dims}][${n}][${block}];
% endif
% if kind == 'input':
    const I total = batch * channels;
    const I begin = total / parts * part + min(part, (I)(total % parts)), end = begin + total / parts + (part < total % parts);
    for (I i = begin * sc; i < end * sc; ++i) out[i] = 0;
    for (I q = begin; q < end;) {
        const I number = q / channels, c0 = q % channels, c1 = min(channels, (I)(c0 + end - q));
        for (I p = 0; p < points; p += ${block}) {
            const I count = min((I)${block}, (I)(points - p));
            ${points('p', 'count')}
            for (I c = c0; c < c1; ++c) {
                __global T *restrict plane = out + (number * channels + c) * sc;
                __global const ${dt.cl} *restrict from = g + (number * channels + c) * points + p;
                for (I j = 0; j < count; ++j) {
                    const T v = clt_ld_e(from + j);
% for t in range(n):
                    if (at[${t}][j] >= 0) plane[at[${t}][j]] += by[${t}][j] * v;
% endfor
                }
            }
        }
        q += c1 - c0;
    }
% else:
    const I blocks = (points + ${block - 1}) / ${block}, total = batch * blocks;
% if gpu:
    for (I q = part; q < total; q += parts) {
% else:
    const I begin = total / parts * part + min(part, (I)(total % parts)), end = begin + total / parts + (part < total % parts);
    for (I q = begin; q < end; ++q) {
% endif
        const I number = q / blocks, p = q % blocks * ${block}, count = min((I)${block}, (I)(points - p));
        ${points('p', 'count')}
% if by_grid:
        T sum[${dims}][${block}];
        for (I j = 0; j < count; ++j) {
% for i in range(dims):
            sum[${i}][j] = 0;
% endfor
        }
% endif
        for (I c = 0; c < channels; ++c) {
            __global const ${dt.cl} *restrict plane = src + os + number * sn + c * sc;
            const I to = (number * channels + c) * points + p;
            for (I j = 0; j < count; ++j) {
% for t in range(n):
                const T v${t} = at[${t}][j] < 0 ? 0 : clt_ld_e(plane + max(at[${t}][j], (I)0));
% endfor
% if by_grid:
                const T v = clt_ld_e(g + to + j);
% for i in range(dims):
                sum[${i}][j] += v * (${' + '.join(f"slope[{i}][{t}][j] * v{t}" for t in range(n))});
% endfor
% else:
                clt_st_e(out + to + j, ${' + '.join(f"by[{t}][j] * v{t}" for t in range(n))});
% endif
            }
        }
% if by_grid:
        for (I j = 0; j < count; ++j) {
% for i in range(dims):
            clt_st_e(out + (number * points + p + j) * ${dims} + ${i}, sum[${i}][j]);
% endfor
        }
% endif
    }
% endif
}
