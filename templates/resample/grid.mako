<%doc>
Samples of images (${dims} spatial axes) at the points of a grid: ${mode}, outside ${padding}, corners ${'aligned' if
aligned else 'not aligned'}.
Each point reads a product of ${taps} positions per axis; one outside has offset -1 and counts as 0
(in volumes even if its weight is NaN, as in torch).
out: the samples; grid: the gradient by the points; input: the gradient by the images.
A work-item takes ${block} points at a time: first their offsets and weights, then for every channel the sums; `wide`:
in one vector.
input: a work-item owns whole planes and adds its points in order, so the result does not depend on timing.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%
import itertools
R = dt.reg
T, N = (f'{R}16', 'int16') if wide else (R, 'I')
f = 'f' if R == 'float' else ''
floor, rint = (f'floor_{T}', f'rint_{T}') if wide else ('floor', 'rint')
axes = 'whd'[:dims]
spots = list(itertools.product(range(taps), repeat=dims))  # taps of w, h (, d)
n = len(spots)
by_grid = kind == 'grid'
%>\
% if dt.code == 'f64':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
${headers}
${w.prelude()}
typedef ${I} I;
typedef ${R} R;
typedef ${T} T;
typedef ${N} N;
${w.element(dt, 'e')}
% if wide:
<% all_lanes = [f"{k:x}" for k in range(16)] %>\
typedef float16 u16 __attribute__((aligned(4)));
## Gather elements of a plane; 0 at negative offsets.
static inline T clt_take(__global const float *plane, const N at) {
#ifdef CLT_GATHER
    return __builtin_ia32_gathersiv16sf((T)(0), (const float *)(size_t)plane, at, (ushort)~__builtin_ia32_cvtd2mask512(at), 4);
#else
    const N place = at < 0 ? (N)(0) : at;
    const T v = (T)(${", ".join(f"plane[place.s{k}]" for k in all_lanes)});
    return at < 0 ? (T)(0) : v;
#endif
}
static inline N clt_whole(const T x) { return __builtin_convertvector(x, N); }
static inline T clt_magnitude(const T x) { return CLT_ABS(float16, int16, x); }
## Gather p[0], p[step], ...; p[0] again in lanes from `count` on.
static inline T clt_each(__global const float *p, const I step, const int count) {
    return (T)(${", ".join(f"p[{int(k, 16)} < count ? {int(k, 16)} * step : 0]" for k in all_lanes)});
}
## Load coordinate i of 16 points, or of `count` if these are fewer.
static inline T clt_coordinate(__global const float *p, const int i, const int count) {
% if dims == 2:
    if (count >= 16) {
        const T a = *(__global const u16 *)p, b = *(__global const u16 *)(p + 16);
        return i ? (T)(a.odd, b.odd) : (T)(a.even, b.even);
    }
% endif
    return clt_each(p + i, ${dims}, count);
}
## Load 16 elements, or `count` if these are fewer.
static inline T clt_load(__global const float *p, const int count) {
    return count >= 16 ? *(__global const u16 *)p : clt_each(p, 1, count);
}
% else:
static inline T clt_take(__global const ${dt.cl} *plane, const N at) { return at < 0 ? 0 : clt_ld_e(plane + max(at, (I)0)); }
static inline N clt_whole(const T x) { return (N)x; }
static inline T clt_magnitude(const T x) { return fabs(x); }
% endif
typedef struct { N at[${taps}]; T by[${taps}], slope[${taps}]; } Axis;
static inline T clt_clip(const T x, const R most) { return x > 0 ? x < most ? x : (T)(most) : (T)(0); }
static inline T clt_reflect(T x, const R size, T *sign) {
    const R low = ${f'0.0{f}' if aligned else f'-0.5{f}'}, span = ${'size - 1' if aligned else 'size'};
    x -= low;
    *sign = x < 0 ? (T)(-1) : (T)(1);
    x = clt_magnitude(x);
    const T turns = ${floor}(x / span), rest = x - turns * span, even = 2 * ${floor}(turns / 2);
    *sign = turns != even ? -*sign : *sign;
    return (turns != even ? span - rest : rest) + low;
}
## The position of a tap, or -1 if it is outside or NaN, for which comparisons fail.
static inline N clt_at(const T x, const I size) {
    return (x > -1) & (x < (R)size) ? clt_whole(x) : (N)(-1);
}
## Limit the position *x to the image as the padding mode does, and return the derivative of the limited by the given
## position.
static inline T clt_limit(T *x, const I size) {
    T sign = (T)(1);
% if padding == 'reflection':
    *x = clt_reflect(*x, (R)size, &sign);
% endif
% if padding != 'zeros':
    sign = (*x > 0) & (*x < (R)(size - 1)) ? sign : (T)(0);
    *x = clt_clip(*x, (R)(size - 1));
% endif
    return sign;
}
static inline Axis clt_axis(const T g, const I size) {
    Axis a;
% if aligned:
    const R factor = (R)(size - 1) / 2;
    T x = (g + 1) * factor;
% else:
    const R factor = (R)size / 2;
    T x = (g + 1) * factor - 0.5${f};
% endif
% if mode == 'bicubic':
    const R s = -0.75${f};
    const T base = ${floor}(x), t = x - base, r = 1 - t;
    const T by[4] = {((s * (t + 1) - 5 * s) * (t + 1) + 8 * s) * (t + 1) - 4 * s, ((s + 2) * t - (s + 3)) * t * t + 1,
                     ((s + 2) * r - (s + 3)) * r * r + 1, ((s * (r + 1) - 5 * s) * (r + 1) + 8 * s) * (r + 1) - 4 * s};
    const T slope[4] = {(3 * s * (t + 1) - 10 * s) * (t + 1) + 8 * s, (3 * (s + 2) * t - 2 * (s + 3)) * t,
                        -((3 * (s + 2) * r - 2 * (s + 3)) * r), -((3 * s * (r + 1) - 10 * s) * (r + 1) + 8 * s)};
    for (int k = 0; k < 4; ++k) {
        T place = base + (R)(k - 1);
        clt_limit(&place, size);
        a.at[k] = clt_at(place, size);
        a.by[k] = by[k];
        a.slope[k] = slope[k] * factor;
    }
% else:
    const T moves = factor * clt_limit(&x, size);
% if mode == 'nearest':
    const T place = ${rint}(x);
    a.at[0] = clt_at(place == 0 ? (T)(0) : place, size);
    a.by[0] = (T)(1);
    a.slope[0] = (T)(0);
% else:
    const T base = ${floor}(x), t = x - base;
    a.at[0] = base >= 0 ? clt_at(base, size) : (N)(-1);
    a.at[1] = base >= -1 ? clt_at(base + 1, size) : (N)(-1);
    a.by[0] = 1 - t; a.by[1] = t;
    a.slope[0] = -moves; a.slope[1] = moves;
% endif
% endif
    return a;
}
<%def name="spot(t)"><% ks = dict(zip(axes, spots[t])) %>${' | '.join(f"({a}.at[{k}] < 0)" for a, k in ks.items())} ? (N)(-1) : ${' + '.join(f"{a}.at[{k}] * {'(int)' * wide}s{a}" for a, k in ks.items())}</%def>\
<%def name="product(t, sloped='')">${' * '.join(f"{a}.{'slope' if a == sloped else 'by'}[{k}]" for a, k in zip(axes, spots[t]))}</%def>\
<%def name="places(j)">
<% outside = 'at[{t}]{j} < 0 ? (T)(0) : ' if dims == 3 else '' %>\
% for t in range(n):
                at[${t}]${j} = ${spot(t)};
                by[${t}]${j} = ${outside.format(t=t, j=j)}${product(t)};
