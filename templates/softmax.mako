<%doc>
softmax and log_softmax along one dim, forward and backward: a pass for the largest value (forward), one for the sum, one that
stores. The rows stay in cache between passes.
row: vectors along the dim, a work-item per rows (CPU) or a work-group per row with a tree (GPU).
col: vectors across neighbouring rows; with one lane the GPU's lane per row.
</%doc>\
<%namespace name="lane_memory" file="lanes.mako"/>\
<%
L = lanes
T, S = dt.reg, f"{dt.reg}{L}" if L > 1 else dt.reg
M = mask if L == 1 else f"{mask}{L}"
row, group_row = reader.row, gpu and reader.row
ids = f"({M})({', '.join(map(str, range(L)))})"
memory = memories[out.code]
backward = kind.endswith('back')
kept = out is dt and kind == 'softmax'
wide = not gpu and not row
vector = f'w * {L}' if wide else '0'
exp = f'clt_exp_neg_{S}' if T == 'float' else 'exp'
%>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers(memories, L)}\
<%def name="lines(items, indent)">\
% for item in items:
${' ' * indent}${item}
% endfor
</%def>\
<%def name="element(stage, m)">\
<%
statements, _ = reader.element('j', m, (dt,) * len(reader.values), vector)
masked = row and m != str(L) and L > 1
at = "q0 + zb + j" if row and dense_out else "q0 + zb + j * z_r" + (f" + w * {L}" + ("" if dense_out else " * z_k") if wide else "")
def put(value):
    if L == 1: return memory.scalar_store(at, value)
    if dense_out: return f"store_{out.code}({at}, {value}, {m})"
    return f"scatter_{out.code}({at}, {'z_r' if row else 'z_k'}, {value}, {m})"
def got():
    if L == 1: return memory.scalar_load(at)
    return f"load_{out.code}({at}, {m})" if dense_out else f"gather_{out.code}({at}, {'z_r' if row else 'z_k'}, {m})"
def only(value, other): return f"(ok ? {value} : ({S})({other}))" if masked else value
def rounded(value): return convert(value, dt, out, L)
%>\
% if masked:
        const ${M} ok = ${ids} < (${M})(${m});
% endif
% if stage == 'max':
${lines(statements, 8)}\
        top = ${only('v0', '-INFINITY')} > top ? v0 : top;
% elif stage == 'sum':
${lines(statements, 8)}\
% if kind == 'softmax':
        const ${S} e = ${exp}(v0 - top);
% if kept:
        ${put('e')};
% endif
        total += ${only('e', '0')};
% elif kind == 'log_softmax':
        total += ${only(exp + '(v0 - top)', '0')};
% elif kind == 'softmax_back':
        total += ${only('v0 * v1', '0')};
% else:
        total += ${only('v1', '0')};
% endif
% else:
% if kept:
        const ${S} e = ${got()};
        ${put('e * total')};
% else:
${lines(statements, 8)}\
        ${put(rounded({'softmax': exp + '(v0 - top) * total', 'log_softmax': '((v0 - top) - total)', 'softmax_back': 'v0 * (v1 - total)', 'log_softmax_back': f'(v1 - {exp}(v0) * total)'}[kind]))};
% endif
% endif
</%def>\
<%def name="walk(stage)">\
% if group_row:
      for (long j = lid; j < m0; j += ${group}) {
${element(stage, '1')}\
      }
% elif row and L > 1:
      {
      long j = 0;
      for (; j + ${L} <= m0; j += ${L}) {
${element(stage, str(L))}\
      }
      if (j < m0) {
        const int m = (int)(m0 - j);
${element(stage, 'm')}\
      }
      }
% elif wide:
## A row of up to ${wide_vectors} vectors at a time; what they have found so far lies in memory (first-level cache).
      for (long j = 0; j < m0; j++) {
        for (int w = 0; w < vectors; w++) {
          const int m = (int)min((long)${L}, width - w * ${L});
% if not backward:
          ${S} top = tops[w];
% endif
          ${S} total = totals[w];
${element(stage, 'm' if L > 1 else '1')}\
% if stage == 'max':
          tops[w] = top;
% elif stage == 'sum':
          totals[w] = total;
% endif
        }
      }
% else:
      for (long j = 0; j < m0; j++) {
${element(stage, '1')}\
      }
% endif
</%def>\
## Fold lanes (row) or the work-group (GPU) into one value that every lane then holds.
<%def name="fold(name, join)">\
% if group_row:
      scratch[lid] = ${name};
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int span = ${group // 2}; span > 0; span >>= 1) {
        if (lid < span) { const ${T} a = scratch[lid], b = scratch[lid + span]; scratch[lid] = ${join}; }
        barrier(CLK_LOCAL_MEM_FENCE);
      }
      ${name} = scratch[0];
      barrier(CLK_LOCAL_MEM_FENCE);
% elif row and L > 1:
      {
<% width, value = L, name %>\
% while width > 1:
<%
half = width // 2
H = f"{T}{half}" if half > 1 else T
%>\
        ${H} f${half};
        { const ${H} a = ${value}.lo, b = ${value}.hi; f${half} = ${join}; }
<% width, value = half, f"f{half}" %>\
% endwhile
        ${name} = (${S})(${value});
      }
% endif
</%def>\
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% elif group_row:
__attribute__((reqd_work_group_size(${group}, 1, 1)))
% endif
__kernel void ${fn}(${', '.join(parameters)}) {
% for line in reader.scalars():
  ${line}
% endfor
% if group_row:
  __local ${T} scratch[${group}];
  const int lid = get_local_id(0);
  for (long o = get_group_id(0); o < nout; o += get_num_groups(0)) {
% elif gpu:
  for (long o = get_global_id(0); o < nout; o += get_global_size(0)) {
% else:
  const long lo = get_global_id(0) * chunk, hi = min(lo + chunk, nout);
% if wide:
  ${S} tops[${wide_vectors}], totals[${wide_vectors}];
% endif
  for (long o = lo; o < hi;) {
% endif
% if row:
${lines(reader.kept_bases('o'), 4)}\
    long zq = o, zb = 0;
% for d in reversed(range(reader.kept_rank)):
    zb += (zq % n${d}) * z_${d}; zq /= n${d};
% endfor
% else:
    const long kinner = n${reader.kept_rank - 1}, krow = o / kinner, kcol = o - krow * kinner;
% if wide:
    const long width = min(min(kinner - kcol, hi - o), (long)${wide_vectors * L});
    const int vectors = (int)((width + ${L - 1}) / ${L});
% endif
${lines(reader.kept_bases('krow', inner='kcol'), 4)}\
    long zq = krow, zb = kcol * z_k;
% for d in reversed(range(reader.kept_rank - 1)):
    zb += (zq % n${d}) * z_${d}; zq /= n${d};
% endfor
% endif
${lines(reader.reduced_bases('0'), 4)}\
% if wide:
    for (int w = 0; w < vectors; w++) {
      tops[w] = (${S})(-INFINITY); totals[w] = (${S})(0);
    }
% endif
% if not backward:
    ${S} top = (${S})(-INFINITY);
${walk('max')}\
${fold('top', 'a > b ? a : b')}\
% endif
    ${S} total = (${S})(0);
${walk('sum')}\
${fold('total', 'a + b')}\
<% done = {'softmax': f'({S})(1) / ', 'log_softmax': 'log'}.get(kind) %>\
% if done and wide:
    for (int w = 0; w < vectors; w++) totals[w] = ${done}(totals[w]);
% elif done:
    total = ${done}(total);
% endif
${walk('store')}\
% if not gpu:
    o += ${'width' if wide else '1'};
% endif
  }
}
