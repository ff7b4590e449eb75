<%doc>
Computes along rows (sets of elements) on a CPU: stages that pass over a row and accumulate, then a pass that stores. A
row stays in cache between passes. A Kind (codegen/reduce/row_kinds.py) has the formulas. What it keeps between passes
waits in the result, or, if that has another type or non-temporal stores (`streams`), in scratch memory of one row per
work-item (`scratch`).
`streams`, PEELED: the elements before a row's first whole cache line are stored separately, with plain stores.
`ahead`: (least, most) elements of rows whose next row is prefetched while the last stage computes exponentials, or else
while the row is stored. While the first stage reads a run of a row, the next run, which lies elsewhere, is prefetched.
In col: (elements of a step, at least; steps ahead).
row: vectors along the innermost reduced dim. For a Kind with `near`, the first stage's result is guessed from a row's
first elements, and computed by a pass only if the second stage then finds that the guess was not near.
col: vectors across neighbouring rows. A GPU's schedules are in rowwise/gpu.mako.
`reader.turned`: an operand whose rows are strided and whose neighbouring rows are adjacent in memory: a work-item
transposes several rows into its own memory when it reaches the first of them.
`overlap`: a row's last elements, fewer than a vector's lanes, are taken in a vector that overlaps the one before and
whose other elements do not count, as partial vectors take many instructions.
`blocks`: this many elements of a long row at a time go through both stages while they are in cache. Sums and kept
values are relative to the largest element up to a block's end, and rescaled to the row's largest at the end.
`abreast`: this many short rows go through a stage before the next begins, so that their dependency chains overlap. A
row's results are lanes of the vectors A_<name>, and what a stage assigns once per row is computed for all at once.
The next rows are prefetched meanwhile.
Sums are taken in blocks, which keeps long ones accurate; those over rows (`columns`) in blocks of `height` rows, too,
stored in lines of `pitch` numbers. What names in the kernel's text mean is said in codegen/reduce/rowwise.py.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="turned_rows" file="/rowwise/turn.mako"/>\
<%! from cltensor.codegen.reduce.states import LOWER %>\
<%
L, U = lanes, unroll
T, S = dt.reg, f"{dt.reg}{L}" if L > 1 else dt.reg
M = mask if L == 1 else f"{mask}{L}"
row, wide, turned = reader.row, not reader.row, reader.turned
ids = f"({M})({', '.join(map(str, range(L)))})"
memory = memories[out.code]
vector = f'w * {L}' if wide else '0'
exp, raised = f'clt_exp_neg_{S}', f"clt_exp_{'brief' if brief else 'raised'}_{S}"
lower, log = f'({S})({LOWER[T]})', f'log_{S}' if T == 'float' else 'log'
rank = reader.reduced_rank
inner = 'until' if blocks else f'm{rank - 1}'
names = kind.names()
asking = kind.stages[-1] if kind.heavy else None # the stage of the exponentials, during which the next row is prefetched
guessing = bool(kind.near) and row and not abreast
first_read = kind.stages[guessing] if kind.stages else None
pitch = f'(nred + nred / {blocks} + {L})' if blocks else f'(nred + {L})'
at_run = f' + run * {inner}' if rank > 1 else ''
first_run = len(kind.rows + kind.each + kind.pick) + bool(kind.pick)
first_column = first_run + len(kind.runs)
vectors = [k for k, (_, cls) in enumerate(reader.program.leaves) if cls == 'v' and k != turned]
size = 0 if turned is None else reader.types[turned].itemsize
def spell(t): return t.format(S=S, M=M, exp=exp, raised=raised, lower=lower, log=log) # a formula of a Kind as OpenCL C
def more(text, part, only):
    "A sum and one element more, `text`: an exponential is added in the instruction that ends it."
    if brief or not text.startswith('{raised}('): return f'{only(spell(text))} + {part}'
    def added(sum): return spell(text.replace('{raised}(', f'clt_exp_added_{S}({sum}, '))
    alone = added(f'({S})(0)')
    return added(part) if only(alone) == alone else f'{only(alone)} + {part}'
