<%doc>
One reduction of a fused expression on a GPU: nout outputs, nred elements each (see codegen/reduce/gpu.py).
A group takes `across` neighbouring outputs with `along` lanes each; an output's lanes are neighbours where its elements
are contiguous (reader.row).
Their states are merged in local memory, four at a time. A lane reads `at_once` elements before it adds the first,
without changing the order of additions: a lane that waits for each load would leave most of the memory's bandwidth
unused. The last, incomplete step does the same under a mask.
`at_once` is small for costly chains, as the text has the chain that many times.
Without a reader: the parts of outputs, stored part-major, become outputs. With the state `joining` the last group to
finish does that itself: each group counts itself once its stores are visible to all (codegen/reduce/arrivals.py), and
parts are merged in their order whichever group is last.
</%doc>\
<%! from cltensor.codegen.memory import Memory %>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="r" file="parts.mako"/>\
<%
group, I = across * along, "int" if narrow else "long"
row, rank = reader is None or reader.row, reader.reduced_rank if reader else 1
beside = 1 if reader and reader.row else across  # stride between lanes of one output
%>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers(memories, 1)}\
<%def name="place(at)">\
% if rank > 1:
        const ${I} line = ok ? row : row_of_part, at = ok ? col : col_of_part;
        col += step_col; row += step_row;
        if (col >= inner) { col -= inner; row++; }
${r.lines(reader.reduced_bases('line', I), 8)}\
% else:
        const ${I} at = ok ? ${at} : rlo;
% endif
</%def>\
<%def name="element(u, whole)">\
      {
        const int ok = ${'1' if whole else f'r + {u * along} < rhi'};
${place(f'r + {u * along}')}\
<% statements, values = reader.element('at', '1', compute, '0') %>\
${r.lines(statements, 8)}\
% if state.needs_index:
        const ${state.index} position = (${state.index})(r + ${u * along} - rlo);
% endif
${r.lines(state.update('s0_', values, 1, '' if whole else 'ok', 'position'), 8)}\
      }
</%def>\
## Merge the states of an output's lanes into that of its first lane.
<%def name="fold(of, room)">\
<% left = along %>\
% if along > 1:
% for field, _, _ in of.fields:
    ${room}${field}[lane] = s0_${field};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
