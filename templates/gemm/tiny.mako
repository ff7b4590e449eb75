<%doc>
Matrix products with a small K, where a work-item is a lane: each makes T results of one column, and a work-group covers
many matrices. Neighbouring lanes make neighbouring results of a row, so that they read the same or adjacent numbers; a
lane's T results are evenly spread over the rows. Work-group (x, y): 256 lanes of the matrices y * per ..; counting
within these needs no more than 32 bits.
`quads`: whether four numbers along K are adjacent and aligned in rows of A. With `finish` only the epilogue's results
are stored.
Variables: fn ta to acc load store G T quads headers finish.
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
    uint M, uint N, int K, uint batches, uint per, uint inner,
    long a0, long a1, long b0, long b1, long c0, long c1, long d0, long d1${''.join(f', {p}' for p in finish.parameters) if finish else ''})
{
    const uint e = get_global_id(0), apart = (M + ${T - 1}) / ${T}, numbers = apart * N, matrix = e / numbers, rest = e - matrix * numbers;
    const uint z = (uint)get_global_id(1) * per + matrix, zo = z / inner, zi = z - zo * inner;
    if (matrix >= per || z >= batches) return;
    const uint first = rest / N;
    const long j = rest - first * N;
% for t in range(T):
    const long i${t} = ${f'min(first + {t} * apart, M - 1)' if t else 'first'};
    __global const ${ta} *row${t} = A + aoff + zo * a0 + zi * a1 + i${t} * sam;
% endfor
    __global const ${ta} *b = B + boff + zo * b0 + zi * b1 + j * sbn;
    ${acc} ${', '.join(f'y{t} = 0' for t in range(T))};
    int k = 0;
    for (; k + 4 <= K; k += 4, b += 4 * sbk) {
% for u in range(4):
        const ${acc} b${u}_ = ${load(f"b[{u} * sbk]")};
% endfor
% for t in range(T):
% if quads:
        const ${acc}4 x${t} = as_${acc}4(*(__global const ${ta}4 *)row${t});
% else:
        const ${acc}4 x${t} = (${acc}4)(${', '.join(load(f"row{t}[{u} * sak]") for u in range(4))});
% endif
        row${t} += 4 * sak;
% endfor
% for u in range(4):
% for t in range(T):
        y${t} = x${t}.s${u} * b${u}_ + y${t};
% endfor
% endfor
    }
    for (; k < K; k++, b += sbk) {
        const ${acc} b_ = ${load("*b")};
% for t in range(T):
        y${t} = ${load(f"*row{t}")} * b_ + y${t};
        row${t} += sak;
% endfor
    }
    __global ${to} *c = C + coff + zo * c0 + zi * c1;
    __global const ${to} *d = D + doff + zo * d0 + zi * d1;
% for t in range(T):
${f'    if (first + {t} * apart < M)' if t else '   '} {
        y${t} *= alpha;
        if (has_bias) y${t} += beta * ${load(f"d[i{t} * sdm + j * sdn]", "to")};
% if finish:
        finish(i${t}, j, 1, y${t}, ${', '.join(finish.names)});
% else:
        ${store(f"y{t}", "c", f"i{t} * scm + j * scn")};
% endif
    }
% endfor
}
