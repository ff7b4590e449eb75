<%doc>
As combine.mako, for devices where a work-item is a lane: out = alpha * (sum of `pieces` partial results) + beta * bias,
partial results dense. A work-group makes `columns` numbers (a power of two) adjacent in the partial results; its lanes
share the pieces of each number and add up their sums as a tree.
Variables: fn to acc G load store headers.
</%doc>
% for h in headers:
${h}
% endfor
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void ${fn}(__global const ${acc} *P, long pieces, __global ${to} *C, long coff, long scm, long scn,
    __global const ${to} *D, long doff, long sdm, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long N, long batches, int columns, long inner, long c0, long c1, long d0, long d1)
{
    __local ${acc} sums[${G}];
    const int lane = get_local_id(0), part = lane / columns, parts = ${G} / columns;
    const long numbers = M * N, e = get_group_id(0) * (long)columns + lane % columns, next = parts * numbers;
    for (long z = get_group_id(1); z < batches; z += get_num_groups(1)) {
        __global const ${acc} *p = P + (z * pieces + part) * numbers + min(e, numbers - 1);
        ${acc} y = 0;
        long s = part;
        for (; s + 7 * parts < pieces; s += 8 * parts, p += 8 * next) { // eight loads in flight
% for u in range(8):
            const ${acc} p${u} = p[${u} * next];
% endfor
            y += ${' + '.join(f'p{u}' for u in range(8))};
        }
        for (; s < pieces; s += parts, p += next)
            y += *p;
        sums[lane] = y;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int w = parts / 2; w > 0; w /= 2) {
            if (part < w) sums[lane] += sums[lane + w * columns];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (part == 0 && e < numbers) {
            const long zo = z / inner, zi = z % inner, i = e / N, j = e - i * N;
            __global ${to} *c = C + coff + zo * c0 + zi * c1;
            y = sums[lane] * alpha;
            if (has_bias) y += beta * ${load("D[doff + zo * d0 + zi * d1 + i * sdm + j * sdn]", "to")};
            ${store("y", "c", "i * scm + j * scn")};
        }
    }
}
