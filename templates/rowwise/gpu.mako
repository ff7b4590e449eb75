<%doc>
Computes along rows on a GPU: stages that each accumulate over a row, then a pass that stores (see
codegen/reduce/row_kinds.py).
A group takes `across` neighbouring rows with `along` lanes each; a row's lanes are neighbours where its elements are
contiguous (reader.row), else the lanes of neighbouring rows are.
held: a row is read once, `held` elements per lane, which stay in registers; operands that only the last pass needs are
read then.
Else every pass reads the row again, `at_once` elements before the first is added; what a kind keeps between passes
waits in the result.
Either way a lane issues all its loads before it waits for one, and computes all its results before it stores one.
The lanes' sums are joined in local memory, eight at a time and all sums of a stage at once; each lane then reads the
last few.
Sums are taken in blocks: of a lane's `at_once` elements, and of these sums.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%! from cltensor.codegen.reduce.states import LOWER %>\
<%
import re
T, M, group, I = dt.reg, mask, across * along, "int" if narrow else "long"
row, rank, memory = reader.row, reader.reduced_rank, memories[out.code]
us = range(held or at_once)
exp, raised = f'clt_exp_neg_{T}', f'clt_exp_raised_{T}'
lower = f'({T})({LOWER[T]})'
log = f'log_{T}' if T == 'float' else 'log'
inner = f'm{rank - 1}'
names = kind.names()
alone = ' && '.join(['y == 0'] * (along > 1) + ['live'] * (across > 1)) or '1'
first_run = len(kind.rows + kind.each + kind.pick) + bool(kind.pick)
beside = 1 if row else across
def spell(t): return t.format(S=T, M=M, exp=exp, raised=raised, lower=lower, log=log)
def least(name): return '-INFINITY' if name == 'top' else '0'
def join(name, a, b): return f'({a} > {b} ? {a} : {b})' if name == 'top' else f'{a} + {b}'
def own(stage): return [name for name, _ in stage.runs or stage.sums]
def address(): return 'q0 + zh' + ''.join(f' + y{d} * zr_{d}' for d in range(rank - 1)) + (' + at' if row and dense_out else ' + at * z_r')
def counts(one, two): return ' && '.join(filter(None, (one, two))) or '1'
alive = 'live' if across > 1 else ''
values = [k for k in read if held]
most = max([len(own(stage)) for stage in kind.stages], default=0)
%>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers(memories, 1)}\
% if kind.pick:
static inline void clt_note(__global long *status, const long value) {
  if (atomic_cmpxchg((volatile __global int *)status, 0, 1)) return;
  status[1] = value; status[2] = 0; status[3] = 0;
}
% endif
<%def name="lines(items, indent)">\
% for item in items:
${' ' * indent}${item}
% endfor
</%def>\
## Declare the position of a lane's element number `u` after j, and whether it exists; in rows of several dims a lane
## steps from each position to the next.
<%def name="place(u, ok)">\
        const int ok = ${ok};
        const ${I} element = j + ${u * along};
% if rank > 1:
        const ${I} line = ok ? row : 0, at = ok ? col : 0;
        col += step_col; row += step_row;
        if (col >= inner) { col -= inner; row++; }
% else:
        const ${I} at = ok ? element : 0;
% endif
</%def>\
<%def name="begin()">\
      ${I} j = y;
% if rank > 1:
      ${I} row = y / inner, col = y - row * inner;
% endif
</%def>\
<%def name="read_element(u, ok)">\
${place(u, ok)}\
${lines(reader.reduced_bases('line', I), 8)}\
${lines(reader.element('at', '1', compute, '0')[0], 8)}\
</%def>\
<%def name="defined()">\
% if kind.positions:
        const ${M} position = (${M})element;
% endif
% for name, value in kind.define:
        ${'' if kind.spot and name == kind.spot[0] else 'const '}${T} ${name} = ${spell(value)};
% endfor
% if kind.spot:
<% name, at, text = kind.spot %>\
        if ((${M})element == v${at}) ${name} = ${spell(text)};
