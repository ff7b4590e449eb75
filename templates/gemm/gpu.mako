<%doc>
Matrix product for devices where a work-item is a lane. A work-group of G x G items makes a tile of TM x TM outputs, W x W per
item (items interleaved, so that stores are coalesced), going through K in steps of BK kept in local memory. Neighbouring items
read along whichever dim of an operand is adjacent in memory. Group (x, y, z) owns row tile x, column tile y and the matrices
z, z + groups, ... With `finish` nothing is stored but what that makes of the product.
Variables: fn ta to acc load store G W BK headers finish.
</%doc>
<% TM = G * W %>\
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
    __local ${acc} at[${BK}][${TM + 1}], bt[${BK}][${TM + 1}];
    const int lx = get_local_id(0), ly = get_local_id(1), lane = ly * ${G} + lx;
    const long i0 = get_group_id(0) * (long)${TM}, j0 = get_group_id(1) * (long)${TM};
    for (long z = get_group_id(2); z < batches; z += get_num_groups(2)) {
        const long zo = z / inner, zi = z % inner;
        __global const ${ta} *Az = A + aoff + zo * a0 + zi * a1, *Bz = B + boff + zo * b0 + zi * b1;
        const long Kz = kstep ? min(kstep, K - zi * kstep) : K;
        ${acc} sum[${W}][${W}];
        for (int r = 0; r < ${W}; r++)
            for (int c = 0; c < ${W}; c++)
                sum[r][c] = 0;
        for (long kb = 0; kb < Kz; kb += ${BK}) {
            for (int e = lane; e < ${TM * BK}; e += ${G * G}) {
                const int k = sak == 1 ? e % ${BK} : e / ${TM}, i = sak == 1 ? e / ${BK} : e % ${TM};
                at[k][i] = i0 + i < M && kb + k < Kz ? ${load("Az[(i0 + i) * sam + (kb + k) * sak]")} : 0;
            }
            for (int e = lane; e < ${TM * BK}; e += ${G * G}) {
                const int k = sbk == 1 ? e % ${BK} : e / ${TM}, j = sbk == 1 ? e / ${BK} : e % ${TM};
                bt[k][j] = j0 + j < N && kb + k < Kz ? ${load("Bz[(kb + k) * sbk + (j0 + j) * sbn]")} : 0;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = 0; k < ${BK}; k++) {
                ${acc} x[${W}], y[${W}];
                for (int r = 0; r < ${W}; r++) {
                    x[r] = at[k][ly + r * ${G}];
                    y[r] = bt[k][lx + r * ${G}];
                }
                for (int r = 0; r < ${W}; r++)
                    for (int c = 0; c < ${W}; c++)
                        sum[r][c] = x[r] * y[c] + sum[r][c];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        __global ${to} *Cz = C + coff + zo * c0 + zi * c1;
        __global const ${to} *Dz = D + doff + zo * d0 + zi * d1;
        for (int r = 0; r < ${W}; r++)
            for (int c = 0; c < ${W}; c++) {
                const long i = i0 + ly + r * ${G}, j = j0 + lx + c * ${G};
                if (i < M && j < N) {
                    ${acc} y = alpha * sum[r][c];
                    if (has_bias) y += beta * ${load("Dz[i * sdm + j * sdn]", "to")};
% if finish:
                    finish(i, j, 1, y, ${', '.join(finish.names)});
% else:
                    ${store("y", "Cz", "i * scm + j * scn")};
% endif
                }
            }
    }
}
