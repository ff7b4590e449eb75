<%doc>
Gradients of attention of 16-bit floats by a GPU's matrix units. A work-group owns 64 rows (queries; keys for
`by_keys`), a warp 16 of them in registers, with the output gradients (queries) or values (keys) that belong to them,
and walks over tiles of 64 rows of the other side. Scores and their gradients are recomputed, as in gpu.mako; both are
rounded to the operands' type before the products that follow.
kind: by_query (gradient of q), by_keys (gradients of k and v).
</%doc>\
<%namespace name="tiles" file="tiles.mako"/>\
<%namespace name="u" file="units_tiles.mako"/>\
<%
keys = kind == "by_keys"
mine = "kv" if keys else "qg"
other = "qg" if keys else "kv"
results = [("dk", "by_k", "E", "scale"), ("dv", "by_v", "EV", "1")] if keys else [("dq", "found", "E", "scale")]
def own_row(j, e):
    return f"own + row + {e // 2 * 8}"
def other_row(j, e):
    return f"t0 + {8 * j + e % 2} + lane % 4 * 2"
%>\
${u.headings()}\
__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void ${fn}(${', '.join(parameters)}, ${', '.join(f'__global float *{name}' for name, _, _, _ in results)},
    ${', '.join(f'const long {name}_{s}' for name, _, _, _ in results for s in '012r')},
    const int n1, const int n2, const int tasks, const int L, const int S, const int E, const int EV, const int causal, const float scale)
{
${u.begin(mine)}\
% if keys:
    __local float near[2][64];
% endif
% if not ragged:
    const int own_rows = ${'S' if keys else 'L'}, other_rows = ${'L' if keys else 'S'};
% endif
    const int blocks = (${('most_keys' if keys else 'most_queries') if ragged else 'own_rows'} + 63) / 64;
    const float by = scale * CLT_LOG2E;
    for (int task = get_group_id(0); task < tasks; task += get_num_groups(0)) {
        const long z = task / blocks, z2 = z % n2, z1 = z / n2 % n1, z0 = z / n2 / n1;
        const int own = ${'task % blocks' if keys else '(blocks - 1 - task % blocks)'} * 64;
${tiles.sequence()}\
% if ragged:
        const int own_rows = ${'S' if keys else 'L'}, other_rows = ${'L' if keys else 'S'};
% endif
        __global const ushort *qz = ${tiles.batch('q')}, *kz = ${tiles.batch('k')}, *vz = ${tiles.batch('v')}, *gz = ${tiles.batch('g')};
        __global const float *lse_z = ${tiles.batch('lse')}, *delta_z = ${tiles.batch('delta')};
% if mask:
        __global const ${mask_type} *mask_z = ${tiles.batch('mask')};
% endif
${u.own_rows(mine, 'own', 'own_rows', ('E', 'EV'))}\
% for _, to, _, _ in results:
${u.zeros(to)}\
% endfor
% if not keys:
% for h in range(2):
        const float sum${h} = own + row + ${8 * h} < L ? lse_z[(own + row + ${8 * h}) * lse_r] * CLT_LOG2E : INFINITY;
        const float delta${h} = own + row + ${8 * h} < L ? delta_z[(own + row + ${8 * h}) * delta_r] : 0;
% endfor
% endif
        const int last = ${tiles.last_query('own', 64) if keys else tiles.last_key('own', 64)};
        for (int t0 = ${tiles.first_query('own', 64) if keys else tiles.first_key('own', 64)}; t0 < last; t0 += 64) {
${u.fetch(other[0], 'first_tile', 't0', 'other_rows', 'E')}\
${u.fetch(other[1], 'second_tile', 't0', 'other_rows', 'EV')}\
            CLT_COPIES_END();
% if keys:
            if (lid < 64) {
                near[0][lid] = t0 + lid < L ? lse_z[(t0 + lid) * lse_r] * CLT_LOG2E : INFINITY;
                near[1][lid] = t0 + lid < L ? delta_z[(t0 + lid) * delta_r] : 0;
            }
% endif
            CLT_COPIES_WAIT(0);
            barrier(CLK_LOCAL_MEM_FENCE);
${u.scores('s', mine[0], 'first_tile')}\
${u.scores('d', mine[1], 'second_tile')}\
${u.seen('s', other_row if keys else own_row, own_row if keys else other_row, "true" if ragged else "t0 + 64 > other_rows || own + 64 > own_rows || (causal && " + ("own + 64 > t0" if keys else "t0 + 64 > own") + ")")}\
% for j in range(8):
% for e in range(4):
            {
% if keys:
                const int at = ${8 * j + e % 2} + lane % 4 * 2;
                s${j}_${e} = clt_power(s${j}_${e} - near[0][at]);
                d${j}_${e} = s${j}_${e} * (d${j}_${e} - near[1][at]);
% else:
                d${j}_${e} = clt_power(s${j}_${e} - sum${e // 2}) * (d${j}_${e} - delta${e // 2});
% endif
            }
% endfor
% endfor
% if keys:
${u.gather('by_v', 's', 'second_tile')}\
${u.gather('by_k', 'd', 'first_tile')}\
% else:
${u.gather('found', 'd', 'first_tile')}\
% endif
            barrier(CLK_LOCAL_MEM_FENCE);
        }
% for name, of, cols, times in results:
% for h in range(2):
        if (own + row + ${8 * h} < own_rows) {
            __global float *o = ${name} + ${tiles.element(name)} + (own + row + ${8 * h}) * ${name}_r;
% for j in range(W // 8):
% for e in range(2):
            if (${8 * j + e} + lane % 4 * 2 < ${cols}) o[${8 * j + e} + lane % 4 * 2] = ${of}${j}_${2 * h + e} * ${times};
% endfor
% endfor
        }
% endfor
% endfor
    }
}
