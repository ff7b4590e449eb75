<%doc>
Weighted sums over three axes (depth, height, width) of each of `planes` planes: out[d, h, w] = sum over what the axes
read.
An axis is 'same' (no table), or reads from start[o]: 'one' position, 'many' (size[o], weighted) or the 'sum' of many.
rows: the CPU schedule. A work-item takes whole rows of the output, ${batch} at a time: for each it adds up the input
rows that the row depends on, 16 elements at a time, into a row of `scratch`, and only then resamples these rows along
the width: loads that closely follow the stores of the same data would have to wait. The input rows of the next ${batch}
are prefetched meanwhile, as hardware does not prefetch for reads that pause. With few taps (`wide`) the elements of the
output are made 16 at a time, too, the same ones of all rows, so that the tables are read once for all; elements beyond
a row's end are then read, for which there is room, and not added. The elements that 16 outputs read mostly fit one or
two registers, from which they are picked (cl_kernels/pick.cl); if they all fit one, as when images are enlarged,
intermediate rows are not stored at all (by_windows).
`listed`: input rows that an output row depends on, at most, if these are few. `flat`: a row of the source is one
element repeated, and so are its sums, of which one number is kept per row (`level`). `streamed`: the output is written
with non-temporal stores; else its lines are prefetched. `direct`: the width is 'same', so sums are rows of the output.
`plain`: depth and height copy one position each, and the width reads one or an unknown number, so its elements are
read where they are needed in the source's row, not in sums of rows. `unit`: elements of the source's rows are adjacent.
`picks`: elements are picked from registers. `spare`: elements beyond a row's end for which there is room.
not rows, the GPU schedule: a lane has a place of a plane, whose taps are found once, and walks through planes; a group
has `across` places of several planes.
bytes: 8-bit images with fixed-point weights, rounded after each axis; a CPU has byte_rows.mako for them.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%
R = 'int' if bytes else dt.reg
axes = ['d', 'h', 'w']
kinds = dict(zip(axes, axis_kinds))
weighted = {a: kinds[a] == 'many' for a in axes}
single = {a: kinds[a] in ('same', 'one') for a in axes}
L = 16 if dt.itemsize <= 4 else 8
heavy = weighted['d'] or weighted['h']
counted = not (single['d'] and single['h'])
pairs = wide and not single['w'] and taps % 2 == 0 and dt.code == 'f32' and not flat
of_plane = 'src + os + number / channels * sn + number % channels * sc'
beside = (4 if listed and direct else 2) if unit or flat else 1  # vectors of a row that are summed together
ahead = unit and not plain

def read(p):
    return f'(int)*({p})' if bytes else f'clt_ld_e({p})'

def at(a, k):
    """The input position of a tap."""
    return f'{a}_first' if single[a] else f'({a}_first + {k})'

def weight(a, o, k):
    return f'{a}_weight[{k} * m{a} + {o}]'

def upper_weight():
    return ' * '.join(weight(a, 'o' + a, 'k' + a) for a in ('d', 'h') if weighted[a])
%>\
% if dt.code == 'f64':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
${w.prelude()}
typedef ${I} I;
typedef ${R} R;
% if not bytes:
${w.element(dt, 'e')}
% endif
% if rows and dt.code not in ('f16', 'bf16'):
typedef ${dt.reg}${L} V;
typedef V u_V __attribute__((aligned(${dt.itemsize})));
typedef int${L} N;
typedef N u_N __attribute__((aligned(4)));
typedef ulong u_pair __attribute__((aligned(4))); /* loads two adjacent elements at once */
% endif
${headers}
<%def name="setup(a, o)">\
% if kinds[a] == 'same':
        const I ${a}_first = ${o};
% else:
        const I ${a}_first = (I)${a}_start[${o}];
% endif
% if not single[a]:
        const int ${a}_n = ${a}_size[${o}];
