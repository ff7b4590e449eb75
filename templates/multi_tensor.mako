<%doc>
One chain of formulas over a list of tensors laid end to end.
plan: where each slot starts in that count, ${slots + 1} numbers, then the offset of every operand of every slot.
CPU: a work-item runs over one chunk of the count, ${lanes} lanes at a time. GPU: a work-group does, a work-item being a lane.
A chunk meets few slots, so each walks over all of them; the pointers of a slot are picked by a switch.
</%doc>\
<%namespace name="lane_memory" file="lanes.mako"/>\
<%
L = lanes
def const(k): return '' if k < written else 'const '
def pointers(t): return ''.join(f', __global {const(k)}{dt.cl} *p{t}_{k}' for k, (_, dt) in enumerate(operands))
def load(dt, k): return memories[dt.code].scalar_load(f'o{k} + i') if L == 1 else f'load_{dt.code}(o{k} + i, m)'
def store(code, k, value): return memories[code].scalar_store(f'o{k} + i', value) if L == 1 else f'store_{code}(o{k} + i, {value}, m)'
%>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers(memories, L, needed)}\
% if not by_lane:
__attribute__((reqd_work_group_size(1, 1, 1)))
% endif
__kernel void ${name}(const long chunk, __global const long *plan\
% for number in numbers:
, const ${scalar} ${number}_\
% endfor
% for one, dt in shared:
, __global const ${dt.cl} *${one}_at, const long ${one}_offset\
% endfor
% if flag:
, __global float *flag\
% endif
% for t in range(slots):
${pointers(t)}\
% endfor
) {
% for number in numbers:
  const ${register} n_${number} = (${register})(${number}_);
% endfor
% for one, dt in shared:
  const ${register} n_${one} = (${register})((${scalar})(${shared_memories[dt.code].scalar_load(f'{one}_at + {one}_offset')}));
% endfor
  const long lo = get_group_id(0) * chunk, hi = min(lo + chunk, plan[${slots}]);
% if flag:
  int bad = 0;
% endif
  for (int t = 0; t < ${slots}; t++) {
    const long start = plan[t], first = max(lo, start) - start, last = min(hi, plan[t + 1]) - start;
    if (first >= last) continue;
% for k, (_, dt) in enumerate(operands):
    __global ${const(k)}${dt.cl} *o${k};
% endfor
    switch (t) {
% for t in range(slots):
      ${'default' if t == slots - 1 else f'case {t}'}: ${' '.join(f'o{k} = p{t}_{k};' for k in range(len(operands)))} break;
% endfor
    }
% for k in range(len(operands)):
    o${k} += plan[${slots + 1} + t * ${len(operands)} + ${k}];
% endfor
% if by_lane:
    for (long i = first + get_local_id(0); i < last; i += get_local_size(0)) {
% else:
    for (long i = first; i < last; i += ${L}) {
% if L > 1:
      const int m = (int)min((long)${L}, last - i);
% endif
% endif
% for k, (operand, dt) in enumerate(operands):
      const ${memories[dt.code].reg} ${operand}_raw = ${load(dt, k)};
% endfor
% for line in lines:
      ${line}
% endfor
% for k, code, value in stores:
      ${store(code, k, value)};
% endfor
    }
  }
% if flag:
  if (bad) *flag = 1.0f;
% endif
}
