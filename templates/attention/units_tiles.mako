## Shared by forward and backward attention on matrix units: copying 64 rows of an operand to a tile in local memory,
## and the two kinds of products. A warp owns 16 rows; lane l holds the results of rows `row` = 16 * warp + l / 4 and
## row + 8, and of every 8 columns the two from l % 4 * 2 on. Without `direct` plain loops replace the matrix units (for
## tests).
<%namespace name="tiles" file="tiles.mako"/>\
<%def name="begin(mine)">\
<% UNITS = W // 8 %>\
    __local uint4 both[${2 * 64 * UNITS}];
    const clt_place first_tile = CLT_PLACE(both), second_tile = CLT_UNIT(first_tile, ${64 * UNITS});
% if not direct:
    __local uint4 kept[${len(mine) * 64 * UNITS}];
    __local float beside[128];
    __local ushort table[64][64];
% for n, name in enumerate(mine):
    const clt_place mine_${name} = CLT_UNIT(CLT_PLACE(kept), ${n * 64 * UNITS});
% endfor
% endif
    const int lid = get_local_id(0), warp = lid / 32, lane = lid % 32, row = warp * 16 + lane / 4;
</%def>\
## Copy rows `first` to `first` + 63 of operand `name` to a tile, with zeros beyond the operand's ends. All units of 8
## numbers that a lane copies are in the same columns.
<%def name="fetch(name, tile, first, end, cols)">\
<%
UNITS = W // 8
STEP = 128 // UNITS
%>\
            {
                const int r = lid / ${UNITS}, c = lid % ${UNITS} * 8, wanted = clamp(${cols} - c, 0, 8), left = ${end} - (${first}) - r;
                const clt_place at = CLT_UNIT(${tile}, ${unit('r', 'c / 8')});
                __global const ushort *from = ${name}z + (${first} + r) * ${name}_r + c${'' if ways[name] == 'k' else f' * {name}_c'};
% for x in range(64 // STEP):
                {
                    const int n = ${x * STEP} < left ? wanted : 0;
% if ways[name] == "k":
                    CLT_COPY(CLT_UNIT(at, ${x * STEP * UNITS}), from, 2 * n);
% else:
                    const uint ${', '.join(f'e{e} = {e} < n ? from[{e} * {name}_c] : 0' for e in range(8))};
                    CLT_PUT(CLT_UNIT(at, ${x * STEP * UNITS}), ${', '.join(f'e{e} | e{e + 1} << 16' for e in range(0, 8, 2))});
% endif
                    from += ${STEP} * ${name}_r;
                }
% endfor
            }
</%def>\
## Load the group's own rows of one or two operands: to registers, or without `direct` to tiles of their own.
<%def name="own_rows(names, first, end, widths)">\
% for n, name in enumerate(names):
${fetch(name, ('first_tile', 'second_tile')[n] if direct else f'mine_{name}', first, end, widths[n])}\
% endfor
        CLT_COPIES_END();
        CLT_COPIES_WAIT(0);
        barrier(CLK_LOCAL_MEM_FENCE);
% if direct:
% for n, name in enumerate(names):
        uint ${', '.join(f'{name}{i}_{e}' for i in range(W // 16) for e in range(4))};
% for i in range(W // 16):
        clt_rows(${', '.join(f'{name}{i}_{e}' for e in range(4))}, CLT_UNIT(${('first_tile', 'second_tile')[n]}, ${unit('warp * 16 + lane % 16', f'{2 * i} + lane / 16')}));
% endfor
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
</%def>\
## Compute ${to}0_0 ...: the dot products of a warp's rows of `mine` with all rows of a tile.
<%def name="scores(to, mine, tile)">\
% for j in range(8):
            float ${', '.join(f'{to}{j}_{e} = 0' for e in range(4))};
% endfor
% if direct:
% for i in range(W // 16):
% for j in range(0, 8, 2):
            {
                uint y0, y1, y2, y3;
                clt_rows(y0, y1, y2, y3, CLT_UNIT(${tile}, ${unit(f'{8 * j} + lane / 16 * 8 + lane % 8', f'{2 * i} + lane / 8 % 2')}));
                clt_multiply_${code}(${to}${j}_, ${mine}${i}_, y0, y1);
                clt_multiply_${code}(${to}${j + 1}_, ${mine}${i}_, y2, y3);
            }
% endfor
% endfor
% else:
            for (int d = 0; d < ${W}; d++) {
                const float x0 = ${value(f"mine_{mine} + {number('row', 'd')}")}, x1 = ${value(f"mine_{mine} + {number('row + 8', 'd')}")};
% for j in range(8):
% for h in range(2):
                { const float y = ${value(f"{tile} + {number(f'{8 * j + h} + lane % 4 * 2', 'd')}")}; ${to}${j}_${h} += x0 * y; ${to}${j}_${2 + h} += x1 * y; }
% endfor
% endfor
            }
% endif
</%def>\
<%def name="zeros(to)">\
% for j in range(W // 8):
        float ${', '.join(f'{to}{j}_{e} = 0' for e in range(4))};
% endfor
</%def>\
## Add to ${to}0_0 ... the dot products of the rows ${by}0_0 ..., rounded to 16 bits, with the columns of a tile.
<%def name="gather(to, by, tile)">\
% if direct:
% for k in range(4):
            {
                const uint p0 = clt_pair_${code}(${by}${2 * k}_0, ${by}${2 * k}_1), p1 = clt_pair_${code}(${by}${2 * k}_2, ${by}${2 * k}_3);
                const uint p2 = clt_pair_${code}(${by}${2 * k + 1}_0, ${by}${2 * k + 1}_1), p3 = clt_pair_${code}(${by}${2 * k + 1}_2, ${by}${2 * k + 1}_3);
% for j in range(0, W // 8, 2):
                {
                    uint y0, y1, y2, y3;
                    clt_columns(y0, y1, y2, y3, CLT_UNIT(${tile}, ${unit(f'{16 * k} + lane / 8 % 2 * 8 + lane % 8', f'{j} + lane / 16')}));
                    clt_multiply_${code}(${to}${j}_, p, y0, y1);
                    clt_multiply_${code}(${to}${j + 1}_, p, y2, y3);
                }
% endfor
            }
% endfor
% else:
            barrier(CLK_LOCAL_MEM_FENCE);
% for j in range(8):
% for h in range(2):
            {
                const uint p = clt_pair_${code}(${by}${j}_${2 * h}, ${by}${j}_${2 * h + 1});
                table[row + ${8 * h}][${8 * j} + lane % 4 * 2] = (ushort)p;
                table[row + ${8 * h}][${8 * j + 1} + lane % 4 * 2] = (ushort)(p >> 16);
            }
% endfor
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = 0; k < 64; k++) {
                const float x0 = ${value('&table[row][k]')}, x1 = ${value('&table[row + 8][k]')};
% for j in range(W // 8):
% for h in range(2):
                { const float y = ${value(f"{tile} + {number('k', f'{8 * j + h} + lane % 4 * 2')}")}; ${to}${j}_${h} += x0 * y; ${to}${j}_${2 + h} += x1 * y; }
% endfor
% endfor
            }
% endif
</%def>\
## Reduce a number over the four lanes of a row, with the result in each of them.
<%def name="together(name, combine)">\
% if direct:
% for step in (1, 2):
            { const float o = clt_beside(${name}, ${step}); ${combine(name, 'o')} }
% endfor
% else:
            beside[lid] = ${name};
            barrier(CLK_LOCAL_MEM_FENCE);
% for step in (1, 2, 3):
            { const float o = beside[lid ^ ${step}]; ${combine(name, 'o')} }
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
% endif
</%def>\
## Multiply scores by `by`, apply the mask, and set scores that are not seen to -inf. qi, ki: functions giving the query
## and key of number e of block j.
<%def name="seen(to, qi, ki, edge)">\
% for j in range(8):
            ${' '.join(f'{to}{j}_{e} *= by;' for e in range(4))}
% endfor
${'' if mask else f'            if ({edge}) {{'}
% for j in range(8):
% for e in range(4):
            {
                const int qi = ${qi(j, e)}, ki = ${ki(j, e)};
                if (!(qi < L && ki < S && !(${tiles.hidden('qi', 'ki')}))) ${to}${j}_${e} = -INFINITY;
% if mask == 'bool':
                else if (!mask_z[qi * mask_r + ki * mask_c]) ${to}${j}_${e} = -INFINITY;
% elif mask:
                else ${to}${j}_${e} += ${mask_load('mask_z[qi * mask_r + ki * mask_c]')} * CLT_LOG2E;
% endif
            }
% endfor
% endfor
${'' if mask else '            }'}
</%def>\
<%def name="headings()">\
% for h in headers:
${h}
% endfor
${units}
% if not direct:
#define clt_power(x) exp((x) * 0.69314718055994531f)
% endif
#define CLT_LOG2E 1.44269504088896341f
#pragma OPENCL FP_CONTRACT ON
</%def>\
