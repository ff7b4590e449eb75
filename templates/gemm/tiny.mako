<%doc>
Matrix products that sum few numbers, where a work-item is a lane: one for each number of the results, many matrices a group.
Neighbouring lanes make what lies beside each other in a result (`down`: along its rows' dim), so that they read the same numbers or neighbours.
Group (x, y): 256 numbers of the matrices y * per ..; within them nothing needs more than 32 bits to be counted. With `finish` nothing is stored but
what that makes of the product.
Variables: fn ta to acc load store G headers finish.
</%doc>\
% if finish:
${finish.text}
% endif
#pragma OPENCL FP_CONTRACT ON
% for h in headers:
${h}
% endfor
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void ${fn}(__global const ${ta} *A, long aoff, long sam, long sak,
    __global const ${ta} *B, long boff, long sbk, long sbn,
    __global ${to} *C, long coff, long scm, long scn,
    __global const ${to} *D, long doff, long sdm, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    uint M, uint N, int K, uint batches, uint per, uint inner, int down,
    long a0, long a1, long b0, long b1, long c0, long c1, long d0, long d1${''.join(f', {p}' for p in finish.parameters) if finish else ''})
{
    const uint e = get_global_id(0), numbers = M * N, matrix = e / numbers, rest = e - matrix * numbers;
    const uint z = (uint)get_global_id(1) * per + matrix, zo = z / inner, zi = z - zo * inner;
    if (matrix >= per || z >= batches) return;
    const uint slow = rest / (down ? M : N), fast = rest - slow * (down ? M : N);
    const long i = down ? fast : slow, j = down ? slow : fast;
    __global const ${ta} *a = A + aoff + zo * a0 + zi * a1 + i * sam;
    __global const ${ta} *b = B + boff + zo * b0 + zi * b1 + j * sbn;
    ${acc} y = 0;
    int k = 0;
    for (; k + 4 <= K; k += 4, a += 4 * sak, b += 4 * sbk) {
% for u in range(4):
        const ${acc} a${u}_ = ${load(f"a[{u} * sak]")}, b${u}_ = ${load(f"b[{u} * sbk]")};
% endfor
% for u in range(4):
        y = a${u}_ * b${u}_ + y;
% endfor
    }
    for (; k < K; k++, a += sak, b += sbk)
        y = ${load("*a")} * ${load("*b")} + y;
    y *= alpha;
    if (has_bias) y += beta * ${load("D[doff + zo * d0 + zi * d1 + i * sdm + j * sdn]", "to")};
% if finish:
    finish(i, j, 1, y, ${', '.join(finish.names)});
% else:
    __global ${to} *c = C + coff + zo * c0 + zi * c1;
    ${store("y", "c", "i * scm + j * scn")};
% endif
}
