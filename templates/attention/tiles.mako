## Shared by the CPU schedules of attention: copies of strided matrices into scratch memory, their transposes, and
## products
## of such tiles by register tiles of MR rows by two vectors. Everything in scratch is of the accumulating type T, zero beyond
## the operand's edge. A diagonal `diag` expresses the causal mask: row i of a tile sees the columns up to diag + i.
<%namespace name="square" file="/square.mako"/>\
<%def name="helpers()">\
#define CLT_LANES ${V}
% for h in headers:
${h}
% endfor
% for t, size in unaligned:
typedef ${t}${V} ${t}${V}_u __attribute__((aligned(${size})));
% endfor
typedef ${acc} T;
typedef ${acc}${V} F;
typedef ${acc}${V}_u FU;
#define LANES ((${'long' if acc == 'double' else 'int'}${V})(${', '.join(map(str, range(V)))}))
#define APART static CLT_WIDE __attribute__((noinline))
#define PLAIN _Pragma("clang loop vectorize(disable)") _Pragma("clang loop unroll(disable)")
#define AT(p) *(__global FU *)(p)
#define UP(n, step) (((n) + (step) - 1) / (step) * (step))
## A diagonal that masks nothing: larger than any row, small enough that sums with it do not overflow.
#define FREE (1 << 28)

## Copy `rows` x `cols` numbers at p (any strides), times `by`, to dst, and fill the rest of its `height` x `width`
## numbers (whole vectors) with zeros.
APART void pack(__global const ${ta} *p, const long sr, const long sc, const int rows, const int cols, const T by,
    __global T *dst, const long ld, const int height, const int width)
{
    for (int r = 0; r < rows; r++, p += sr, dst += ld) {
        int c = 0;
        if (sc == 1) {
            for (; c + ${V} <= cols; c += ${V})
                AT(dst + c) = ${loadv("p + c")} * by;
        }
        PLAIN
        for (; c < cols; c++) dst[c] = ${load("p[c * sc]")} * by;
        PLAIN
        for (; c < width; c++) dst[c] = 0;
    }
    for (int r = rows; r < height; r++, dst += ld)
        for (int c = 0; c < width; c += ${V}) AT(dst + c) = (F)(0);
}

</%def>\
<%def name="tile_products()">\
<% NR = 2 * V %>\
// dst[c][r] = src[r][c] for `rows` x `cols` numbers, both whole vectors.
APART void turn(__global const T *src, const long ls, __global T *dst, const long ld, const int rows, const int cols)
{
    for (int r = 0; r < rows; r += ${V})
        for (int c = 0; c < cols; c += ${V}) {
            __global const T *p = src + r * ls + c;
            __global T *q = dst + c * ld + r;
% for i in range(V):
            const F r${i} = AT(p + ${i} * ls);
% endfor
${square.turned('F', V, 'r', 't')}\
% for i in range(V):
            AT(q + ${i} * ld) = t${i};
% endfor
        }
}

// c = a @ b over m x n numbers (multiples of the register tile) and k terms; "add" adds to c, "scale" adds to c times
// by[row]. Diagonals: rows i compute columns below across + i, sum terms below until + i, and from i - since.
% for kind in products:
APART void product_${kind}(__global const T *a, const long sm, const long sk, __global const T *b, const long sb,
    const int m, const int n, const int k, __global T *c, const long sc, const int across, const int until, const int since\
${', __global const T *by' if kind == 'scale' else ''})
{
    for (int j = 0; j < n; j += ${NR})
        for (int i = 0; i < m; i += ${MR}) {
            if (j >= across + i + ${MR}) continue;
            const int first = max(i - since, 0), last = min(until + i + ${MR}, k);
            __global T *ci = c + i * sc + j;
% for r in range(MR):
% if kind == 'set':
            F t${r}_0 = 0, t${r}_1 = 0;
% elif kind == 'add':
            F t${r}_0 = AT(ci + ${r} * sc), t${r}_1 = AT(ci + ${r} * sc + ${V});
% else:
            F t${r}_0 = AT(ci + ${r} * sc) * by[i + ${r}], t${r}_1 = AT(ci + ${r} * sc + ${V}) * by[i + ${r}];
% endif
% endfor
            __global const T *ai = a + i * sm + first * sk, *bi = b + first * sb + j;
            for (int t = first; t < last; t++) {
                const F b0 = AT(bi), b1 = AT(bi + ${V});
% for r in range(MR):
                { const F x = ai[${r} * sm]; t${r}_0 = x * b0 + t${r}_0; t${r}_1 = x * b1 + t${r}_1; }
% endfor
                ai += sk;
                bi += sb;
            }
% for r in range(MR):
            AT(ci + ${r} * sc) = t${r}_0;
            AT(ci + ${r} * sc + ${V}) = t${r}_1;
% endfor
        }
}
% endfor
</%def>\
## Reduce the lanes of vector `name` to one number, `name`1.
<%def name="folded(name, combine)">
<% value = name %>\
% for w in (V >> s for s in range(1, V.bit_length())):
const ${acc}${w if w > 1 else ''} ${name}${w} = ${combine(f'{value}.lo', f'{value}.hi')};
<% value = f'{name}{w}' %>\
% endfor
</%def>\
## The address of an operand's matrix for batch element z0, z1, z2.
<%def name="batch(name)">\
${name} + ${name}_o + ${element(name)}\
</%def>\
## Where batch element z0, z1, z2 of an operand begins: with `ragged`, z0 counts sequences, which follow each other.
<%def name="element(name)">\
z0 * ${name}_0 + z1 * ${name}_1 + z2 * ${name}_2\
% if ragged:
 + ${'keys_from' if name in ('k', 'v', 'dk', 'dv') else 'queries_from'} * ${name}_r\
