<%doc>
Copy in which source and destination run along different dims, by tiles, ${tile_a} along the destination's dim a and
${tile_b} along b.
Along dim a the destination is dense, along dim b the source has its smallest stride; p is the walk over the other dims.
CPU: a work-item copies whole tiles, and walks along b, as hardware prefetches rows that are read in order. A step makes
some rows of the destination, ${tile_a} elements of each, in a buffer: lines that are written whole may use non-temporal
stores, and be written in any order, two neighbours at a time. Meanwhile the previous step's rows are written and the
next step's source is prefetched, so that memory reads and writes at once.
`fetched`: the destination's lines are prefetched, too, a step before they are written.
Squares of vectors are transposed in registers (codegen/turn.py), vectors of 64 bytes if there are 32 such registers.
Each square is followed by its share of prefetches and stores: all in one go, lines waited for each other. Prefetches
follow the source's rows.
`phased`: the destination's rows do not begin at a cache line, and each begins its lines elsewhere: the buffer holds the
rows of one more line. These are read twice, and so that they are still in cache, tiles follow each other along a.
GPU: a work-group copies a tile through local memory. `paired`: 16-bit numbers are read and written as pairs: squares of
two by two are transposed in registers, and their two columns go to different arrays, so that there are no bank
conflicts.
</%doc>\
<%
n = 16 // size
lines = across // side
guard = f' && i < {tile_a * tile_b}' if tile_a * tile_b % lanes else ''
line = {1: 'uint16', 2: 'uint16', 4: 'uint16', 8: 'ulong8'}.get(size, '')
%>\
<%namespace name="w" file="/walk.mako"/>\
${headers}
${w.prelude()}
typedef ${I} I;
typedef ${T} T;
% if paired:
typedef ${T}2 T2;
% endif
% if vector:
typedef ${T}${vector} V;
typedef ${T}${vector} __attribute__((aligned(${size}))) UV;
typedef ${T}${n} H;
typedef ${T}${n} __attribute__((aligned(${size}))) UH;
typedef ${line} W;
typedef ${line} __attribute__((aligned(${size}))) U;
<%
lead = side if phased else 0
width = tile_a + lead
%>\

## Transpose a square of the source, from `at` on, into the buffer from `place` on.
<%def name="square(kind, lanes, at, row, place)">\
<% lines, columns = turn(n, lanes, kind) %>\
            {
% for k in range(lanes):
                const ${kind} r${k} = *(__global const U${kind} *)(${at} + ${row(k)} * sa);
% endfor
% for text in lines:
                ${text}
% endfor
% for k, name in enumerate(columns):
                *(${kind} *)(${place} + ${k * width}) = ${name};
% endfor
            }
</%def>\
<%def name="put(first, made)">\
${f"{{ const W line = *(const U *)({made}); CLT_STREAM(line, (__global W *)(out + {first})); }}" if streamed else f"*(__global U *)(out + {first}) = *(const U *)({made});"}\
</%def>\
<% back = f"(int)((size_t)out / {size} % {side})" if phased else "0" %>\
## The step that was made and is not written yet: the number of steps made so far, and the destination of the last one.
typedef struct { int made; __global T *to; } Waiting;

## Write row `done` of the destination, at `out`, from the buffer `ready`.
<%def name="put_row()">\
                    const int back = ${back};
                    const T *const made = ready + done * ${width} + ${lead} - back;
% for k in range(0, tile_a, side):
                    ${put(f"{lead + k} - back", f"made + {k}")}