# On some drivers min() is a call into a library.
def less(a, b): return f'({a} < {b} ? {a} : {b})'
def own(stage): return [name for name, _ in stage.runs or stage.sums] # what a stage accumulates element by element
def least(name): return '-INFINITY' if name == 'top' else '0'
def join(name, a, b): return f'({a} > {b} ? {a} : {b})' if name == 'top' else f'{a} + {b}'
def fold(name):
    "Statements that leave in every lane what all of them come to."
    out, width, value = [], L * row, name
    while width > 1:
        width //= 2
        half = f'{T}{width}' if width > 1 else T
        out.append(f'const {half} lo{width} = {value}.lo, hi{width} = {value}.hi, f{width} = {join(name, f"lo{width}", f"hi{width}")};')
        value = f'f{width}'
    return ['{', *out, f'{name} = ({S})({value});', '}'] if out else []
def result_row(at, base, rank): # statements that find where row number `at` of the result begins: zh, from `base` on
    if not kind.store: return ()
    inner = [f'zh += (zq % n{d}) * z_{d}; zq /= n{d};' for d in reversed(range(1, rank))]
    return [f'long zq = {at}, zh = {base};', *inner, *['zh += zq * z_0;'] * (rank > 0)]
def next_of(k): # elements from where operand k is read to where it is prefetched: in the next row, block or step
    step = f's{k}_{reader.kept_rank - 1}' if row else f'r{k}_{rank - 1}'
    if abreast or blocks: return f'{step} * {abreast}' if abreast else f'{blocks}'
    if row: return f'nred >= {ahead[0]} && nred <= {ahead[1]} ? {step} : 0'
    return f'{step} >= {ahead[0]} ? {step} * {ahead[1]} : 0'
def ended(stage): return [f'{name} = {spell(value)};' for name, value in stage.after] # what a stage assigns once per row
def held(stage): # the results of earlier stages, or all of them where elements are stored
    return [n for s in kind.stages[:kind.stages.index(stage)] for n in s.names()] if stage else names
%>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers(memories, L)}\
% if scratch or kind.columns:
typedef ${S} u_kept __attribute__((aligned(${dt.itemsize})));
% endif
% if turned is not None:
${turned_rows.helper(storage[size], size, LINE, turn)}\
% endif
% if kind.pick:
static inline void clt_note(__global long *status, const long value) {
  if (status[0]) return;
  status[0] = 1; status[1] = value; status[2] = 0; status[3] = 0;
}
% endif
<%def name="lines(items, indent)">\
% for item in items:
${' ' * indent}${item}
% endfor
</%def>\
## Accumulate, or without a stage store, one vector of elements at `at`, of which `m` lanes count. With `late`, all m
## lanes are loaded and only the last `late` of them count.
<%def name="element(stage, at, m, u=0, late='')">\
<%
statements, _ = reader.element('at', m, compute, vector)
placed = f'({M})(({mask})at)' + f' + {ids}' * (row and L > 1)
masked = row and (m != str(L) or late) and L > 1
whole = m == str(L) and not late
place = "q0 + zb + at * z_r" if row and not dense_out else "q0 + zb + at" if row else "q0 + zb + at * z_r" + (f" + w * {L}" + ("" if dense_out else " * z_k") if wide else "")
def put(value):
    if L == 1: return memory.scalar_store(place, value)
    if streams and whole: return f"CLT_STREAM({value}, (__global {memory.reg} *)({place}))"
    if dense_out: return f"store_{out.code}({place}, {value}, {m})"
    return f"scatter_{out.code}({place}, {'z_r' if row else 'z_k'}, {value}, {m})"
waiting = "*(__global u_kept *)(kb + at)"
def got():
    if late and not scratch: return 'ending'
    if scratch: return waiting
    if L == 1: return memory.scalar_load(place)
    return f"load_{out.code}({place}, {m})" if dense_out else f"gather_{out.code}({place}, {'z_r' if row else 'z_k'}, {m})"
