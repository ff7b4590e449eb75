<%doc>
The gradient with respect to few filters of few channels, a sum over all places, for devices where a work-item is a
lane: a work-group makes a block of K x J taps of one filter and channel (CL of them where groups are adjacent in
memory) from a piece of the places. Lanes walk units of P places, one below the other, with a sum for each tap in
registers, and add up their sums in local memory at the end. Work-group (x, y) owns block x of (channels, row of taps'
planes, J columns of taps) and piece y.
Variables: fn ta to acc load store L CL P K S D J CHUNK I longs headers; P divides the rows of places.
</%doc>\
<%
reads = sorted({p * S + i * D for p in range(P) for i in range(K)}) if K > 1 else range(P)
def pairs(d):
    return [(p, i) for p in range(P) for i in range(K) if p * S + i * D == d] if K > 1 else [(d, 0)]
def below(d):
    return d if K > 1 else f'{d} * (I)stride1'
taps = [(i, j) for i in range(K) for j in range(J)]
%>\
% for h in headers:
${h}
% endfor
typedef ${I} I;
__kernel __attribute__((reqd_work_group_size(${L}, 1, 1)))
void ${fn}(__global const ${ta} *X, __global const ${ta} *Y, __global ${to} *F,
    ${', '.join(f'const long {name}' for name in longs)})
{
    __local ${acc} sums[${CHUNK * L}];
    const int lane = get_local_id(0);
    const long parts = (k2 + ${J - 1}) / ${J}, high = ${'k1' if K == 1 else 1};
    const I t2 = (I)(get_group_id(0) % parts * ${J});
    long block = get_group_id(0) / parts;
    const I t1 = (I)(block % high), t0 = (I)(block / high % k0);
    block = block / high / k0;
    const long c = block % channels, o = block / channels % rows, first = block / channels / rows * ${CL}, group = first + lane % ${CL};
    ${acc} ${', '.join(f's{i}_{j} = 0' for i, j in taps)};
    const I bands = (I)(p1 / ${P}), begin = (I)(get_group_id(1) * span), end = (I)min(begin + span, batch * p0 * bands * p2);
    __global const ${ta} *Xc = X + x_off + group * x_g + c * x_c, *Yc = Y + y_off + group * y_g + o * y_o;
    if (group < groups)
        for (I u = begin + lane / ${CL}; u < end; u += ${L // CL}) {
            const I q2 = u % (I)p2, above = u / (I)p2, q1 = above % bands * ${P}, plane = above / bands, q0 = plane % (I)p0;
            const long sample = plane / (I)p0;
            const I b0 = q0 * (I)stride0 - (I)pad0 + t0 * (I)step0, b1 = q1 * (I)stride1 - (I)pad1 + t1 * (I)step1;
            if (b0 < 0 || b0 >= (I)s0) continue;
            __global const ${ta} *from = Xc + sample * x_b, *slopes = Yc + sample * y_b;
% for p in range(P):
            const ${acc} y${p} = ${load(f"slopes[q0 * (I)y_0 + (q1 + {p}) * (I)y_1 + q2 * (I)y_2]")};
% endfor
% for j in range(J):
            {
                const I b2 = q2 * (I)stride2 - (I)pad2 + (t2 + ${j}) * (I)step2, place = b0 * (I)x_0 + b2 * (I)x_2;
                const bool some = b2 >= 0 && b2 < (I)s2;
% for n, d in enumerate(reads):
                const I a${n} = b1 + ${below(d)};
                const ${acc} x${n} = some && a${n} >= 0 && a${n} < (I)s1 ? ${load(f"from[place + a{n} * (I)x_1]")} : 0;
% endfor
% for n, d in enumerate(reads):
% for p, i in pairs(d):
                s${i}_${j} = x${n} * y${p} + s${i}_${j};
% endfor
% endfor
            }
% endfor
        }
    __global ${to} *Fz = F + get_group_id(1) * piece + o * f_o + c * f_c + t0 * f_0;
% for begin in range(0, len(taps), CHUNK):
<% some = taps[begin:begin + CHUNK] %>\
% for n, (i, j) in enumerate(some):
    sums[${n * L} + lane] = s${i}_${j};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int left = ${L // 2}; left >= ${CL}; left /= 2) {
        for (int e = lane; e < ${len(some)} * left; e += ${L})
            sums[e / left * ${L} + e % left] += sums[e / left * ${L} + e % left + left];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int e = lane; e < ${len(some) * CL}; e += ${L}) {
        const int t = ${begin} + e / ${CL};
        const long to = first + e % ${CL}, i = t1 + t / ${J}, j = t2 + t % ${J};
        if (to < groups && j < k2) ${store(f"sums[e / {CL} * {L} + e % {CL}]", "Fz", "to * f_g + i * f_1 + j * f_2")};
    }
% if begin + CHUNK < len(taps):
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
% endfor
}