% endif
</%def>\
## Accumulate a lane's elements for a stage; `whole`: all of them count.
<%def name="add(stage, whole)">\
<% last = kind.keep and stage is kind.stages[-1] %>\
% for u in us:
      {
<% ok = 'ok' if not (u in whole) else '' %>\
% if held:
% for k in values:
        const ${compute[k].reg} v${k} = e${u}_${k};
% endfor
% if ok or kind.positions or kind.spot:
        const ${I} element = y + ${u * along};
        const int ok = element < nred;
% endif
% else:
${read_element(u, '1' if not ok else f'j + {u * along} < nred')}\
% endif
${defined()}\
% if last and held:
        const ${T} kept = ${spell(kind.keep)};
        kept${u} = kept;
% elif last:
        const ${T} kept = ${spell(kind.keep)};
if (${counts(ok, alive)}) ${memory.scalar_store(address(), 'kept')};
% endif
% for name, value in stage.runs or stage.sums:
        part_${name} = ${join(name, f'(ok ? {spell(value)} : ({T})({least(name)}))' if ok else f'({spell(value)})', f'part_{name}')};
% endfor
      }
% endfor
</%def>\
## Join the results of a row's lanes; afterwards every lane has them.
<%def name="fold(found)">\
% if along > 1:
% for n, name in enumerate(found):
    l_${n}[lane] = ${name};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
