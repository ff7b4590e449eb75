<%doc>
Scans along one dim of rows: ${kind}. Pieces are rows, or `chunks` equal parts of each; `totals` writes only the state at the end of
a piece, and the second launch starts each piece from the states before it, so the result does not depend on timing.
CPU rows: a work-item walks whole pieces. CPU columns (the dim is not the last): a work-item carries ${block} neighbouring rows
at once, so memory is read in order; float32 and 16-bit floats without gaps by vectors (`wide`). GPU rows: a work-group scans a piece in tiles, of which a lane takes
${items} neighbours. GPU columns: a lane carries a piece, and its neighbours those of neighbouring rows.
`after`: where parts of a row were scanned as rows of their own, each is given what came before it.
float32 sums carry a second float with what rounding lost; on a CPU 64 elements are summed between two of its steps.
</%doc>\
<%namespace name="square" file="/square.mako"/>\
<%namespace name="w" file="/walk.mako"/>\
<%
R = dt.reg
ranked = kind in ('cummax', 'cummin')
pair = kind == 'cumsum' and dt.reg in ('float', 'float2')
fields = ['v', 'lo'] if pair else ['v', 'at'] if ranked else ['v']
names = ['s', 'd'] + (['x'] if ranked else [])
better = '>=' if kind == 'cummax' else '<='
def place(i, step='sl'): return i if dense else f'{i} * {step}'
short = src_dt.code if src_dt.code in ('f16', 'bf16') else ''
def load16(p): return f'clt_load_{short}_float16({p})' if short else f'*(__global const u16 *)({p})'
def store16(p, v): return f'clt_store_{short}_float16({v}, {p})' if short else f'*(__global u16 *)({p}) = {v}'
%>\
${headers}
${w.prelude()}
typedef ${I} I;
typedef ${R} R;
${w.element(src_dt, 'src')}
${w.element(dt, 'dst')}
static inline R clt_read(__global const ${src_dt.cl} *p) {
% if dt.is_complex and not src_dt.is_complex:
    return (R)((${R[:-1]})clt_ld_src(p), 0);
% elif dt.is_complex:
    return convert_${R}(clt_ld_src(p));
% elif src_dt.is_complex:
    return (R)clt_ld_src(p).x;
% elif dt.code == 'b8':
    return (R)(clt_ld_src(p) != 0);
% else:
    return (R)clt_ld_src(p);
% endif
}
% if kind == 'logcumsumexp' and dt.is_complex:
<% F = R[:-1] %>
static inline R clt_cexp(const R z) {
    const ${F} e = exp(z.x);
    return z.y == 0 || e == 0 ? (R)(e, 0) : (R)(e * cos(z.y), e * sin(z.y)); /* of exp(-inf), the angle is not asked */
}
% endif
## The state of a scan, and what is done with it: of one row, or of 16 neighbouring ones.
<%def name="functions(R, I, n)">\
<% own = f"_{R}" if dt.reg == 'float' else '' %>\
typedef struct { ${R} v;${f" {R} lo;" if pair else f" {I} at;" if ranked else ""} } S${n};
static inline S${n} clt_lift${n}(const ${R} v, const ${I} i) {
    S${n} s;
    s.v = v;
% if pair:
    s.lo = (${R})0;
% elif ranked:
    s.at = i;
% endif
    return s;
}
% if ranked:
/* Whether b, which comes after a, is the extreme of both. */
static inline ${I} clt_take${n}(const ${R} a, const ${R} b) {
% if dt.is_floating_point:
    return (b != b) | ((a == a) & (b ${better} a));
% else:
    return b ${better} a;
% endif
}
% endif
/* a comes before b */
static inline S${n} clt_join${n}(const S${n} a, const S${n} b) {
    S${n} r;
% if pair:
    r.v = a.v + b.v;
    const ${R} t = r.v - a.v;
    r.lo = a.lo + (b.lo + ((a.v - (r.v - t)) + (b.v - t)));
% elif kind == 'cumsum':
    r.v = a.v + b.v;
% elif kind == 'cumprod' and dt.is_complex:
    r.v = (R)(a.v.x * b.v.x - a.v.y * b.v.y, a.v.x * b.v.y + a.v.y * b.v.x);
% elif kind == 'cumprod':
    r.v = a.v * b.v;
% elif ranked:
    const ${I} take = clt_take${n}(a.v, b.v);
    r.v = take ? b.v : a.v;
    r.at = take ? b.at : a.at;
% elif dt.is_complex:
    const int first = a.v.x < b.v.x;
    const R lo = first ? a.v : b.v, hi = first ? b.v : a.v;
    if (isnan(a.v.x) || isnan(a.v.y) || isnan(b.v.x) || isnan(b.v.y)) r.v = (R)(NAN, NAN);
    else if (!isfinite(lo.x) && lo.x == hi.x) {
        const R e = clt_cexp(lo) + clt_cexp(hi);
        r.v = (R)(isinf(e.x) | isinf(e.y) ? INFINITY : log(hypot(e.x, e.y)), atan2(e.y, e.x));
    } else {
        const R e = clt_cexp(lo - hi);
        const ${R[:-1]} w = 1 + e.x; /* near 0 the product below would lose it */
        r.v = hi + (R)(w < (${R[:-1]})0.5 ? log(hypot(w, e.y)) : (${R[:-1]})0.5 * log1p(e.x * (2 + e.x) + e.y * e.y), atan2(e.y, w));
    }
% else:
    const ${R} lo = a.v < b.v ? a.v : b.v, hi = a.v < b.v ? b.v : a.v; /* NaN differs from all, so from the other, too */
    r.v = (lo != hi) | (lo - lo == 0) ? hi + log1p${own}(exp${own}(lo - hi)) : a.v;
% endif
    return r;
}
static inline ${R} clt_value${n}(const S${n} s) {
% if pair and dt.is_complex:
    return (R)(isfinite(s.v.x) ? s.v.x + s.lo.x : s.v.x, isfinite(s.v.y) ? s.v.y + s.lo.y : s.v.y);
% elif pair:
    return s.v - s.v == 0 ? s.v + s.lo : s.v;
% elif kind == 'logcumsumexp' and dt.is_complex:
    return isnan(s.v.x) || isnan(s.v.y) ? (R)(NAN, NAN) : (R)(s.v.x, s.v.x == -INFINITY ? 0 : s.v.y);
% else:
    return s.v;
% endif
}
</%def>\
${functions(R, 'I', '')}\
% if wide:
${functions('float16', 'int16', '16')}\
% endif
% if wide or unit:
typedef float16 u16 __attribute__((aligned(4)));
% endif
% if wide and ranked:
typedef int16 i16 __attribute__((aligned(8)));
/* Positions, none of them negative, as 64 bits each: convert_long16() is a call on some drivers. */
static inline void clt_widen(__global long *p, const int16 v) {
    int16 a, b;
    a.even = v.lo; a.odd = (int8)(0);
    b.even = v.hi; b.odd = (int8)(0);
    *(__global i16 *)p = a;
    *(__global i16 *)(p + 8) = b;
}
static inline S16 clt_spread16(const float v, const int at) { return clt_lift16((float16)(v), (int16)(at)); }
% if totals:
/* The state after all elements, of those after every 16th. */
static inline S clt_last16(const S16 s) {
    float v[16];
    int at[16];
    vstore16(s.v, 0, v);
    vstore16(s.at, 0, at);
    S r = clt_lift(v[0], (I)at[0]);
    for (int k = 1; k < 16; ++k) {
        const S b = clt_lift(v[k], (I)at[k]);
        r = b.at < r.at ? clt_join(b, r) : clt_join(r, b);
    }
    return r;
}
% else:
/* The states of 16 elements, each after those before it: an extreme of 1, 2, 4, 8 and 16 of them. */
static inline S16 clt_prefix16(const float16 v, const int16 at) {
<% lane, least = '0123456789abcdef', '-INFINITY' if kind == 'cummax' else 'INFINITY' %>\
    S16 s = clt_lift16(v, at);
% for gap in (1, 2, 4, 8):
    {
        S16 before;
        before.v = (float16)(${", ".join([least] * gap + [f"s.v.s{lane[k]}" for k in range(16 - gap)])});
        before.at = (int16)(${", ".join(["0"] * gap + [f"s.at.s{lane[k]}" for k in range(16 - gap)])});
        s = clt_join16(before, s);
    }
% endfor
    return s;
}
% endif
% endif
% if pair and not gpu and not dt.is_complex:
/* Inclusive prefix of 16 lanes; its last is clt_sum16, to the bit: of fours, which no lane leaves, then of fours before them. */
static inline float16 clt_prefix16(float16 v) {
<%
lane = '0123456789abcdef'
steps = [[i - gap if i % 4 >= gap else None for i in range(16)] for gap in (1, 2)]
steps += [[i // 4 * 4 - 4 * (gap - 1) - 1 if i // 4 >= gap else None for i in range(16)] for gap in (1, 2)]
%>
% for step in steps:
    v += (float16)(${", ".join("0.0f" if k is None else f"v.s{lane[k]}" for k in step)});
% endfor
    return v;
}
static inline float clt_sum16(const float16 v) {
    const float8 a = v.even + v.odd;
    const float4 b = a.even + a.odd;
    const float2 c = b.even + b.odd;
    return c.x + c.y;
}
static inline float16 clt_read16(__global const ${src_dt.cl} *p${'' if unit else ', const I step'}) {
% if unit:
    return ${load16('p')};
% else:
    float t[16];
    for (int j = 0; j < 16; ++j) t[j] = clt_read(p + j * step);
    return vload16(0, t);
% endif
}
static inline void clt_write16(__global ${dt.cl} *p, const float16 v${'' if unit else ', const I step'}) {
% if unit:
    ${store16('p', 'v')};
% else:
    float t[16];
    vstore16(v, 0, t);
    for (int j = 0; j < 16; ++j) clt_st_dst(p + j * step, t[j]);
% endif
}
% endif
<%def name="put(s, at_d, at_x)">
            clt_st_dst(dst + ${at_d}, clt_value(${s}));
% if ranked:
            indices[${at_x}] = (long)${s}.at;
% endif
</%def>\
% if after:
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const float *src, __global float *dst, const I rows, const I pieces, const I step, const I length, const I os, const I od\
${w.params('p', rank, names)}\
) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), n = rows * pieces;
    const I first = n * part / parts, last = n * (part + 1) / parts;
    for (I k = first; k < last; ++k) {
        const I row = k / pieces, piece = k % pieces, begin = (piece + 1) * step;
        const I end = piece + 1 == pieces ? length : begin + step;
        ${w.decode('p', rank, names, 'row')}
        const float before = src[os + p_s_at + piece];
        const S16 all = clt_lift16((float16)(before), (int16)(0));
        const S one = clt_lift(before, 0);
        __global float *to = dst + od + p_d_at;
        I i = begin;
        for (; i + 16 <= end; i += 16)
            *(__global u16 *)(to + i) = clt_value16(clt_join16(all, clt_lift16(*(__global const u16 *)(to + i), (int16)(0))));
        for (; i < end; ++i) to[i] = clt_value(clt_join(one, clt_lift(to[i], 0)));
    }
}
<% return STOP_RENDERING %>
% endif
% if gpu:
#define LANES ${lanes}
#define ITEMS ${items}
#define TILE ${lanes * items}
#define CLT_AT(p) ((uint)(p) + (uint)(p) / ITEMS) // lanes that take ITEMS neighbours each then do so from banks of their own
__attribute__((reqd_work_group_size(${lanes}, 1, 1)))
__kernel void ${fn}(__global const ${src_dt.cl} *src, __global ${dt.cl} *dst\
% if ranked:
, __global long *indices\
% endif
, __global S *states, const I length, const I rows, const I chunks, const I os, const I od, const I sl, const I dl\
% if ranked:
, const I ox, const I xl\
% endif
% if columns:
, const I width, const I ss, const I ds\
% if ranked:
, const I xs\
% endif
% endif
${w.params('p', rank, names)}\
) {
    const I step = (length + chunks - 1) / chunks;
% if columns:
    for (I t = (I)get_global_id(0); t < rows * chunks * width; t += (I)get_global_size(0)) {
        const I piece = t / width, column = t % width, row = piece / chunks, chunk = piece % chunks;
        const I begin = min(length, (I)(chunk * step)), end = min(length, (I)(begin + step));
        if (begin >= end${' || chunk + 1 == chunks' if totals else ''}) continue;
        ${w.decode('p', rank, names, 'row')}
        __global const ${src_dt.cl} *from = src + os + p_s_at + column * ss;
        const I to = od + p_d_at + column * ds${", xo = ox + p_x_at + column * xs" if ranked else ""};
        I i = begin;
        S carry = clt_lift(clt_read(from + i * sl), i);
% if not totals:
        if (chunk > 0) {
            S before = states[row * chunks * width + column];
            for (I c = 1; c < chunk; ++c) before = clt_join(before, states[(row * chunks + c) * width + column]);
            carry = clt_join(before, carry);
        }
        ${put('carry', 'to + i * dl', 'xo + i * xl')}
% endif
        ++i;
        // What is read does not wait for what is written.
% for many in (4, 1):
        for (; i + ${many} <= end; i += ${many}) {
            const R ${', '.join(f'x{k} = clt_read(from + (i + {k}) * sl)' for k in range(many))};
% for k in range(many):
            carry = clt_join(carry, clt_lift(x${k}, i + ${k}));
% if not totals:
            ${put('carry', f'to + (i + {k}) * dl', f'xo + (i + {k}) * xl')}
% endif
% endfor
        }
% endfor
% if totals:
        states[t] = carry;
% endif
    }
% else:
<%def name="scan()">
            shared_state[lane] = mine;
            barrier(CLK_LOCAL_MEM_FENCE);
            int now = 0;
            for (int gap = 1; gap < LANES; gap <<= 1) {
                mine = shared_state[now + lane];
                if (lane >= gap) mine = clt_join(shared_state[now + lane - gap], mine);
                now ^= LANES;
                shared_state[now + lane] = mine;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
</%def>\
    const int lane = (int)get_local_id(0);
    __local S shared_state[${2 * lanes}];
    __local R held[${lanes * (items + 1)}];
% if ranked and not totals:
    __local I held_at[${lanes * (items + 1)}];
% endif
    for (I piece = (I)get_group_id(0); piece < rows * chunks; piece += (I)get_num_groups(0)) {
        const I row = piece / chunks, chunk = piece % chunks;
        const I begin = min(length, (I)(chunk * step)), end = min(length, (I)(begin + step));
        if (begin >= end${' || chunk + 1 == chunks' if totals else ''}) continue;
        ${w.decode('p', rank, names, 'row')}
        __global const ${src_dt.cl} *from = src + os + p_s_at;
        const I to = od + p_d_at${", xo = ox + p_x_at" if ranked else ""};
        S carry = clt_lift((R)0, 0);
        int carried = 0;
% if not totals:
        for (I c = 0; c < chunk; c += LANES) {
            S mine = states[row * chunks + min((I)(c + lane), (I)(chunk - 1))];
            ${scan()}
            const S whole = shared_state[now + (int)min((I)(LANES - 1), (I)(chunk - 1 - c))];
            carry = carried ? clt_join(carry, whole) : whole;
            carried = 1;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
% endif
        for (I tile = begin; tile < end; tile += TILE) {
            // Lanes with something of the tile; the last of them may have less than all others.
            const int count = (int)min((I)TILE, (I)(end - tile)), live = (count + ITEMS - 1) / ITEMS;
            const int first = lane * ITEMS, own = max(0, min(ITEMS, count - first));
            for (int k = lane; k < count; k += LANES) held[CLT_AT(k)] = clt_read(from + ${place('(tile + k)')});
            barrier(CLK_LOCAL_MEM_FENCE);
            R x[ITEMS];
            _Pragma("unroll") for (int j = 0; j < ITEMS; ++j) x[j] = j < own ? held[lane * (ITEMS + 1) + j] : (R)0;
            S mine = clt_lift(x[0], tile + first);
            _Pragma("unroll") for (int j = 1; j < ITEMS; ++j) if (j < own) mine = clt_join(mine, clt_lift(x[j], tile + first + j));
            ${scan()}
% if not totals:
            S total = carry;
            int some = carried;
            if (lane > 0) {
                const S before = shared_state[now + lane - 1];
                total = some ? clt_join(total, before) : before;
                some = 1;
            }
            _Pragma("unroll") for (int j = 0; j < ITEMS; ++j) if (j < own) {
                const S next = clt_lift(x[j], tile + first + j);
                total = some ? clt_join(total, next) : next;
                some = 1;
                held[lane * (ITEMS + 1) + j] = clt_value(total);
% if ranked:
                held_at[lane * (ITEMS + 1) + j] = total.at;
% endif
            }
% endif
            const S whole = shared_state[now + live - 1];
            carry = carried ? clt_join(carry, whole) : whole;
            carried = 1;
            barrier(CLK_LOCAL_MEM_FENCE);
% if not totals:
            for (int k = lane; k < count; k += LANES) {
                const I i = tile + k;
                clt_st_dst(dst + to + ${place('i', 'dl')}, held[CLT_AT(k)]);
                ${"indices[xo + i * xl] = (long)held_at[CLT_AT(k)];" if ranked else ""}
            }
            barrier(CLK_LOCAL_MEM_FENCE);
% endif
        }
% if totals:
        if (lane == 0) states[piece] = carry;
% endif
    }
% endif
}
<% return STOP_RENDERING %>
% endif
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const ${src_dt.cl} *src, __global ${dt.cl} *dst\
% if ranked:
, __global long *indices\
% endif
, __global S *states, const I length, const I rows, const I chunks, const I os, const I od, const I sl, const I dl\
% if ranked:
, const I ox, const I xl\
% endif
% if columns:
, const I width, const I ss, const I ds\
% if ranked:
, const I xs\
% endif
% endif
${w.params('p', rank, names)}\
) {
% if columns:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), blocks = (width + ${block - 1}) / ${block}, n = rows * blocks;
    const I first = n / parts * part + min(part, (I)(n % parts)), last = first + n / parts + (part < n % parts);
    for (I piece = first; piece < last; ++piece) {
        const I row = piece / blocks, begin = piece % blocks * ${block}, count = min((I)${block}, (I)(width - begin));
        ${w.decode('p', rank, names, 'row')}
        __global const ${src_dt.cl} *from = src + os + p_s_at + begin * ss;
        const I to = od + p_d_at + begin * ds${", xo = ox + p_x_at + begin * xs" if ranked else ""};
        I aside = 0;
% if wide:
        S16 v[${block // 16}];
        for (I i = 0; i < length; ++i)
            for (I j = 0; j + 16 <= count; j += 16) {
                const S16 x = clt_lift16(${load16('from + i * sl + j')}, (int16)((int)i));
                v[j / 16] = i ? clt_join16(v[j / 16], x) : x;
                ${store16('dst + to + i * dl + j', 'clt_value16(v[j / 16])')};
% if ranked:
                clt_widen(indices + xo + i * xl + j, v[j / 16].at);
% endif
            }
        aside = count / 16 * 16;
% endif
        S s[${block}];
        for (I j = aside; j < count; ++j) {
            s[j] = clt_lift(clt_read(from + j * ss), 0);
            ${put('s[j]', 'to + j * ds', 'xo + j * xs')}
        }
        for (I i = 1; i < length; ++i)
            for (I j = aside; j < count; ++j) {
                s[j] = clt_join(s[j], clt_lift(clt_read(from + i * sl + j * ss), i));
                ${put('s[j]', 'to + i * dl + j * ds', 'xo + i * xl + j * xs')}
            }
    }
% else:
    const I step = (length + chunks - 1) / chunks;
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), n = rows * chunks;
    const I first = n / parts * part + min(part, (I)(n % parts)), last = first + n / parts + (part < n % parts);
% if beside:
    // Sixteen rows side by side: a step of one waits for the step before, and not for the other rows.
    I piece = first;
    for (; piece + 16 <= last; piece += 16) {
        __global const ${src_dt.cl} *from[16];
        __global ${dt.cl} *to[16];
        for (int k = 0; k < 16; ++k) {
            ${w.decode('p', rank, names, 'piece + k')}
            from[k] = src + os + p_s_at;
            to[k] = dst + od + p_d_at;
        }
        S16 state = clt_lift16((float16)(0), (int16)(0));
        I i = 0;
        for (; i + 16 <= length; i += 16) {
% for k in range(16):
            const float16 r${k} = ${load16(f'from[{k}] + i')};
% endfor
${square.turned('float16', 16, 'r', 'c')}\
% for k in range(16):
<% lifted = f"clt_lift16(c{k}, (int16)(0))" %>\
            state = ${f'i ? clt_join16(state, {lifted}) : {lifted}' if k == 0 else f'clt_join16(state, {lifted})'};
            const float16 e${k} = clt_value16(state);
% endfor
${square.turned('float16', 16, 'e', 't')}\
% for k in range(16):
            ${store16(f'to[{k}] + i', f't{k}')};
% endfor
        }
        float reached[16];
        vstore16(state.v, 0, reached);
        for (int k = 0; k < 16; ++k) {
            S carry = clt_lift(reached[k], 0);
            for (I j = i; j < length; ++j) {
                const S x = clt_lift(clt_read(from[k] + j), 0);
                carry = j ? clt_join(carry, x) : x;
                clt_st_dst(to[k] + j, clt_value(carry));
            }
        }
    }
    for (; piece < last; ++piece) {
% else:
    for (I piece = first; piece < last; ++piece) {
% endif
        const I row = piece / chunks, chunk = piece % chunks, begin = min(length, (I)(chunk * step));
        const I end = min(length, (I)(begin + step));
        ${w.decode('p', rank, names, 'row')}
        __global const ${src_dt.cl} *from = src + os + p_s_at;
        const I to = od + p_d_at${", xo = ox + p_x_at" if ranked else ""};
        if (begin >= end${' || chunk + 1 == chunks' if totals else ''}) continue;
        S carry = clt_lift((R)0, 0);
        int carried = 0;
% if not totals:
        if (chunk > 0) {
            carry = states[row * chunks];
            for (I c = 1; c < chunk; ++c) carry = clt_join(carry, states[row * chunks + c]);
            carried = 1;
        }
% endif
        I i = begin;
% if pair and not dt.is_complex:
% for vectors in (4, 1):
        for (; i + ${16 * vectors} <= end; i += ${16 * vectors}) {
            float whole = 0;
% if not totals:
            const float lost = isfinite(carry.v) ? carry.lo : 0;
% endif
% for at, read in ((f'i + {16 * k}', f"clt_read16(from + (i + {16 * k}) * sl{'' if unit else ', sl'})") for k in range(vectors)):
% if totals:
            whole += clt_sum16(${read});
% else:
            {
                const float16 part = whole + clt_prefix16(${read});
                clt_write16(dst + to + (${at}) * dl, carry.v + (lost + part)${'' if unit else ', dl'});
                whole = part.sf;
            }
% endif
% endfor
            carry = clt_join(carry, clt_lift(whole, i));
        }
% endfor
% else:
        if (!carried) {
            carry = clt_lift(clt_read(from + ${place('i')}), i);
% if not totals:
            ${put('carry', f"to + {place('i', 'dl')}", 'xo + i * xl')}
% endif
            ++i;
        }
% endif
% if ranked and wide:
        if (i + 16 <= end) {
            S16 wide = clt_spread16(carry.v, (int)carry.at);
            int16 at = (int16)((int)i) + (int16)(${", ".join(map(str, range(16)))});
            for (; i + 16 <= end; i += 16, at += 16) {
                const float16 v = ${load16('from + i')};
% if totals:
                if (CLT_ANY_int16(clt_take16(wide.v, v))) wide = clt_join16(wide, clt_lift16(v, at)); // each lane for itself
% else:
                // Most elements are no extreme of those so far, or all of them are: only else is more to be found out.
                S16 all = wide;
                if (CLT_ANY_int16(clt_take16(wide.v, v))) {
                    const float16 before = (float16)(wide.v.s0, ${", ".join(f"v.s{k:x}" for k in range(15))});
                    all = clt_lift16(v, at);
                    if (CLT_ANY_int16(clt_take16(before, v) == 0)) all = clt_join16(wide, clt_prefix16(v, at));
                    wide = clt_spread16(all.v.sf, all.at.sf);
                }
                ${store16('dst + to + i', 'all.v')};
                clt_widen(indices + xo + i, all.at);
% endif
            }
% if totals:
            carry = clt_last16(wide);
% else:
            carry = clt_lift(wide.v.s0, (I)wide.at.s0);
% endif
        }
% endif
        for (; i < end; ++i) {
% if ranked and dt.is_floating_point:
            // Mostly never or always so, and a right guess is sooner there than the choice between numbers that may be nan.
            const R v = clt_read(from + ${place('i')});
            if (__builtin_expect(clt_take(carry.v, v), 0)) carry = clt_lift(v, i);
% else:
            carry = clt_join(carry, clt_lift(clt_read(from + ${place('i')}), i));
% endif
% if not totals:
            ${put('carry', f"to + {place('i', 'dl')}", 'xo + i * xl')}
% endif
        }
% if totals:
        states[piece] = carry;
% endif
    }
% endif
}
