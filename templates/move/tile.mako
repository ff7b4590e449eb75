<%doc>
Copy in which source and destination run along different dims, by tiles, ${tile_a} along the destination's dim a and ${tile_b} along b.
Along dim a the destination is dense, along dim b the source has its smallest stride; p is the walk over the other dims.
CPU: a work-item copies whole tiles. Of a cache line, ${side} elements, of each row of the tile, two lines of as many of the
destination's rows are made in a buffer: lines that are written whole may go past the cache, and in any order, two neighbours at
a time. The source is better read along its rows, so tiles are long there, and of each row the next line is asked for. More
rows at once, at a distance that is a power of two, would not stay in the first-level cache. In lanes of 16 bytes, squares are
turned by interleaving the first half of their rows with the second, log2(rows) times.
`phased`: the destination's rows do not begin with a line, each begins its lines elsewhere: the buffer holds a line's rows more.
GPU: a work-group copies a tile through local memory.
</%doc>\
<%
def turn(n, lanes):
    """Statements that turn squares of n in r0, r1, …, one in each n of the lanes, and the names of their columns."""
    names, lines, half = [f"r{i}" for i in range(n)], [], n // 2
    for stage in range(n.bit_length() - 1):
        fresh = []
        for i in range(half):
            for part in (0, half):
                pick = "".join(f"{first + j:x}" for first in range(0, lanes, n) for j in range(part, part + half))
                name = f"q{stage}_{len(fresh)}"
                fresh.append(name)
                lines.append(f"V {name}; {name}.even = {names[i]}.s{pick}; {name}.odd = {names[i + half]}.s{pick};")
        names = fresh
    return lines, names
n = 16 // size
line = {1: 'uint16', 2: 'uint16', 4: 'uint16', 8: 'ulong8'}.get(size, '')
%>\
<%namespace name="w" file="/walk.mako"/>\
${headers}
${w.prelude()}
typedef ${I} I;
typedef ${T} T;
% if vector:
typedef ${T}${vector} V;
typedef ${T}${n} __attribute__((aligned(${size}))) H;
typedef ${line} W;
typedef ${line} __attribute__((aligned(${size}))) U;
<% lead = side if phased else 0; width = tile_a + lead %>\

<%def name="make(rows, columns, row, column)">\
    for (int i = 0; i < ${rows}; ++i) CLT_PREFETCH_BESIDE(from + ${row('i')} * sa + ${side});
    for (int i = 0; i < ${rows}; i += ${vector})
        for (int j = 0; j < ${columns}; j += ${n}) {
            const int b = ${column};
            __global const T *at = from + b;
% for i in range(n):
            const V r${i} = (V)(${", ".join(f"*(__global const H *)(at + {row(f'(i + {i + k})')} * sa)" for k in range(0, vector, n))});
% endfor
<% lines, columns = turn(n, vector) %>\
% for text in lines:
            ${text}
% endfor
% for i, name in enumerate(columns):
            *(V *)(t + (b + ${i}) * ${width} + i) = ${name};
% endfor
        }
</%def>\
<%def name="put(first, made)">\
${f"{{ const W line = *(const U *)({made}); CLT_STREAM(line, (__global W *)(out + {first})); }}" if streamed else f"*(__global U *)(out + {first}) = *(const U *)({made});"}\
</%def>\
<% back = f"(int)((size_t)out / {size} % {side})" if phased else "0" %>\
/* Rows a - ${lead} and on of ${side} columns of the source; what is in reach of them of as many rows of the destination. */
static inline void turn(__global T *restrict to, __global const T *restrict from, const I db, const I sa) {
    T t[${side * width}] __attribute__((aligned(64)));
${make(width, side, lambda i: i, "j")}\
    for (int b = 0; b < ${side}; ++b) {
        __global T *const out = to + b * db;
        const int back = ${back};
        const T *const made = t + b * ${width} + ${lead} - back;
% for i in range(0, tile_a, side):
        ${put(f"{lead + i} - back", f"made + {i}")}
% endfor
    }
}

/* The same at the edges: of `wb` columns, and without the rows before the first and after the last one. */
static inline void turn_edge(__global T *restrict to, __global const T *restrict from, const I a, const I na, const I db, const I sa, const int wb) {
    T t[${side * width}] __attribute__((aligned(64)));
    const I last = na - 1 - a;
    const int rows = (int)min(last + 1, (I)${width});
${make("rows", "wb", lambda i: f"max(min((I){i}, last), -a)", f"j + {n} <= wb ? j : wb - {n}")}\
    for (int b = 0; b < wb; ++b) {
        __global T *const out = to + b * db;
        const int back = ${back};
        for (I k = max(${lead} - back, (int)-a); k < ${width} - back && k <= last; ++k) out[k] = t[b * ${width} + k];
    }
}
% endif

__attribute__((reqd_work_group_size(${lanes if gpu else 1}, 1, 1)))
__kernel void ${fn}(__global T *restrict dst, __global const T *restrict src, const I n, const I od, const I os
, const I na, const I nb, const I da, const I db, const I sa, const I sb${w.params('p', rank, ['d', 's'])}\
) {
    const I ta = (na + ${tile_a - 1 + (side - 1) * phased}) / ${tile_a}, tb = (nb + ${tile_b - 1}) / ${tile_b}, tiles = n * ta * tb;
% if gpu:
    __local T t[${tile_a}][${tile_b + 1}];
    const int lane = (int)get_local_id(0);
    for (I k = (I)get_group_id(0); k < tiles; k += (I)get_num_groups(0)) {
% else:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I first = tiles / parts * part + min(part, (I)(tiles % parts)), last = first + tiles / parts + (part < tiles % parts);
    for (I k = first; k < last; ++k) {
% endif
        const I a0 = k / tb % ta * ${tile_a}, kb = k % tb;
% if vector:
        const I b0 = nb * kb / tb / ${side} * ${side};
        const int wb = (int)((kb + 1 == tb ? nb : nb * (kb + 1) / tb / ${side} * ${side}) - b0);
% else:
        const I b0 = kb * ${tile_b};
        const int wa = (int)min((I)${tile_a}, (I)(na - a0)), wb = (int)min((I)${tile_b}, (I)(nb - b0));
% endif
        ${w.decode('p', rank, ['d', 's'], 'k / (ta * tb)')}
        __global const T *from = src + os + p_s_at + a0 * sa + b0 * sb;
        __global T *to = dst + od + p_d_at + a0 * da + b0 * db;
% if gpu:
        for (int i = lane; i < ${tile_a * tile_b}; i += ${lanes}) {
            const int a = i / ${tile_b}, b = i % ${tile_b};
            if (a < wa && b < wb) t[a][b] = from[a * sa + b * sb];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = lane; i < ${tile_a * tile_b}; i += ${lanes}) {
            const int a = i % ${tile_a}, b = i / ${tile_a};
            if (a < wa && b < wb) to[a * da + b * db] = t[a][b];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% else:
% if vector:
        from -= ${lead} * sa;
        to -= ${lead};
        const int inside = a0 >= ${lead} && a0 + ${tile_a} <= na;
        for (int b = 0; b < wb; b += ${side}) {
            if (inside && b + ${side} <= wb) turn(to + b * db, from + b, db, sa);
            else {
                const int c = max(min(b, wb - ${n}), 0);
                turn_edge(to + c * db, from + c, a0 - ${lead}, na, db, sa, min(${side}, wb - c));
            }
        }
% else:
        for (int b = 0; b < wb; ++b)
            for (int a = 0; a < wa; ++a) to[a * da + b * db] = from[a * sa + b * sb];
% endif
% endif
    }
}