<% left = along %>\
% while left > 4:
<%
times = 8 if left >= 16 else 4
left //= times
%>\
    if (y < ${left}) {
% for n, name in enumerate(found):
      for (int k = 1; k < ${times}; k++) { const ${T} other = l_${n}[lane + k * ${left * beside}]; ${name} = ${join(name, name, 'other')}; }
      l_${n}[lane] = ${name};
% endfor
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% endwhile
% for n, name in enumerate(found):
    ${name} = l_${n}[first];
    for (int k = 1; k < ${left}; k++) { const ${T} other = l_${n}[first + k * ${beside}]; ${name} = ${join(name, name, 'other')}; }
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
</%def>\
<%def name="walk(stage)">\
% for name in own(stage):
    ${name} = (${T})(${least(name)});
% endfor
% if stage.runs:
% for name, _ in stage.sums:
    ${name} = (${T})(0);
% endfor
    for (long run = 0, runs = nred / ${inner}; run < runs; run++) {
      ${' '.join(f'{name} = ({T})(0);' for name in own(stage))}
${lines(reader.reduced_bases('run' if rank > 1 else '0'), 6)}\
      for (long at = y; at < ${inner}; at += ${along}) {
${lines(reader.element('at', '1', compute, '0')[0], 8)}\
${defined()}\
% for name, value in stage.runs:
        ${name} += ${spell(value)};
% endfor
      }
${fold(own(stage))}\
      {
${lines(reader.element('0', '1', compute, '0')[0], 8)}\
% for name, value in stage.sums:
        ${name} += ${spell(value)};
% endfor
      }
      if (${alone}) {
% for name, _ in stage.runs:
        row${first_run + kind.runs.index(name)}[${f'o * runs + run' if rank > 1 else 'o'}] = ${name};
% endfor
      }
    }
% else:
    {
% if held:
      ${T} ${', '.join(f'part_{name} = {name}' for name in own(stage))};
${add(stage, range(held - 1))}\
% for name in own(stage):
      ${name} = part_${name};
% endfor
% else:
${begin()}\
% for whole in (us, range(1)):
% if whole is us:
      for (; j + ${(at_once - 1) * along} < nred; j += ${at_once * along}) {
% else:
      if (j < nred) {
% endif
      ${T} ${', '.join(f'part_{name} = {least(name)}' for name in own(stage))};
${add(stage, whole)}\
% for name in own(stage):
      ${name} = ${join(name, f'part_{name}', name)};
% endfor
      }
% endfor
% endif
    }
${fold(own(stage))}\
% endif
% for name, value in stage.after:
    ${name} = ${spell(value)};
% endfor
</%def>\
<%def name="stored(whole)">\
% for u in us:
      ${T} s${u}_;
% endfor
% if rank > 1:
      const ${I} row_was = row, col_was = col;
% endif
% for u in us:
      {
<% ok = '1' if u in whole else f'j + {u * along} < nred' %>\
% if held and kind.keep:
        const ${T} kept = kept${u};
% elif kind.keep:
${place(u, ok)}\
% if rank > 1:
${lines(reader.reduced_bases('line', I), 8)}\
% endif
        ${T} kept = (${T})(0);
        if (${counts('' if u in whole else 'ok', alive)}) kept = ${memory.scalar_load(address())};
% else:
${read_element(u, ok)}\
        {
% for k in values:
        const ${compute[k].reg} v${k} = e${u}_${k};
% endfor
${defined()}\
% endif
        s${u}_ = ${spell(kind.store)};
% if not kind.keep:
        }
% endif
      }
% endfor
% if rank > 1:
      row = row_was; col = col_was;
% endif
% for u in us:
      {
<% ok = '1' if u in whole else f'j + {u * along} < nred' %>\
${place(u, ok)}\
${lines(reader.reduced_bases('line', I) if rank > 1 else (), 8)}\
        if (${counts('' if u in whole else 'ok', alive)}) ${memory.scalar_store(address(), convert(f's{u}_', dt, out, 1))};
      }
% endfor
</%def>\
__attribute__((reqd_work_group_size(${group}, 1, 1)))
__kernel void ${fn}(${', '.join(parameters)}) {
% for line in reader.scalars():
  ${line}
% endfor
  const ${T} count = (${T})nred;
% if kind.pick:
  targets += origin;
  status += slot;
% endif
% if along > 1:
% for n in range(most):
  __local ${T} l_${n}[${group}];
% endfor
% endif
  const int lane = get_local_id(0);
% if across > 1 and row:
  const int x = lane / ${along}, y = lane % ${along}, first = lane - y;
% elif across > 1:
  const int x = lane % ${across}, y = lane / ${across}, first = x;
% else:
  const int y = lane, first = 0;
% endif
% if rank > 1:
  const ${I} inner = (${I})${inner}, step_row = ${along} / inner, step_col = ${along} - step_row * inner;
% endif
  const ${I} blocks = (${I})((nout + ${across - 1}) / ${across});
  for (${I} block = (${I})get_group_id(0); block < blocks; block += (${I})get_num_groups(0)) {
% if across > 1:
    const int live = block * ${across} + x < nout;
    const ${I} o = live ? block * ${across} + x : (${I})nout - 1;
% else:
    const ${I} o = block;
% endif
% if row:
${lines(reader.kept_bases('o', index=I), 4)}\
<% where, base, kept = 'o', '0', reader.kept_rank %>\
% else:
    const ${I} kinner = (${I})n${reader.kept_rank - 1}, krow = o / kinner, kcol = o - krow * kinner;
${lines(reader.kept_bases('krow', inner='kcol', index=I), 4)}\
<% where, base, kept = 'krow', 'kcol * z_k', reader.kept_rank - 1 %>\
% endif
% if kind.store:
    ${I} zq = ${where};
    long zh = ${base};
% for d in reversed(range(1, kept)):
    zh += zq % (${I})n${d} * z_${d}; zq /= (${I})n${d};
% endfor
% if kept:
    zh += zq * z_0;
% endif
% endif
% if names:
    ${T} ${', '.join(names)};
% endif
% if rank == 1:
${lines(reader.reduced_bases('0'), 4)}\
% endif
% if held:
% if values:
    ${' '.join(f'{compute[k].reg} ' + ', '.join(f'e{u}_{k}' for u in us) + ';' for k in values)}
    {
${begin()}\
% for u in us:
      {
${read_element(u, '1' if u < held - 1 else f'j + {u * along} < nred')}\
% for k in values:
        e${u}_${k} = v${k};
% endfor
      }
% endfor
    }
% endif
% if kind.keep:
    ${T} ${', '.join(f'kept{u}' for u in us)};
% endif
% endif
% for stage in kind.stages:
${walk(stage)}\
% endfor
% if kind.store:
    {
${begin()}\
% if held:
${stored(range(held - 1))}\
% else:
      for (; j + ${(at_once - 1) * along} < nred; j += ${at_once * along}) {
${stored(us)}\
      }
      if (j < nred) {
${stored(range(1))}\
      }
% endif
    }
% endif
    if (${alone}) {
% for k, name in enumerate(kind.rows):
      row${k}[o] = ${name};
% endfor
% if kind.pick:
<%
places = {name: name for name in names}
def plain(text): return text.format(count='count', **places)
%>\
      const long target = targets[o];
      ${T} ${', '.join(f'found{k} = 0' for k in range(len(kind.pick)))};
      int hit = -1;
      if (target != ignore) {
        if (target < 0 || target >= nred) clt_note(status, target);
        else {
          hit = (int)target;
${lines(reader.element('hit', '1', compute, '0')[0], 10)}\
% for k, text in enumerate(kind.pick):
          found${k} = ${plain(text)};
% endfor
        }
      }
% for k, text in enumerate(kind.each):
      row${k}[o] = ${plain(text)};
% endfor
% for k in range(len(kind.pick)):
      row${len(kind.each) + k}[o] = found${k};
% endfor
      row${len(kind.each) + len(kind.pick)}[o] = hit;
% endif
    }
  }
}
