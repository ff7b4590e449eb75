<%doc>
Distances between rows of x1 (n1, width) and of x2 (n2, width), for each entry of a batch: sums of ${kind} of
differences.
`packed`: x1 is x2, and the result holds the pairs i < j only, contiguously, row by row.
forward, CPU: a work-item takes some rows of x1 and all of x2, of which ${columns} rows at a time are transposed, so
that a vector's lanes are rows and no sum runs across lanes. Long rows are summed in pieces of ${depth} numbers.
backward: the gradient with respect to x1; a vector holds numbers of a row, and the factor of a pair is computed once.
GPU: a lane takes one number of the result.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%
R, L = dt.reg, 1 if gpu else lanes
V = R if gpu else memory.reg
vectors = columns // L
%>\
% if dt.code == 'f64':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
${headers}
typedef ${I} I;
typedef ${R} R;
typedef ${V} V;
% if not gpu:
${lane_memory.helpers({dt.code: memory}, L, {(dt.code, 'load'), (dt.code, 'store')})}\
% endif
## The index of the pair i < j of n rows in the packed result.
static inline I clt_pair(const I i, const I j, const I n) { return i * n - i * (i + 1) / 2 + j - i - 1; }
<%def name="functions(T)">\
<% power = f'pow_{T}' if not gpu or R == 'float' else 'pow' %>\
static inline ${T} clt_size_${T}(const ${T} d) { return d < 0 ? -d : d; }
% if not back:
static inline ${T} clt_add_${T}(const ${T} sum, const ${T} d, const R p) {
% if kind == 'number':
    return d != d ? d : d != 0 ? sum + 1 : sum;
% elif kind == 'size':
    return sum + clt_size_${T}(d);
% elif kind == 'square':
    return sum + d * d;
% elif kind == 'largest':
    const ${T} v = clt_size_${T}(d);
    return (v > sum) | (v != v) ? v : sum;
% else:
    return sum + ${power}(clt_size_${T}(d), (${T})(p));
% endif
}
static inline ${T} clt_done_${T}(const ${T} sum, const R p) {
    return ${'sqrt(sum)' if kind == 'square' else f'{power}(sum, ({T})(1 / p))' if kind == 'power' else 'sum'};
}
% else:
## What the difference d of two numbers of a pair of rows adds to the first one's gradient, given the pair's factor and
## distance.
static inline ${T} clt_slope_${T}(const ${T} d, const R factor, const R distance, const R p) {
% if kind == 'square':
    return d * factor;
% else:
    const ${T} part = ${{'size': 'factor', 'largest': f'clt_size_{T}(d) == distance ? ({T})(factor) : ({T})(0)',
                         'power': f'factor * {power}(clt_size_{T}(d), ({T})(p - 1))'}[kind]};
    return d > 0 ? ${f'({T})(part)'} : d < 0 ? ${f'({T})(-part)'} : (${T})(0);
% endif
}
% endif
</%def>\
${functions(V)}\
% if back:
static inline R clt_factor(const R g, const R distance, const R p) {
% if kind == 'square':
    return distance == 0 ? 0 : g / distance;
% elif kind == 'power':
    return distance == 0 ? 0 : g / ${'pow' if gpu and R == 'double' else f'pow_{R}'}(distance, p - 1);
% else:
    return g;
% endif
}
% endif
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(__global const R *restrict x1, __global const R *restrict x2\
% if back:
, __global const R *restrict g, __global const R *restrict distances\
% endif
, __global R *restrict out, const I batch, const I n1, const I n2, const I width, const I o1, const I o2, const I b1, const I b2
% if back:
, const I og, const I od, const I gb, const I g1, const I g2
% endif
, const I rows, const long p_bits) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const R p = as_${R}(${'(int)' if R == 'float' else ''}p_bits);
<%def name="pair_of(i, j)">\
% if packed:
                    if (${j} == ${i}) continue;
                    const I at = clt_pair(min(${i}, ${j}), max(${i}, ${j}), n1), at_g = og + at * g2, at_d = od + at;
% else:
                    const I at_g = og + b * gb + ${i} * g1 + ${j} * g2, at_d = od + b * gb + ${i} * g1 + ${j} * g2;
% endif
                    const R distance = distances[at_d], factor = clt_factor(g[at_g], distance, p);
</%def>\
% if gpu and not back:
    const I all = batch * n1 * n2;
    for (I q = part; q < all; q += parts) {
        const I j = q % n2, i = q / n2 % n1, b = q / n2 / n1;
% if packed:
        if (j <= i) continue;
% endif
        __global const R *u = x1 + o1 + b * b1 + i * width, *v = x2 + o2 + b * b2 + j * width;
        R sum = 0;
        for (I m = 0; m < width; ++m) sum = clt_add_${V}(sum, u[m] - v[m], p);
        out[${'clt_pair(i, j, n1)' if packed else 'q'}] = clt_done_${V}(sum, p);
    }
% elif gpu:
    const I all = batch * n1 * width;
    for (I q = part; q < all; q += parts) {
        const I m = q % width, i = q / width % n1, b = q / width / n1;
        const R u = x1[o1 + b * b1 + i * width + m];
        R sum = 0;
        for (I j = 0; j < n2; ++j) {
            ${pair_of('i', 'j')}
            sum += clt_slope_${V}(u - x2[o2 + b * b2 + j * width + m], factor, distance, p);
        }
        out[q] = sum;
    }
