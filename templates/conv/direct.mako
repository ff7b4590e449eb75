<%doc>
Correlation with few output channels per group, for devices where a work-item is a lane: each sums P places, one below
the other, of R channels. Inputs read for a column of taps serve all P places; neighbouring lanes read neighbouring
columns, or neighbouring channels where those are adjacent in memory (CL of them, whose taps are then kept in local
memory). If there are few places, SL lanes share each: every lane sums every SLth input channel, and the first adds up
their sums, in order.
Work-group (x, y) owns the lanes of unit x (columns of bands of P rows of all samples) and the blocks y, y + groups, ...
of channels.
Variables: fn ta to acc load store L CL SL P R K S D ROOM I longs headers; K: the taps of a column, if unrolled, or 1
for a loop over them.
</%doc>\
<%
U = L // CL // SL # units of a group
reads = sorted({p * S + i * D for p in range(P) for i in range(K)}) if K > 1 else range(P)
def pairs(d):
    return [(p, i) for p in range(P) for i in range(K) if p * S + i * D == d] if K > 1 else [(d, 0)]
def below(d):
    return d if K > 1 else f'{d} * (I)stride1'
%>\
% for h in headers:
${h}
% endfor
typedef ${I} I;
__kernel __attribute__((reqd_work_group_size(${L}, 1, 1)))
void ${fn}(__global const ${ta} *X, __global const ${ta} *F, __global ${to} *Y, __global const ${ta} *D, int has_bias,
    ${', '.join(f'const long {name}' for name in longs)})
{
    const int lane = get_local_id(0);
% if SL > 1:
    const int slice = lane / ${U};
    __local ${acc} sums[${(SL - 1) * R * P * U}];
% endif
    const I u = get_group_id(0) * (I)${U} + ${f'lane % {U}' if SL > 1 else f'lane / {CL}'}, bands = (I)((p1 + ${P - 1}) / ${P});
    const I q2 = u % (I)p2, above = u / (I)p2, q1 = above % bands * ${P}, plane = above / bands, q0 = plane % (I)p0, sample = plane / (I)p0;
    const I at0 = q0 * (I)stride0 - (I)pad0, at1 = q1 * (I)stride1 - (I)pad1, at2 = q2 * (I)stride2 - (I)pad2;
% if CL > 1:
    __local ${acc} kept[${ROOM}];
    const int taps = (int)(k0 * k1 * k2), pitch = taps | 1;
% endif
    for (long block = get_group_id(1); block < blocks; block += get_num_groups(1)) {
% if CL > 1:
        const long group = block * ${CL} + lane % ${CL}, o = 0;
        for (int e = lane; e < ${CL} * taps; e += ${L}) {
            const int t = e % taps, t2 = t % (int)k2, t1 = t / (int)k2 % (int)k1, t0 = t / (int)(k1 * k2);
            const long from = block * ${CL} + e / taps;
            kept[e / taps * pitch + t] = from < groups ? ${load("F[f_off + from * f_g + t0 * f_0 + t1 * f_1 + t2 * f_2]")} : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% else:
        const long group = block / ((rows + ${R - 1}) / ${R}), o = block % ((rows + ${R - 1}) / ${R}) * ${R};
% endif
        const bool inside = sample < batch && group < groups;
        ${acc} ${', '.join(f's{r}_{p} = 0' for r in range(R) for p in range(P))};
        if (inside) {
            __global const ${ta} *Xc = X + x_off + group * x_g + sample * x_b${' + slice * x_c' if SL > 1 else ''};
% for r in range(R):
            ## Output channels past the last use the last one's taps; their sums are not stored.
            __global const ${ta} *F${r} = F + f_off + group * f_g + min(o + ${r}, rows - 1) * f_o${' + slice * f_c' if SL > 1 else ''};
% endfor
            for (I c = ${'slice' if SL > 1 else 0}; c < (I)channels; c += ${SL}) {
                for (I t0 = 0; t0 < (I)k0; t0++) {
                    const I b0 = at0 + t0 * (I)step0;
                    if (b0 < 0 || b0 >= (I)s0) continue;
% if K == 1:
                    for (I t1 = 0; t1 < (I)k1; t1++) {
                    const I b1 = at1 + t1 * (I)step1;
% else:
                    const I b1 = at1, t1 = 0;
% endif
                    for (I t2 = 0; t2 < (I)k2; t2++) {
                        const I b2 = at2 + t2 * (I)step2;
                        if (b2 < 0 || b2 >= (I)s2) continue;
                        const I place = b0 * (I)x_0 + b2 * (I)x_2, tap = t0 * (I)f_0 + t1 * (I)f_1 + t2 * (I)f_2;
% for r in range(R):
% for i in range(K):
% if CL > 1:
                        const ${acc} f${r}_${i} = kept[lane % ${CL} * pitch + (int)((t0 * (I)k1 + t1 + ${i}) * (I)k2 + t2)];
% else:
                        const ${acc} f${r}_${i} = ${load(f"F{r}[tap + {i} * (I)f_1]")};
% endif
% endfor
% endfor
% for n, d in enumerate(reads):
                        const I a${n} = b1 + ${below(d)};
                        const ${acc} x${n} = a${n} >= 0 && a${n} < (I)s1 ? ${load(f"Xc[place + a{n} * (I)x_1]")} : 0;
% endfor
% for n, d in enumerate(reads):
% for r in range(R):
% for p, i in pairs(d):
                        s${r}_${p} = x${n} * f${r}_${i} + s${r}_${p};
% endfor
% endfor
% endfor
                    }
% if K == 1:
                    }
% endif
                }
                Xc += ${f'{SL} * x_c' if SL > 1 else 'x_c'};
% for r in range(R):
                F${r} += ${f'{SL} * f_c' if SL > 1 else 'f_c'};
% endfor
            }
        }
% if SL > 1:
        if (slice > 0) {
            __local ${acc} *own = sums + (slice - 1) * ${R * P * U} + lane % ${U};
% for r in range(R):
% for p in range(P):
            own[${(r * P + p) * U}] = s${r}_${p};
% endfor
% endfor
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (slice == 0) {
            for (int other = 0; other < ${SL - 1}; other++) {
% for r in range(R):
% for p in range(P):
                s${r}_${p} += sums[other * ${R * P * U} + ${(r * P + p) * U} + lane];
% endfor
% endfor
            }
        }
% endif
        if (inside${' && slice == 0' if SL > 1 else ''}) {
            __global ${to} *Yz = Y + y_off + group * y_g + sample * y_b + o * y_o + q0 * y_0 + q1 * y_1 + q2 * y_2;
% for r in range(R):
            if (o + ${r} < rows) {
                const ${acc} more = has_bias ? ${load(f"D[d_off + group * d_g + (o + {r}) * d_o]")} : 0;
% for p in range(P):
                if (q1 + ${p} < (I)p1) ${store(f"has_bias ? s{r}_{p} + more : s{r}_{p}", "Yz", f"{r} * y_o + {p} * y_1")};
% endfor
            }
% endfor
        }
% if CL > 1 or SL > 1:
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
    }
}