def only(value, name=''): return f"(ok ? {value} : ({S})({least(name)}))" if masked else value
%>\
        {
        const long at = ${at};
% if whole and (stage is asking if row else stage):
% for k in vectors:
        CLT_PREFETCH(b${k} + ${'at' if row else f'at * r{k}_{rank - 1} + w * {L}'} + ahead${k});
% endfor
% endif
% if rank > 1 and row and first_read and stage is first_read is not asking and whole:
% for k in vectors:
        CLT_PREFETCH(b${k} + at + r${k}_${rank - 2});
% endfor
% endif
% if rank > 1 and row and stage is None and kind.store and not streams and whole:
        CLT_PREFETCH_TO_WRITE(q0 + zb + at + zr_${rank - 2});
% endif
% if masked:
        const ${M} ok = ${f'{ids} >= ({M})({L} - {late})' if late else f'{ids} < ({M})({m})'};
% endif
% if stage is None and kind.keep:
        const ${S} kept = ${got()}${' * fallen' if blocks else ''};
% else:
${lines(statements, 8)}\
% if kind.positions:
        const ${M} position = ${placed};
% endif
% for name, value in kind.define:
        ${'' if kind.spot and name == kind.spot[0] else 'const '}${S} ${name} = ${spell(value)};
% endfor
% if kind.spot:
        ${f'if ((ulong)(v{kind.spot[1]}.s0 - at) < {L}) ' * (row and L > 1)}${kind.spot[0]} = ${placed} == v${kind.spot[1]} ? ${spell(kind.spot[2])} : ${kind.spot[0]};
% endif
% endif
% if stage is None:
% for k, text in enumerate(kind.columns):
        *(__global u_kept *)(cb${k} + at) += ${only(spell(text))};
% endfor
        ${put(spell(kind.store) if dt.reg == out.reg and L > 1 else convert(spell(kind.store), dt, out, L))};
% else:
% if kind.keep and stage is kind.stages[-1]:
        const ${S} kept = ${spell(kind.keep)};
        ${waiting + ' = kept' if scratch else put('kept')};
% endif
% for name, value in stage.runs or stage.sums:
        part_${name}${u} = ${join(name, only(spell(value), name), f'part_{name}{u}') if name == 'top' else more(value, f'part_{name}{u}', only)};
% endfor
% endif
        }
