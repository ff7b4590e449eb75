<%doc>
Correlation for devices where a work-item is a lane: an implicit matrix product whose rows are output channels, whose
columns are output positions of all samples, and whose inner dim walks (channel, tap), by tiles (gemm/lanes.mako) in
steps of BK kept in local memory; patches are read in place, as zeros outside the input. The offsets of a step of the
inner dim are computed once per work-group, two steps ahead, as that takes long; while a step is multiplied, the numbers
of the next are being loaded to registers. Work-group (x, y, z) owns column tile x, row tile y and the pairs z, z +
groups, ... of (piece of the inner dim, channel group). Neighbouring work-items read neighbouring positions. At least
one tap is required; advancing by BK means more_c channels and (more0, more1, more2) taps. I is the integer type for
channels, taps, places and offsets into operands.
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
typedef u${I} U;
__kernel __attribute__((reqd_work_group_size(${G}, ${G}, 1)))
void ${fn}(__global const ${ta} *X, __global const ${ta} *F, __global ${to} *Y, __global const ${ta} *D, int has_bias,
    ${', '.join(f'const long {name}' for name in longs)})
{
${tile.tiles(acc, G, W, BK)}\
    ## Tables for the numbers of a step of K, each a channel and tap: its offset in F; its offset in X from an item's
    ## column's first place, and its
## distance from that place along each dim.
    __local I from_f[${2 * BK}];
    __local ${I}4 from_x[${2 * BK}];
    const I i0 = get_group_id(1) * (I)${TM}, taps = k0 * k1 * k2, K = channels * taps, plane = p1 * p2, places = p0 * plane, N = batch * places;
    const int left_rows = (int)min((I)rows - i0, (I)${TM});
    ## The column (output place) whose patch this item copies and whose results it stores; one for the whole kernel.
    const I mine = get_group_id(0) * (I)${TM} + lane % ${TM}, sample = mine / places, p = mine % places;
    const I q0 = p / plane, q1 = p % plane / (I)p2, q2 = p % (I)p2;
    ## A coordinate for columns past N and for rows past the end of K: added to any coordinate, or to itself, it stays
    ## outside the input.
    const I nowhere = -((I)1 << (8 * sizeof(I) - 2));
    const I at0 = mine < N ? q0 * (I)stride0 - (I)pad0 : nowhere, at1 = q1 * (I)stride1 - (I)pad1, at2 = q2 * (I)stride2 - (I)pad2;
    const I begins = (q0 * (I)stride0 - (I)pad0) * (I)x_0 + at1 * (I)x_1 + at2 * (I)x_2;
    const long to = sample * y_b + q0 * y_0 + q1 * y_1 + q2 * y_2;
    const int kf = lane % ${BK}, i_f = lane / ${BK}, kx = lane / ${TM};
    for (long z = get_group_id(2); z < groups * pieces; z += get_num_groups(2)) {
        const long group = z % groups, piece = z / groups;
        __global const ${ta} *Xz = X + x_off + group * x_g + sample * x_b, *Fz = F + f_off + group * f_g + (i0 + i_f) * f_o;
        const I first = piece * span, last = min((long)K, (piece + 1) * span);
        ## The channel and tap whose table entry this item writes next, if it is one of the first BK items.
        I row = first + lane, channel = row / taps, t0 = row % taps / (I)(k1 * k2), t1 = row / (I)k2 % (I)k1, t2 = row % (I)k2;
<%def name="table(slot)">\
            if (lane < ${BK}) {
                const bool some = row < last;
                from_f[${slot} + lane] = some ? channel * (I)f_c + t0 * (I)f_0 + t1 * (I)f_1 + t2 * (I)f_2 : 0;
                const I go0 = t0 * (I)step0, go1 = t1 * (I)step1, go2 = t2 * (I)step2;
                from_x[${slot} + lane] = (${I}4)(channel * (I)x_c + go0 * (I)x_0 + go1 * (I)x_1 + go2 * (I)x_2, some ? go0 : nowhere, go1, go2);
                row += ${BK};
                ## Advance the channel and tap by BK with carries: a division would keep the other lanes waiting.
                t2 += (I)more2;
                t1 += (I)more1 + (t2 >= (I)k2);
                t2 -= t2 >= (I)k2 ? (I)k2 : 0;
                t0 += (I)more0 + (t1 >= (I)k1);
                t1 -= t1 >= (I)k1 ? (I)k1 : 0;
                channel += (I)more_c + (t0 >= (I)k0);
                t0 -= t0 >= (I)k0 ? (I)k0 : 0;
            }
</%def>\
<%def name="fetch(slot)">\
% for t in range(copies):
            ff${t} = i_f + ${t * lanes // BK} < left_rows && kf < live ? ${load(f"Fz[from_f[{slot} + kf] + {t * lanes // BK} * (I)f_o]")} : 0;
% endfor
% for t in range(copies):
            {
                const ${I}4 go = from_x[${slot} + kx + ${t * lanes // TM}];
                const bool inside = (U)(at0 + go.y) < (U)s0 && (U)(at1 + go.z) < (U)s1 && (U)(at2 + go.w) < (U)s2;
                fx${t} = inside ? ${load("Xz[begins + go.x]")} : 0;
            }
% endfor
</%def>\
${tile.sums(acc, W)}\
        ${acc} ${', '.join(f'ff{t}, fx{t}' for t in range(copies))};
        int slot = 0, live = (int)min(last - first, (I)${BK});
${table('0')}\
${table(str(BK))}\
        barrier(CLK_LOCAL_MEM_FENCE);
${fetch('0')}\
        for (I kb = first; kb < last; kb += ${BK}) {
% for t in range(copies):
            at[${tile.place('kf', f'i_f + {t * lanes // BK}', TM)}] = ff${t};
            bt[${tile.place(f'kx + {t * lanes // TM}', f'lane % {TM}', TM)}] = fx${t};
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
            live = (int)min(last - kb - ${BK}, (I)${BK});
${table('slot')}\
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
