<%doc>
Correlation for devices where a work-item is a lane: an implicit matrix product whose rows are output channels, whose columns
are output positions of all samples, and whose inner dim walks (channel, tap). A work-group of G x G items makes a tile of
TM x TM, W x W per item, in steps of BK kept in local memory; patches are read where they lie, zeros outside the input. Where the
steps of the inner dim lie is worked out once per group, as divisions are slow.
Group (x, y, z) owns column tile x, row tile y and the pairs z, z + groups, ... of (piece of the inner dim, channel group).
Neighbouring items read neighbouring positions. Variables: fn ta to acc load store G W BK longs headers.
</%doc>
<% TM = G * W %>\
% for h in headers:
${h}
% endfor
__kernel __attribute__((reqd_work_group_size(${G}, ${G}, 1)))
void ${fn}(__global const ${ta} *X, __global const ${ta} *F, __global ${to} *Y, __global const ${ta} *D, int has_bias,
    ${', '.join(f'const long {name}' for name in longs)})
{
    __local ${acc} at[${BK}][${TM + 1}], bt[${BK}][${TM + 1}];
    __local long from_f[${BK}], from_x[${BK}], go0[${BK}], go1[${BK}], go2[${BK}];
    const int lx = get_local_id(0), ly = get_local_id(1), lane = ly * ${G} + lx;
    const long i0 = get_group_id(1) * (long)${TM}, taps = k0 * k1 * k2, K = channels * taps;
    const long places = p0 * p1 * p2, N = batch * places;
    // The column whose patches this item copies stays the same throughout.
    long at_b = 0, at0 = 0, at1 = 0, at2 = 0;
    const long mine = get_group_id(0) * (long)${TM} + lane % ${TM};
    if (mine < N) {
        const long p = mine % places;
        at_b = mine / places;
        at0 = p / (p1 * p2) * stride0 - pad0;
        at1 = p / p2 % p1 * stride1 - pad1;
        at2 = p % p2 * stride2 - pad2;
    }
    for (long z = get_group_id(2); z < groups * pieces; z += get_num_groups(2)) {
        const long group = z % groups, piece = z / groups;
        __global const ${ta} *Xz = X + x_off + group * x_g + at_b * x_b, *Fz = F + f_off + group * f_g;
        const long last = min(K, (piece + 1) * span);
        ${acc} sum[${W}][${W}];
        for (int r = 0; r < ${W}; r++)
            for (int c = 0; c < ${W}; c++)
                sum[r][c] = 0;
        for (long kb = piece * span; kb < last; kb += ${BK}) {
            const int live = (int)min(last - kb, (long)${BK});
            if (lane < live) {
                const long channel = (kb + lane) / taps, t = (kb + lane) % taps;
                const long t0 = t / (k1 * k2), t1 = t / k2 % k1, t2 = t % k2;
                from_f[lane] = channel * f_c + t0 * f_0 + t1 * f_1 + t2 * f_2;
                from_x[lane] = channel * x_c;
                go0[lane] = t0 * step0;
                go1[lane] = t1 * step1;
                go2[lane] = t2 * step2;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int e = lane; e < ${TM * BK}; e += ${G * G}) {
                const int k = e % ${BK}, i = e / ${BK};
                at[k][i] = i0 + i < rows && k < live ? ${load("Fz[(i0 + i) * f_o + from_f[k]]")} : 0;
            }
            for (int e = lane; e < ${TM * BK}; e += ${G * G}) {
                const int k = e / ${TM}, j = e % ${TM};
                const bool some = mine < N && k < live;
                const long a = some ? at0 + go0[k] : -1, b = some ? at1 + go1[k] : -1, c = some ? at2 + go2[k] : -1;
                bt[k][j] = a >= 0 && a < s0 && b >= 0 && b < s1 && c >= 0 && c < s2
                    ? ${load("Xz[from_x[k] + a * x_0 + b * x_1 + c * x_2]")} : 0;
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
        __global ${to} *Yz = Y + y_off + group * y_g + piece * y_piece;
        for (int c = 0; c < ${W}; c++) {
            const long j = get_group_id(0) * (long)${TM} + lx + c * ${G}, p = j % places;
            if (j >= N) continue;
            const long to = j / places * y_b + p / (p1 * p2) * y_0 + p / p2 % p1 * y_1 + p % p2 * y_2;
            for (int r = 0; r < ${W}; r++) {
                const long i = i0 + ly + r * ${G};
                if (i < rows) {
                    ${acc} y = sum[r][c];
                    if (has_bias) y += ${load("D[d_off + group * d_g + i * d_o]")};
                    ${store("y", "Yz", "to + i * y_o")};
                }
            }
        }
    }
}