</%def>\
## Begin the loop over the runs of a row; the caller closes it.
<%def name="outer_begin()">\
% if rank > 1:
    for (long run = 0, runs = nred / ${inner}; run < runs; run++) {
% else:
    {
% endif
${lines(reader.reduced_bases('run' if rank > 1 else '0'), 6)}\
% if scratch:
    __global ${T} *kb = spare + ${f'(get_global_id(0) * {abreast} + k)' if abreast else 'get_global_id(0)'} * ${pitch}${at_run};
% endif
% for k in range(len(kind.columns)):
    __global ${T} *cb${k} = row${first_column + k} + o / height * pitch${at_run};
% endfor
% if kind.store:
    const long zb = zh${''.join(f' + y{d} * zr_{d}' for d in range(rank - 1))};
% endif
    long j = ${'from' if blocks else '0'};
</%def>\
<%def name="flush(stage, us)">\
% for name in own(stage):
% for u in us:
% if name != 'top':
      ${name} += part_${name}${u}; part_${name}${u} = (${S})(0);
% endif
% endfor
% endfor
</%def>\
## A pass over a row, or over neighbouring rows: what `stage` accumulates, or, if it is None, the stores.
<%def name="walk(stage)">\
<%
us = range(U if stage else 1)
if stage and own(stage) == ['top'] and row and L > 1: us = range(4)  # independent accumulators: else each step would wait for the one before
%>\
% if abreast:
% for name in held(stage):
    const ${S} ${name} = (${S})(A_${name}[k]);
% endfor
% if stage and own(stage):
    ${S} ${', '.join(own(stage))};
% endif
% endif
% if stage and not wide:
${lines([f'{name} = ({S})(0);' for name, _ in stage.sums if stage.runs], 4)}\
% for name in own(stage):
    ${name} = (${S})(${least(name)});
    ${S} ${', '.join(f'part_{name}{u} = {name}' for u in us)};
% endfor
% endif
% if wide:
% if stage:
    for (int w = 0; w < vectors; w++) {
% for name in own(stage):
      A_${name}[w] = P_${name}[w] = (${S})(${least(name)});
% endfor
    }
% endif
${outer_begin()}\
    while (j < ${inner}) {
      const long stop = ${less(inner, f'j + {block}')};
      for (; j < stop; j++) {
        int w = 0;
        const int full = (int)(width / ${L});
% for goes, m in (('w < full', str(L)), ('w < vectors', 'm')) if L > 1 else (('w < vectors', '1'),):
        for (; ${goes}; w++) {
% if m == 'm':
          const int m = (int)(width - w * ${L});
% endif
% for name in held(stage):
          const ${S} ${name} = A_${name}[w];
% endfor
% for name in own(stage) if stage else ():
          ${S} part_${name}0 = P_${name}[w];
% endfor
${element(stage, 'j', m)}\
% for name in own(stage) if stage else ():
          P_${name}[w] = part_${name}0;
% endfor
        }
% endfor
      }
% if stage:
      for (int w = 0; w < vectors; w++) {
% for name in own(stage):
        A_${name}[w] = ${'P_' + name + '[w]' if name == 'top' else f'A_{name}[w] + P_{name}[w]'};
% if name != 'top':
        P_${name}[w] = (${S})(0);
% endif
% endfor
      }
% endif
    }
    }
% if stage and stage.after:
    for (int w = 0; w < vectors; w++) {
% for name in dict.fromkeys(stage.names() + held(stage)):
      ${S} ${name} = A_${name}[w];
% endfor
% for name, value in stage.after:
      ${name} = ${spell(value)};
      A_${name}[w] = ${name};
% endfor
    }
% endif
% else:
${outer_begin()}\
% if stage and stage.runs:
    ${' '.join(f'{name} = ' + ''.join(f'part_{name}{u} = ' for u in us) + f'({S})(0);' for name in own(stage))}
% endif
% if row and L > 1:
<%
overlapped = overlap and not (stage is None and streams)
ending = overlapped and stage is None and kind.keep and not scratch # kept values that the vector before the overlapping one overwrites
%>\
% if ending:
    ${S} ending;
    if (${inner} >= ${L}) {
      const long at = ${inner} - ${L};
      ending = ${f"load_{out.code}(q0 + zb + at, {L})" if dense_out else f"gather_{out.code}(q0 + zb + at * z_r, z_r, {L})"};
    }
% endif
% if not stage and streams == PEELED:
    if ((size_t)(q0 + zb + j) % ${L * out.itemsize}) {
      const long before = ${L} - (size_t)(q0 + zb + j) / ${out.itemsize} % ${L};
      const int m = (int)${less(f'{inner} - j', 'before')};
${element(stage, 'j', 'm')}\
      j += m;
    }
% endif
    while (j + ${len(us) * L} <= ${inner}) {
      const long stop = ${less(inner, f'j + {block * len(us) * L}')};
      for (; j + ${len(us) * L} <= stop; j += ${len(us) * L}) {
% for u in us:
${element(stage, f'j + {u * L}' if u else 'j', str(L), u)}\
% endfor
      }
% if stage:
${flush(stage, us)}\
% endif
    }
% if overlapped:
% if len(us) > 1:
    for (; j + ${L} <= ${inner}; j += ${L})
${element(stage, 'j', str(L))}\
% endif
    if (j < ${inner}) {
      const int m = (int)(${inner} - j);
      if (${inner} >= ${L})
${element(stage, f'{inner} - {L}', str(L), 0, 'm')}\
      else
${element(stage, 'j', 'm')}\
    }
% else:
    for (; j < ${inner}; j += ${L}) {
      const int m = (int)${less(inner + ' - j', f'{L}')};
${element(stage, 'j', 'm')}\
    }
% endif
% else:
    while (j < ${inner}) {
      const long stop = ${less(inner, f'j + {block}')};
      for (; j < stop; j += 1) {
${element(stage, 'j', '1')}\
      }
% if stage:
${flush(stage, us)}\
% endif
    }
% endif
% if stage and stage.runs:
${folded(stage, us)}\
${run_end(stage)}\
% endif
    }
% if stage:
% if not stage.runs:
${folded(stage, us)}\
% endif
% if abreast:
% for name in own(stage):
    A_${name}[k] = ${name}.s0;
% endfor
% else:
${lines(ended(stage) if not blocks else (), 4)}\
% endif
% endif
% endif
</%def>\
<%def name="folded(stage, us)">\
% for name in own(stage):
% for u in us:
    ${name} = ${join(name, f'part_{name}{u}', name)};