% if by_grid:
% for i, a in enumerate(axes):
                slope[${i}][${t}]${j} = ${outside.format(t=t, j=j)}${product(t, a)};
% endfor
% endif
% endfor
</%def>\
## Compute offsets and weights of `count` points, at most a block, from `first` on.
<%def name="points(first, count)">\
            {
                __global const ${dt.cl} *where = grid + (number * points + ${first}) * ${dims};
% if wide:
                for (int j = 0, left = (int)${count}; left > 0; ++j, left -= 16, where += ${16 * dims}) {
% for i, a in enumerate(axes):
                    const Axis ${a} = clt_axis(clt_coordinate(where, ${i}, left), n${a});
% endfor
                    ${places('[j]')}
                }
% else:
                for (I j = 0; j < ${count}; ++j, where += ${dims}) {
% for i, a in enumerate(axes):
                    const Axis ${a} = clt_axis(clt_ld_e(where + ${i}), n${a});
% endfor
                    ${places('[j]')}
                }
% endif
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
, __global ${dt.cl if kind != 'input' else R} *restrict out, const I batch, const I channels, const I points, const I os, const I og, const I oy, const I sn, const I sc\
% for a in axes:
, const I n${a}, const I s${a}\
% endfor
) {
    grid += og;
% if kind != 'out':
    g += oy;
% endif
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
<% each = f'[{block // 16 if wide else block}]' %>\
    N at[${n}]${each};
    T by[${n}]${each};
% if by_grid:
    T slope[${dims}][${n}]${each};
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
% if wide:
            int to[${n}][${block}]; // taps outside add 0 to place 0: branches on data would be mispredicted
            for (int i = 0; 16 * i < (int)count; ++i) {
% for t in range(n):
                vstore16(at[${t}][i] < 0 ? (N)(0) : at[${t}][i], i, to[${t}]);
% endfor
            }
% endif
            for (I c = c0; c < c1; ++c) {
                __global R *restrict plane = out + (number * channels + c) * sc;
                __global const ${dt.cl} *restrict from = g + (number * channels + c) * points + p;
% if wide:
                for (int i = 0, left = (int)count; left > 0; ++i, left -= 16) {
                    const T v = clt_load(from + 16 * i, left);
                    float part[${n}][16];
% for t in range(n):
                    vstore16(at[${t}][i] < 0 ? (T)(0) : by[${t}][i] * v, 0, part[${t}]);
% endfor
                    const int m = min(left, 16);
                    for (int j = 0; j < m; ++j) {
% for t in range(n):
                        plane[to[${t}][16 * i + j]] += part[${t}][j];
% endfor
                    }
                }
% else:
                for (I j = 0; j < count; ++j) {
                    const T v = clt_ld_e(from + j);
% for t in range(n):
                    if (at[${t}][j] >= 0) plane[at[${t}][j]] += by[${t}][j] * v;
% endfor
                }
% endif
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
        T sum[${dims}]${each};
        for (I j = 0; j < ${block // 16 if wide else 'count'}; ++j) {
% for i in range(dims):
            sum[${i}][j] = (T)(0);
% endfor
        }
% endif
        for (I c = 0; c < channels; ++c) {
            __global const ${dt.cl} *restrict plane = src + os + number * sn + c * sc;
            const I to = (number * channels + c) * points + p;
% if wide:
            for (int j = 0, left = (int)count; left > 0; ++j, left -= 16) {
% else:
            for (I j = 0; j < count; ++j) {
% endif
% for t in range(n):
                const T v${t} = clt_take(plane, at[${t}][j]);
% endfor
% if by_grid:
                const T v = ${'clt_load(g + to + 16 * j, left)' if wide else 'clt_ld_e(g + to + j)'};
% for i in range(dims):
                sum[${i}][j] += v * (${' + '.join(f"slope[{i}][{t}][j] * v{t}" for t in range(n))});
% endfor
% else:
                const T v = ${' + '.join(f"by[{t}][j] * v{t}" for t in range(n))};
% if wide:
                if (left >= 16) *(__global u16 *)(out + to + 16 * j) = v;
                else {
                    float t[16];
                    vstore16(v, 0, t);
                    for (int k = 0; k < left; ++k) out[to + 16 * j + k] = t[k];
                }
% else:
                clt_st_e(out + to + j, v);
% endif
% endif
            }
        }
% if by_grid:
% if wide:
        float t[${dims}][${block}];
        for (int j = 0; 16 * j < (int)count; ++j) {
% for i in range(dims):
            vstore16(sum[${i}][j], j, t[${i}]);
% endfor
        }
% endif
        for (I j = 0; j < count; ++j) {
% for i in range(dims):
            clt_st_e(out + (number * points + p + j) * ${dims} + ${i}, ${'t' if wide else 'sum'}[${i}][j]);
% endfor
        }
% endif
    }
% endif
}
