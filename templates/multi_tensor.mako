<%doc>
One chain of formulas over a list of tensors ("slots"), whose elements are numbered consecutively.
plan: the number of each slot's first element, ${slots + 1} numbers, then the offset of every operand of every slot.
CPU: a work-item runs over one chunk of the elements, ${lanes} lanes at a time. GPU: a work-group does, a work-item
being a lane that reads ${at_once} elements before it writes the first. On a CPU each operand is prefetched ${ahead}
bytes ahead: the hardware prefetcher follows fewer streams, and not past a page. A chunk overlaps few slots, and a
work-item loops over all of these; a switch selects a slot's pointers and its own numbers.
rows: one slot, of which only the rows that an index names are computed, each once; operands that are only read have one
row per index instead. A work-item has a range of the indices, on a GPU an element; the written rows of the index
${rows or 0} places later are prefetched.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%
L = lanes
def const(k): return '' if k < written else 'const '
def pointers(t): return ''.join(f', __global {const(k)}{dt.cl} *p{t}_{k}' for k, (_, dt) in enumerate(operands))
def load(dt, k, some):
    mem, at = memories[dt.code], f'o{k} + i'
    return mem.scalar_load(at) if L == 1 else f'load_{dt.code}({at}, m)' if some else mem.vector_load(at)
def store(code, k, value, some):
    mem, at = memories[code], f'o{k} + i'
    return mem.scalar_store(at, value) if L == 1 else f'store_{code}({at}, {value}, m)' if some else mem.vector_store(at, value)
%>\
## Run the chain on the ${L} elements from i on, or with `some` on the first m of them.
<%def name="step(some)">\
% for k, (operand, dt) in enumerate(operands):
<% if operand not in loaded: continue %>\
      const ${memories[dt.code].reg} ${operand}_raw = ${load(dt, k, some)};
% endfor
% for line in lines:
      ${line}
% endfor
% for k, code, value in stores:
      ${store(code, k, value, some)};
