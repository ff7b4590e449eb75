<%doc>
One reduction of a fused expression on a CPU: nout outputs, nred elements each.
row      a work-item owns outputs and runs vectors along the innermost reduced dim, several accumulators at a time. If
         lanes are real and imaginary parts in turn (`state.paired`), two lanes are left at the end. Lanes of several
         short rows are merged together (`abreast`). `ahead`: elements FURTHER bytes ahead are prefetched.
col      a work-item owns runs of outputs, vectors lie along the innermost kept dim, and reduced dims are looped over.
         The states of rows of `narrow` vectors stay in registers; `rest` numbers of an incomplete last row may follow.
merge    parts of outputs become outputs, sequentially; with `abreast`, cache lines of outputs as vectors.
A GPU's schedules are in reduce/gpu.mako. Where outputs are few, each is cut into `parts` whose states are stored,
part-major, and merged by a second launch. Positions of extremes along the reduced dims on a CPU are in
reduce/first.mako.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="r" file="parts.mako"/>\
<%
L, U = lanes, unroll
def reg(t): return t if L == 1 else f"{t}{L}"
def lane_ids(t): return f"({reg(t)})({', '.join(map(str, range(L)))})"
%>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers(memories, L)}\
## Update the accumulator `acc` with the vector of elements at `at`, of which `m` lanes count.
<%def name="element(acc, at, m, vector='0', position='', some=False)">\
<%
statements, values = reader.element(at, m, compute, vector)
masked = (reader.row or some) and m != str(L) and L > 1
%>\
      {
${r.lines(statements, 8)}\
% if masked:
        const ${reg(state.mask)} ok = ${lane_ids(state.mask)} < (${reg(state.mask)})(${m});
% endif
% if state.needs_index:
        const ${reg(state.index)} at = (${reg(state.index)})((${state.index})(${position}));
% endif
${r.lines(state.update(acc, values, L, 'ok' if masked else '', 'at'), 8)}\
      }
</%def>\
<%def name="prime(accs, at, m, vectors)">\
% if state.prime:
% for acc, vector in zip(accs, vectors):
      {
${r.lines(reader.element(at, m, compute, vector)[0], 8)}\
${r.lines(state.first(acc, ['v0']), 8)}\
      }