% endfor
${lines(fold(name), 4)}\
% endfor
</%def>\
## Store a run's results, and add them to the sums of its row.
<%def name="run_end(stage)">\
    {
      const int m = (int)${less(inner, f'{L}')};
${lines(reader.element('0', 'm' if L > 1 else '1', compute, vector)[0], 6)}\
% for name, value in stage.sums:
      ${name} += ${spell(value)};
% endfor
% for name, _ in stage.runs:
      row${first_run + kind.runs.index(name)}[${f'o * (nred / {inner}) + run' if rank > 1 else 'o'}] = ${name + ('.s0' if L > 1 else '')};
% endfor
    }
</%def>\
## Run both stages block by block (see `blocks`), then the storing pass. The last block is up to twice as long.
<%def name="in_blocks()">\
<%
(first, last), every = kind.stages, f"for (long from = 0, until, block = 0; from < nred; from = until, block++)"
lowest, bound = f'({S})(-INFINITY)', f'until = nred - from < {2 * blocks} ? nred : from + {blocks};'
%>\
    ${S} highest = ${lowest}, sum = (${S})(0);
% if kind.keep:
    __global ${T} *tops = spare + get_global_id(0) * ${pitch} + nred + ${L}; // behind the last vector
% endif
    ${every} {
      ${bound}
      {
${walk(first)}\
      }
      top = highest > top ? highest : top;
      if (top.s0 > highest.s0) { sum *= ${exp}(highest - top); highest = top; }
% if kind.keep:
      tops[block] = top.s0;
% endif
      top = highest == ${lowest} ? (${S})(0) : highest; // all elements so far are -inf
      {
${walk(last)}\
      }
      sum += highest == ${lowest} & total == total ? (${S})(0) : total;
    }
    top = highest; total = sum;
${lines(ended(last), 4)}\
% if kind.store:
    ${every} {
      ${bound}
% if kind.keep:
      const ${S} fallen = ${exp}((${S})(tops[block]) - top);
% endif
${walk(None)}\
    }
% endif
</%def>\
## Guess the first stage's result, a mean, from the row's first vector alone.
<%def name="guess(name)">\
    {
${lines(reader.reduced_bases('0'), 6)}\
      const int m = (int)${less(inner, f'{L}')};
${lines(reader.element('0', 'm' if L > 1 else '1', compute, vector)[0], 6)}\
      ${name} = ${f'({ids} < ({M})(m) ? v0 : ({S})(0))' if L > 1 else 'v0'};
${lines(fold(name), 4)}\
      ${name} = ${name} / (${S})((${T})m);
    }
</%def>\
## Store the numbers of row `at` (`each`, `pick`) and its target, -1 if it does not count. `sums`: the row's names in C.
<%def name="pick(at, sums, column)">\
<%
statements, _ = scalar.element('hit', '1', compute, column)
places = {name: name + '1' for name in sums}
first = len(kind.each)
def plain(text): return text.format(count='count1', **places)
%>\
      {
${lines(reader.reduced_bases('0'), 8)}\
        const long target = targets[${at}];
        const ${T} count1 = (${T})nred;
% for name, value in sums.items():
        const ${T} ${places[name]} = ${value};
% endfor
        ${T} ${', '.join(f'found{k} = 0' for k in range(len(kind.pick)))};
        int hit = -1;
        if (target != ignore) {
          if (target < 0 || target >= nred) clt_note(status, target);
          else {
            hit = (int)target;
% for line in scalar.scalars() if L > 1 else ():
            ${line}
% endfor
${lines(statements, 12)}\
% for k, text in enumerate(kind.pick):
            found${k} = ${plain(text)};
% endfor
          }
        }
% for k, text in enumerate(kind.each):
        row${k}[${at}] = ${plain(text)};
% endfor
% for k in range(len(kind.pick)):
        row${first + k}[${at}] = found${k};
% endfor
        row${first + len(kind.pick)}[${at}] = hit;
      }
</%def>\
<%def name="finish()">\
% if wide or abreast:
% if kind.rows or kind.pick:
    for (int k = 0; k < ${'live' if abreast else 'width'}; k++) {
% for k, name in enumerate(kind.rows):
      row${k}[o + k] = ((${T} *)A_${name})[k];
% endfor
% if abreast and kind.pick:
${lines(reader.kept_bases('o + k'), 6)}\
% endif
% if kind.pick:
${pick('o + k', {name: f'((const {T} *)A_{name})[k]' for name in names}, '0' if abreast else 'k')}\
% endif
    }