% endif
</%def>\
<%def name="over(a)">\
% if single[a]:
            { const int k${a} = 0;
% else:
            for (int k${a} = 0; k${a} < ${a}_n; ++k${a}) {
% endif
</%def>\
## List the input rows that output row q reads, their pointers and weights, from entry `first` on.
<%def name="listed_row(first)">\
        int reads = 0;
        ${over('d')}
        ${over('h')}
            from[${first} + reads] = plane + ${at('d', 'kd')} * sd + ${at('h', 'kh')} * sh;
% if heavy:
            by[${first} + reads] = ${upper_weight()};
% endif
            ++reads;
        }}
</%def>\
## Sum over the input rows at element j: one element, or with `vectors` that many adjacent vectors, which share the
## loads of weights.
<%def name="upper_sum(j, vectors)">\
<%
kind = 'V' if vectors else 'R'
step = j if unit else f'{j} * sw'
%>\
            ${kind} ${', '.join(f'sum{u} = 0' for u in range(max(vectors, 1)))};
% if listed:
            for (int k = 0; k < reads; ++k) {{
                __global const ${dt.cl} *p = from[k] + ${step};
% if heavy:
                const R factor = by[k];
% endif
% else:
            ${over('d')}
            ${over('h')}
                __global const ${dt.cl} *p = plane + ${at('d', 'kd')} * sd + ${at('h', 'kh')} * sh + ${step};
% if heavy:
                const R factor = ${upper_weight()};
% endif
% endif
% for u in range(max(vectors, 1)):
<%
place = f"p + {u * L}" if unit else f"p + {u * L} * sw"
load = read('p') if not vectors else f"*(__global const u_V *)({place})" if unit else "(V)(*p)" if flat else f"(V)({', '.join(f'p[{u * L + k} * sw]' for k in range(L))})"
%>\
                { const ${kind} v = ${load}; sum${u} += ${"factor * v" if heavy else "v"}; }
% endfor
            }}
</%def>\
## Advance to the next row; computed by divisions that took a quarter of the time of short rows.
<%def name="next_row()">\
if (++oh == mh) {
            oh = 0;
            if (++od == md) od = 0, ++number, plane = ${of_plane};
        }
</%def>
<%def name="put()">\
% if streamed:
CLT_STREAM(value, (__global V *)(to + ow));\
% else:
*(__global u_V *)(to + ow) = value;\
% endif
</%def>\
<%def name="put_sum(place, sum)">\
% if direct and streamed:
CLT_STREAM(${sum}, (__global V *)(${place}));\
% else:
*(__global u_V *)(${place}) = ${sum};\
% endif
</%def>\
## Run the body, which computes `value`, the vector of outputs from ow on, for each row of the batch. `level`: a row's
## sums are one number.
<%def name="each_row()">\
                for (I q = start; q < stop; ++q) {
% if level:
                    const V all = (V)(levels[q - start]);
% else:
                    __global const R *restrict row = own + (q - start) * (nw + ${spare});
% endif
                    __global ${dt.cl} *restrict to = out + q * mw;
                    V value = (V)(0);
                    ${caller.body()}
                    ${put()}
                }
</%def>\
<%def name="add_tap(tap, read)">\
{ const V v = ${f"weight{tap} * " if weighted['w'] else ''}${read}; value += on${tap} ? v : (V)(0); }\
</%def>\
<%def name="bases()">\
const I end_base = nw - CLT_PICK, first_low = w_start[ow], first_high = w_start[ow + 8];
            const I low = first_low < end_base ? first_low : end_base, high = first_high < end_base ? first_high : end_base;\