% endfor
% endif
</%def>\
<%def name="flush(accs, indent)">\
% if state.block:
${' ' * indent}if (steps >= ${block}) {
% for acc in accs:
${r.lines(state.flush(acc, L), indent + 2)}\
% endfor
${' ' * indent}  steps = 0;
${' ' * indent}}
% endif
</%def>\
<%def name="final_flush(accs)">\
% if state.block:
% for acc in accs:
${r.lines(state.flush(acc, L), 4)}\
% endfor
% endif
</%def>\
% if schedule == 'merge' and abreast:
typedef ${state.base}16 clt_line __attribute__((aligned(${state.dt.itemsize})));
% endif
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(${', '.join(parameters)}) {
% for line in reader.scalars() if reader else ():
  ${line}
% endfor
% if schedule == 'row' and abreast:
## Compute the states of ${L} rows; then merge even with odd lanes, of two rows into one vector, until each lane is the
## state of a row.
  const long g = get_global_id(0), olo = g * ochunk, ohi = min(olo + ochunk, nout);
% for n, t, _ in state.fields:
  ${reg(t)} A_${n}[${L}];
% endfor
  for (long first = olo; first < ohi; first += ${L}) {
    for (int k = 0; k < ${L}; k++) {
      const long o = min(first + k, ohi - 1);
${r.lines(reader.kept_bases('o'), 6)}\
${r.lines(reader.reduced_bases('0'), 6)}\
${r.lines(state.declare('s_', L), 6)}\
      long j = 0;
      for (; j + ${L} <= nred; j += ${L})
${element('s_', 'j', str(L))}\
      if (j < nred) {
        const int m = (int)(nred - j);
${element('s_', 'j', 'm')}\
      }
${r.lines(state.flush('s_', L), 6)}\
% for n, _, _ in state.fields:
      A_${n}[k] = s_${n};
% endfor
    }
% for row in range(L):
% for n, t, _ in state.fields:
    ${reg(t)} r0_${row}_${n} = A_${n}[${row}];
% endfor
% endfor
% for stage in range(1, L.bit_length()):
% for row in range(L >> stage):
<% one, two, d = f'r{stage - 1}_{2 * row}_', f'r{stage - 1}_{2 * row + 1}_', f'r{stage}_{row}_' %>\
% for n, t, _ in state.fields:
    const ${reg(t)} e${d}${n} = (${reg(t)})(${one}${n}.even, ${two}${n}.even), o${d}${n} = (${reg(t)})(${one}${n}.odd, ${two}${n}.odd);
    ${reg(t)} ${d}${n};
% endfor
${r.lines(state.merge(d, 'e' + d, 'o' + d, L), 4)}\
% endfor
% endfor
    const int live = (int)min((long)${L}, ohi - first);
${r.store(f'r{L.bit_length() - 1}_0_', L, 'first', 'live', '0')}\
  }
% elif schedule == 'row':
<%
accs = [f"s{u}_" for u in range(U)]
step = U * L
%>\
  const long g = get_global_id(0), part = g % parts, olo = g / parts * ochunk, ohi = min(olo + ochunk, nout);
  const long rlo = part * pchunk, rhi = min(rlo + pchunk, nred), inner = m${reader.reduced_rank - 1};
  for (long o = olo; o < ohi; o++) {
${r.lines(reader.kept_bases('o'), 4)}\
% for acc in accs:
${r.lines(state.declare(acc, L), 4)}\
% endfor
    long start = rlo, row = rlo / inner, col = rlo - row * inner;
    int steps = 0;
% if state.prime:
    if (start < rhi) {
${r.lines(reader.reduced_bases('row'), 6)}\
      const int m = (int)min((long)${L}, min(inner - col, rhi - start));
${prime(accs[:1], 'col', 'm', ['0'])}\
% for acc in accs[1:]:
      ${acc}k = ${accs[0]}k;
% endfor
    }
% endif
    while (start < rhi) {
      const long run = min(inner - col, rhi - start), end = col + run;
${r.lines(reader.reduced_bases('row'), 6)}\
      long j = col;
% if U * L > 1:
      while (j + ${step} <= end) {
        const long from = j, stop = min(end, j + (${block} - steps) * ${step});
        for (; j + ${step} <= stop; j += ${step}) {
% for u, acc in enumerate(accs):
% for k, (dt, cls) in enumerate(reader.program.leaves):
% if ahead and cls == 'v' and u * L * dt.itemsize % LINE < L * dt.itemsize:
          CLT_PREFETCH(b${k} + j + ${u * L + FURTHER // dt.itemsize});
% endif
% endfor
${element(acc, f'j + {u * L}', str(L))}\
% endfor
        }
        steps += (int)((j - from) / ${step});
${flush(accs, 8)}\
% if not state.block:
        steps = 0;
% endif
      }
% endif
      for (; j < end; j += ${L}) {
% if L > 1:
        const int m = (int)min((long)${L}, end - j);
% endif
${element(accs[0], 'j', 'm' if L > 1 else '1')}\
        steps++;
      }
${flush(accs, 6)}\
% if not state.block:
      steps = 0;
% endif
      start += run; row++; col = 0;
    }
${final_flush(accs)}\
<% alive = list(accs) %>\
% while len(alive) > 1:
% for a, b in zip(alive[::2], alive[1::2]):
${r.lines(state.merge(a, a, b, L), 4)}\
% endfor
<% alive = alive[::2] %>\
% endwhile
<%
width, p = L, accs[0]
%>\
% while width > (2 if state.paired else 1):
<%
half = width // 2
lo, hi, p2 = f"lo{half}_", f"hi{half}_", f"h{half}_"
%>\
% for field, kind, _ in state.fields:
    const ${kind}${half if half > 1 else ''} ${lo}${field} = ${p}${field}.lo, ${hi}${field} = ${p}${field}.hi;
    ${kind}${half if half > 1 else ''} ${p2}${field};
% endfor
${r.lines(state.merge(p2, lo, hi, half), 4)}\
<% width, p = half, p2 %>\
% endwhile
${r.store(p, 1, 'o', '1', 'rlo')}\
  }
% elif schedule == 'col':
## Reduce the outputs at `vectors`, an accumulator in registers each; all are whole vectors but the last, of m lanes.
<%def name="run(accs, m, vectors)">\
<% lanes_of_each = [str(L)] * (len(accs) - 1) + [m] %>\
% for acc in accs:
${r.lines(state.declare(acc, L), 4)}\
% endfor
    long start = rlo, row = rlo / inner, col = rlo - row * inner;
    int steps = 0;
    while (start < rhi) {
      const long run = min(inner - col, rhi - start), end = col + run, skew = start - col - rlo;
${r.lines(reader.reduced_bases('row'), 6)}\
% if state.prime:
      if (start == rlo) {
% for acc, count, vector in zip(accs, lanes_of_each, vectors):
${prime([acc], 'col', count, [vector])}\
% endfor
      }
% endif
      long j = col;
      while (j < end) {
        const long from = j, stop = min(end, j + (${block} - steps));
        for (; j < stop; j += 1) {
% for acc, count, vector in zip(accs, lanes_of_each, vectors):
${element(acc, 'j', count, vector, 'skew + j + 0')}\
% endfor
        }
        steps += (int)(j - from);
${flush(accs, 8)}\
% if not state.block:
        steps = 0;
% endif
      }
      start += run; row++; col = 0;
    }
% if rest:
    if (rhi == nred) { // the last row is followed by `rest` numbers of an incomplete one
${r.lines(reader.reduced_bases('0'), 6)}\
% for acc, vector in zip(accs, vectors):
      {
        const int m = (int)min(rest - ${vector}, (long)${L});
        if (m > 0)
${element(acc, 'nred', 'm', vector, some=True)}\
      }
% endfor
    }
% endif
${final_flush(accs)}\
</%def>\
  const long kinner = n${reader.kept_rank - 1}, inner = m${reader.reduced_rank - 1};
% if narrow:
<% accs = [f's{v}_' for v in range(narrow)] %>\
  const long g = get_global_id(0), part = g % parts, olo = g / parts * ochunk, ohi = min(olo + ochunk, nout);
  const long rlo = part * pchunk, rhi = min(rlo + pchunk, nred);
  const int m = (int)(kinner - ${(narrow - 1) * L});
  for (long o = olo; o < ohi; o += kinner) {
    const long krow = o / kinner;
${r.lines(reader.kept_bases('krow', inner='0'), 4)}\
${run(accs, 'm' if L > 1 else '1', [str(v * L) for v in range(narrow)])}\
% for v, acc in enumerate(accs):
${r.store(acc, L, f'o + {v * L}', str(L) if v < narrow - 1 else 'm', 'rlo')}\
% endfor
  }
% else:
## States of up to ${vectors} vectors lie in memory (first-level cache), so that rows are read in long runs, ${U} rows
## at a time. The arrays begin at different cache lines of a page (+ 5 vectors): else they and the rows would compete
## for the same few cache sets. Short rows are read one by one, as the hardware prefetcher then sees that they follow
## each other. `ahead`: the next rows are prefetched meanwhile.
<%
together = state.together('s_', [f'x{u}' for u in range(U)], L, 'skew + j') if U > 1 else []
every = (*state.fields, *state.block, *(state.beside if together else ()))
def reg(t): return t if L == 1 else f"{t}{L}"
def fetch(): return [f"{reg(t)} s_{n} = A_{n}[w];" for n, t, _ in every]
def keep(): return [f"A_{n}[w] = s_{n};" for n, t, _ in every]
m = 'm' if L > 1 else '1'
%>\
  const long g = get_global_id(0), part = g % parts, olo = g / parts * ochunk, ohi = min(olo + ochunk, nout);
  const long rlo = part * pchunk, rhi = min(rlo + pchunk, nred);
% for n, t, _ in every:
  ${reg(t)} A_${n}[${vectors} + 5];
% endfor
  for (long o = olo; o < ohi;) {
    const long krow = o / kinner, kcol = o - krow * kinner, width = min(min(kinner - kcol, ohi - o), (long)${vectors * L});
    const int vectors = (int)((width + ${L - 1}) / ${L}), full = (int)(width / ${L});
${r.lines(reader.kept_bases('krow', inner='kcol'), 4)}\
    for (int w = 0; w < vectors; w++) {
% for n, t, first in every:
      A_${n}[w] = ${state.initial(first, t, L)};
% endfor
    }
    long start = rlo, row = rlo / inner, col = rlo - row * inner;
    int steps = 0;
    while (start < rhi) {
      const long run = min(inner - col, rhi - start), end = col + run, skew = start - col - rlo;
${r.lines(reader.reduced_bases('row'), 6)}\
% if state.prime:
      if (start == rlo) {
        for (int w = 0; w < vectors; w++) {
          const int m = (int)min((long)${L}, width - w * ${L});
${r.lines(fetch(), 10)}\
${prime(['s_'], 'col', m, [f'w * {L}'])}\
${r.lines(keep(), 10)}\
        }
      }
% endif
      long j = col;
      while (j < end) {
        const long from = j, stop = min(end, j + (${block} - steps));
        for (; j < stop; j += ${U}) {
          int w = 0;
          const int rows = (int)min((long)${U}, stop - j);
% if U > 1 and not ahead:
          if (vectors >= ${short[0]} && vectors <= ${short[2 if together else 1]}) {
            for (long e = j; e < j + rows; e++)
              for (w = 0; w < full; w++) {
${r.lines(fetch(), 16)}\
${element('s_', 'e', str(L), f'w * {L}', 'skew + e')}\
${r.lines(keep(), 16)}\
              }
          } else
% endif
          if (rows == ${U}) {
            for (; w < full; w++) {
${r.lines(fetch(), 14)}\
% for k, (_, cls) in enumerate(reader.program.leaves):
% for u in range(U) if ahead and cls == 'v' else ():
              CLT_PREFETCH_BESIDE(b${k} + (j + ${U + u}) * r${k}_${reader.reduced_rank - 1} + w * ${L});
% endfor
% endfor
% if together:
              ${reg(state.base)} ${', '.join(f'x{u}' for u in range(U))};
% for u in range(U):
              {
${r.lines(reader.element(f'j + {u}', str(L), compute, f'w * {L}')[0], 16)}\
                x${u} = v0;
              }
% endfor
${r.lines(together, 14)}\
% else:
% for u in range(U):
${element('s_', f'j + {u}', str(L), f'w * {L}', f'skew + j + {u}')}\
% endfor
% endif
${r.lines(keep(), 14)}\
            }
          }
          for (; w < vectors; w++) {
            const int m = (int)min((long)${L}, width - w * ${L});
${r.lines(fetch(), 12)}\
            for (long e = j; e < j + rows; e++)
${element('s_', 'e', m, f'w * {L}', 'skew + e')}\
${r.lines(keep(), 12)}\
          }
        }
        j = stop;
        steps += (int)(j - from);
% if state.block:
        if (steps >= ${block}) {
          for (int w = 0; w < vectors; w++) {
${r.lines(fetch(), 12)}\
${r.lines(state.flush('s_', L), 12)}\
${r.lines(keep(), 12)}\
          }
          steps = 0;
        }
% else:
        steps = 0;
% endif
      }
      start += run; row++; col = 0;
    }
    for (int w = 0; w < vectors; w++) {
      const int m = (int)min((long)${L}, width - w * ${L});
${r.lines(fetch(), 6)}\
% if state.block:
${r.lines(state.flush('s_', L), 6)}\
% endif
% if together:
${r.lines(state.settle('s_', L), 6)}\
% endif
${r.store('s_', L, f'o + w * {L}', 'm', 'rlo')}\
    }
    o += width;
  }
% endif
% else:
## Merge a cache line of outputs at a time: taken one by one, the lines that hold their parts would be evicted before
## the next output needs them.
<% line = 16 %>\
  const long olo = get_global_id(0) * ochunk, ohi = min(olo + ochunk, nout);
  for (long begin = olo; begin < ohi; begin += ${line}) {
    const int width = (int)min(ohi - begin, (long)${line});
% for field, kind, _ in state.fields:
    ${kind} A_${field}[${line}] __attribute__((aligned(64)));
% endfor
    for (int k = 0; k < width; k++) {
% for k, (field, _, _) in enumerate(state.fields):
      A_${field}[k] = p${k}[begin + k];
% endfor
    }
% if abreast:
    if (width == ${line}) {
% for k, (field, kind, _) in enumerate(state.fields):
      ${kind}${line} s0_${field} = *(__global const clt_line *)(p${k} + begin);
% endfor
      for (long part = 1; part < parts; part++) {
% for k, (field, kind, _) in enumerate(state.fields):
        const ${kind}${line} s1_${field} = *(__global const clt_line *)(p${k} + part * nout + begin);
% endfor
${r.lines(state.merge('s0_', 's0_', 's1_', line), 8)}\
      }
% for field, kind, _ in state.fields:
      *(${kind}${line} *)A_${field} = s0_${field};
% endfor
    } else
% endif
    for (long part = 1; part < parts; part++)
      for (int k = 0; k < width; k++) {
% for k, (field, kind, _) in enumerate(state.fields):
        const ${kind} s1_${field} = p${k}[part * nout + begin + k];
        ${kind} s0_${field} = A_${field}[k];
% endfor
${r.lines(state.merge('s0_', 's0_', 's1_', 1), 8)}\
% for field, _, _ in state.fields:
        A_${field}[k] = s0_${field};
% endfor
      }
    for (int k = 0; k < width; k++) {
      const long o = begin + k;
% for field, kind, _ in state.fields:
      const ${kind} s0_${field} = A_${field}[k];
% endfor
${r.store('s0_', 1, 'o', '1', '0')}\
    }
  }
% endif
}
