<%doc>
Adds the rows that order.mako sorted to the rows of dst; GPU, two kernels. A lane takes ${V} adjacent columns of a
stretch of ${span} rows in that order, ${B} of them in flight, and adds up a run, the rows for one row of dst, in a
register. A run that lies within the stretch is then added to dst; the sum of one that crosses its begin or end goes to
partial[stretch][whether the run begins there]. `joined`: the lane of the stretch in which such a run begins adds up its
parts, in order. `unit`: 0 if one element of src is repeated along each of its rows.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%
VR = dt.reg if V == 1 else f'{dt.reg}{V}'
VT = dt.cl if V == 1 else VR
%>\
${w.prelude()}
typedef ${I} I;
#define CLT_NONE 0xffffffffu
typedef ${VT} T;
typedef ${VR} R;
% if V == 1:
${w.element(dt, 'e')}
typedef T F;
% else:
#define clt_ld_e(p) ((R)(*(p)))
#define clt_st_e(p, v) (*(p) = (v))
typedef ${'T' if unit else dt.cl} F;
% endif
static inline void clt_add(__global T *place, const R v) { clt_st_e(place, (R)(clt_ld_e(place) + v)); }
__kernel void ${fn}(__global T *dst, __global const F *src, __global const uint *keys, __global const uint *order, __global R *partial,
                    const I n, const I width, const I os, const I src_row) {
    const I column = (I)get_global_id(0), stretch = (I)get_global_id(1), begin = stretch * ${span}, end = min(n, (I)(begin + ${span}));
    if (column >= width || begin >= n) return;
% if joined:
    I next = begin + ${span};
    if (next >= n) return;
    const uint own = keys[next];
    if (own == CLT_NONE || keys[next - 1] != own || (begin > 0 && keys[begin - 1] == own)) return;
    R acc = partial[(2 * stretch + 1) * width + column];
    for (; next < n && keys[next] == own; next += ${span}) acc += partial[2 * (next / ${span}) * width + column];
    clt_add(dst + (I)own * width + column, acc);
% else:
    uint own = begin > 0 ? keys[begin - 1] : CLT_NONE;
    const uint after = end < n ? keys[end] : CLT_NONE;
    int begins = 0;
    R acc = (R)(0);
    for (I t = begin; t < end; t += ${B}) {
% for b in range(B):
        const int is${b} = t + ${b} < end;
        const uint key${b} = is${b} ? keys[t + ${b}] : CLT_NONE;
        const I at${b} = key${b} == CLT_NONE ? 0 : (I)order[t + ${b}];
% endfor
% for b in range(B):
        const R x${b} = clt_ld_e(src + os + at${b} * src_row${' + column' if unit else ''});
% endfor
% for b in range(B):
        if (is${b}) {
            if (key${b} != own) {
                ## The run before ends here.
                if (t + ${b} > begin && own != CLT_NONE) {
                    if (begins) clt_add(dst + (I)own * width + column, acc);
                    else partial[2 * stretch * width + column] = acc;
                }
                own = key${b};
                begins = 1;
                acc = x${b};
            } else acc = t + ${b} > begin ? acc + x${b} : x${b};
        }
% endfor
    }
    if (own == CLT_NONE) return;
    if (begins && after != own) clt_add(dst + (I)own * width + column, acc);
    else partial[(2 * stretch + begins) * width + column] = acc;
% endif
}