% elif not back:
    const I blocks = (n1 + rows - 1) / rows;
    R turned[${depth * columns}];
    V kept[${64 * vectors}];
    for (I q = part; q < batch * blocks; q += parts) {
        const I b = q / blocks, first = q % blocks * rows, last = min((I)(first + rows), n1);
        __global const R *u = x1 + o1 + b * b1, *v = x2 + o2 + b * b2;
        for (I j = ${f'(first + 1) / {columns} * {columns}' if packed else '0'}; j < n2; j += ${columns}) {
            const I beside = min((I)${columns}, (I)(n2 - j)), end = j + beside;
            for (I m = 0; m < width; m += ${depth}) {
                const I count = min((I)${depth}, (I)(width - m));
                for (I k = 0; k < ${columns}; ++k) {
                    __global const R *from = v + (j + min(k, (I)(beside - 1))) * width + m;
                    for (I l = 0; l < count; ++l) turned[l * ${columns} + k] = from[l];
                }
                for (I i = first; i < ${'min(last, (I)(end - 1))' if packed else 'last'}; ++i) {
                    __global const R *row = u + i * width + m;
                    V sum[${vectors}];
                    for (int k = 0; k < ${vectors}; ++k) sum[k] = (V)(0);
                    for (I l = 0; l < count; ++l) {
                        const V a = (V)(row[l]);
% for k in range(vectors):
                        sum[${k}] = clt_add_${V}(sum[${k}], a - *(const V *)(turned + l * ${columns} + ${k * L}), p);
% endfor
                    }
                    V *before = kept + (i - first) * ${vectors};
                    if (m) for (int k = 0; k < ${vectors}; ++k)
                        sum[k] = ${'(before[k] > sum[k]) | (before[k] != before[k]) ? before[k] : sum[k]' if kind == 'largest' else 'before[k] + sum[k]'};
                    if (m + count < width) {
                        for (int k = 0; k < ${vectors}; ++k) before[k] = sum[k];
                        continue;
                    }
% if packed:
                    __global R *to = out + clt_pair(i, 0, n1);
                    const I low = max(j, (I)(i + 1));
% else:
                    __global R *to = out + (b * n1 + i) * n2;
                    const I low = j;
% endif
                    for (int k = 0; k < ${vectors}; ++k) {
                        const I at = j + k * ${L};
                        const V found = clt_done_${V}(sum[k], p);
                        if (at >= low) {
                            if (at < end) store_${dt.code}(to + at, found, (int)min((I)${L}, (I)(end - at)));
                            continue;
                        }
                        R each[${L}];
                        vstore${L}(found, 0, each);
                        for (I l = low; l < min((I)(at + ${L}), end); ++l) to[l] = each[l - at];
                    }
                }
            }
        }
    }
% else:
## Pair one row with the rows [begin, end): the first pair's index is `at`, the next ones are `by` apart.
<%def name="over(vectors, begin, end, at, by)">\
            {
                __global const R *v = x2 + o2 + b * b2 + (${begin}) * width + m, *gs = g + og${'' if packed else ' + b * gb + i * g1'}, *ds = distances + od${'' if packed else ' + b * gb + i * g1'};
                I at = ${at};
                for (I j = ${begin}; j < ${end}; ++j, v += width) {
                    const R distance = ds[at], factor = clt_factor(gs[at${' * g2' if packed else ''}], distance, p);
                    at += ${by};
% for k in range(vectors):
                    sum${k} += clt_slope_${V}(u${k} - ${load('v', k, vectors)}, factor, distance, p);
% endfor
                }
            }
</%def>\
<%
def load(p, k, vectors):
    return f'load_{dt.code}({p} + {k * L}, left)' if k + 1 == vectors else f'*(__global const u_{dt.code} *)({p} + {k * L})'
%>\
    const I all = batch * n1, first = all / parts * part + min(part, (I)(all % parts)), last = first + all / parts + (part < all % parts);
    for (I q = first; q < last; ++q) {
        const I i = q % n1, b = q / n1;
        for (I m = 0; m < width; m += ${4 * L}) {
            __global const R *u = x1 + o1 + b * b1 + i * width + m;
            __global R *to = out + q * width + m;
            const int vectors = (int)min((I)4, (I)((width - m + ${L - 1}) / ${L})), left = (int)min((I)${L}, (I)(width - m - (vectors - 1) * ${L}));
% for vectors in range(1, 5):
            ${'else ' * (vectors > 1)}if (vectors == ${vectors}) {
% for k in range(vectors):
            const V u${k} = ${load('u', k, vectors)};
            V sum${k} = (V)(0);
% endfor
% if packed:
            ${over(vectors, '0', 'i', 'i - 1', 'n1 - j - 2')}
            ${over(vectors, 'i + 1', 'n1', 'clt_pair(i, i + 1, n1)', '1')}
% else:
            ${over(vectors, '0', 'n2', '0', 'g2')}
% endif
% for k in range(vectors):
            store_${dt.code}(to + ${k * L}, sum${k}, ${'left' if k + 1 == vectors else L});
% endfor
            }
% endfor
        }
    }
% endif
}