% endif
% else:
% for k, name in enumerate(kind.rows):
    row${k}[o] = ${name + ('.s0' if L > 1 else '')};
% endfor
% if kind.pick:
${pick('o', {name: name + ('.s0' if L > 1 else '') for name in names}, '0')}\
% endif
% endif
</%def>\
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(${', '.join(parameters)}) {
% for line in reader.scalars():
  ${line}
% endfor
  const ${S} count = (${S})((${T})nred);
% if kind.pick:
  targets += origin;
  status += slot + 4 * get_global_id(0);
% endif
  const long lo = get_global_id(0) * chunk, hi = ${less('lo + chunk', 'nout')};
% for k in vectors:
  const long ahead${k} = ${next_of(k)};
% endfor
% if wide:
% for name in names:
  ${S} A_${name}[${wide_vectors}];
% endfor
% for name in sorted({name for stage in kind.stages for name in own(stage)}):
  ${S} P_${name}[${wide_vectors}];
% endfor
% endif
% if turned is not None:
  const long across = ((nred + ${LINE // size - 1}) / ${LINE // size} | 1) * ${LINE // size};
  __global clt_of_row *const turned = aside + get_global_id(0) * at_once * across;
  long begun = lo, ended = lo;
% endif
% if abreast:
% for name in names:
  ${T} A_${name}[${abreast}] __attribute__((aligned(${abreast * dt.itemsize})));
% endfor
  for (int k = 0; k < ${abreast}; k++) ${' = '.join(f'A_{name}[k]' for name in names)} = 0;
  for (long o = lo; o < hi; o += ${abreast}) {
    const int live = (int)${less(f'{abreast}L', 'hi - o')};
% for stage in (*kind.stages, None) if kind.store else kind.stages:
    for (int k = 0; k < live; k++) {
${lines(reader.kept_bases('o + k'), 6)}\
${lines(result_row('o + k', '0', reader.kept_rank), 6)}\
${walk(stage)}\
    }
% if stage and stage.after:
    {
% for name in dict.fromkeys(held(stage) + stage.names()):
      ${S} ${name} = *(${S} *)A_${name};
% endfor
% for name, value in stage.after:
      ${name} = ${spell(value)};
      *(${S} *)A_${name} = ${name};
% endfor
    }
% endif
% endfor
${finish()}\
  }
% else:
  for (long o = lo; o < hi;) {
% if row:
${lines(reader.kept_bases('o'), 4)}\
% if turned is not None:
    if (o == ended) {
      const long beside = n${reader.kept_rank - 1} - o % n${reader.kept_rank - 1}, left = ${less('at_once', 'hi - o')};
      begun = o;
      ended = o + ${less('beside', 'left')};
      turn_rows(turned, across, (__global const clt_of_row *)h${turned}, r${turned}_0, ended - o, nred);
    }
% endif
${lines(result_row('o', '0', reader.kept_rank), 4)}\
% else:
    const long kinner = n${reader.kept_rank - 1}, krow = o / kinner, kcol = o - krow * kinner;
    const long width = min(min(kinner - kcol, hi - o), (long)${wide_vectors * L});
    const int vectors = (int)((width + ${L - 1}) / ${L});
${lines(reader.kept_bases('krow', inner='kcol'), 4)}\
${lines(result_row('krow', 'kcol * z_k', reader.kept_rank - 1), 4)}\
% endif
% if not wide and names:
    ${S} ${', '.join(names)};
% endif
% if kind.columns:
    if (o % height == 0) {
% for k in range(len(kind.columns)):
      for (long j = 0; j < pitch; j++) row${first_column + k}[o / height * pitch + j] = 0;
% endfor
    }
% endif
% if guessing:
${guess(*kind.stages[0].names())}\
    for (int again = 0;; again = 1) {
    if (again) {
${walk(kind.stages[0])}\
    }
${walk(kind.stages[1])}\
    if (again || (${spell(kind.near)})${'.s0' if L > 1 else ''}) break;
    }
% endif
% if blocks:
${in_blocks()}\
% else:
% for stage in (*kind.stages[2 * guessing:], None) if kind.store else kind.stages[2 * guessing:]:
${walk(stage)}\
% endfor
% endif
${finish()}\
    o += ${'width' if wide else '1'};
  }
% endif
}