% endfor
</%def>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers(memories, L, needed)}\
% if not gpu:
__attribute__((reqd_work_group_size(1, 1, 1)))
% elif not rows:
__attribute__((reqd_work_group_size(${group}, 1, 1)))
% endif
__kernel void ${name}(\
% if rows:
const long n, const long width, const long size, __global const long *restrict keys, const long ok, __global long *restrict status, const long slot\
% else:
const long chunk, __global const long *plan\
% endif
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
% for t in range(slots):
% for number in each:
, const ${scalar} p${t}_${number}\
% endfor
% endfor
% if rows:
% for k in range(len(operands)):
, const long at${k}\
% endfor
% endif
) {
% for number in numbers:
  const ${register} n_${number} = (${register})(${number}_);
% endfor
% for one, dt in shared:
  const ${register} n_${one} = (${register})((${scalar})(${shared_memories[dt.code].scalar_load(f'{one}_at + {one}_offset')}));
% endfor
% if rows:
<%
def row_of(k, key, number): return f'p0_{k} + at{k} + {key if k < written else number} * width'
%>\
  keys += ok;
% if gpu:
  for (long q = get_global_id(0); q < n * width; q += get_global_size(0)) {
    const long r = q / width, i = q - r * width, key = keys[r];
% else:
  const long part = get_global_id(0), parts = get_global_size(0), first = n * part / parts, last = n * (part + 1) / parts;
  const long asked = width < ${1024 // operands[0][1].itemsize} ? width : ${1024 // operands[0][1].itemsize};
  status += slot + 4 * part;
  for (long r = first; r < last; r++) {
    const long key = keys[r];
    if (r + ${rows} < last) {
      const long later = keys[r + ${rows}];
      for (long j = 0; j < asked; j += ${64 // operands[0][1].itemsize}) {
% for k in range(written):
        CLT_PREFETCH_TO_WRITE(${row_of(k, 'later', '')} + j);
% endfor
      }
    }
% endif
    if (key < 0 || key >= size) {
% if gpu:
      if (atomic_cmpxchg((volatile __global int *)status, 0, 1) == 0) { status[1] = key; status[2] = 0; status[3] = r; }
% else:
      if (!status[0]) { status[0] = 1; status[1] = key; status[2] = 0; status[3] = r; }
% endif
      continue;
    }
% for k, (_, dt) in enumerate(operands):
    __global ${const(k)}${dt.cl} *o${k} = ${row_of(k, 'key', 'r')};
% endfor
% if gpu:
${step(False)}\
% elif L == 1:
    for (long i = 0; i < width; i++) {
${step(False)}\
    }
% else:
    long i = 0;
    for (; i + ${L} <= width; i += ${L}) {
${step(False)}\
    }
    if (i < width) {
      const int m = (int)(width - i);
${step(True)}\
    }
% endif
  }
}
<% return STOP_RENDERING %>\
% endif
  const long lo = get_group_id(0) * chunk, hi = min(lo + chunk, plan[${slots}]);
% if flag:
  int bad = 0;
% endif
% if gpu:
## Binary search for the group's first slot: the last one that begins at or before element `lo`.
  int t = 0;
% for half in halves:
  if (t + ${half} < ${slots} && plan[t + ${half}] <= lo) t += ${half};
% endfor
  for (; t < ${slots} && plan[t] < hi; t++) {
% else:
  for (int t = 0; t < ${slots}; t++) {
% endif
    const long start = plan[t], first = max(lo, start) - start, last = min(hi, plan[t + 1]) - start;
    if (first >= last) continue;
% for k, (_, dt) in enumerate(operands):
    __global ${const(k)}${dt.cl} *o${k};
% endfor
% for number in each:
    ${scalar} ${number}_;
% endfor
    switch (t) {
% for t in range(slots):
      ${'default' if t == slots - 1 else f'case {t}'}: ${' '.join(f'o{k} = p{t}_{k};' for k in range(len(operands)))} ${' '.join(f'{n}_ = p{t}_{n};' for n in each)} break;
% endfor
    }
% for k in range(len(operands)):
    o${k} += plan[${slots + 1} + t * ${len(operands)} + ${k}];
% endfor
% for number in each:
    const ${register} n_${number} = (${register})(${number}_);
% endfor
% if gpu:
    const int left = (int)(last - first);
% for k in range(len(operands)):
    o${k} += first;
% endfor
    for (int at = get_local_id(0); at < left; at += ${at_once * group}) {
% for u in range(at_once):
% for k, (operand, dt) in enumerate(operands):
<% if operand not in loaded: continue %>\
      const ${memories[dt.code].reg} ${operand}_raw_${u} = ${memories[dt.code].scalar_load(f'o{k} + min(at + {u * group}, left - 1)')};
% endfor
% endfor
% for u in range(at_once):
      if (at + ${u * group} < left) {
        const int i = at + ${u * group};
% for k, (operand, dt) in enumerate(operands):
<% if operand not in loaded: continue %>\
        const ${memories[dt.code].reg} ${operand}_raw = ${operand}_raw_${u};
% endfor
% for line in lines:
        ${line}
% endfor
% for k, code, value in stores:
        ${store(code, k, value, False)};
% endfor
      }
% endfor
    }
% elif L == 1:
    for (long i = first; i < last; i++) {
${step(False)}\
    }
% else:
    long i = first;
    for (; i + ${L} <= last; i += ${L}) {
% for k, (_, dt) in enumerate(operands):
      CLT_PREFETCH${'_TO_WRITE' if k < written else ''}(o${k} + i + ${ahead // dt.itemsize});
% endfor
${step(False)}\
    }
    if (i < last) {
      const int m = (int)(last - i);
${step(True)}\
    }
% endif
  }
% if flag:
  if (bad) *flag = 1.0f;
% endif
}
