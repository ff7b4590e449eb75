<%doc>
Attention of 16-bit floats by a GPU's matrix units (cl_kernels/mma.cl). A work-group of four warps owns 64 queries, a
warp 16 of them in registers, and walks over tiles of 64 keys and their values. The next tile's keys are copied while
values are multiplied, and values while keys are. Scores stay in registers: those of a row are in four neighbouring
lanes, which exchange its maximum; probabilities are rounded to the operands' type, and are already in the lanes where
matrix units take operands. Exponentials are computed as powers of two. W is the padded width of a head, 32, 64 or 128;
`ways`: "k" where an operand's rows are contiguous and aligned, else "any".
</%doc>\
<%namespace name="tiles" file="tiles.mako"/>\
<%namespace name="u" file="units_tiles.mako"/>\
<%
def largest(a, b):
    return f"{a} = {b} > {a} ? {b} : {a};"
def added(a, b):
    return f"{a} += {b};"
%>\
${u.headings()}\
__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void ${fn}(${', '.join(parameters)},
    __global ${to} *out, __global float *sums, const long out_0, const long out_1, const long out_2, const long out_r,
    const int n1, const int n2, const int tasks, const int L, const int S, const int E, const int EV, const int causal, const int pairs, const float scale)
{
${u.begin('q')}\
    const int blocks = (${'most_queries' if ragged else 'L'} + 63) / 64, heads = tasks / blocks;
    const float by = scale * CLT_LOG2E;
    for (int task = get_group_id(0); task < tasks; task += get_num_groups(0)) {
        ## In causal attention the last rows take longest: those of BAND heads begin first, and share a compute unit
        ## with shorter ones later.
        const int band = task / (${BAND} * blocks) * ${BAND}, abreast = min(${BAND}, heads - band), inside = task - band * blocks;
        const long z = band + inside % abreast, z2 = z % n2, z1 = z / n2 % n1, z0 = z / n2 / n1;
        const int own = (blocks - 1 - inside / abreast) * 64;
${tiles.sequence()}\
        __global const ushort *qz = ${tiles.batch('q')}, *kz = ${tiles.batch('k')}, *vz = ${tiles.batch('v')};
% if mask:
        __global const ${mask_type} *mask_z = ${tiles.batch('mask')};
% endif
        const int first = ${tiles.first_key('own', 64)}, last = ${tiles.last_key('own', 64)};
${u.own_rows('q', 'own', 'L', 'E')}\
${u.zeros('o')}\
        float top0 = -INFINITY, top1 = -INFINITY, total0 = 0, total1 = 0;
${u.fetch('k', 'first_tile', 'first', 'S', 'E')}\
        CLT_COPIES_END();
        for (int k0 = first; k0 < last; k0 += 64) {
            CLT_COPIES_WAIT(0);
            barrier(CLK_LOCAL_MEM_FENCE);
${u.fetch('v', 'second_tile', 'k0', 'S', 'EV')}\
            CLT_COPIES_END();
${u.scores('s', 'q', 'first_tile')}\
            CLT_COPIES_WAIT(0);
            barrier(CLK_LOCAL_MEM_FENCE);
            if (k0 + 64 < last)
${u.fetch('k', 'first_tile', 'k0 + 64', 'S', 'E')}\
            CLT_COPIES_END();
${u.seen('s', lambda j, e: f"own + row + {e // 2 * 8}", lambda j, e: f"k0 + {8 * j + e % 2} + lane % 4 * 2", "true" if ragged else "k0 + 64 > S || (causal && k0 + 64 > own)")}\
            float most0 = top0, most1 = top1;
% for j in range(8):
% for e in range(4):
            most${e // 2} = s${j}_${e} > most${e // 2} ? s${j}_${e} : most${e // 2};
% endfor
% endfor
% for h in range(2):
${u.together(f'most{h}', largest)}\
% endfor
            const float base0 = most0 == -INFINITY ? 0 : most0, base1 = most1 == -INFINITY ? 0 : most1;
            const float less0 = clt_power(top0 - base0), less1 = clt_power(top1 - base1);
            top0 = most0;
            top1 = most1;
            total0 *= less0;
            total1 *= less1;
% for j in range(8):
% for e in range(4):
            s${j}_${e} = clt_power(s${j}_${e} - base${e // 2});
            total${e // 2} += s${j}_${e};
% endfor
% endfor
% for j in range(W // 8):
            ${' '.join(f'o{j}_{e} *= less{e // 2};' for e in range(4))}
% endfor
${u.gather('o', 's', 'second_tile')}\
        }
% for h in range(2):
${u.together(f'total{h}', added)}\
        if (own + row + ${8 * h} < L) {
            const long r = own + row + ${8 * h};
            const float share = total${h} == 0 ? 0 : 1 / total${h};
            if (lane % 4 == 0) sums[${tiles.sums_from()} + r] = total${h} == 0 ? INFINITY : top${h} * 0.69314718055994531f + log(total${h});
            __global ${to} *o = out + ${tiles.element('out')} + r * out_r;
% for j in range(W // 8):
            {
                const int c = ${8 * j} + lane % 4 * 2;
                const float y0 = o${j}_${2 * h} * share, y1 = o${j}_${2 * h + 1} * share;
                if (pairs && c < EV) {
                    *(__global uint *)(o + c) = clt_pair_${code}(y0, y1);
                } else {
                    if (c < EV) ${store('y0', 'o', 'c')};
                    if (c + 1 < EV) ${store('y1', 'o', 'c + 1')};
                }
            }
% endfor
        }
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