% endfor
</%def>\
## Make `steps` steps of `across` columns of the source, rows a - lead and on, and write the waiting step: of the
## destination's rows the lines that are whole.
CLT_WIDE static inline void turn(T *const t, Waiting *const waiting, __global T *to, __global const T *restrict from, const I db, const I sa, const int steps, const I further) {
    for (int step = 0; step < steps; ++step, to += ${across} * db) {
        T *const fresh = t + (waiting->made & 1) * ${across * width};
        const T *const ready = t + (~waiting->made & 1) * ${across * width};
        __global const T *at = from + step * ${across};
        const I ahead = step + 1 < steps ? ${across} : further - step * ${across};
        __global T *out = waiting->to;
        for (int i = 0, done = 0; i < ${width}; i += ${vector}) {
% for j in range(0, across, vector):
% for k in range(j * vector // side, (j + vector) * vector // side):
            CLT_PREFETCH_BESIDE(at + ahead + ${k // lines} * sa + ${k % lines * side});
% endfor
${square("V", vector, f"at + {j}", lambda k: k, f"fresh + {j * width} + i")}\
            for (; waiting->made && done * ${width} < i * ${across} + ${(j + vector) * vector}; ++done, out += db) {
% if fetched:
% for k in range(0, tile_a, side):
                CLT_PREFETCH_TO_WRITE(to + done * db + ${k});
% endfor
% endif
${put_row()}\
            }
% endfor
            at += ${vector} * sa;
        }
        ++waiting->made;
        waiting->to = to;
    }
}

CLT_WIDE static inline void put_last(const T *const t, const Waiting waiting, const I db) {
    const T *const ready = t + (~waiting.made & 1) * ${across * width};
    __global T *out = waiting.to;
    for (int done = 0; waiting.made && done < ${across}; ++done, out += db) {
${put_row()}\
    }
}

## The same at the edges, for `wb` columns, leaving out rows before the first and after the last one.
CLT_WIDE static inline void turn_edge(__global T *restrict to, __global const T *restrict from, const I a, const I na, const I db, const I sa, const int wb) {
    T t[${side * width}] __attribute__((aligned(64)));
    const I last = na - 1 - a;
    const int begin = (int)max(-a, (I)0), rows = (int)min(last + 1, (I)${width});
    for (int i = begin / ${n} * ${n}; i < rows; i += ${n})
        for (int j = 0; j < wb; j += ${n}) {
            const int b = min(j, wb - ${n});
${square("H", n, "from + b", lambda k: f"max(min((I)(i + {k}), last), -a)", f"t + b * {width} + i")}\
        }
    for (int b = 0; b < wb; ++b) {
        __global T *const out = to + b * db;
        const T *const made = t + b * ${width};
        const int back = ${back}, end = (int)min((I)(${width} - back), last + 1);
        int k = max(${lead} - back, begin);
% if phased:
        for (; k < end && (k + back) % ${side}; ++k) out[k] = made[k];
% endif
        for (; k + ${side} <= end; k += ${side}) ${put("k", "made + k")}
        for (; k < end; ++k) out[k] = made[k];
    }
}
% endif

__attribute__((reqd_work_group_size(${lanes if gpu else 1}, 1, 1)))
__kernel void ${fn}(__global T *restrict dst, __global const T *restrict src, const I n, const I od, const I os
, const I na, const I nb, const I da, const I db, const I sa, const I sb${w.params('p', rank, ['d', 's'])}\
) {
    const I ta = (na + ${tile_a - 1 + (side - 1) * phased}) / ${tile_a}, tb = (nb + ${tile_b - 1}) / ${tile_b}, tiles = n * ta * tb;
% if paired:
    ## For each pair of the tile's columns: the first one and the second one, as pairs along a.
    __local T2 even[${tile_b // 2}][${tile_a // 2 + 1}], odd[${tile_b // 2}][${tile_a // 2 + 1}];
    const int lane = (int)get_local_id(0);
    for (I k = (I)get_group_id(0); k < tiles; k += (I)get_num_groups(0)) {
% elif gpu:
    __local T t[${tile_a}][${tile_b + 1}];
    const int lane = (int)get_local_id(0);
    for (I k = (I)get_group_id(0); k < tiles; k += (I)get_num_groups(0)) {
% else:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
% if vector:
    T t[2 * ${across * width}] __attribute__((aligned(64)));
    Waiting waiting = {0, 0};
% endif
    const I first = tiles / parts * part + min(part, (I)(tiles % parts)), last = first + tiles / parts + (part < tiles % parts);
    for (I k = first; k < last; ++k) {
% endif
        const I a0 = ${"k % ta" if phased else "k / tb % ta"} * ${tile_a}, kb = ${"k / ta % tb" if phased else "k % tb"};
% if vector:
        const I b0 = nb * kb / tb / ${across} * ${across};
        const int wb = (int)((kb + 1 == tb ? nb : nb * (kb + 1) / tb / ${across} * ${across}) - b0);
% else:
        const I b0 = kb * ${tile_b};
        const int wa = (int)min((I)${tile_a}, (I)(na - a0)), wb = (int)min((I)${tile_b}, (I)(nb - b0));
% endif
        ${w.decode('p', rank, ['d', 's'], 'k / (ta * tb)')}
        __global const T *from = src + os + p_s_at + a0 * sa + b0 * sb;
        __global T *to = dst + od + p_d_at + a0 * da + b0 * db;
% if paired:
<%
squares, wide, high = tile_a * tile_b // 4, tile_b // 2, tile_a // 2
guard = f' && i < {squares}' if squares % lanes else ''
%>\
#pragma unroll
        for (int u = 0; u < ${-(-squares // lanes)}; u++) {
            const int i = lane + u * ${lanes};
            const int a = i / ${wide}, b = i % ${wide};
            if (2 * a < wa && 2 * b < wb${guard}) {
                __global const T *const at = from + 2 * a * sa + 2 * b;
                const T2 x = *(__global const T2 *)at, y = *(__global const T2 *)(at + sa);
                even[b][a] = (T2)(x.s0, y.s0);
                odd[b][a] = (T2)(x.s1, y.s1);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int u = 0; u < ${-(-squares // lanes)}; u++) {
            const int i = lane + u * ${lanes};
            const int a = i % ${high}, b = i / ${high};
            if (2 * a < wa && 2 * b < wb${guard}) {
                __global T *const at = to + 2 * a + 2 * b * db;
                *(__global T2 *)at = even[b][a];
                *(__global T2 *)(at + db) = odd[b][a];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% elif gpu:
#pragma unroll
        for (int u = 0; u < ${-(-tile_a * tile_b // lanes)}; u++) {
            const int i = lane + u * ${lanes};
            const int a = i / ${tile_b}, b = i % ${tile_b};
            if (a < wa && b < wb${guard}) t[a][b] = from[a * sa + b * sb];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int u = 0; u < ${-(-tile_a * tile_b // lanes)}; u++) {
            const int i = lane + u * ${lanes};
            const int a = i % ${tile_a}, b = i / ${tile_a};
            if (a < wa && b < wb${guard}) to[a * da + b * db] = t[a][b];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% else:
% if vector:
        from -= ${lead} * sa;
        to -= ${lead};
        const int inside = a0 >= ${lead} && a0 + ${tile_a} <= na, steps = inside ? wb / ${across} : 0;
        turn(t, &waiting, to, from, db, sa, steps, ${f"{tile_a} * sa" if phased else f"kb + 1 < tb ? (I)wb : {tile_a} * sa - b0"});
        for (int b = steps * ${across}; b < wb; b += ${side}) {
            const int c = max(min(b, wb - ${n}), 0);
            turn_edge(to + c * db, from + c, a0 - ${lead}, na, db, sa, min(${side}, wb - c));
        }
% else:
        for (int b = 0; b < wb; ++b)
            for (int a = 0; a < wa; ++a) to[a * da + b * db] = from[a * sa + b * sb];
% endif
% endif
    }
% if vector:
    put_last(t, waiting, db);
% endif
}
