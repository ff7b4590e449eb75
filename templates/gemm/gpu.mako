<%doc>
Matrix product for devices where a work-item is a lane, by tiles (gemm/lanes.mako) that go through K in steps of BK kept in local memory.
Neighbouring items read along whichever dim of an operand is adjacent in memory; while a step is multiplied, the numbers of the next
are on their way to registers. Group (x, y, z) owns row tile x, column tile y and the matrices z, z + groups, ... With `finish` nothing
is stored but what that makes of the product.
Variables: fn ta to acc load store G W BK headers finish.
</%doc>\
<%namespace name="tile" file="lanes.mako"/>\
<%
TM, lanes = G * W, G * G
copies, read = TM * BK // lanes, load
def fetch(side, rest):
    return [
        f"f{side}{t} = i{side} + {t} * di{side} < {rest} && k{side} + {t} * dk{side} < left ? " + read(f"p{side}[{t} * d{side}]") + " : 0;"
        for t in range(copies)
    ]
%>\
% if finish:
${finish.text}
% endif
#pragma OPENCL FP_CONTRACT ON
% for h in headers:
${h}
% endfor
__kernel __attribute__((reqd_work_group_size(${G}, ${G}, 1)))
void ${fn}(__global const ${ta} *A, long aoff, long sam, long sak,
    __global const ${ta} *B, long boff, long sbk, long sbn,
    __global ${to} *C, long coff, long scm, long scn,
    __global const ${to} *D, long doff, long sdm, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long N, long K, long batches, long inner, long kstep,
    long a0, long a1, long b0, long b1, long c0, long c1, long d0, long d1${''.join(f', {p}' for p in finish.parameters) if finish else ''})
{
${tile.tiles(acc, G, W, BK)}\
    const long i0 = get_group_id(0) * (long)${TM}, j0 = get_group_id(1) * (long)${TM};
    const int rows = (int)min(M - i0, (long)${TM}), columns = (int)min(N - j0, (long)${TM});
    // What an item copies of a step: its first number, and how far the next ones are.
% for side, row, col in (('a', 'sam', 'sak'), ('b', 'sbn', 'sbk')):
    const int i${side} = ${col} == 1 ? lane / ${BK} : lane % ${TM}, k${side} = ${col} == 1 ? lane % ${BK} : lane / ${TM};
    const int di${side} = ${col} == 1 ? ${lanes // BK} : 0, dk${side} = ${col} == 1 ? 0 : ${lanes // TM};
    const long d${side} = di${side} * ${row} + dk${side} * ${col};
% endfor
    for (long z = get_group_id(2); z < batches; z += get_num_groups(2)) {
        const long zo = z / inner, zi = z % inner;
        __global const ${ta} *pa = A + aoff + zo * a0 + zi * a1 + (i0 + ia) * sam + ka * sak;
        __global const ${ta} *pb = B + boff + zo * b0 + zi * b1 + (j0 + ib) * sbn + kb * sbk;
        const long Kz = kstep ? min(kstep, K - zi * kstep) : K;
${tile.sums(acc, W)}\
        ${acc} ${', '.join(f'fa{t}, fb{t}' for t in range(copies))};
        int left = (int)min(Kz, (long)${BK});
% for text in fetch('a', 'rows') + fetch('b', 'columns'):
        ${text}
% endfor
        for (long k0 = 0; k0 < Kz; k0 += ${BK}) {
% for side in 'ab':
% for t in range(copies):
            ${side}t[${tile.place(f'k{side} + {t} * dk{side}', f'i{side} + {t} * di{side}', TM)}] = f${side}${t};
% endfor
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
            left = (int)min(Kz - k0 - ${BK}, (long)${BK});
            pa += ${BK} * sak;
            pb += ${BK} * sbk;
% for text in fetch('a', 'rows') + fetch('b', 'columns'):
            ${text}
% endfor
${tile.step(acc, G, W, BK)}\
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        __global ${to} *Cz = C + coff + zo * c0 + zi * c1;
        __global const ${to} *Dz = D + doff + zo * d0 + zi * d1;
<%tile:numbers acc="${acc}" G="${G}" W="${W}">\
                if (i < rows && j < columns) {
                    y *= alpha;
                    if (has_bias) y += beta * ${load("Dz[(i0 + i) * sdm + (j0 + j) * sdn]", "to")};
% if finish:
                    finish(i0 + i, j0 + j, 1, y, ${', '.join(finish.names)});
% else:
                    ${store("y", "Cz", "(i0 + i) * scm + (j0 + j) * scn")};
% endif
                }
</%tile:numbers>\
    }
}
