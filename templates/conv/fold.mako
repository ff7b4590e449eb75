<%doc>
The last step of a transposed correlation (col2im): adds u[g, c, tap, b, p], the contribution of place p of image b
through a tap of channel c, to the number of the result X that the tap meets there. Places are adjacent; u_g, u_k (of
channel and tap) and u_b are strides; p0, p1, p2 places read X. As many rows as fit are summed at a time in local
memory, tap by tap; a row is kept in parts there, numbers of equal remainder by the stride side by side. Work-item (x,
y, z): `span` channels from x * span on, of image y, group z.
Variables: fn ta acc index V room slack longs headers unaligned.
</%doc>
<%namespace name="patch" file="patch.mako"/>\
<% halves = [n for n in (V, V // 2) if n > 1] %>\
% for h in headers:
${h}
% endfor
${patch.types()}
CLT_WIDE static void add_row(__local ${acc} *q, __global const ${acc} *p, long n)
{
    long j = 0;
% for h in halves:
    if (n >= ${h}) {
        for (; j + ${h} <= n; j += ${h})
            *(__local ${acc}${h}_u *)(q + j) += *(__global const ${acc}${h}_u *)(p + j);
        ## The last vector overlaps the one before: lanes already added there add zero.
        const ${index}${h} lane = (${index}${h})(${', '.join(map(str, range(h)))});
        const ${acc}${h} last = *(__global const ${acc}${h}_u *)(p + n - ${h});
        *(__local ${acc}${h}_u *)(q + n - ${h}) += lane >= (${index}${h})(${h} - n + j) ? last : 0;
        return;
    }
% endfor
    PLAIN
    for (; j < n; j++)
        q[j] += p[j];
}

CLT_WIDE static void put_row(__global ${ta} *q, long step, __local const ${acc} *p, long n)
{
    long j = 0;
% for h in halves:
    if (step == 1 && n >= ${h}) {
        for (; j + ${h} <= n; j += ${h})
            *(__global ${acc}${h}_u *)(q + j) = *(__local const ${acc}${h}_u *)(p + j);
        *(__global ${acc}${h}_u *)(q + n - ${h}) = *(__local const ${acc}${h}_u *)(p + n - ${h});
        return;
    }
% endfor
    PLAIN
    for (; j < n; j++)
        q[j * step] = p[j];
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${acc} *U, __global ${ta} *X, __global const ${ta} *D, int has_bias,
    ${', '.join(f'const long {name}' for name in longs)})
{
    __local ${acc} parts[${room}] __attribute__((aligned(64))), row[${room}] __attribute__((aligned(64)));
    const long b = get_global_id(1), g = get_global_id(2), cb = get_global_id(0) * span, ce = MIN(cb + span, channels);
    const long margin = (pad2 + stride2 - 1) / stride2, each = (s2 + stride2 - 1) / stride2, across = stride2 * pitch;
    const long high = MAX(${room - slack} / across, 1L);
    for (long c = cb; c < ce; c++) {
        const ${acc} shift = has_bias ? D[d_off + g * d_g + c * d_o] : 0;
        __global const ${acc} *u = U + g * u_g + b * u_b + c * k0 * k1 * k2 * u_k;
        for (long a0 = 0; a0 < s0; a0++)
            for (long a1 = 0; a1 < s1; a1 += high) {
                const long end = MIN(a1 + high, s1);
                for (long j = 0; j < (end - a1) * across; j += ${V})
                    *(__local ${acc}${V}_u *)(parts + j) = shift;
                for (long t0 = 0; t0 < k0; t0++) {
                    const long from0 = a0 + pad0 - t0 * step0;
                    if (from0 < 0 || from0 % stride0 || from0 / stride0 >= p0) continue;
                    for (long t1 = 0; t1 < k1; t1++) {
                        ## Patch i adds to row i * stride1 - ahead: take the patches lo .. hi - 1, whose rows lie in
                        ## [a1, end).
                        const long ahead = pad1 - t1 * step1, least = a1 + ahead, most = end + ahead;
                        const long lo = least > 0 ? (least + stride1 - 1) / stride1 : 0, hi = MIN(most > 0 ? (most + stride1 - 1) / stride1 : 0, p1);
                        __global const ${acc} *from = u + (t0 * k1 + t1) * k2 * u_k + from0 / stride0 * p1 * p2;
                        for (long t2 = 0; t2 < k2; t2++, from += u_k) {
                            const long to = t2 * step2 - pad2 + margin * stride2;
                            __local ${acc} *q = parts + (lo * stride1 - least) * across + to % stride2 * pitch + to / stride2;
                            for (long i = lo; i < hi; i++, q += stride1 * across)
                                add_row(q, from + i * p2, p2);
                        }
                    }
                }
                __local const ${acc} *part = parts + margin;
                __global ${ta} *x = X + x_off + g * x_g + b * x_b + c * x_c + a0 * x_0 + a1 * x_1;
                for (long a = a1; a < end; a++, part += across, x += x_1) {
                    if (stride2 == 1) {
                        put_row(x, x_2, part, s2);
                        continue;
                    }
                    if (stride2 == 2)
                        for (long j = 0; j < each; j += ${V}) {
                            const ${acc}${V} even = *(__local const ${acc}${V}_u *)(part + j), odd = *(__local const ${acc}${V}_u *)(part + pitch + j);
                            ${acc}${V} lo, hi;
                            lo.even = even.lo, lo.odd = odd.lo, hi.even = even.hi, hi.odd = odd.hi;
                            *(__local ${acc}${V}_u *)(row + 2 * j) = lo;
                            *(__local ${acc}${V}_u *)(row + 2 * j + ${V}) = hi;
                        }
                    else
                        for (long h = 0; h < stride2; h++)
                            PLAIN
                            for (long j = h, i = h * pitch; j < s2; j += stride2)
                                row[j] = part[i++];
                    put_row(x, x_2, row, s2);
                }
            }
    }
}