% while left > 1:
<%
times = 4 if left % 4 == 0 else 2
left //= times
%>\
    if (y < ${left}) {
      for (int k = 1; k < ${times}; k++) {
% for field, kind, _ in of.fields:
        const ${kind} s1_${field} = ${room}${field}[lane + k * ${left * beside}];
% endfor
${r.lines(of.merge('s0_', 's0_', 's1_', 1), 8)}\
      }
% if left > 1:
% for field, _, _ in of.fields:
      ${room}${field}[lane] = s0_${field};
% endfor
% endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% endwhile
</%def>\
__attribute__((reqd_work_group_size(${group}, 1, 1)))
__kernel void ${fn}(${', '.join(parameters)}) {
% for line in reader.scalars() if reader else ():
  ${line}
% endfor
% if along > 1:
% for field, kind, _ in state.fields:
  __local ${kind} l_${field}[${group}];
% endfor
% endif
% if joining:
  __local int l_last;
% if along > 1:
% for field, kind, _ in joining.fields:
  __local ${kind} j_${field}[${group}];
% endfor
% endif
% endif
  const int lane = get_local_id(0);
% if beside == 1 and across > 1:
  const int x = lane / ${along}, y = lane % ${along};
% elif across > 1:
  const int x = lane % ${across}, y = lane / ${across};
% else:
  const int y = lane;
% endif
  const ${I} blocks = (${I})((nout + ${across - 1}) / ${across});
% if reader:
% if rank > 1:
  const ${I} inner = (${I})m${rank - 1}, step_row = ${along} / inner, step_col = ${along} - step_row * inner;
% endif
% if not row and reader.kept_rank > 1:
  const ${I} kinner = (${I})n${reader.kept_rank - 1};
% endif
  for (${I} g = (${I})get_group_id(0); g < blocks * (${I})parts; g += (${I})get_num_groups(0)) {
% if not partial:
    const ${I} part = 0, block = g;
% elif row:
    const ${I} block = g / (${I})parts, part = g - block * (${I})parts;
% else:
    const ${I} part = g / blocks, block = g - part * blocks;
% endif
    const ${I} rlo = part * (${I})pchunk, rhi = nred - rlo < pchunk ? (${I})nred : rlo + (${I})pchunk;
% else:
  for (${I} block = (${I})get_group_id(0); block < blocks; block += (${I})get_num_groups(0)) {
% endif
% if across > 1:
    const int live = block * ${across} + x < nout;
    const ${I} o = live ? block * ${across} + x : (${I})nout - 1;
% else:
    const ${I} o = block;
% endif
% if reader:
% if row:
${r.lines(reader.kept_bases('o', index=I), 4)}\
% elif reader.kept_rank > 1:
    const ${I} krow = o / kinner, kcol = o - krow * kinner;
${r.lines(reader.kept_bases('krow', inner='kcol', index=I), 4)}\
% else:
${r.lines(reader.kept_bases('0', inner='o', index=I), 4)}\
% endif
${r.lines(state.declare('s0_', 1), 4)}\
    ${I} r = rlo + y;
% if rank > 1:
    const ${I} row_of_part = rlo / inner, col_of_part = rlo - row_of_part * inner;
    ${I} row = r / inner, col = r - row * inner;
% else:
${r.lines(reader.reduced_bases('0'), 4)}\
% endif
% if state.prime:
    if (r < rhi) {
% if rank > 1:
${r.lines(reader.reduced_bases('row', I), 6)}\
% endif
${r.lines(reader.element('col' if rank > 1 else 'r', '1', compute, '0')[0], 6)}\
${r.lines(state.first('s0_', ['v0']), 6)}\
    }
% endif
% if state.block:
    int steps = 0;
% endif
    for (; r${f' + {(at_once - 1) * along}' if at_once > 1 else ''} < rhi; r += ${at_once * along}) {
% for u in range(at_once):
${element(u, True)}\
% endfor
% if state.block:
      steps += ${at_once};
      if (steps >= ${block}) {
${r.lines(state.flush('s0_', 1), 8)}\
        steps = 0;
      }
% endif
    }
% if at_once > 1:
    if (r < rhi) {
% for u in range(at_once):
${element(u, u == 0)}\
% endfor
    }
% endif
% if state.block:
${r.lines(state.flush('s0_', 1), 4)}\
% endif
% else:
% for field, kind, first in state.fields:
    ${kind} s0_${field} = (${kind})(${first});
% endfor
    ${I} r = y;
% for many in (4, 1):
    for (; r${f' + {(many - 1) * along}' if many > 1 else ''} < parts; r += ${many * along}) {
% for u in range(many):
      {
% for k, (field, kind, _) in enumerate(state.fields):
        const ${kind} s1_${field} = p${k}[(r + ${u * along}) * nout + o];
% endfor
${r.lines(state.merge('s0_', 's0_', 's1_', 1), 8)}\
      }
% endfor
    }
% endfor
% endif
${fold(state, 'l_')}\
<% alone = ' && '.join(['y == 0'] * (along > 1) + ['live'] * (across > 1)) %>\
% if alone:
    if (${alone}) {
% else:
    {
% endif
${r.store('s0_', 1, 'o', '1', 'rlo' if reader else '0')}\
% if joining:
      SHOW();
% endif
    }
  }
% if joining:
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (lane == 0) l_last = atomic_inc(arrived) == (int)get_num_groups(0) - 1;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!l_last) return;
  SHOW();
  if (lane == 0) *arrived = 0;
  for (${I} block = 0; block < blocks; block++) {
% if across > 1:
    const int live = block * ${across} + x < nout;
    const ${I} o = live ? block * ${across} + x : (${I})nout - 1;
% else:
    const ${I} o = block;
% endif
% for field, kind, first in joining.fields:
    ${kind} s0_${field} = (${kind})(${first});
% endfor
    ${I} r = y;
% for many in (4, 1):
    for (; r${f' + {(many - 1) * along}' if many > 1 else ''} < parts; r += ${many * along}) {
% for u in range(many):
% for k, (field, kind, _) in enumerate(joining.fields):
      const ${kind} s${u + 1}_${field} = *(volatile __global ${kind} *)(q${k} + (r + ${u * along}) * nout + o);
% endfor
% endfor
% for u in range(many):
      {
${r.lines(joining.merge('s0_', 's0_', f's{u + 1}_', 1), 8)}\
      }
% endfor
    }
% endfor
${fold(joining, 'j_')}\
% if alone:
    if (${alone}) {
% else:
    {
% endif
<% values = joining.results('s0_', 1, '0') %>\
% for k, (name, dt) in enumerate(outputs):
      ${Memory(dt, 1).scalar_store(f'w{k} + o', convert(*values[name], dt, 1))};
% endfor
    }
  }
% endif
}
