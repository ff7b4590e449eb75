<%doc>
Shared by the CPU schedules of the convolution. A work-item copies a box of the input into local memory (cache), with
zeros where the box leaves the input, such that tap (a, b, c) of the box's output position q is read at q + shift[tap]:
rows of positions are as long as rows of the copied input, so that runs of positions are runs of memory for every tap.
Positions at the end of a row are junk. If the stride is not 1, the copy is split into phases, inputs of equal remainder
by the stride side by side.
Box: n images of b0 x b1 x b2 outputs. Each channel and phase has n x e0 x e1 x e2 numbers. The zeros at the end of a
row may also be those at the start of the next (codegen/conv/cpu.py chooses e so); `tail` zeros follow the last channel.
</%doc>
<%def name="types()">\
## PLAIN marks remainder and copy loops: vectorizing or unrolling them costs compile time and gains nothing.
#define PLAIN _Pragma("clang loop vectorize(disable)") _Pragma("clang loop unroll(disable)")
## Under-aligned vector types compile to one load or store; vload and vstore of many lanes take some compilers very
## long.
% for t, size in unaligned:
% for n in (n for n in (V, V // 2, V // 4) if n > 1):
typedef ${t}${n} ${t}${n}_u __attribute__((aligned(${size})));
% endfor
% endfor
</%def>
<%def name="copies(space='__local')">\
CLT_WIDE static void clear(${space} ${acc} *q, long n)
{
    long j = 0;
    for (; j + ${V} <= n; j += ${V})
        *(${space} ${acc}${V}_u *)(q + j) = 0;
    PLAIN
    for (; j < n; j++)
        q[j] = 0;
}

% for h in [V] + [V // 2] * (ta == acc and V >= 8):
## Every second number from p on. Reads nothing beyond the last of them.
CLT_WIDE static ${acc}${h} every_second${h}(__global const ${ta} *p)
{
% if h == V:
    const ${acc}${V} a = ${loadv("p")}, b = ${loadv(f"p + {V - 1}")};
% else:
    const ${acc}${h} a = *(__global const ${acc}${h}_u *)p, b = *(__global const ${acc}${h}_u *)(p + ${h - 1});
% endif
    return (${acc}${h})(a.even, b.odd);
}

% endfor
CLT_WIDE static void copy_row(${space} ${acc} *q, __global const ${ta} *p, long step, long n)
{
    long j = 0;
    if (step == 1 && n >= ${V}) {
        for (; j + ${V} <= n; j += ${V})
            *(${space} ${acc}${V}_u *)(q + j) = ${loadv("p + j")};
        j = n - ${V};
        *(${space} ${acc}${V}_u *)(q + j) = ${loadv("p + j")};
        return;
    }
% if ta == acc:
% for h in (n for n in (V // 2, V // 4) if n > 1):
    if (step == 1 && n >= ${h}) {
        *(${space} ${acc}${h}_u *)q = *(__global const ${acc}${h}_u *)p;
        *(${space} ${acc}${h}_u *)(q + n - ${h}) = *(__global const ${acc}${h}_u *)(p + n - ${h});
        return;
    }
% endfor
% endif
% for h in [V] + [V // 2] * (ta == acc and V >= 8):
    if (step == 2 && n >= ${h}) {
        for (; j + ${h} <= n; j += ${h})
            *(${space} ${acc}${h}_u *)(q + j) = every_second${h}(p + 2 * j);
        *(${space} ${acc}${h}_u *)(q + n - ${h}) = every_second${h}(p + 2 * (n - ${h}));
        return;
    }
% endfor
    PLAIN
    for (; j < n; j++)
        q[j] = ${load("p[j * step]")};
}
</%def>
<%def name="total()">\
CLT_WIDE static ${acc} total(${acc}${V} v)
{
<% half, src = V // 2, "v" %>\
% while half >= 2:
    const ${acc}${half} h${half} = ${src}.lo + ${src}.hi;
<% src = f"h{half}"; half //= 2 %>\
% endwhile
    return ${src}.lo + ${src}.hi;
}
</%def>
<%def name="geometry()">\
    const long area = e0 * e1 * e2, taps = k0 * k1 * k2, plane = h0 * h1 * h2 * n * area;
</%def>
<%def name="copy_box(first, count)">\
// Channels ${first} .. ${first} + ${count} - 1 of the box at image ib, output i0, i1, i2.
clear(xp, ${count} * plane + tail);
for (long h = 0; h < h0 * h1 * h2; h++) {
    const long r0 = h / (h1 * h2) * step0 % stride0 - pad0 + i0 * stride0;
    const long r1 = h / h2 % h1 * step1 % stride1 - pad1 + i1 * stride1;
    const long r2 = h % h2 * step2 % stride2 - pad2 + i2 * stride2;
    ## Which numbers of a row, and which rows, lie in the input.
    const long lo = MIN(r2 < 0 ? (-r2 + stride2 - 1) / stride2 : 0L, e2);
    const long hi = MAX(MIN(s2 > r2 ? (s2 - r2 + stride2 - 1) / stride2 : 0L, e2), lo);
    const long top = MIN(r1 < 0 ? (-r1 + stride1 - 1) / stride1 : 0L, e1);
    const long end = MAX(MIN(s1 > r1 ? (s1 - r1 + stride1 - 1) / stride1 : 0L, e1), top);
    for (long c = 0; c < ${count}; c++)
        for (long b = 0; b < MIN(n, batch - ib); b++)
            for (long y0 = 0, a0 = r0; y0 < e0; y0++, a0 += stride0) {
                if (a0 < 0 || a0 >= s0) continue;
                __local ${acc} *q = xp + c * plane + ((h * n + b) * e0 + y0) * e1 * e2 + top * e2 + lo;
                __global const ${ta} *p = X + x_off + group * x_g + (ib + b) * x_b + (${first} + c) * x_c + a0 * x_0
                    + (r1 + top * stride1) * x_1 + (r2 + lo * stride2) * x_2;
                for (long y1 = top; y1 < end; y1++, q += e2, p += stride1 * x_1)
                    copy_row(q, p, stride2 * x_2, hi - lo);
            }
}
</%def>
