<%doc>
Copy in which source and destination run along different dims, by tiles, ${tile_a} along the destination's dim a and ${tile_b} along b.
Along dim a the destination is dense, along dim b the source has its smallest stride; p is the walk over the other dims.
CPU: a work-item copies whole tiles. Of ${side} elements of ${side} rows, a cache line each, one line of as many of the destination's
rows is made in a buffer: lines that are written whole may go past the cache, and in any order. The source is better read along its rows,
so tiles are long there, and of each row the next line is asked for. In lanes of 16 bytes, squares are turned by interleaving the first half of their rows with the second,
log2(rows) times. GPU: a work-group copies a tile through local memory.
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
%>\
<%namespace name="w" file="walk.mako"/>\
${headers}
${w.prelude()}
typedef ${I} I;
typedef ${T} T;
% if vector:
typedef ${T}${vector} V;
typedef ${T}${vector} __attribute__((aligned(${size}))) U;
typedef ${T}${n} __attribute__((aligned(${size}))) H;

/* Of `wa` rows of the source `wb` elements, multiples of ${vector} and ${n}, at most ${side}. */
static inline void turn(__global T *restrict to, __global const T *restrict from, const I db, const I sa, const int wa, const int wb) {
<% lines, columns = turn(n, vector) %>\
    T t[${side * side}] __attribute__((aligned(64)));
    for (int a = 0; a < wa; ++a) CLT_PREFETCH(from + a * sa + ${side});
    for (int a = 0; a < wa; a += ${vector})
        for (int b = 0; b < wb; b += ${n}) {
            __global const T *at = from + a * sa + b;
% for i in range(n):
            const V r${i} = (V)(${", ".join(f"*(__global const H *)(at + {i + k} * sa)" for k in range(0, vector, n))});
% endfor
% for text in lines:
            ${text}
% endfor
% for i, name in enumerate(columns):
            *(V *)(t + (b + ${i}) * ${side} + a) = ${name};
% endfor
        }
    for (int b = 0; b < wb; ++b)
        for (int a = 0; a < wa; a += ${vector}) {
            const V line = *(const V *)(t + b * ${side} + a);
            ${"CLT_STREAM(line, (__global V *)(to + a + b * db));" if streamed else "*(__global U *)(to + a + b * db) = line;"}
        }
}
% endif

% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(__global T *restrict dst, __global const T *restrict src, const I n, const I od, const I os
, const I na, const I nb, const I da, const I db, const I sa, const I sb${w.params('p', rank, ['d', 's'])}\
) {
    const I ta = (na + ${tile_a - 1}) / ${tile_a}, tb = (nb + ${tile_b - 1}) / ${tile_b}, tiles = n * ta * tb;
% if gpu:
    __local T t[${tile_a}][${tile_b + 1}];
    const int lane = (int)get_local_id(0);
    for (I k = (I)get_group_id(0); k < tiles; k += (I)get_num_groups(0)) {
% else:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I first = tiles / parts * part + min(part, (I)(tiles % parts)), last = first + tiles / parts + (part < tiles % parts);
    for (I k = first; k < last; ++k) {
% endif
        const I a0 = k % ta * ${tile_a}, b0 = k / ta % tb * ${tile_b};
        const int wa = (int)min((I)${tile_a}, (I)(na - a0)), wb = (int)min((I)${tile_b}, (I)(nb - b0));
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
        int fa = 0, fb = 0; // how far the squares reach
% if vector:
        const int ends_a = wa & ~${vector - 1}, ends_b = wb & ~${n - 1};
        for (; fa < ends_a; fa += ${side})
            for (fb = 0; fb < ends_b; fb += ${side})
                turn(to + fa + fb * db, from + fa * sa + fb, db, sa, min(${side}, ends_a - fa), min(${side}, ends_b - fb));
        fa = ends_a;
        fb = ends_a ? ends_b : 0;
% endif
        for (int b = 0; b < wb; ++b)
            for (int a = b < fb ? fa : 0; a < wa; ++a) to[a * da + b * db] = from[a * sa + b * sb];
% endif
    }
}
