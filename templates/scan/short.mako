<%doc>
Scans of short adjacent rows on a CPU: ${kind}. A work-item walks its rows from the first number to the last, ${lanes}
at a time regardless of row boundaries. Each number is joined with the one before it, then with the two before those,
with four, and so on, if these are of the same row. Some of them are in earlier vectors, so each step keeps its previous
inputs (`was<gap>`). A row's result therefore does not depend on its position in vectors. `at`: the numbers' indices in
their rows.
${R}: products of floats are computed in doubles, as in another order of multiplications they could leave a float's
range.
`back`: numbers are taken from the last one in memory to the first.
</%doc>\
<%namespace name="state" file="/scan/state.mako"/>\
<%
ranked = kind in ('cummax', 'cummin')
bits = 'int' if R in ('float', 'int') else 'long' # type of masks
N, W, L = f'{R}{lanes}', f'{bits}{lanes}', lanes
parts = ['v', 'at'] if ranked else ['v']
short = src_dt.code if src_dt.code in ('f16', 'bf16') else ''
def converted(v, to, of): return v if to == of else f'convert_{to}{L}({v})'
lane = '0123456789abcdef'[:L]
sign, first, order = ('-', f' - {L - 1}', f'.s{lane[::-1]}') if back else ('+', '', '')
def load(p): return converted((f'clt_load_{short}_float{L}({p}{first})' if short else f'(*(__global const clt_from *)({p}{first}))') + order, R, 'float' if short else src_dt.cl)
def store(p, v):
    p, v = p + first, converted(v + order, dt.reg, R)
    return f'clt_store_{short}_float{L}({v}, {p})' if short else f'*(__global clt_to *)({p}) = {v}'
# The lanes of `near`: those `gap` before the lanes of s, the first of them from the vector before.
def moved(gap, x): return ', '.join(f's.{x}.s{k - gap:x}' if k >= gap else f'was{gap}.{x}.s{L + k - gap:x}' for k in range(L))
%>\
${headers}
${state.memory(R)}
${state.functions(N, W, L, False)}\
% if not short:
typedef ${src_dt.cl}${L} clt_from __attribute__((aligned(${src_dt.itemsize})));
typedef ${dt.cl}${L} clt_to __attribute__((aligned(${dt.itemsize})));
% endif
% if ranked and bits == 'int':
${state.widen()}\
% elif ranked:
typedef long${L} clt_places __attribute__((aligned(8)));
% endif
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const ${src_dt.cl} *src, __global ${dt.cl} *dst\
% if ranked:
, __global long *indices\
% endif
, const I length, const I rows, const I os, const I od${', const I ox' if ranked else ''}) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I end = rows * (part + 1) / parts * length;
    src += os, dst += od${', indices += ox' if ranked else ''}${'; // of the last numbers' if back else ';'}
    const ${W} ends = (${W})((${bits})length), on = (${W})((${bits})(${L} < length ? ${L} : ${L} % length));
    ${W} at = (${W})(${', '.join(f'{k} % ({bits})length' for k in range(L))});
    S${L} ${', '.join(f'was{gap} = clt_lift{L}(({N})(0), ({W})(0))' for gap in (1, 2, 4, 8, 16, 32, 64))};
    for (I i = rows * part / parts * length; i < end; i += ${L}) {
        const I count = min((I)${L}, end - i);
        ${N} x;
        if (count == ${L}) x = ${load(f'src {sign} i')};
        else {
            R t[${L}];
            for (I k = 0; k < ${L}; ++k) t[k] = clt_read(src ${sign} (i + min(k, count - 1)));
            x = vload${L}(0, t);
        }
        S${L} s = clt_lift${L}(x, at);
% for gap in (1, 2, 4, 8, 16, 32):
        if (length > ${gap}) {
% if gap < L:
            S${L} near;
% for x in parts:
            near.${x} = (${N if x == 'v' else W})(${moved(gap, x)});
% endfor
            was${gap} = s;
% elif gap == L:
            const S${L} near = was${gap};
            was${gap} = s;
% else:
            const S${L} near = was${gap};
            was${gap} = was${2 * gap};
            was${2 * gap} = s;
% endif
            const S${L} both = clt_join${L}(near, s);
% for x in parts:
            s.${x} = at >= (${W})(${gap}) ? both.${x} : s.${x};
% endfor
        }
% endfor
        if (count == ${L}) {
            ${store(f'dst {sign} i', f'clt_value{L}(s)')};
% if ranked:
            ${'clt_widen(indices + i, s.at)' if bits == 'int' else '*(__global clt_places *)(indices + i) = s.at'};
% endif
        } else {
            R t[${L}];
            vstore${L}(clt_value${L}(s), 0, t);
            for (I k = 0; k < count; ++k) clt_st_dst(dst ${sign} (i + k), t[k]);
% if ranked:
            ${bits} places[${L}];
            vstore${L}(s.at, 0, places);
            for (I k = 0; k < count; ++k) indices[i + k] = places[k];
% endif
        }
        at += on;
        at -= at >= ends ? ends : (${W})(0);
    }
}
