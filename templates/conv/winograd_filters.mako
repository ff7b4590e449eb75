<%doc>
The filters for templates/conv/winograd.mako: G g G^T of every 3 x 3 filter g, in the order in which that reads them:
[group, part, place of 16, panel, channel, MR], a part being `part` input channels and a panel MR output channels, with
16 unused numbers after each place. Rows past the last output channel repeat it. Taps that are contiguous in memory are
read eight at a time and transposed; if they are contiguous in reverse order, the four numbers of a row or column are
taken in reverse. Work-item (x, y, z) makes part y of panel x of group z.
Variables: fn MR longs limits ahead.
</%doc>
<%namespace name="square" file="/square.mako"/>\
<%
V = 8
lanes = range(V)
fv = f"float{V}"
# The stores, of powers of two, that write MR lanes of a vector: (first lane, count).
pieces = [(MR >> k + 1 << k + 1, 1 << k) for k in reversed(range(5)) if MR >> k & 1]
%>\
${limits}
${ahead}
#pragma OPENCL FP_CONTRACT ON
% for n in sorted({V, *(n for _, n in pieces)}):
typedef float${n} float${n}_u __attribute__((aligned(4)));
% endfor
CLT_WIDE static void keep(__global float *q, const ${fv} v)
{
% for first, n in pieces:
    *(__global float${n}_u *)(q + ${first}) = ${"v" if n == V else f"(float{n})({', '.join(f'v.s{k:x}' for k in range(first, first + n))})"};
% endfor
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const float *F, __global float *U, ${', '.join(f'const long {name}' for name in longs)})
{
    const long panel = get_global_id(0), panels = get_global_size(0), group = get_global_id(2);
    const long o = panel * ${MR}, cb = get_global_id(1) * part, cn = MIN(part, channels - cb), place = panels * part * ${MR} + 16;
    __global const float *p = F + f_off + group * f_g + o * f_o;
% for k in lanes:
    const long o${k} = MIN(${min(k, MR - 1)}L, rows - 1 - o) * f_o;
% endfor
    __global float *q = U + (group * get_global_size(1) + get_global_id(1)) * 16 * place + panel * part * ${MR};
    const bool adjacent = f_1 == 3 * f_2 && (f_2 == 1 || f_2 == -1), turned = adjacent && f_2 < 0;
    const long low = turned ? -8 : 0, start = turned ? 3 : 0;
    for (long c = cb; c < cb + cn; c++, q += ${MR}) {
        __global const float *f = p + c * f_c + low;
% for line in range(-(-MR * 36 // 64) + 1):
        CLT_PREFETCH(f + 8 * f_c + ${16 * line}); // the hardware prefetcher does not follow strides as long as a gradient's f_c
% endfor
        ${fv} ${', '.join(f'g{i}{j}' for i in range(3) for j in range(3))};
        if (adjacent) {
% for k in lanes:
            const ${fv} a${k} = *(__global const ${fv}_u *)(f + o${k});
% endfor
${square.turned(fv, V, 'a', 't')}\
% for k in range(V):
            g${k // 3}${k % 3} = t${k};
% endfor
            g22 = (${fv})(${', '.join(f'f[o{k} + 8]' for k in lanes)});
        } else {
% for i in range(3):
% for j in range(3):
            g${i}${j} = (${fv})(${', '.join(f'f[o{k} + {i} * f_1 + {j} * f_2]' for k in lanes)});
% endfor
% endfor
        }
% for j in range(3):
        const ${fv} h0${j} = g0${j}, s${j} = 0.5f * (g0${j} + g2${j}), d${j} = 0.5f * g1${j};
        const ${fv} h1${j} = s${j} + d${j}, h2${j} = s${j} - d${j}, h3${j} = g2${j};
% endfor
% for i in range(4):
        {
            const ${fv} s = 0.5f * (h${i}0 + h${i}2), d = 0.5f * h${i}1;
            __global float *qi = q + 4 * ${("start", "1", "2", "(3 - start)")[i]} * place;
            keep(qi + start * place, h${i}0);
            keep(qi + place, s + d);
            keep(qi + 2 * place, s - d);
            keep(qi + (3 - start) * place, h${i}2);
        }
% endfor
    }
}
