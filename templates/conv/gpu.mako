<%doc>
Correlation for devices where a work-item is a lane: an implicit matrix product whose rows are output channels, whose columns
are output positions of all samples, and whose inner dim walks (channel, tap), by tiles (gemm/lanes.mako) in steps of BK kept in local
memory; patches are read where they lie, zeros outside the input. Where the steps of the inner dim lie is worked out once per group, two
steps ahead, as divisions are slow; while a step is multiplied, the numbers of the next are on their way to registers.
Group (x, y, z) owns column tile x, row tile y and the pairs z, z + groups, ... of (piece of the inner dim, channel group).
Neighbouring items read neighbouring positions. I is the type that counts channels, taps, places and numbers of an operand.
Variables: fn ta to acc load store G W BK I longs headers.
</%doc>\
<%namespace name="tile" file="/gemm/lanes.mako"/>\
<%
TM, lanes = G * W, G * G
copies = TM * BK // lanes
%>\
% for h in headers:
${h}
% endfor
typedef ${I} I;
__kernel __attribute__((reqd_work_group_size(${G}, ${G}, 1)))
void ${fn}(__global const ${ta} *X, __global const ${ta} *F, __global ${to} *Y, __global const ${ta} *D, int has_bias,
    ${', '.join(f'const long {name}' for name in longs)})
{
${tile.tiles(acc, G, W, BK)}\
    __local I from_f[${2 * BK}], from_x[${2 * BK}], go0[${2 * BK}], go1[${2 * BK}], go2[${2 * BK}];
    const I i0 = get_group_id(1) * (I)${TM}, taps = k0 * k1 * k2, K = channels * taps, plane = p1 * p2, places = p0 * plane, N = batch * places;
    const int left_rows = (int)min((I)rows - i0, (I)${TM});
    // The column whose patches this item copies, and whose results it writes, stays the same throughout.
    const I mine = get_group_id(0) * (I)${TM} + lane % ${TM}, sample = mine / places, p = mine % places;
    const I q0 = p / plane, q1 = p % plane / (I)p2, q2 = p % (I)p2;
    const I at0 = q0 * stride0 - pad0, at1 = q1 * stride1 - pad1, at2 = q2 * stride2 - pad2;
    const long to = sample * y_b + q0 * y_0 + q1 * y_1 + q2 * y_2;
    const int kf = lane % ${BK}, i_f = lane / ${BK}, kx = lane / ${TM};
    for (long z = get_group_id(2); z < groups * pieces; z += get_num_groups(2)) {
        const long group = z % groups, piece = z / groups;
        __global const ${ta} *Xz = X + x_off + group * x_g + sample * x_b, *Fz = F + f_off + group * f_g + (i0 + i_f) * f_o;
        const I first = piece * span, last = min((long)K, (piece + 1) * span);
<%def name="table(slot, begin)">\
            if (lane < ${BK} && ${begin} + lane < last) {
                const int row = ${slot} + lane;
                const I channel = (${begin} + lane) / taps, t = (${begin} + lane) % taps;
                const I t0 = t / (I)(k1 * k2), t1 = t / (I)k2 % (I)k1, t2 = t % (I)k2;
                from_f[row] = channel * (I)f_c + t0 * (I)f_0 + t1 * (I)f_1 + t2 * (I)f_2;
                from_x[row] = channel * (I)x_c;
                go0[row] = t0 * (I)step0;
                go1[row] = t1 * (I)step1;
                go2[row] = t2 * (I)step2;
            }
</%def>\
<%def name="fetch(slot)">\
% for t in range(copies):
            ff${t} = i_f + ${t * lanes // BK} < left_rows && kf < live ? ${load(f"Fz[from_f[{slot} + kf] + {t * lanes // BK} * (I)f_o]")} : 0;
% endfor
% for t in range(copies):
            {
                const bool some = mine < N && kx + ${t * lanes // TM} < live;
                const int row = ${slot} + kx + ${t * lanes // TM};
                const I a = some ? at0 + go0[row] : -1, b = some ? at1 + go1[row] : -1, c = some ? at2 + go2[row] : -1;
                fx${t} = a >= 0 && a < (I)s0 && b >= 0 && b < (I)s1 && c >= 0 && c < (I)s2
                    ? ${load("Xz[from_x[row] + a * (I)x_0 + b * (I)x_1 + c * (I)x_2]")} : 0;
            }
% endfor
</%def>\
${tile.sums(acc, W)}\
        ${acc} ${', '.join(f'ff{t}, fx{t}' for t in range(copies))};
        int slot = 0, live = (int)min(last - first, (I)${BK});
${table('0', 'first')}\
${table(str(BK), f'first + {BK}')}\
        barrier(CLK_LOCAL_MEM_FENCE);
${fetch('0')}\
        for (I kb = first; kb < last; kb += ${BK}) {
% for t in range(copies):
            at[${tile.place('kf', f'i_f + {t * lanes // BK}', TM)}] = ff${t};
            bt[${tile.place(f'kx + {t * lanes // TM}', f'lane % {TM}', TM)}] = fx${t};
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
            live = (int)min(last - kb - ${BK}, (I)${BK});
${table('slot', f'kb + {2 * BK}')}\
            slot = ${BK} - slot;
${fetch('slot')}\
${tile.step(acc, G, W, BK)}\
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        __global ${to} *Yz = Y + y_off + group * y_g + piece * y_piece;
<%tile:numbers acc="${acc}" G="${G}" W="${W}">\
                if (i < left_rows && mine < N) {
                    if (has_bias) y += ${load("D[d_off + group * d_g + (i0 + i) * d_o]")};
                    ${store("y", "Yz", "to + (i0 + i) * y_o")};
                }
</%tile:numbers>\
    }
}
