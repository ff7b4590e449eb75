## The state of a scan, of one row or of several in a vector, its operations, and the parameters of its kernels. The
## caller's variables: kind, I, R (the type that is computed in) and the operands' dtypes.
<%namespace name="w" file="/walk.mako"/>\
## Functions that read a number of the operand and write one of the result.
<%def name="memory(R)">\
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
</%def>\
## The state and its functions; `pair`: a second number holds the rounding error of sums or products.
<%def name="functions(R, I, n, pair)">\
<%
ranked = kind in ('cummax', 'cummin')
better = '>=' if kind == 'cummax' else '<='
own = f"_{R}" if R.startswith(('float', 'double')) else ''
%>\
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
## Whether b, which comes after a, is the extreme of both: the last of equals is, and a NaN stays.
static inline ${I} clt_take${n}(const ${R} a, const ${R} b) {
% if dt.is_floating_point:
    return (b != b) | ((a == a) & (b ${better} a));
% else:
    return b ${better} a;
% endif
}
% endif
## The state of a's elements followed by b's.
static inline S${n} clt_join${n}(const S${n} a, const S${n} b) {
    S${n} r;
% if pair and kind == 'cumprod':
    r.v = a.v * b.v;
## fma: the product's rounding error, exactly.
    r.lo = fma(a.v, b.v, -r.v) + (a.v * b.lo + a.lo * b.v);
% elif pair:
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
## Store nonnegative positions as 64-bit integers; convert_long16() is a call into a library on some drivers.
<%def name="widen()">\
typedef int16 i16 __attribute__((aligned(8)));
static inline void clt_widen(__global long *p, const int16 v) {
    int16 a, b;
    a.even = v.lo; a.odd = (int8)(0);
    b.even = v.hi; b.odd = (int8)(0);
    *(__global i16 *)p = a;
    *(__global i16 *)(p + 8) = b;
}
</%def>\
<%def name="put(s, at_d, at_x)">
            clt_st_dst(dst + ${at_d}, ${'' if R == dt.reg else f'convert_{dt.reg}'}(clt_value(${s})));
% if kind in ('cummax', 'cummin'):
            indices[${at_x}] = (long)${s}.at;
% endif
</%def>\
## The parameters of a kernel whose rows have any layout.
<%def name="params(columns, rank)">\
<% ranked = kind in ('cummax', 'cummin') %>\
__global const ${src_dt.cl} *src, __global ${dt.cl} *dst\
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
${w.params('p', rank, ['s', 'd', 'x'] if ranked else ['s', 'd'])}\
</%def>\
