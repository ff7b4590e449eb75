<%doc>
Copy in which source and destination run along different dims, by square tiles so that both are accessed in order.
Along dim a the destination is dense, along dim b the source has its smallest stride; p is the walk over the other dims.
CPU: a work-item copies whole tiles of ${tile}; inside, squares of ${vector} lie in as many vectors and are turned by
interleaving the first half of them with the second, log2(${vector}) times. GPU: a work-group copies a tile through local memory.
</%doc>\
<%
def turn(n):
    """Statements that turn the square in r0, r1, …, and the names of its columns."""
    names, lines, half = [f"r{i}" for i in range(n)], [], n // 2
    for stage in range(n.bit_length() - 1):
        fresh = []
        for i in range(half):
            for part in (0, half):
                pairs = ", ".join(f"{names[i]}.s{j:x}, {names[i + half]}.s{j:x}" for j in range(part, part + half))
                fresh.append(f"q{stage}_{len(fresh)}")
                lines.append(f"const V {fresh[-1]} = (V)({pairs});")
        names = fresh
    return lines, names
%>\
<%namespace name="w" file="walk.mako"/>\
${headers}
${w.prelude()}
typedef ${I} I;
typedef ${T} T;
% if vector:
typedef ${T}${vector} V;
typedef ${T}${vector} __attribute__((aligned(${size}))) U;

static inline void turn(__global T *restrict to, __global const T *restrict from, const I db, const I sa) {
<% lines, columns = turn(vector) %>\
% for i in range(vector):
    const V r${i} = *(__global const U *)(from + ${i} * sa);
% endfor
% for text in lines:
    ${text}
% endfor
% for i, name in enumerate(columns):
    ${f"CLT_STREAM({name}, (__global V *)(to + {i} * db));" if streamed else f"*(__global U *)(to + {i} * db) = {name};"}
% endfor
}
% endif

% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${fn}(__global T *restrict dst, __global const T *restrict src, const I n, const I od, const I os
, const I na, const I nb, const I da, const I db, const I sa, const I sb${w.params('p', rank, ['d', 's'])}\
) {
    const I ta = (na + ${tile - 1}) / ${tile}, tb = (nb + ${tile - 1}) / ${tile}, tiles = n * ta * tb;
% if gpu:
    __local T t[${tile}][${tile + 1}];
    const int lane = (int)get_local_id(0);
    for (I k = (I)get_group_id(0); k < tiles; k += (I)get_num_groups(0)) {
% else:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I first = tiles / parts * part + min(part, (I)(tiles % parts)), last = first + tiles / parts + (part < tiles % parts);
    for (I k = first; k < last; ++k) {
% endif
        const I a0 = k % ta * ${tile}, b0 = k / ta % tb * ${tile};
        const int wa = (int)min((I)${tile}, (I)(na - a0)), wb = (int)min((I)${tile}, (I)(nb - b0));
        ${w.decode('p', rank, ['d', 's'], 'k / (ta * tb)')}
        __global const T *from = src + os + p_s_at + a0 * sa + b0 * sb;
        __global T *to = dst + od + p_d_at + a0 * da + b0 * db;
% if gpu:
        for (int i = lane; i < ${tile * tile}; i += ${lanes}) {
            const int a = i / ${tile}, b = i % ${tile};
            if (a < wa && b < wb) t[a][b] = from[a * sa + b * sb];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = lane; i < ${tile * tile}; i += ${lanes}) {
            const int a = i % ${tile}, b = i / ${tile};
            if (a < wa && b < wb) to[a * da + b * db] = t[a][b];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% else:
        int fa = 0, fb = 0; // how far the squares reach
% if vector:
        for (; fa + ${vector} <= wa; fa += ${vector})
            for (fb = 0; fb + ${vector} <= wb; fb += ${vector}) turn(to + fa + fb * db, from + fa * sa + fb, db, sa);
% endif
        for (int b = 0; b < wb; ++b)
            for (int a = b < fb ? fa : 0; a < wa; ++a) to[a * da + b * db] = from[a * sa + b * sb];
% endif
    }
}