% endif
</%def>\
## With `ragged`: declare where sequence z0 begins, its numbers of queries L and keys S, and what queries see. The last
## query is aligned with the last key; query i sees the keys from i - before to i + after. Offsets are clamped to the operands.
<%def name="sequence()">\
% if ragged:
        const int q_edge = clamp(q_edges[q_edges_o + z0], 0, all_queries), L = clamp(q_edges[q_edges_o + z0 + 1] - q_edge, 0, min(most_queries, all_queries - q_edge));
        const int k_edge = clamp(k_edges[k_edges_o + z0], 0, all_keys), room = clamp(k_edges[k_edges_o + z0 + 1] - k_edge, 0, min(most_keys, all_keys - k_edge));
        ## An empty sequence, too, begins at a row that may be read.
        const int queries_from = min(q_edge, all_queries - 1), keys_from = min(k_edge, all_keys - 1);
        const int S = limited ? clamp(used[used_o + z0], 0, room) : room;
        const int after = right < 0 ? (1 << 28) : min(right, 1 << 27) + S - L, before = left < 0 ? (1 << 28) : min(left, 1 << 27) - (S - L);
% endif
</%def>\
## What is hidden of keys `ki` from queries `qi`.
<%def name="hidden(qi, ki)">\
${f'{ki} > {qi} + after || {ki} < {qi} - before' if ragged else f'causal && {ki} > {qi}'}\
</%def>\
## Whether the keys from `ki` on are hidden from all queries before `end`.
<%def name="beyond(ki, end)">\
${f'{ki} >= {end} + after' if ragged else f'causal && {ki} >= {end}'}\
</%def>\
## The first of the tiles of `step` keys that query `qi` sees, and where the keys end that the `step` queries from
## `own` on see.
<%def name="first_key(qi, step)">\
${f'max({qi} - before, 0) / {step} * {step}' if ragged else '0'}\
</%def>\
<%def name="last_key(own, step)">\
${f'({own} < L ? min(S, {own} + {step} + after) : 0)' if ragged else f'(causal ? min(S, {own} + {step}) : S)'}\
</%def>\
## The same for the queries that see keys.
<%def name="first_query(ki, step)">\
${f'max({ki} - after, 0) / {step} * {step}' if ragged else f'(causal ? {ki} : 0)'}\
</%def>\
<%def name="last_query(own, step)">\
${f'({own} < S ? min(L, {own} + {step} + before) : 0)' if ragged else 'L'}\
</%def>\
## The place of the log-sum-exp of the first row of batch element z: with `ragged`, a head's rows of all sequences are adjacent.
<%def name="sums_from()">\
${'(z % ((long)n1 * n2) * all_queries + queries_from)' if ragged else 'z * L'}\
</%def>\
## Set the scores s[0 .. below) to -inf: keys before the window.
<%def name="below(row)">\
% if ragged:
<% index = 'long' if acc == 'double' else 'int' %>\
                    for (int j = 0, low = min(${row} - before - k0, edge); j < low; j += ${V})
                        AT(s + j) = LANES < (${index}${V})(low - j) ? (F)(-INFINITY) : AT(s + j);
% endif
</%def>\
## Apply the mask to the scores s[0 .. seen) of row `row`, of the keys from k0 on, and set those from `seen` up to
## `edge` to -inf.
<%def name="masked(row)">\
<% index = 'long' if acc == 'double' else 'int' %>\
% if mask:
            {
                __global const ${mask_type} *mr = mask_z + (${row}) * mask_r + k0 * mask_c;
                int j = 0;
                ## By vectors, as the scores are read by vectors next: scalar stores would not be forwarded to vector
                ## loads, which would wait.
                if (mask_c == 1)
                    for (; j + ${V} <= seen; j += ${V}) {
% if mask == 'bool':
                        const uchar${V}_u m = *(__global const uchar${V}_u *)(mr + j);
                        AT(s + j) = convert_${index}${V}(m) != (${index}${V})(0) ? AT(s + j) : (F)(-INFINITY);
% else:
                        AT(s + j) += ${mask_loadv('mr + j')};
% endif
                    }
% if mask == 'bool':
                for (; j < seen; j++) s[j] = mr[j * mask_c] ? s[j] : (T)(-INFINITY);
% else:
                for (; j < seen; j++) s[j] += ${mask_load('mr[j * mask_c]')};
% endif
            }
% endif
            for (int j = max(seen, 0) / ${V} * ${V}; j < edge; j += ${V})
                AT(s + j) = LANES < (${index}${V})(seen - j) ? AT(s + j) : (F)(-INFINITY);
</%def>\
