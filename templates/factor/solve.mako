<%doc>
Substitution: replaces X by A^-1 X for triangular A of at most ${'{N}'} rows, in batches. A vector's lanes are
right-hand sides; a work-item (on a GPU a lane of a work-group) keeps the rows of its right-hand sides (there in local
memory). A is copied to private (local) memory, column-major, as a lower triangle: for an upper one rows and columns are
counted from the end. Four rows at a time are updated by those above them. `by_rows`: X is row-major; otherwise
column-major, and is read and written in square blocks, contiguously, which are transposed in registers.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="numbers" file="/factor/numbers.mako"/>\
<%namespace name="square" file="/square.mako"/>\
<%
V = memory.lanes
squares = not by_rows and V > 1 and not dt.is_complex
%>\
${headers}\
typedef ${I} I;
${numbers.helpers(dt, memory, lane_memory, gpu, lanes, ('load', 'store') if by_rows else ('gather', 'scatter'))}\
#define AT(i) (upper ? n - 1 - (i) : (i))
% if squares:
typedef F U __attribute__((aligned(${dt.itemsize})));
## Transpose V vectors of V numbers in place.
static APART void clt_turn(F *box) {
% for v in range(V):
    const F r${v} = box[${v}];
% endfor
${square.turned('F', V, 'r', 't')}\
% for v in range(V):
    box[${v}] = t${v};
% endfor
}
% endif
#define CLT_WHOLE
__attribute__((reqd_work_group_size(${lanes if gpu else 1}, 1, 1)))
__kernel void ${fn}(__global const T *a, __global T *x, const I count, const I n, const I k, const I upper, const I unit, const I conjugate,
                    const I a_at, const I a_batch, const I a_row, const I a_col, const I x_at, const I x_batch, const I x_row, const I x_col) {
    ${'__local ' if gpu else ''}T low[${N * N}];
% if gpu:
    __local T kept[${N * lanes}];
#define ROW(i) kept[(i) * LANES + LANE]
% else:
    F kept[${N}];
#define ROW(i) kept[i]
% endif
    const I runs = (k + LANES * V - 1) / (LANES * V), total = count * runs, parts = (I)get_num_groups(0), part = (I)get_group_id(0);
    const I begin = total / parts * part + min(part, (I)(total % parts)), end = begin + total / parts + (part < total % parts);
    I loaded = -1;
    for (I q = begin; q < end; ++q) {
        const I z = q / runs, r = (q % runs * LANES + LANE) * V, filled = (n + 3) / 4 * 4;
        if (z != loaded) {
            __global const T *from = a + a_at + z * a_batch;
            SYNC;
            for (I j = 0; j < n; ++j)
                for (I i = j + LANE; i < filled; i += LANES) {
                    T number = 0;
                    if (i < n) number = from[AT(i) * a_row + AT(j) * a_col];
                    if (i == j && unit) number = ONE;
                    low[j * ${N} + i] = conjugate ? CONJ(number) : number;
                }
            loaded = z;
            SYNC;
        }
        __global T *to = x + x_at + z * x_batch + r * x_col;
        const int m = (int)min(k - r, (I)V);
        if (r >= k) continue;
% if squares:
        const I whole = m == V && x_row == 1 ? n / V * V : 0;
        for (I i = 0; i < whole; i += V) {
            F box[V];
            for (int v = 0; v < V; ++v) box[v] = *(__global const U *)(to + i + v * x_col);
            clt_turn(box);
            for (int v = 0; v < V; ++v) ROW(AT(i + v)) = box[v];
        }
% endif
        for (I i = ${'whole' if squares else 0}; i < n; ++i) ROW(AT(i)) = ${'LOAD(to + i * x_row, m)' if by_rows else 'GATHER(to + i * x_row, x_col, m)'};
        for (I i = n; i < filled; ++i) ROW(i) = 0;
        for (I j = 0; j < n; j += 4) {
            F s0 = ROW(j), s1 = ROW(j + 1), s2 = ROW(j + 2), s3 = ROW(j + 3);
            for (I c = 0; c < j; ++c) {
                const ${'__local ' if gpu else ''}T *col = low + c * ${N} + j;
                const F known = ROW(c);
% for s in range(4):
                s${s} = clt_less(s${s}, SPREAD(col[${s}]), known);
% endfor
            }
% for s in range(4):
            {
                const I c = j + ${s};
                if (c < n) {
                    const ${'__local ' if gpu else ''}T *col = low + c * ${N} + j;
% if dt.is_complex:
                    if (!unit) s${s} = clt_times(s${s}, SPREAD(DIV(ONE, col[${s}])));
% else:
                    if (!unit) s${s} /= col[${s}];
% endif
% for below in range(s + 1, 4):
                    s${below} = clt_less(s${below}, SPREAD(col[${below}]), s${s});
% endfor
                    ROW(c) = s${s};
                }
            }
% endfor
        }
% if squares:
        for (I i = 0; i < whole; i += V) {
            F box[V];
            for (int v = 0; v < V; ++v) box[v] = ROW(AT(i + v));
            clt_turn(box);
            for (int v = 0; v < V; ++v) *(__global U *)(to + i + v * x_col) = box[v];
        }
% endif
        for (I i = ${'whole' if squares else 0}; i < n; ++i) ${'STORE(to + i * x_row, ROW(AT(i)), m)' if by_rows else 'SCATTER(to + i * x_row, x_col, ROW(AT(i)), m)'};
    }
}