</%def>\
## Resample rows of which each vector of outputs reads within two windows of a register: sums stay in registers, and
## intermediate rows are not stored.
<%def name="by_windows()">\
#ifdef CLT_PICK
<% places = 'CLT_BASES(low, high)' %>\
    int near = nw >= CLT_PICK && mw >= 16;
    for (I ow = 0; near && ow < mw; ow += 16) {
        ow = min(ow, mw - 16);
        ${bases()}
        const N last = *(__global const u_N *)(w_start + ow)${'' if single['w'] else ' + *(__global const u_N *)(w_size + ow) - (N)(1)'} - CLT_BASES(low, high);
        near = CLT_REACH(last) < CLT_PICK;
    }
    for (I start = begin; near && start < end; start += ${batch}) {
        const I stop = min(start + ${batch}, end);
        __global const float *from[${batch * listed}];
% if heavy:
        float by[${batch * listed}];
% endif
% if counted:
        int many[${batch}];
% endif
        for (I q = start; q < stop; ++q) {
            ${setup('d', 'od')}
            ${setup('h', 'oh')}
            ${listed_row(f'(q - start) * {listed}')}
% if counted:
            many[q - start] = reads;
% endif
% if not streamed:
            for (I j = 0; j < mw; j += 16) CLT_PREFETCH_TO_WRITE(out + q * mw + j);
% endif
            ${next_row()}
        }
        for (I ow = 0; ow < mw; ow += 16) {
            ow = min(ow, mw - 16);
            ${bases()}
            const N pick = *(__global const u_N *)(w_start + ow) - CLT_BASES(low, high);
% if not single['w']:
            const N count = *(__global const u_N *)(w_size + ow);
% for tap in range(taps):
            const N on${tap} = count > (N)(${tap});
% if weighted['w']:
            const V weight${tap} = *(__global const u_V *)(w_weight + ${tap} * mw + ow);
% endif
% endfor
% endif
            __global ${dt.cl} *restrict to = out + start * mw;
            for (I q = start; q < stop; ++q, to += mw) {
% if counted or heavy:
                V sum = (V)(0);
                __global const float *const *const rows = from + (q - start) * ${listed};
% if heavy:
                const float *const by_row = by + (q - start) * ${listed};
% endif
<%def name="add_row(k)">{ const V v = CLT_WINDOW(rows[${k}], low, high); sum += ${f'by_row[{k}] * v' if heavy else 'v'}; }</%def>\
% if counted:
                if (many[q - start] < ${listed})
                    for (int k = 0; k < many[q - start]; ++k) ${add_row('k')}
                else {
% else:
                {
% endif
% for k in range(listed):
                    ${add_row(k)}
% endfor
                }
% else:
                const V sum = CLT_WINDOW(from[q - start], low, high);
% endif
% if single['w']:
                const V value = clt_picked(sum, pick);
% else:
                V value = (V)(0);
% for tap in range(taps):
                ${add_tap(tap, f'clt_picked(sum, pick + {tap})')}
% endfor
% endif
                ${put()}
            }
        }
    }
    if (near) return;
#endif
</%def>\
% if rows:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(__global const ${dt.cl} *restrict src, __global ${dt.cl} *restrict out\
% if rows and not plain and not direct and not level:
, __global R *restrict scratch\
% endif
% for a in axes:
% if kinds[a] != 'same':
, __global const int *restrict ${a}_start\
% endif
% if not single[a]:
, __global const int *restrict ${a}_size\
% endif
% if weighted[a]:
, __global const R *restrict ${a}_weight\
% endif
% if bytes and weighted[a]:
, __global const int *restrict ${a}_bits\
% endif
% endfor
, const I planes, const I channels, const I os, const I sn, const I sc\
% for a in axes:
, const I n${a}, const I m${a}, const I s${a}\
% endfor
% if not rows:
, const I across\
% endif
) {
% if rows:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I total = planes * md * mh;
    const I begin = total / parts * part + min(part, (I)(total % parts)), end = begin + total / parts + (part < total % parts);
    I oh = begin % mh, od = begin / mh % md, number = begin / mh / md;
    __global const ${dt.cl} *plane = ${of_plane};
% if picks and listed and unit:
${by_windows()}\
% endif
% if ahead:
    const I further = ${batch} * nh / mh;
% endif
% if not plain:
% if not direct and not level:
    __global R *restrict own = scratch + part * ${batch} * (nw + ${spare});
% endif
    for (I start = begin; start < end; start += ${batch}) {
    const I stop = min(start + ${batch}, end);
% if level:
    R levels[${batch}];
% endif
    for (I q = start; q < stop; ++q) {
% if not level:
        __global R *restrict row = ${'out + q * mw' if direct else f'own + (q - start) * (nw + {spare})'};
% endif
% if wide and not single['w'] and not streamed:
        for (I j = 0; j < mw; j += ${64 // dt.itemsize}) CLT_PREFETCH_TO_WRITE(out + q * mw + j);
% endif
% else:
    for (I q = begin; q < end; ++q) {
% endif
        ${setup('d', 'od')}
        ${setup('h', 'oh')}
% if plain:
        __global const ${dt.cl} *restrict row = plane + d_first * sd + h_first * sh;
% else:
        I j = 0;
% if listed:
        __global const ${dt.cl} *from[${listed}];
% if heavy:
        R by[${listed}];
% endif
${listed_row(0)}\
% endif
% if ahead:
        __global const ${dt.cl} *later = plane + (h_first + further) * sh;
        for (I fresh = nh > mh ? 0 : nh; fresh < nh; fresh += mh, later += sh)
            for (I at = 0; at < nw; at += ${64 // dt.itemsize}) CLT_PREFETCH(later + at);
% endif
% if level:
        ${upper_sum('j', 0)}
        levels[q - start] = sum0;
% else:
% if dt.code not in ('f16', 'bf16'):
% if beside > 1:
        for (; j + ${beside * L} <= nw; j += ${beside * L}) {
            ${upper_sum('j', beside)}
% for u in range(beside):
            ${put_sum(f'row + j + {u * L}', f'sum{u}')}
% endfor
        }
% endif
        if (nw >= ${L}) for (; j < nw; j += ${L}) {
            j = min(j, nw - ${L});
            ${upper_sum('j', 1)}
            ${put_sum('row + j', 'sum0')}
        }
% endif
        for (; j < nw; ++j) {
            ${upper_sum('j', 0)}
            row[j] = sum0;
        }
% endif
        ${next_row()}
    }
% if wide and not single['w']:
    if (mw >= ${L}) for (I ow = 0; ow < mw; ow += ${L}) {
        ow = min(ow, mw - ${L});
        __global const int *at = w_start + ow;
        const N count = *(__global const u_N *)(w_size + ow);
% for tap in range(taps):
        const ${'long8' if dt.code == 'f64' else 'N'} on${tap} = ${'convert_long8' if dt.code == 'f64' else ''}(count > (N)(${tap}));
% if weighted['w']:
        const V weight${tap} = *(__global const u_V *)(w_weight + ${tap} * mw + ow);
% endif
% endfor
% if picks:
#ifdef CLT_PICK
        const I low = at[0], high = at[8];
        const N pick = *(__global const u_N *)at - CLT_BASES(low, high);
        const int reach = CLT_REACH(pick);
% for far in (False, True):
        if (reach < ${2 if far else 1} * CLT_PICK) {
            <%self:each_row>
% for tap in range(taps):
<%
window = f'CLT_WINDOW(row + {tap}, low, high)'
next = f'CLT_WINDOW(row + {tap} + CLT_PICK, low, high)'
%>\
                    ${add_tap(tap, f'clt_picked_far({window}, {next}, pick)' if far else f'clt_picked({window}, pick)')}
% endfor
            </%self:each_row>
        } else
% endfor
#endif
% endif
        {
            <%self:each_row>
% if pairs:
% for tap in range(0, taps, 2):
            const V low${tap} = as_float16((ulong8)(${', '.join(f'*(__global const u_pair *)(row + at[{k}] + {tap})' for k in range(8))}));
            const V high${tap} = as_float16((ulong8)(${', '.join(f'*(__global const u_pair *)(row + at[{k}] + {tap})' for k in range(8, 16))}));
            const V tap${tap} = (V)(low${tap}.even, high${tap}.even), tap${tap + 1} = (V)(low${tap}.odd, high${tap}.odd);
% endfor
% endif
% for tap in range(taps):
            ${add_tap(tap, f'tap{tap}' if pairs else 'all' if level else f"(V)({', '.join(f'row[at[{k}] + {tap}]' for k in range(L))})")}
% endfor
            </%self:each_row>
        }
    }
% endif
% if not direct:
    for (I q = start; q < stop; ++q) {
% if not level:
        __global const R *restrict row = own + (q - start) * (nw + ${spare});
% endif
% endif
% endif
% if not direct:
        __global ${dt.cl} *restrict to = out + q * mw;
<%
step = '' if unit or not plain else ' * sw'
across_row = f"row[{at('w', 'kw')}{step}]"
%>\
        I ow = ${f'mw >= {L} ? mw : 0' if wide and not single['w'] else 0};
% if wide and single['w']:
        if (mw >= ${L}) for (; ow < mw; ow += ${L}) {
            ow = min(ow, mw - ${L});
            __global const int *at = w_start + ow;
            V value;
            value = (V)(${'levels[q - start]' if level else ', '.join(f'row[at[{k}]{step}]' for k in range(L))});
            ${put()}
        }
% endif
        for (; ow < mw; ++ow) {
            ${setup('w', 'ow')}
% if single['w']:
            const R value = ${'levels[q - start]' if level else f'row[w_first{step}]'};
% else:
            R value = 0;
            ${over('w')}
                value += ${f"{weight('w', 'ow', 'kw')} * " if weighted['w'] else ''}${'levels[q - start]' if level else across_row};
            }
% endif
% if plain:
            to[ow] = value;
% else:
            clt_st_e(to + ow, value);
% endif
        }
% if plain:
        ${next_row()}
% endif
    }
% endif
% if not plain:
    }
% endif
% else:
    const I inside = md * mh * mw, blocks = (inside + across - 1) / across, high = (I)get_local_size(0) / across;
    const I block = (I)get_group_id(0) % blocks, walk = (I)get_group_id(0) / blocks, lane = (I)get_local_id(0);
    const I place = block * across + lane % across, step = (I)get_num_groups(0) / blocks * high;
    if (place >= inside) return;
    const I ow = place % mw, above = place / mw, oh = md == 1 ? above : above % mh, od = md == 1 ? 0 : above / mh;
    ${setup('d', 'od')}
    ${setup('h', 'oh')}
    ${setup('w', 'ow')}
    I number = walk * high + lane / across, image = number / channels, channel = number % channels;
    const I images = step / channels, more = step % channels;
    for (; number < planes; number += step, image += images, channel += more) {
        if (channel >= channels) channel -= channels, ++image;
        const I q = number * inside + place;
        __global const ${dt.cl} *plane = src + os + image * sn + channel * sc;
% if bytes:
        int outer = ${'1 << (h_bits[0] - 1)' if weighted['h'] else '0'};
        { const int kd = 0;
        ${over('h')}
            int inner = ${'1 << (w_bits[0] - 1)' if weighted['w'] else '0'};
            ${over('w')}
                const int v = *(plane + ${at('d', 'kd')} * sd + ${at('h', 'kh')} * sh + ${at('w', 'kw')} * sw);
                inner += ${f"{weight('w', 'ow', 'kw')} * v" if weighted['w'] else 'v'};
            }
            inner = ${'clamp(inner >> w_bits[0], 0, 255)' if weighted['w'] else 'inner'};
            outer += ${f"{weight('h', 'oh', 'kh')} * inner" if weighted['h'] else 'inner'};
        }}
        out[q] = (uchar)${'clamp(outer >> h_bits[0], 0, 255)' if weighted['h'] else 'outer'};
% else:
        R value = 0;
        ${over('d')}
        ${over('h')}
            R along = 0;
            ${over('w')}
                const R v = ${read(f"plane + {at('d', 'kd')} * sd + {at('h', 'kh')} * sh + {at('w', 'kw')} * sw")};
                along += ${f"{weight('w', 'ow', 'kw')} * v" if weighted['w'] else 'v'};
            }
            value += ${f"({upper_weight()}) * along" if heavy else 'along'};
        }}
        clt_st_e(out + q, value);
% endif
    }
% endif
}
