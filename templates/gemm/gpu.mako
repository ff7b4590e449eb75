<%doc>
Matrix product by tiles, where a work-item is a lane: R x C numbers per work-group, P slices of work-items that share K
("sliced K"), and a register tile of 4 HR x 4 HC numbers per work-item. Two slabs of KS steps of K are kept in local
memory: while one is multiplied, the next is being loaded to registers. Each slice takes every Pth step of K of a slab,
in order; at the end the slices' sums are added up in order. Work-item (lx, ly) of a slice owns rows and columns by
fours, R / HR and C / HC apart, so that it reads local memory in vectors. 32 consecutive work-items form a block of the
tile in which every two neighbours are one below the other: NVIDIA's local memory then serves half of them at a time,
not a quarter. Accumulators are indexed by constants of the template only, so that the compiler keeps them in registers.
How an operand is read (`ways`): "k4": it is contiguous along K and four numbers are aligned, "i4": the same along its
other dim; "k1", "i1": single numbers, neighbouring work-items along that dim. Rows and columns past the last are read
as the last one, and not stored. `quads`: four results of a row are adjacent and aligned, and no bias is added.
Work-group (x, y, z) owns row tile x, column tile y and the matrices z, z + groups, ... With `finish` only the
epilogue's results are stored.
Variables: fn ta to acc load store R C P HR HC KS ways quads offset (the integer type of offsets into an operand within
a slab) headers finish.
</%doc>\
<%
nx, ny = C // (4 * HC), R // (4 * HR)
slice = nx * ny
lanes = slice * P
across = min(nx, 8)  # columns and rows of items in a block of at most 32 lanes
down = min(ny, 32 // across)
pitch = dict(a=R // 4 + 1, b=C // 4 + 1)  # row stride of a slab in local memory, in vectors of 4
size = KS * (pitch['a'] + pitch['b'])
start = dict(a=0, b=KS * pitch['a'])
sides = (('a', 'rows', 'sam', 'sak', R), ('b', 'columns', 'sbn', 'sbk', C))
acc4 = f"{acc}4"
Q = 4 * HR  # rows of each item that go through local memory to be stored at a time, as many as fit
while Q * lanes * HC > 2 * size:
    Q //= 2
def beside(T, way):
    """Return how many neighbouring work-items read along the operand's contiguous dim, and how many numbers each reads at once."""
    width = int(way[1])
    return (T // width if way[0] == "i" else 8 // width), width
def first(T, way):
    """Return expressions for a work-item's first place in a slab of T rows or columns: along the operand's other dim, and along K."""
    n, width = beside(T, way)
    if way[0] == "i":
        return f"lane % {n} * {width}", f"lane / {n}"
    return f"lane / {n} % {T}", f"lane % {n} * {width} + lane / {n * T} * 8"
def units(T, way):
    """Yield, for each load of a work-item, its number and its distance from the first place: along the other dim, and along K."""
    n, width = beside(T, way)
    for t in range(max(KS * T // width // lanes, 1)):
        if way[0] == "i":
            yield (t, t * lanes % n * width, t * lanes // n)
        else:
            yield (t, t * (lanes // n) % T, t * (lanes // n) // T * 8)
def some(T, way):
    """Return the condition for a work-item to take part in copying an operand; empty if all do."""
    count = KS * T // int(way[1])
    return f"lane < {count}" if count < lanes else ""
def fetch(checked):
    for side, rest, row, col, T in sides:
        way = ways[side]
        for t, i, k in units(T, way):
            step = f" + {k}" if way[0] == "k" else f" + {k} * ({offset}){col}"
            place = f"p{side} + o{side}{i}{step if k else ''}"
            got = f"as_{acc4}(*(__global const {ta}4 *)({place}))" if way[1] == "4" else load(f"*({place})")
            when = " && ".join(filter(None, (some(T, way), f"k{side} + {k} < left" if checked else "")))
            zero = f"({acc4 if way[1] == '4' else acc})(0)"
            yield f"f{side}{t} = " + (f"{when} ? {got} : {zero};" if when else f"{got};")
def keep():
    for side, rest, row, col, T in sides:
        way = ways[side]
        only = f"if ({some(T, way)}) " if some(T, way) else ""
        for t, i, k in units(T, way):
            if way == "i4":
                yield f"{only}tiles[now + {start[side]} + (k{side} + {k}) * {pitch[side]} + (i{side} + {i}) / 4] = f{side}{t};"
                continue
            for u in range(int(way[1])):
                part = f".s{u}" if way == "k4" else ""
                yield f"{only}at[4 * now + {4 * start[side]} + (k{side} + {k + u}) * {4 * pitch[side]} + i{side} + {i}] = f{side}{t}{part};"
%>\
% if finish:
${finish.text}
% endif
#pragma OPENCL FP_CONTRACT ON
% for h in headers:
${h}
% endfor
__kernel __attribute__((reqd_work_group_size(${lanes}, 1, 1)))
void ${fn}(__global const ${ta} *A, long aoff, long sam, long sak,
    __global const ${ta} *B, long boff, long sbk, long sbn,
    __global ${to} *C, long coff, long scm, long scn,
    __global const ${to} *D, long doff, long sdm, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long N, long K, long batches, long inner, long kstep,
    long a0, long a1, long b0, long b1, long c0, long c1, long d0, long d1${''.join(f', {p}' for p in finish.parameters) if finish else ''})
{
    __local ${acc}4 tiles[${2 * size}];
    __local ${acc} *const at = (__local ${acc} *)tiles;
    const int lane = get_local_id(0), slice = lane / ${slice}, place = lane % ${slice}, block = place / ${across * down}, inside = place % ${across * down};
    const int lx = block % ${nx // across} * ${across} + inside / 2 % ${across}, ly = block / ${nx // across} * ${down} + inside % 2 + inside / ${2 * across} * 2;
    const long i0 = get_group_id(0) * (long)${R}, j0 = get_group_id(1) * (long)${C};
    const int rows = (int)min(M - i0, (long)${R}), columns = (int)min(N - j0, (long)${C});
% for side, rest, row, col, T in sides:
    const int i${side} = ${first(T, ways[side])[0]}, k${side} = ${first(T, ways[side])[1]};
% for i in sorted({i for _, i, _ in units(T, ways[side])}):
    const ${offset} o${side}${i} = min(i${side} + ${i}, ${rest} - ${4 if ways[side] == 'i4' else 1}) * (${offset})${row} + k${side}${'' if ways[side][0] == 'k' else f' * ({offset}){col}'};
% endfor
% endfor
    __local const ${acc}4 *const xs = tiles + slice * ${pitch['a']} + ly, *const ys = tiles + ${start['b']} + slice * ${pitch['b']} + lx;
    for (long z = get_group_id(2); z < batches; z += get_num_groups(2)) {
        const long zo = z / inner, zi = z % inner;
        __global const ${ta} *pa = A + aoff + zo * a0 + zi * a1 + i0 * sam;
        __global const ${ta} *pb = B + boff + zo * b0 + zi * b1 + j0 * sbn;
        const int Kz = (int)(kstep ? min(kstep, K - zi * kstep) : K);
        ${acc}4 ${', '.join(f's{r}_{h} = ({acc}4)(0)' for r in range(4 * HR) for h in range(HC))};
% for side, rest, row, col, T in sides:
        ${acc}${'4' if ways[side][1] == '4' else ''} ${', '.join(f'f{side}{t}' for t, _, _ in units(T, ways[side]))};
% endfor
        int left = min(Kz, ${KS}), now = 0;
% for text in fetch(True):
        ${text}
% endfor
% for text in keep():
        ${text}
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k0 = 0; k0 < Kz; k0 += ${KS}) {
            left = min(Kz - k0 - ${KS}, ${KS});
            pa += ${KS} * sak;
            pb += ${KS} * sbk;
            if (left == ${KS}) {
% for text in fetch(False):
                ${text}
% endfor
            } else if (left > 0) {
% for text in fetch(True):
                ${text}
% endfor
            }
#pragma unroll
            for (int k = 0; k < ${KS // P}; k++) {
% for h in range(HR):
                const ${acc}4 x${h} = xs[now + k * ${P * pitch['a']} + ${h * ny}];
% endfor
% for h in range(HC):
                const ${acc}4 y${h} = ys[now + k * ${P * pitch['b']} + ${h * nx}];
% endfor
% for r in range(4 * HR):
% for h in range(HC):
                s${r}_${h} = x${r // 4}.s${r % 4} * y${h} + s${r}_${h};
% endfor
% endfor
            }
            now = ${size} - now;
            if (left > 0) {
% for text in keep():
                ${text}
% endfor
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        __global ${to} *Cz = C + coff + zo * c0 + zi * c1;
        __global const ${to} *Dz = D + doff + zo * d0 + zi * d1;
        for (int r0 = 0; r0 < ${4 * HR}; r0 += ${Q}) {
            switch (r0) {
% for r0 in range(0, 4 * HR, Q):
            ${f'case {r0}' if r0 + Q < 4 * HR else 'default'}:
% for q in range(Q):
% for h in range(HC):
                tiles[((slice * ${ny} + ly) * ${Q} + ${q}) * ${C // 4} + lx + ${h * nx}] = s${r0 + q}_${h};
% endfor
% endfor
                break;
% endfor
            }
            barrier(CLK_LOCAL_MEM_FENCE);
% if quads:
            for (int e = lane; e < ${ny * Q * C // 4}; e += ${lanes}) {
                const int r = r0 + e / ${C // 4} % ${Q}, i = r / 4 * ${R // HR} + e / ${C // 4 * Q} * 4 + r % 4, j = e % ${C // 4} * 4;
                if (i < rows && j < columns) {
                    ${acc}4 y = tiles[e];
% for p in range(1, P):
                    y += tiles[${p * ny * Q * C // 4} + e];
% endfor
                    *(__global ${to}4 *)(Cz + (i0 + i) * scm + (j0 + j)) = as_${to}4(y * alpha);
                }
            }
% else:
            for (int e = lane; e < ${ny * Q * C}; e += ${lanes}) {
                const int r = r0 + e / ${C} % ${Q}, i = r / 4 * ${R // HR} + e / ${C * Q} * 4 + r % 4, j = e % ${C};
                if (i < rows && j < columns) {
                    ${acc} y = at[e];
% for p in range(1, P):
                    y += at[${p * ny * Q * C} + e];
% endfor
                    y *= alpha;
                    if (has_bias) y += beta * ${load("Dz[(i0 + i) * sdm + (j0 + j) * sdn]", "to")};
% if finish:
                    finish(i0 + i, j0 + j, 1, y, ${', '.join(finish.names)});
% else:
                    ${store("y", "Cz", "(i0 + i) * scm + (j0 + j) * scn")};
% endif
                }
            }
% endif
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}
