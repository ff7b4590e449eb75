<%doc>
Scans along one dim of rows, on a CPU: ${kind}. Pieces are rows, or `chunks` equal parts of each; `totals` writes only
the state at the end of a piece, and the second launch starts each piece from the states before it, so the result does
not depend on timing.
Rows: a work-item walks whole pieces. Columns (the dim is not the last): a work-item scans ${block[0]} to ${block[1]} neighbouring
rows at once, as many as it can, so that memory is read in long runs, and prefetches the next step's; contiguous float32
and 16-bit floats, and float64 for logcumsumexp, are scanned by vectors of ${lanes} lanes (`wide`). `adjacent`: these
rows are neighbours in memory without gaps.
`pair`: float32 sums carry a second float with the rounding error, updated once per 64 elements. ${R}: double for
products of float32 and complex64 and for sums of complex64, as in torch; on a device without doubles a second float is
carried, except for complex products.
`back`: rows are walked from their end in memory; vectors stay in the order of memory, so that the last lane comes
first.
`same`: the operand is one number along a row. `unit`, `filled`: the operand, the result is accessed by vectors.
`abreast`: this many pieces are walked together, 0 for one after the other.
</%doc>\
<%namespace name="state" file="/scan/state.mako"/>\
<%namespace name="square" file="/square.mako"/>\
<%namespace name="w" file="/walk.mako"/>\
<%
ranked = kind in ('cummax', 'cummin')
summed = kind == 'cumsum' and R == 'float' # sums by vectors along rows
names = ['s', 'd'] + (['x'] if ranked else [])
def place(i, step='sl'): return ('-' * back + i) if dense else f'{i} * {step}'
def column(j, step): return j if adjacent else f'{j} * {step}'
sign = '-' if back else '+'
L, stored = lanes, 'double' if dt.reg == 'double' else 'float'
F, W = f'{stored}{L}', 'long8' if dt.reg == 'double' else 'int16' # vector types of numbers and of masks
def vector(p, i): return f'{p} {sign} {i}' + f' - {L - 1}' * back # address of the vector of elements from i on, in a contiguous row
def nth(k): return L - 1 - k if back else k # the lane of element k
short = src_dt.code if src_dt.code in ('f16', 'bf16') else ''
def load16(p): return f'clt_load_{short}_float16({p})' if short else f'*(__global const clt_many *)({p})'
def store16(p, v): return f'clt_store_{dt.code}_float16({v}, {p})' if dt.itemsize == 2 else f'*(__global clt_many *)({p}) = {v}'
%>\
${headers}
${state.memory(R)}
${state.functions(R, 'I', '', pair)}\
% if wide:
${state.functions(f'{R}{L}', W, L, pair)}\
% endif
% if wide or unit or filled:
typedef ${F} clt_many __attribute__((aligned(${4 if stored == 'float' else 8})));
% endif
% if wide and ranked:
${state.widen()}\
static inline S16 clt_spread16(const float v, const int at) { return clt_lift16((float16)(v), (int16)(at)); }
% if totals:
## The state after all elements; lane k of s has that of elements k, k + 16, ...
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
## Inclusive scan of 16 elements for extremes, in log2(16) steps.
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
% if summed:
## Inclusive prefix sums of 16 lanes in the order of elements; the last has the same bits as clt_sum16. First within
## fours, which stay in a 128-bit lane, then with the sums of the fours before.
static inline float16 clt_prefix16(float16 v) {
<%
lane = '0123456789abcdef'
steps = [[i - gap if i % 4 >= gap else None for i in range(16)] for gap in (1, 2)]
steps += [[i // 4 * 4 - 4 * (gap - 1) - 1 if i // 4 >= gap else None for i in range(16)] for gap in (1, 2)]
%>
% for step in steps:
    v += (float16)(${", ".join("0.0f" if k is None else f"v.s{lane[nth(k)]}" for k in (step[nth(i)] for i in range(16)))});
% endfor
    return v;
}
static inline float clt_sum16(const float16 v) {
    const float8 a = v.even + v.odd;
    const float4 b = a.even + a.odd;
    const float2 c = b.even + b.odd;
    return c.x + c.y;
}
## Load sixteen elements from i on, of the row that begins at p.
static inline float16 clt_read16(__global const ${src_dt.cl} *p, const I i, const I step) {
% if unit:
    return ${load16(vector('p', 'i'))};
% elif same:
    return (float16)(clt_read(p));
% else:
    float t[16];
    for (int j = 0; j < 16; ++j) t[${'15 - j' if back else 'j'}] = clt_read(p + (i + j) * step);
    return vload16(0, t);
% endif
}
static inline void clt_write16(__global ${dt.cl} *p, const I i, const float16 v, const I step) {
% if filled:
    ${store16(vector('p', 'i'), 'v')};
% else:
    float t[16];
    vstore16(v, 0, t);
    for (int j = 0; j < 16; ++j) clt_st_dst(p + (i + j) * step, t[${'15 - j' if back else 'j'}]);
% endif
}
% endif
<%def name="ahead(j)">\
                CLT_PREFETCH(from + (i + 1) * sl + ${column(j, 'ss')});
                CLT_PREFETCH_TO_WRITE(dst + to + (i + 1) * dl + ${column(j, 'ds')});
</%def>\
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(${state.params(columns, rank)}) {
% if columns:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), share = rows * width / parts + ${block[0] - 1};
    const I block = max((I)${block[0]}, min((I)${block[1]}, (I)(share / ${block[0]} * ${block[0]})));
    const I blocks = (width + block - 1) / block, n = rows * blocks;
    const I first = n / parts * part + min(part, (I)(n % parts)), last = first + n / parts + (part < n % parts);
    for (I piece = first; piece < last; ++piece) {
        const I row = piece / blocks, begin = piece % blocks * block, count = min(block, (I)(width - begin));
        ${w.decode('p', rank, names, 'row')}
        __global const ${src_dt.cl} *from = src + os + p_s_at + begin * ss;
        const I to = od + p_d_at + begin * ds${", xo = ox + p_x_at + begin * xs" if ranked else ""};
        I aside = 0;
% if wide:
        S${L} v[${block[1] // L}];
        for (I i = 0; i < length; ++i)
            for (I j = 0; j + ${L} <= count; j += ${L}) {
${ahead('j')}\
                const S${L} x = clt_lift${L}(${load16('from + i * sl + j') if R == stored else f"convert_{R}16({load16('from + i * sl + j')})"}, (${W})((int)i));
                v[j / ${L}] = i ? clt_join${L}(v[j / ${L}], x) : x;
                ${store16('dst + to + i * dl + j', f'clt_value{L}(v[j / {L}])' if R == stored else 'convert_float16(clt_value16(v[j / 16]))')};
% if ranked:
                clt_widen(indices + xo + i * xl + j, v[j / 16].at);
% endif
            }
        aside = count / ${L} * ${L};
% endif
        S s[${block[1]}];
        for (I j = aside; j < count; ++j) {
            s[j] = clt_lift(clt_read(from + ${column('j', 'ss')}), 0);
            ${state.put('s[j]', 'to + ' + column('j', 'ds'), 'xo + ' + column('j', 'xs'))}
        }
        for (I i = 1; i < length; ++i)
            for (I near = aside; near < count; near += ${L}) {
                const I end = min(count, near + ${L});
${ahead('near')}\
                for (I j = near; j < end; ++j) {
                    s[j] = clt_join(s[j], clt_lift(clt_read(from + i * sl + ${column('j', 'ss')}), i));
                    ${state.put('s[j]', 'to + i * dl + ' + column('j', 'ds'), 'xo + i * xl + ' + column('j', 'xs'))}
                }
            }
    }
% else:
    const I step = (length + chunks - 1) / chunks;
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), n = rows * chunks;
    const I first = n / parts * part + min(part, (I)(n % parts)), last = first + n / parts + (part < n % parts);
% if beside:
    ## A vector takes a step of ${L} rows: steps of a row depend on each other, rows do not.
    I piece = first;
    for (; piece + ${L} <= last; piece += ${L}) {
        __global const ${src_dt.cl} *from[${L}];
        __global ${dt.cl} *to[${L}];
        for (int k = 0; k < ${L}; ++k) {
            ${w.decode('p', rank, names, 'piece + k')}
            from[k] = src + os + p_s_at;
            to[k] = dst + od + p_d_at;
        }
        S${L} state = clt_lift${L}((${F})(0), (${W})(0));
        I i = 0;
        for (; i + ${L} <= length; i += ${L}) {
% for k in range(L):
            const ${F} r${k} = ${load16(vector(f'from[{k}]', 'i'))};
% endfor
${square.turned(F, L, 'r', 'c')}\
% for k in range(L):
<% lifted = f"clt_lift{L}(c{nth(k)}, ({W})(0))" %>\
            state = ${f'i ? clt_join{L}(state, {lifted}) : {lifted}' if k == 0 else f'clt_join{L}(state, {lifted})'};
            const ${F} e${nth(k)} = clt_value${L}(state);
% endfor
${square.turned(F, L, 'e', 't')}\
% for k in range(L):
            ${store16(vector(f'to[{k}]', 'i'), f't{k}')};
% endfor
        }
        ${stored} reached[${L}];
        vstore${L}(state.v, 0, reached);
        for (int k = 0; k < ${L}; ++k) {
            S carry = clt_lift(reached[k], 0);
            for (I j = i; j < length; ++j) {
                const S x = clt_lift(clt_read(from[k] ${sign} j), 0);
                carry = j ? clt_join(carry, x) : x;
                clt_st_dst(to[k] ${sign} j, clt_value(carry));
            }
        }
    }
    for (; piece < last; ++piece) {
% elif abreast:
    ## Several pieces at a time, as their dependency chains overlap. A row's last piece may be shorter.
    I piece = first;
    for (; piece + ${abreast} <= last; piece += ${abreast}) {
        I most = step;
% for k in range(abreast):
        __global const ${src_dt.cl} *from${k};
        I to${k}, count${k};
        S s${k};
        {
            const I row = (piece + ${k}) / chunks, chunk = (piece + ${k}) % chunks, begin = chunk * step;
            ${w.decode('p', rank, names, 'row')}
            from${k} = src + os + p_s_at + ${place('begin')};
            to${k} = od + p_d_at + ${place('begin', 'dl')};
            count${k} = min(step, (I)(length - begin));
            most = min(most, count${k});
            s${k} = clt_lift(clt_read(from${k}), 0);
% if not totals:
            if (chunk > 0) {
                S before = states[row * chunks];
                for (I c = 1; c < chunk; ++c) before = clt_join(before, states[row * chunks + c]);
                s${k} = clt_join(before, s${k});
            }
% endif
        }
% if not totals:
        ${state.put(f's{k}', f'to{k}', '')}
% endif
% endfor
<%def name="next(k)">\
            s${k} = clt_join(s${k}, clt_lift(clt_read(from${k} + ${place('i')}), i));
</%def>\
        for (I i = 1; i < most; ++i) {
% for k in range(abreast):
${next(k)}\
% endfor
% if not totals:
% for k in range(abreast):
            ${state.put(f's{k}', f'to{k} + ' + place('i', 'dl'), '')}
% endfor
% endif
        }
% for k in range(abreast):
        for (I i = most; i < count${k}; ++i) {
${next(k)}\
% if not totals:
            ${state.put(f's{k}', f'to{k} + ' + place('i', 'dl'), '')}
% endif
        }
% if totals:
        states[piece + ${k}] = s${k};
% endif
% endfor
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
% if summed:
% for vectors in (4, 1):
        for (; i + ${16 * vectors} <= end; i += ${16 * vectors}) {
            float whole = 0;
% if not totals:
            const float lost = isfinite(carry.v) ? carry.lo : 0;
% endif
% for at in (f'i + {16 * k}' for k in range(vectors)):
<% read = f'clt_read16(from, {at}, sl)' %>\
% if totals:
            whole += clt_sum16(${read});
% else:
            {
                const float16 part = whole + clt_prefix16(${read});
                clt_write16(dst + to, ${at}, carry.v + (lost + part), dl);
                whole = part.s${'0' if back else 'f'};
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
            ${state.put('carry', f"to + {place('i', 'dl')}", 'xo + i * xl')}
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
                if (CLT_ANY_int16(clt_take16(wide.v, v))) wide = clt_join16(wide, clt_lift16(v, at)); // lane by lane
% else:
                ## Mostly none of the elements is a new extreme, or (sorted data) each is; only otherwise a prefix scan
                ## is needed.
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
            ## A branch, which is mostly predicted: that takes less time than a select between numbers that may be NaN.
            const R v = clt_read(from + ${place('i')});
            if (__builtin_expect(clt_take(carry.v, v), 0)) carry = clt_lift(v, i);
% else:
            carry = clt_join(carry, clt_lift(clt_read(from + ${place('i')}), i));
% endif
% if not totals:
            ${state.put('carry', f"to + {place('i', 'dl')}", 'xo + i * xl')}
% endif
        }
% if totals:
        states[piece] = carry;
% endif
    }
% endif
}
