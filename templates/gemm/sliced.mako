<%doc>
Matrix product by small tiles where a work-item is a lane: R x C numbers per work-group, P slices of lanes that share K
("sliced K"). For products whose larger tiles (gpu.mako) would be mostly empty, or too few to fill the device. A slab of
KS steps of K is in local memory; each of the P slices, R / 4 by C / 4 lanes with 4 x 4 accumulators in registers, takes
every Pth step, while the next slab is being loaded to registers. At the end the slices' sums are added up in order.
Neighbouring lanes read, and store, along the contiguous dim (`along`: for each operand, whether that is K). Work-group
(x, y, z) owns row tile x, column tile y and the matrices z, z + groups, ... With `finish` only the epilogue's results
are stored.
Variables: fn ta to acc load store R C P KS along headers finish.
</%doc>\
<%
slice = R * C // 16
lanes = slice * P
start = {'a': 0, 'b': KS * (R + 4)}
sides = (('a', 'rows', 'sam', 'sak', R, along[0]), ('b', 'columns', 'sbn', 'sbk', C, along[1]))
def width(T):  # adjacent numbers along K that neighbouring lanes read
    return max(16, lanes // T)
def spread(T, straight):  # offsets of the numbers an item copies from its first one: along the rows or columns, and along K
    step = lanes // width(T) if straight else T
    for t in range(KS * T // lanes):
        yield (t, t * step % T, t * step // T * width(T)) if straight else (t, 0, t * (lanes // T))
def fetch():
    return [
        f"f{side}{t} = i{side} + {i} < {rest} && k{side} + {k} < left ? " + load(f"p{side}[{i} * {row} + {k} * {1 if straight else col}]") + " : 0;"
        for side, rest, row, col, T, straight in sides for t, i, k in spread(T, straight)
    ]
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
    __local ${acc}4 tiles[${max(KS * (R + C + 8), lanes * 16) // 4}];
    __local ${acc} *const at = (__local ${acc} *)tiles;
    const int lane = get_local_id(0), slice = lane / ${slice}, lx = lane % ${C // 4}, ly = lane % ${slice} / ${C // 4};
    const long i0 = get_group_id(0) * (long)${R}, j0 = get_group_id(1) * (long)${C};
    const int rows = (int)min(M - i0, (long)${R}), columns = (int)min(N - j0, (long)${C});
    ## The first number of a slab that this item copies.
% for side, _, _, _, T, straight in sides:
    const int i${side} = ${f'lane / {width(T)}' if straight else f'lane % {T}'}, k${side} = ${f'lane % {width(T)}' if straight else f'lane / {T}'};
% endfor
    for (long z = get_group_id(2); z < batches; z += get_num_groups(2)) {
        const long zo = z / inner, zi = z % inner;
        __global const ${ta} *pa = A + aoff + zo * a0 + zi * a1 + (i0 + ia) * sam + ka * sak;
        __global const ${ta} *pb = B + boff + zo * b0 + zi * b1 + (j0 + ib) * sbn + kb * sbk;
        const long Kz = kstep ? min(kstep, K - zi * kstep) : K;
        ${acc}4 ${', '.join(f's{r} = ({acc}4)(0)' for r in range(4))};
        ${acc} ${', '.join(f'f{side}{t}' for side, _, _, _, T, _ in sides for t in range(KS * T // lanes))};
        int left = (int)min(Kz, (long)${KS});
% for text in fetch():
        ${text}
% endfor
        for (long k0 = 0; k0 < Kz; k0 += ${KS}) {
            const int filled = left;
% for side, _, _, _, T, straight in sides:
% for t, i, k in spread(T, straight):
            at[${start[side]} + (k${side} + ${k}) * ${T + 4} + i${side} + ${i}] = f${side}${t};
% endfor
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
            left = (int)min(Kz - k0 - ${KS}, (long)${KS});
            pa += ${KS} * sak;
            pb += ${KS} * sbk;
% for text in fetch():
            ${text}
% endfor
            for (int k = slice; k < filled; k += ${4 * P}) { // the slab is zero from `filled` on
% for u in range(4):
                {
                    const ${acc}4 x = tiles[(k + ${u * P}) * ${R // 4 + 1} + ly], y = tiles[${start['b'] // 4} + (k + ${u * P}) * ${C // 4 + 1} + lx];
% for r in range(4):
                    s${r} = x.s${r} * y + s${r};
% endfor
                }
% endfor
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
% for r in range(4):
        tiles[(slice * ${R} + ly * 4 + ${r}) * ${C // 4} + lx] = s${r};
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
        __global ${to} *Cz = C + coff + zo * c0 + zi * c1;
        __global const ${to} *Dz = D + doff + zo * d0 + zi * d1;
        for (int e = lane; e < ${R * C}; e += ${lanes}) {
            const int i = scm == 1 ? e % ${R} : e / ${C}, j = scm == 1 ? e / ${R} : e % ${C};
            if (i < rows && j < columns) {
                ${acc} y = at[i * ${C} + j];
% for p in range(1, P):
                y += at[(${p * R} + i) * ${C} + j];
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
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
